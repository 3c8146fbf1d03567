//! Finds and makes the rule of a place that is met for the first time, and owns what rules refer to.
//!
//! The order: signal trampolines by their instructions, call frame information of files and JIT
//! records, then guesses. A `ret` under the ip of a leaf goes before everything.

use std::ops::Range;
use std::sync::Arc;

use gimli::UnwindContext;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::arch::{Architecture, SIGRETURN_BYTES};
use super::cfi::{CfiTables, FdeRef, FileCfi, IndexEntry, Table, lookup};
use super::flow::{Flow, FlowsOf, Function};
use super::jit::{CodeView, Habit};
use super::rows::{RowRange, Rows};
use super::rules::{
    Candidate, CandidateList, Candidates, Check, ComplexId, IN_REGISTER, Kind, Pool, Rule, Saved,
    SavedSets,
};
use super::{CodeLocation, CodeSpace, FrameOrigin, go, hosted};
use crate::address::{Avma, FileOffset, Svma};
use crate::dso::originals::is_of_haskell;
use crate::dso::{DsoId, elf::ElfFile};
use crate::ids::{IndexVec, Spare, numbers};
use crate::jit::{JitCode, JitCodeId, JitObjectId, JitUnwinding};
use crate::runtimes::HostLoop;

numbers! {
    /// An unwinding record that came with JIT code.
    struct RecordId(Spare);
}

/// Makes the rules of one thread.
pub(super) struct RuleMaker<'a, A: Architecture> {
    tables: Arc<CfiTables<'a>>,
    files: FxHashMap<DsoId, Arc<FileCfi<'a>>>,
    file_rows: FxHashMap<(DsoId, FdeRef), RowRange>,
    /// The record of each piece of JIT code that was met, by its number.
    jit: FxHashMap<JitCodeId, Option<RecordId>>,
    records: IndexVec<RecordId, JitRecord<'a>>,
    record_numbers: FxHashMap<(usize, usize, Avma), RecordId>,
    rows: Rows,
    flows: FlowsOf,
    pub(super) candidates: Pool<CandidateList, Candidate>,
    complex: IndexVec<ComplexId, Complex>,
    /// The rule in the body of the loop of its host in which the code of a dump runs.
    hosted: FxHashMap<JitObjectId, Rule>,
    /// Of functions with a frame pointer, by their start; for [`RuleMaker::without_frame_pointer`].
    full_flows: FxHashMap<(DsoId, FileOffset), Option<Flow>>,
    /// Files that were asked whether they are Haskell's.
    haskell: FxHashMap<DsoId, bool>,
    /// Scratch space of the evaluation of rows.
    pub(super) context: UnwindContext<usize>,
    arch: std::marker::PhantomData<A>,
}

/// A rule that has to be evaluated where it is met.
#[derive(Clone, Copy, Debug)]
pub(super) struct Complex {
    pub(super) fde: FdeRef,
    pub(super) svma: u64,
}

impl<'a, A: Architecture> RuleMaker<'a, A> {
    pub(super) fn new(tables: Arc<CfiTables<'a>>) -> Self {
        Self {
            tables,
            files: FxHashMap::default(),
            file_rows: FxHashMap::default(),
            jit: FxHashMap::default(),
            records: IndexVec::new(),
            record_numbers: FxHashMap::default(),
            rows: Rows::new(),
            flows: FxHashMap::default(),
            candidates: Pool::new(),
            complex: IndexVec::new(),
            hosted: FxHashMap::default(),
            full_flows: FxHashMap::default(),
            haskell: FxHashMap::default(),
            context: UnwindContext::new(),
            arch: std::marker::PhantomData,
        }
    }

    /// The rule for a place; `leaf` if it is an ip.
    pub(super) fn rule<S: CodeSpace<'a>>(
        &mut self,
        place: &CodeLocation<'_, 'a>,
        leaf: bool,
        space: &S,
    ) -> Rule {
        match *place {
            CodeLocation::File {
                dso,
                offset,
                binary,
                debug,
            } => self.file_rule(dso, offset, binary, debug, leaf, space),
            CodeLocation::Jit { id, code, offset } => self.jit_rule(id, code, offset, leaf, space),
            CodeLocation::Anonymous | CodeLocation::Nothing => self.unknown_code(leaf),
        }
    }

    /// Files whose call frame information was asked for.
    pub(super) fn files(&self) -> impl Iterator<Item = DsoId> + '_ {
        self.files.keys().copied()
    }

    /// What a file itself says of a place, without a look at its code.
    pub(super) fn stated(&mut self, place: &CodeLocation<'_, 'a>) -> Rule {
        let CodeLocation::File {
            dso,
            offset,
            binary,
            debug,
        } = *place
        else {
            return Rule::NONE;
        };
        let Some(svma) = binary.or(debug).and_then(|image| image.svma_of(offset)) else {
            return Rule::NONE;
        };
        let cfi = self.cfi_of(dso, binary, debug);
        match (cfi.find(svma, binary, debug), &cfi.go) {
            (Some(fde), _) => self.rule_from_fde(dso, &cfi, fde, svma),
            (None, Some(table)) => go::rule::<A>(table, svma).unwrap_or(Rule::NONE),
            (None, None) => Rule::NONE,
        }
    }

    /// Whether a signal's handler returned to a place, or does so behind it.
    pub(super) fn is_sigreturn(place: &CodeLocation<'_, 'a>) -> bool {
        let CodeLocation::File {
            offset,
            binary: Some(image),
            ..
        } = *place
        else {
            return false;
        };
        let behind = image.bytes_from(offset.plus(1), 32);
        is_in_sigreturn::<A>(image, offset) || A::sigreturn_len(behind).is_some()
    }

    /// Whether a place lies in a file that Go's compiler made.
    pub(super) fn is_go(&mut self, place: &CodeLocation<'_, 'a>) -> bool {
        let CodeLocation::File {
            dso, binary, debug, ..
        } = *place
        else {
            return false;
        };
        self.cfi_of(dso, binary, debug).go.is_some()
    }

    /// Whether a place lies in a file with code of GHC's runtime, which all that it compiles is linked with.
    #[cold]
    pub(super) fn is_haskell(&mut self, place: &CodeLocation<'_, 'a>) -> bool {
        let CodeLocation::File {
            dso, binary, debug, ..
        } = *place
        else {
            return false;
        };
        let is_of = || is_of_haskell([binary, debug]);
        *self.haskell.entry(dso).or_insert_with(is_of)
    }

    /// Where frames saved registers.
    pub(super) fn saved(&self) -> &SavedSets {
        &self.rows.saved
    }

    /// A complex rule by its number.
    pub(super) fn complex(&self, id: ComplexId) -> Option<Complex> {
        self.complex.get(id).copied()
    }

    fn unknown_code(&mut self, leaf: bool) -> Rule {
        self.unknown_file(leaf, Candidates::new())
    }

    /// The rule for code of which nothing is at hand, after what is known of its like.
    fn unknown_file(&mut self, leaf: bool, mut candidates: Candidates) -> Rule {
        let view = CodeView {
            code: &[],
            at: 1,
            size: None,
            leaf,
            habit: Habit::Unknown,
        };
        candidates.extend(self.guesses(&view, None));
        self.candidate_rule(&candidates)
    }

    /// The rule for code without call frame information; `function` names it if its bounds are known.
    fn guess(&mut self, view: &CodeView<'_>, function: Option<Function>) -> Rule {
        if view.habit == Habit::ErlangBase {
            return Rule::of_kind(Kind::End);
        }
        let candidates = self.guesses(view, function);
        self.candidate_rule(&candidates)
    }

    fn guesses(&mut self, view: &CodeView<'_>, function: Option<Function>) -> Candidates {
        let flow = match function.filter(|_| A::may_follow(view)) {
            None => None,
            Some(function) => {
                let key = (function, view.leaf);
                let known = self.flows.entry(key);
                let shared = &self.tables.flows;
                known
                    .or_insert_with(|| shared.get(key, || A::flow(view)))
                    .as_deref()
            }
        };
        let mut candidates = Candidates::new();
        A::guess(view, flow, &mut candidates);
        candidates
    }

    /// The rule for code without frames of its own, if the file with the function is at hand in whose frame it runs.
    fn hosted_rule<S: CodeSpace<'a>>(
        &mut self,
        host: &HostLoop,
        code: JitCode<'_, 'a>,
        space: &S,
    ) -> Option<Rule> {
        let known = self.hosted.get(&code.object()).copied();
        let body = known.unwrap_or_else(|| {
            let body = self.body_of(host, space).unwrap_or(Rule::NONE);
            self.hosted.insert(code.object(), body);
            body
        });
        let candidates = hosted::candidates(&body, code.name().starts_with(host.saves_all));
        (!candidates.is_empty()).then(|| self.candidate_rule(&candidates))
    }

    /// The rule in the body of an interpreter's loop.
    fn body_of<S: CodeSpace<'a>>(&mut self, host: &HostLoop, space: &S) -> Option<Rule> {
        let (place, svma) = hosted::interpreter(host, space)?;
        let CodeLocation::File {
            dso, binary, debug, ..
        } = place
        else {
            return None;
        };
        let cfi = self.cfi_of(dso, binary, debug);
        let fde = cfi.find(svma, binary, debug)?;
        self.rule_from_fde(dso, &cfi, fde, svma);
        Some(self.rows.body(*self.file_rows.get(&(dso, fde))?))
    }

    fn cfi_of(
        &mut self,
        dso: DsoId,
        binary: Option<&ElfFile<'a>>,
        debug: Option<&ElfFile<'a>>,
    ) -> Arc<FileCfi<'a>> {
        let tables = &self.tables;
        let files = self.files.entry(dso);
        Arc::clone(files.or_insert_with(|| tables.file(dso, binary, debug)))
    }

    fn candidate_rule(&mut self, candidates: &[Candidate]) -> Rule {
        Rule::guess(self.candidates.intern(candidates))
    }

    fn file_rule<S: CodeSpace<'a>>(
        &mut self,
        dso: DsoId,
        offset: FileOffset,
        binary: Option<&ElfFile<'a>>,
        debug: Option<&ElfFile<'a>>,
        leaf: bool,
        space: &S,
    ) -> Rule {
        let Some(image) = binary.or(debug) else {
            let is_vdso = space.is_vdso(dso);
            return if is_vdso && leaf {
                self.unknown_file(leaf, A::vdso())
            } else if is_vdso && A::HANDLERS_RETURN_TO_VDSO {
                Rule::of_kind(Kind::Sigreturn)
            } else {
                self.unknown_code(leaf)
            };
        };
        // The code at the ip, or at the return address.
        let code = image.bytes_from(offset.plus(u64::from(!leaf)), 32);
        if A::sigreturn_len(code).is_some() || leaf && is_in_sigreturn::<A>(image, offset) {
            return Rule::of_kind(Kind::Sigreturn);
        }
        let Some(svma) = image.svma_of(offset) else {
            return self.unknown_code(leaf);
        };
        let cfi = self.cfi_of(dso, binary, debug);
        let go = cfi.go.as_ref();
        if !leaf && let Some(base) = go.and_then(|table| go::base(table, svma)) {
            return base;
        }
        let stated = match cfi.find(svma, binary, debug) {
            Some(fde) => self.rule_from_fde(dso, &cfi, fde, svma),
            None => Rule::NONE,
        };
        let rule = match go.filter(|_| stated.kind == Kind::None) {
            Some(table) => go::rule::<A>(table, svma).unwrap_or(stated),
            None => stated,
        };
        if rule.kind == Kind::None {
            let files = (dso, &*cfi, image);
            if !leaf && self.begins_behind(files, svma, offset) == Some(true) {
                return Rule::of_kind(Kind::End);
            }
            let tabled = self.tabled(&cfi, svma);
            return match tabled.filter(|_| !leaf) {
                Some(known) => known,
                None => {
                    let guess = self.file_code(dso, offset, image, leaf, &cfi, space);
                    let combined = self.or_else(guess, tabled);
                    let leads_on = !self.candidates.get(combined.candidates()).is_empty();
                    if !leaf && !leads_on && A::is_base(image, offset.plus(1)) {
                        return Rule::of_kind(Kind::End);
                    }
                    combined
                }
            };
        }
        let exit = if leaf && rule.kind == Kind::Frame {
            A::certain_exit(code)
        } else {
            None
        };
        match exit {
            Some(exit) if !same_frame(&exit.rule, &rule) => {
                let by_cfi = Candidate::new(rule, FrameOrigin::Cfi, Check::Executable);
                self.candidate_rule(&[exit, by_cfi])
            }
            _ => rule,
        }
    }

    /// Whether a described function begins behind an address at which nothing was called. Nobody returns there: who began a stack put
    /// the address on it, as `makecontext` does with that of `__start_context`.
    fn begins_behind(
        &mut self,
        (dso, cfi, image): (DsoId, &FileCfi<'a>, &ElfFile<'a>),
        svma: Svma,
        offset: FileOffset,
    ) -> Option<bool> {
        let begin = svma.0.checked_add(1).map(Svma)?;
        let fde = cfi.find(begin, Some(image), None)?;
        self.rule_from_fde(dso, cfi, fde, begin);
        let range = self.file_rows.get(&(dso, fde))?;
        let behind = offset.0.checked_add(1)?;
        let before = FileOffset(behind.checked_sub(A::CALL_BYTES as u64)?);
        let before = image.bytes_at(before, A::CALL_BYTES)?;
        Some(range.base == begin.0 && !A::ends_with_call(before))
    }

    /// The rule behind the calls of a function that ARM's tables describe.
    fn tabled(&mut self, cfi: &FileCfi<'a>, svma: Svma) -> Option<Rule> {
        let frame = cfi.exidx.as_ref()?.frame(svma.0)?;
        let slot = |bytes: i32| i16::try_from(bytes / i32::from(A::WORD)).ok();
        let saved = |register: u8| *frame.saved.get(usize::from(register))?;
        let others = (0..13u8).filter(|register| *register != A::FP);
        let others = others.filter_map(|n| Some(Saved::new(n, Some(i64::from(saved(n)?)))));
        let others: SmallVec<[Saved; 8]> = others.collect();
        let ra_slot = slot(frame.return_address()?)?;
        let fp_slot = saved(A::FP).map_or(Some(IN_REGISTER), slot)?;
        let rule = Rule::frame(frame.register, frame.offset, ra_slot, fp_slot);
        Some(rule.with_saved(self.rows.saved.0.intern(&others)))
    }

    /// A guess, and what tables say of the function's body, where the ip may be or not.
    fn or_else(&mut self, guess: Rule, tabled: Option<Rule>) -> Rule {
        let Some(rule) = tabled.filter(|_| guess.kind == Kind::Guess) else {
            return guess;
        };
        let mut candidates = Candidates::from_slice(self.candidates.get(guess.candidates()));
        candidates.push(Candidate::new(rule, FrameOrigin::Cfi, Check::Call));
        self.candidate_rule(&candidates)
    }

    fn rule_from_fde(&mut self, dso: DsoId, cfi: &FileCfi<'a>, fde: FdeRef, svma: Svma) -> Rule {
        let range = match self.file_rows.get(&(dso, fde)) {
            Some(known) => *known,
            None => {
                let table = cfi.table(fde.table);
                let rows = &mut self.rows;
                let converted =
                    table.and_then(|t| t.convert::<A>(fde.offset, &mut self.context, rows));
                let Some(range) = converted else {
                    return Rule::NONE;
                };
                self.file_rows.insert((dso, fde), range);
                range
            }
        };
        self.rule_in(range, fde, svma.0)
    }

    /// The rule of a converted FDE at an address.
    fn rule_in(&mut self, range: RowRange, fde: FdeRef, svma: u64) -> Rule {
        let rule = self.rows.rule_at(range, svma);
        if rule.kind != Kind::Complex {
            return rule;
        }
        Rule::evaluated(self.complex.push(Complex { fde, svma }))
    }

    /// The way to the caller of a file's function whose call frame information counts from the frame
    /// pointer, for when that register's value is lost: from the stack pointer, by the function's code.
    pub(super) fn without_frame_pointer(
        &mut self,
        place: &CodeLocation<'_, 'a>,
    ) -> Option<Candidate> {
        let CodeLocation::File {
            dso,
            offset,
            binary,
            debug,
        } = *place
        else {
            return None;
        };
        let image = binary.or(debug)?;
        let svma = image.svma_of(offset)?;
        let fde = self.files.get(&dso)?.find(svma, binary, debug)?;
        let range = *self.file_rows.get(&(dso, fde))?;
        let entry = self.rows.rule_at(range, range.base);
        // The cold part of a function begins with the frame that the hot part has built.
        if (entry.kind, entry.cfa_register, entry.cfa_offset) != (Kind::Frame, A::SP, 8) {
            return None;
        }
        let at = svma.0.checked_sub(range.base)?;
        let start = FileOffset(offset.0.checked_sub(at)?);
        let len = self.rows.code_len(range);
        let flow = self
            .full_flows
            .entry((dso, start))
            .or_insert_with(|| A::full_flow(image.bytes_from(start, len)));
        flow.as_ref()?
            .by_stack_pointer(usize::try_from(at).ok()?, A::POINTERS)
    }

    /// Code of a file without call frame information.
    fn file_code<S: CodeSpace<'a>>(
        &mut self,
        dso: DsoId,
        offset: FileOffset,
        image: &ElfFile<'a>,
        leaf: bool,
        cfi: &FileCfi<'a>,
        space: &S,
    ) -> Rule {
        if leaf && image.svma_of(offset).is_some_and(|svma| cfi.is_stub(svma)) {
            return self.candidate_rule(&A::stub());
        }
        if let Some(bounds) = space
            .function_bounds(dso, offset)
            .filter(|b| b.contains(&offset))
        {
            let size = bounds.end.since(bounds.start);
            let code = image.bytes_from(bounds.start, usize::try_from(size).unwrap_or(0));
            let at = usize::try_from(offset.since(bounds.start)).unwrap_or(usize::MAX);
            let view = CodeView {
                code,
                at,
                size: Some(size),
                leaf,
                habit: if leaf {
                    Habit::V8Pieces
                } else {
                    Habit::Unknown
                },
            };
            let mut candidates = self.guesses(&view, Some(Function::File(dso, bounds.start)));
            let around = described(image, &bounds);
            candidates.extend(
                around.and_then(|around| self.found_code(dso, offset, image, leaf, &around)),
            );
            return self.candidate_rule(&candidates);
        }
        // A few bytes before the place show whether it stands in the middle of a prologue.
        let before = offset.0.min(16);
        let code = image.bytes_from(FileOffset(offset.0 - before), 256);
        let at = usize::try_from(before).unwrap_or(0);
        let view = CodeView {
            code,
            at,
            size: None,
            leaf,
            habit: Habit::Unknown,
        };
        let around = found::<A>(cfi, image, offset);
        let proven = around
            .as_ref()
            .and_then(|around| self.found_code(dso, offset, image, leaf, around));
        let whole = around.and_then(|around| self.whole_function(dso, image, cfi, leaf, around));
        let whole = whole.and_then(|function| self.found_code(dso, offset, image, leaf, &function));
        let mut candidates = Candidates::new();
        A::guess(&view, None, &mut candidates);
        candidates.insert_many(0, proven.into_iter().chain(whole));
        self.candidate_rule(&candidates)
    }

    /// What was taken for a function and is only the end of one, with what stands before it: bytes that look like a call
    /// led there.
    fn whole_function(
        &mut self,
        dso: DsoId,
        image: &ElfFile<'a>,
        cfi: &FileCfi<'a>,
        leaf: bool,
        mut around: Range<u64>,
    ) -> Option<Range<u64>> {
        /// Beginnings in one function that are none.
        const MOST: usize = 4;
        let part = around.start;
        for _ in 0..MOST {
            let start = image.file_offset_of(Svma(around.start))?;
            let view = found_view(image, start, &around, start, leaf)?;
            if !self.found_flow(dso, start, &view)?.begins_inside() {
                return (around.start != part).then_some(around);
            }
            let before = Svma(around.start.checked_sub(1)?);
            around.start = cfi.functions::<A>(image)?.around(before)?.start;
        }
        None
    }

    /// The way out of a function of which nothing but its bounds is known, if its code can be followed.
    fn found_code(
        &mut self,
        dso: DsoId,
        offset: FileOffset,
        image: &ElfFile<'a>,
        leaf: bool,
        around: &Range<u64>,
    ) -> Option<Candidate> {
        let start = image.file_offset_of(Svma(around.start))?;
        let view = found_view(image, start, around, offset, leaf)?;
        let flow = self.found_flow(dso, start, &view)?;
        let mut candidate = flow.proven(view.at, A::POINTERS)?;
        candidate.set_reach(view.reach());
        Some(candidate)
    }

    fn found_flow(
        &mut self,
        dso: DsoId,
        start: FileOffset,
        view: &CodeView<'_>,
    ) -> Option<Arc<Flow>> {
        let size = view.size.unwrap_or(0);
        let key = (Function::Reached(dso, start, size), view.leaf);
        let known = self.flows.entry(key);
        let shared = &self.tables.flows;
        let flow = known.or_insert_with(|| shared.get(key, || A::flow(view)));
        flow.clone()
    }

    /// Whether the function found at a place ends by a jump to such an address of the file, or to functions that do.
    pub(super) fn leaves_to(
        &mut self,
        place: &CodeLocation<'_, 'a>,
        is_it: impl Fn(i64) -> bool,
    ) -> bool {
        /// Of functions whose ends are looked at for one return address.
        const MOST: usize = 64;
        let CodeLocation::File {
            dso,
            offset,
            binary: Some(image),
            ..
        } = *place
        else {
            return false;
        };
        let Some(cfi) = self.files.get(&dso).map(Arc::clone) else {
            return false;
        };
        let mut open: SmallVec<[i64; 8]> = smallvec::smallvec![0];
        let mut next = 0;
        while let Some(&distance) = open.get(next) {
            next += 1;
            let start = offset.0.checked_add_signed(distance).map(FileOffset);
            let flow = start.and_then(|start| self.flow_from(dso, image, &cfi, start));
            for exit in flow.as_deref().map_or(&[][..], Flow::exits) {
                let exit = exit.saturating_add(distance);
                if is_it(exit) {
                    return true;
                }
                if open.len() < MOST && !open.contains(&exit) {
                    open.push(exit);
                }
            }
        }
        false
    }

    /// The flow of the found function that begins at a place.
    fn flow_from(
        &mut self,
        dso: DsoId,
        image: &ElfFile<'a>,
        cfi: &FileCfi<'a>,
        start: FileOffset,
    ) -> Option<Arc<Flow>> {
        let around = found::<A>(cfi, image, start)?;
        if around.start != image.svma_of(start)?.0 {
            return None;
        }
        let view = found_view(image, start, &around, start, false)?;
        self.found_flow(dso, start, &view)
    }

    /// Whether a return address lies in code of a file that nothing describes and that has cleared the frame pointer
    /// without having saved it, as `clone` does before it calls a thread's function.
    #[cold]
    pub(super) fn is_base<S: CodeSpace<'a>>(
        &mut self,
        place: &CodeLocation<'_, 'a>,
        space: &S,
    ) -> bool {
        let CodeLocation::File {
            dso,
            offset,
            binary: Some(image),
            debug,
        } = *place
        else {
            return false;
        };
        let cfi = self.cfi_of(dso, Some(image), debug);
        let bounds = space.function_bounds(dso, offset);
        let stated = bounds
            .filter(|b| b.contains(&offset))
            .and_then(|bounds| described(image, &bounds));
        let mut is_base = |around: Range<u64>| {
            let start = image.file_offset_of(Svma(around.start))?;
            let view = found_view(image, start, &around, offset, false)?;
            Some(self.found_flow(dso, start, &view)?.is_base(view.at))
        };
        // A symbol without a size may seem to reach over functions that have none.
        stated.and_then(&mut is_base) == Some(true)
            || found::<A>(&cfi, image, offset).and_then(is_base) == Some(true)
    }

    fn jit_rule<S: CodeSpace<'a>>(
        &mut self,
        id: JitCodeId,
        code: JitCode<'_, 'a>,
        offset: u64,
        leaf: bool,
        space: &S,
    ) -> Rule {
        if let Some(host) = &code.producer().row().host_loop
            && let Some(rule) = self.hosted_rule(host, code, space)
        {
            return rule;
        }
        let view = CodeView::of_jit(code, offset, leaf);
        let exit = if leaf {
            A::certain_jit_exit(&view)
        } else {
            None
        };
        let recorded = self.recorded_rule(id, code, offset);
        match (recorded.kind, exit) {
            (Kind::None, _) => self.guess(&view, Some(Function::Jit(id))),
            (Kind::Frame, Some(exit)) if !same_frame(&exit.rule, &recorded) => {
                let stated = Candidate::new(recorded, FrameOrigin::Cfi, Check::Executable);
                self.candidate_rule(&[exit, stated])
            }
            _ => recorded,
        }
    }

    /// The rule of the unwinding record that came with JIT code.
    fn recorded_rule(&mut self, id: JitCodeId, code: JitCode<'_, 'a>, offset: u64) -> Rule {
        if !code.has_unwinding() {
            return Rule::NONE;
        }
        let at = code.start().plus(offset).0;
        let known = self.jit.get(&id).copied();
        let Some(number) = known.unwrap_or_else(|| self.new_record(id, code)) else {
            return Rule::NONE;
        };
        let record = &self.records[number];
        let Some(fde_offset) = lookup(&record.index, at) else {
            return Rule::NONE;
        };
        let range = match record.rows.get(&fde_offset) {
            Some(range) => *range,
            None => {
                let (context, rows) = (&mut self.context, &mut self.rows);
                let Some(range) = record.table.convert::<A>(fde_offset, context, rows) else {
                    return Rule::NONE;
                };
                self.records[number].rows.insert(fde_offset, range);
                range
            }
        };
        self.rule_in(
            range,
            FdeRef {
                table: 0,
                offset: fde_offset,
            },
            at,
        )
    }

    /// Looks at the record of a piece of code for the first time. One record may serve a whole module.
    fn new_record(&mut self, id: JitCodeId, code: JitCode<'_, 'a>) -> Option<RecordId> {
        let number = match code.unwinding() {
            Some(JitUnwinding::EhFrame { eh_frame, base }) => {
                let identity = (eh_frame.as_ptr().addr(), eh_frame.len(), base);
                let records = &mut self.records;
                let new = *self
                    .record_numbers
                    .entry(identity)
                    .or_insert(records.next_idx());
                if new == records.next_idx() {
                    records.push(JitRecord::of(eh_frame, base));
                }
                Some(new)
            }
            Some(JitUnwinding::FramePointer) | None => None,
        };
        self.jit.insert(id, number);
        number
    }

    /// The table that a complex rule at a place refers to.
    pub(super) fn table(&self, place: &CodeLocation<'_, 'a>, number: u8) -> Option<Table<'a>> {
        match place {
            CodeLocation::File { dso, .. } => self.files.get(dso)?.table(number).cloned(),
            CodeLocation::Jit { id, .. } => {
                let record = (*self.jit.get(id)?)?;
                Some(self.records.get(record)?.table.clone())
            }
            CodeLocation::Anonymous | CodeLocation::Nothing => None,
        }
    }
}

/// An unwinding record that came with JIT code.
struct JitRecord<'a> {
    table: Table<'a>,
    index: Vec<IndexEntry>,
    /// FDEs converted so far, by their position.
    rows: FxHashMap<u32, RowRange>,
}

impl<'a> JitRecord<'a> {
    fn of(eh_frame: &'a [u8], base: Avma) -> Self {
        let table = Table::jit(eh_frame, base);
        Self {
            index: table.index(),
            table,
            rows: FxHashMap::default(),
        }
    }
}

/// A function whose bounds a symbol tells, by stated address.
fn described(image: &ElfFile<'_>, bounds: &Range<FileOffset>) -> Option<Range<u64>> {
    let start = image.svma_of(bounds.start)?.0;
    Some(start..start.checked_add(bounds.end.since(bounds.start))?)
}

/// The function around a place that is found by what leads to it.
fn found<'a, A: Architecture>(
    cfi: &FileCfi<'a>,
    image: &ElfFile<'a>,
    offset: FileOffset,
) -> Option<Range<u64>> {
    cfi.functions::<A>(image)?.around(image.svma_of(offset)?)
}

/// The view of a place in a function that was found.
fn found_view<'a>(
    image: &ElfFile<'a>,
    start: FileOffset,
    around: &Range<u64>,
    offset: FileOffset,
    leaf: bool,
) -> Option<CodeView<'a>> {
    let size = around.end.checked_sub(around.start)?;
    Some(CodeView {
        code: image.bytes_from(start, usize::try_from(size).ok()?),
        at: usize::try_from(offset.0.checked_sub(start.0)?).ok()?,
        size: Some(size),
        leaf,
        habit: Habit::OfFile,
    })
}

/// Whether two rules lead to the same caller.
fn same_frame(a: &Rule, b: &Rule) -> bool {
    (a.cfa_register, a.cfa_offset, a.ra_slot) == (b.cfa_register, b.cfa_offset, b.ra_slot)
}

/// Whether an ip is in the kernel's way back out of a signal handler, or behind its system call, where it is while the kernel does that.
fn is_in_sigreturn<A: Architecture>(image: &ElfFile<'_>, ip: FileOffset) -> bool {
    let from = ip.0.saturating_sub(SIGRETURN_BYTES as u64);
    let before = usize::try_from(ip.0 - from).unwrap_or(0);
    let code = image.bytes_from(FileOffset(from), before + SIGRETURN_BYTES);
    let starts = code.get(..=before).unwrap_or_default();
    (0..starts.len())
        .any(|start| A::sigreturn_len(&code[start..]).is_some_and(|len| before <= start + len))
}
