//! The walk from frame to frame, for any architecture.
//!
//! In: registers and stack bytes of a sample, the code of its process. Out: frames and the reason for the end.
//! Everything that depends on a place only (which rule, which candidates) is worked out once and
//! memoised; what depends on the sample (does the candidate's return address follow a call) is checked each time.

use std::sync::Arc;

use smallvec::SmallVec;

use super::arch::{Architecture, RegisterFile};
use super::cfi::CfiTables;
use super::evaluate::Evaluation;
use super::go;
use super::jit;
use super::maker::RuleMaker;
use super::memo::{CallCheck, Entry, Memo, key_of};
use super::rules::{Candidate, Candidates, Check, IN_REGISTER, Kind, LOST, Rule, SavedSets};
use super::stack::{FAR, Stack, slot_at};
use super::trail::{Mark, Trail, Trails, Way};
use super::{
    CodeSpace, Found, FrameOrigin, KeptRegisters, Lifetime, Place, Scene, UserFrame, UserState,
};
use crate::address::{Avma, FileOffset};
use crate::perfdata::Registers;
use crate::stack_end::StackEnd;

/// One thread's unwinder for one architecture.
pub(super) struct Walker<'a, A: Architecture> {
    memo: Memo,
    rules: RuleMaker<'a, A>,
    /// What the frames walked so far in this sample saved, leaf first.
    history: Vec<Step>,
    /// Stack pointers of the leaf and of the last frame of the last walk.
    span: Option<(Avma, Avma)>,
    /// Whether the last walk ended in [`Frames::guess`].
    ended_by_guess: bool,
    trails: Trails,
    /// The frames of this walk, for the next one of the thread.
    marks: Vec<Mark>,
    /// Addresses that the walk will come to, probably.
    ahead: Vec<u64>,
    /// What calls keep, in the frame to which the last walk led, if that was asked for.
    kept: Option<KeptRegisters>,
}

/// What a frame did with its caller's registers.
#[derive(Clone, Copy, Debug)]
struct Step {
    saved: u32,
    cfa: u64,
    /// The frame's own stack pointer: what lies below it is free, its values were restored.
    sp: u64,
}

/// The registers of the current frame, as far as they are tracked.
#[derive(Clone, Copy)]
struct Cursor {
    sp: u64,
    /// `sp` is the real stack pointer, not just a lower bound of it.
    sp_exact: bool,
    fp: Option<u64>,
    /// The link register, in a frame that was interrupted.
    lr: Option<u64>,
}

/// Where the registers that a [`Cursor`] does not track start from.
enum Basis<'b> {
    Sample(Registers<'b>),
    File(Box<RegisterFile>),
}

/// A place that a frame is at, with its rule.
#[derive(Clone, Copy)]
struct Located<'s, 'a> {
    lookup: u64,
    place: Place<'s, 'a>,
    entry: Entry,
    life: Lifetime,
}

impl<'a, A: Architecture> Walker<'a, A> {
    pub(super) fn new(tables: Arc<CfiTables<'a>>) -> Self {
        Self {
            memo: Memo::new(),
            rules: RuleMaker::new(tables),
            history: Vec::new(),
            span: None,
            ended_by_guess: false,
            trails: Trails::new(),
            marks: Vec::new(),
            ahead: Vec::new(),
            kept: None,
        }
    }

    /// See [`super::Unwinder::registers_at`].
    pub(super) fn registers_at<S: CodeSpace<'a>>(
        &mut self,
        state: &UserState<'_>,
        code: &S,
        depth: usize,
    ) -> Option<KeptRegisters> {
        self.kept = Some(KeptRegisters::default());
        let end = self.walk(state, code, depth, &mut Vec::new());
        let kept = self.kept.take();
        kept.filter(|_| end == StackEnd::TooDeep)
    }

    /// See [`super::Unwinder::ended_by_guess`].
    pub(super) const fn ended_by_guess(&self) -> bool {
        self.ended_by_guess
    }

    /// See [`super::Unwinder::span`].
    pub(super) const fn span(&self) -> Option<(Avma, Avma)> {
        self.span
    }

    /// See [`super::Unwinder::activations`].
    pub(super) fn marks(&self, scene: &Scene) -> &[Mark] {
        self.trails.last(scene)
    }

    pub(super) fn id_count(&self) -> u32 {
        self.memo.len()
    }

    /// Gets what is known of an address on its way.
    #[inline]
    fn expect<S: CodeSpace<'a>>(&self, code: &S, at: Avma) {
        let found = code.locate_for(at);
        if let Some(key) = key_of(&found.place.frame_place()) {
            self.memo.expect(found.number, key);
        }
    }

    /// See [`super::Unwinder::leaf_caller`].
    pub(super) fn leaf_caller<S: CodeSpace<'a>>(
        &mut self,
        ip: Avma,
        regs: &Registers<'_>,
        recorded: Option<Avma>,
        code: &S,
    ) -> Option<Avma> {
        if !A::LINK_REGISTER || regs.abi != A::ABI {
            return None;
        }
        let link = A::strip(A::register(regs, A::RA)?);
        let cursor = Cursor {
            sp: 0,
            sp_exact: false,
            fp: None,
            lr: Some(link),
        };
        let mut frames = Frames {
            walker: self,
            code,
            stack: Stack::new(0, &[]),
            basis: Basis::Sample(*regs),
            cursor,
            leaf: true,
            way: None,
            probes: 0,
        };
        frames.leaf_caller(ip.0, link, recorded)
    }

    pub(super) fn walk<S: CodeSpace<'a>>(
        &mut self,
        state: &UserState<'_>,
        code: &S,
        max_frames: usize,
        out: &mut Vec<UserFrame>,
    ) -> StackEnd {
        self.span = None;
        self.ended_by_guess = false;
        let regs = &state.regs;
        let start = (A::ip(regs), A::register(regs, A::SP));
        let (Some(ip), Some(sp)) = start else {
            return StackEnd::NoRegisters;
        };
        if regs.abi != A::ABI {
            return StackEnd::NoRegisters;
        }
        self.history.clear();
        let mut frames = Frames {
            walker: self,
            code,
            stack: Stack::new(sp, state.stack),
            basis: Basis::Sample(state.regs),
            cursor: Cursor {
                sp,
                sp_exact: true,
                fp: A::register(regs, A::FP),
                lr: if A::LINK_REGISTER {
                    A::register(regs, A::RA).map(A::strip)
                } else {
                    None
                },
            },
            leaf: true,
            way: None,
            probes: 0,
        };
        let scene = code.scene();
        let trail = scene.map_or_else(Trail::default, |scene| frames.walker.trails.take(&scene));
        let last = scene.map(|scene| (scene, trail.marks()));
        let end = frames.run(ip, max_frames, last, out);
        let last = frames.cursor.sp;
        if frames.walker.kept.is_some() {
            frames.walker.kept = Some(frames.kept());
        }
        if let Some(scene) = scene {
            let marks = std::mem::replace(&mut self.marks, trail.into_marks());
            self.trails.keep(&scene, marks);
        }
        self.span = Some((Avma(sp), Avma(last)));
        end
    }
}

/// One walk.
struct Frames<'w, 'b, 'a, A: Architecture, S> {
    walker: &'w mut Walker<'a, A>,
    code: &'w S,
    stack: Stack<'b>,
    basis: Basis<'b>,
    cursor: Cursor,
    /// The current frame was interrupted (by the sample or by a signal): its address is an ip.
    leaf: bool,
    /// What the last step took from the stack, if nothing else counted.
    way: Option<Way>,
    /// Trampolines of return probes so far.
    probes: usize,
}

impl<'w, 'a, A: Architecture, S: CodeSpace<'a>> Frames<'w, '_, 'a, A, S> {
    /// Walks on from an ip; `last` is the scene and the thread's last walk.
    fn run(
        &mut self,
        ip: u64,
        max_frames: usize,
        last: Option<(Scene, &[Mark])>,
        out: &mut Vec<UserFrame>,
    ) -> StackEnd {
        /// A signal frame may name any stack pointer, so only the limit ends a damaged loop of them.
        const MOST: usize = 1 << 16;
        let max_frames = max_frames.min(MOST);
        let (scene, mut known) = last.unzip();
        self.scout(known.unwrap_or_default());
        let mut at = self.locate(ip, true);
        let mut origin = FrameOrigin::Ip;
        self.walker.marks.clear();
        loop {
            if out.len() >= max_frames {
                return StackEnd::TooDeep;
            }
            out.push(UserFrame {
                lookup: Avma(at.lookup),
                id: at.entry.id,
                origin,
            });
            if let (Some(scene), Some(known)) = (&scene, &mut known) {
                self.mark(&at, origin);
                if let Some(joined) = self.joined(known) {
                    *known = joined;
                    if let Some((there, by)) = self.follow(known, scene, max_frames, out) {
                        (at, origin) = (there, by);
                    }
                }
            }
            self.way = None;
            let rule = at.entry.rule;
            let caller = match rule.kind {
                Kind::Frame | Kind::Record | Kind::SignalFrame => {
                    origin = FrameOrigin::Cfi;
                    let depth = self.walker.history.len();
                    self.step(&rule)
                        .and_then(|address| self.arrive(address, rule.kind == Kind::SignalFrame))
                        .or_else(|end| self.without_frame_pointer(end, &at, depth, &mut origin))
                }
                Kind::End => return StackEnd::Complete,
                Kind::None => return StackEnd::NoRule,
                _ => self.odd_step(&rule, &at, &mut origin),
            };
            match caller {
                Ok(caller) => at = caller,
                Err(end) => return end,
            }
        }
    }

    /// Notes the current frame for the next walk.
    fn mark(&mut self, at: &Located<'w, 'a>, origin: FrameOrigin) {
        self.walker.marks.push(Mark {
            sp: self.cursor.sp,
            fp: self.cursor.fp,
            lookup: at.lookup,
            id: at.entry.id,
            origin,
            sp_exact: self.cursor.sp_exact,
            // The return address of the trampoline is looked up in another way than others.
            leaf: self.leaf || at.entry.rule.kind == Kind::Sigreturn,
            life: at.life,
            way: self.way,
        });
    }

    /// The frames of the last walk from the current one on, if that is one of them. `known` are those that were not
    /// passed yet.
    fn joined<'m>(&self, known: &mut &'m [Mark]) -> Option<&'m [Mark]> {
        let now = self.walker.marks.last()?;
        while let Some((mark, outer)) = known.split_first()
            && (mark.sp < now.sp || (mark.leaf && mark.sp == now.sp))
        {
            *known = outer;
        }
        let mark = known.first()?;
        let same = (mark.sp, mark.fp, mark.lookup, mark.id, mark.sp_exact)
            == (now.sp, now.fp, now.lookup, now.id, now.sp_exact);
        (same && !now.leaf && !mark.leaf && now.id != UserFrame::NO_ID).then_some(known)
    }

    /// Runs along the frame pointers, where there are some, until the last walk is met or likely to be: what the
    /// walk will look up comes from memory at the same time then and not one after the other.
    fn scout(&mut self, known: &[Mark]) {
        const MOST: usize = 64;
        let mut known = known;
        let ahead = &mut self.walker.ahead;
        ahead.clear();
        let (mut sp, mut fp) = (self.cursor.sp, self.cursor.fp);
        while let Some(record) = fp
            && record >= sp
            && ahead.len() < MOST
        {
            let Some(address) = self.stack.word(record.saturating_add(8)) else {
                break;
            };
            sp = record.saturating_add(16);
            while let Some((mark, outer)) = known.split_first()
                && mark.sp < sp
            {
                known = outer;
            }
            let lookup = A::strip(address).wrapping_sub(1);
            if known
                .first()
                .is_some_and(|mark| (mark.sp, mark.lookup) == (sp, lookup))
            {
                break;
            }
            self.code.expect(Avma(lookup));
            ahead.push(lookup);
            fp = self.stack.word(record);
        }
        for &lookup in &self.walker.ahead {
            self.walker.expect(self.code, Avma(lookup));
        }
    }

    /// Goes along the last walk, whose frame `known[0]` is the current one, as far as its words are still there and
    /// lead to the same code. Where that is, unless it is here.
    fn follow(
        &mut self,
        known: &[Mark],
        scene: &Scene,
        max_frames: usize,
        out: &mut Vec<UserFrame>,
    ) -> Option<(Located<'w, 'a>, FrameOrigin)> {
        let room = max_frames - out.len();
        let outer = known.get(1..)?;
        let same = outer.iter().take(room).take_while(|mark| {
            mark.way.is_some_and(|way| {
                self.stack.word(way.ra_at) == Some(way.ra)
                    && way.fp_at.is_none_or(|at| self.stack.word(at) == mark.fp)
            }) && !mark.leaf
                && mark.life.contains(scene.time)
        });
        let same = &outer[..same.count()];
        let last = same.last()?;
        let mut sp = self.cursor.sp;
        out.extend(same.iter().map(|mark| UserFrame {
            lookup: Avma(mark.lookup),
            id: mark.id,
            origin: mark.origin,
        }));
        self.walker.history.extend(same.iter().map(|mark| Step {
            saved: mark.way.map_or(SavedSets::NONE, |way| way.saved),
            cfa: mark.sp,
            sp: std::mem::replace(&mut sp, mark.sp),
        }));
        self.walker.marks.extend_from_slice(same);
        self.cursor = Cursor {
            sp: last.sp,
            sp_exact: last.sp_exact,
            fp: last.fp,
            lr: None,
        };
        Some((self.locate(last.lookup, false), last.origin))
    }

    /// Call frame information led nowhere. While libgcc installs the context of a landing pad, the
    /// registers that its callers saved are overwritten with those of the function that catches; the
    /// stack pointer is right until the end.
    #[cold]
    fn without_frame_pointer(
        &mut self,
        end: StackEnd,
        at: &Located<'w, 'a>,
        depth: usize,
        origin: &mut FrameOrigin,
    ) -> Result<Located<'w, 'a>, StackEnd> {
        let rule = at.entry.rule;
        let by_frame_pointer = rule.kind == Kind::Frame && rule.cfa_register == A::FP;
        if !by_frame_pointer || end != StackEnd::CheckFailed || self.leaf {
            return Err(end);
        }
        if self.walker.history.len() > depth {
            // The step was made and arrived nowhere.
            let made = self.walker.history.pop().ok_or(end)?;
            self.cursor.sp = made.sp;
        }
        let candidate = self.walker.rules.without_frame_pointer(&at.place);
        let candidate = candidate.filter(|_| self.cursor.sp_exact).ok_or(end)?;
        let caller = self.attempt(&candidate, at).map_err(|_| end)?;
        self.way = None;
        *origin = candidate.origin;
        Ok(caller)
    }

    /// The caller that the link register names, if the rule at `ip` says that it still does.
    fn leaf_caller(&mut self, ip: u64, link: u64, recorded: Option<Avma>) -> Option<Avma> {
        let at = self.locate(ip, true);
        let rule = at.entry.rule;
        let caller = match rule.kind {
            Kind::Frame if rule.ra_slot == IN_REGISTER && link != 0 => link.wrapping_sub(1),
            Kind::Guess => {
                let first = *self.walker.rules.candidates.get(rule.extra).first()?;
                let known = recorded.is_some_and(|next| link.wrapping_sub(next.0) <= 1);
                if first.rule.ra_slot != IN_REGISTER || known || self.is_self(&first, &at, link) {
                    return None;
                }
                let caller = self.target(link, false);
                let executable = !matches!(caller.place, Place::Nothing);
                if !executable || !self.passes(&first, &at, &caller) {
                    return None;
                }
                caller.lookup
            }
            _ => return None,
        };
        Some(Avma(caller))
    }

    /// Whether a return address leads into the function itself, which the candidate forbids.
    fn is_self(&self, candidate: &Candidate, at: &Located<'w, 'a>, address: u64) -> bool {
        let (before, behind) = (u64::from(candidate.reach.0), u64::from(candidate.reach.1));
        let from_start = address.wrapping_sub(at.lookup.wrapping_sub(before));
        candidate.not_self && from_start < before + behind
    }

    /// What lies at an address, with its rule; `leaf` if the address is an ip.
    #[inline]
    fn locate(&mut self, lookup: u64, leaf: bool) -> Located<'w, 'a> {
        let code = self.code;
        let Found {
            place,
            life,
            number,
        } = code.locate_for(Avma(lookup));
        let key = key_of(&place.frame_place());
        let memo = &self.walker.memo;
        let numbered = number.zip(key).and_then(|(n, key)| memo.numbered(n, key));
        let known = numbered.or_else(|| {
            let known = key.and_then(|key| memo.get(key))?;
            code.note(Avma(lookup), known.id);
            Some(known)
        });
        let entry = known.unwrap_or_else(|| self.locate_new(lookup, &place, key, leaf));
        Located {
            lookup,
            place,
            entry,
            life,
        }
    }

    #[cold]
    fn locate_new(
        &mut self,
        lookup: u64,
        place: &Place<'w, 'a>,
        key: Option<u64>,
        leaf: bool,
    ) -> Entry {
        let rule = self.walker.rules.rule(place, leaf, self.code);
        let Some(key) = key else {
            return Entry::unkept(rule);
        };
        let entry = self.walker.memo.insert(key, rule);
        self.code.note(Avma(lookup), entry.id);
        entry
    }

    /// Goes to the caller by a rule of the simple kind; its address.
    #[inline]
    fn step(&mut self, rule: &Rule) -> Result<u64, StackEnd> {
        self.way = None;
        let (cfa, simple) = self.cfa(rule)?;
        let sp = self.cursor.sp;
        // Every frame lies above its callee's; a leaf with its return address in a register may have none.
        let empty_leaf = rule.ra_slot == IN_REGISTER && self.leaf && cfa == sp;
        if cfa <= sp && !empty_leaf {
            return Err(StackEnd::CheckFailed);
        }
        let ra_at = slot_at(cfa, rule.ra_slot);
        let address = if rule.ra_slot == IN_REGISTER {
            self.cursor.lr.ok_or(StackEnd::CheckFailed)?
        } else {
            let word = self.stack.word(ra_at);
            word.ok_or_else(|| self.stack.why_absent(ra_at))?
        };
        let mut fp_at = None;
        match rule.fp_slot {
            IN_REGISTER => {}
            LOST => self.cursor.fp = None,
            // Epilogues pop the register before their call frame information takes note (LLVM's never does).
            slot if slot_at(cfa, slot) < sp => {}
            slot => {
                let at = slot_at(cfa, slot);
                self.cursor.fp = self.stack.word(at);
                fp_at = Some(at);
            }
        }
        if simple && rule.ra_slot != IN_REGISTER {
            self.way = Some(Way {
                ra_at,
                ra: address,
                fp_at,
                saved: rule.extra,
            });
        }
        self.cursor.sp = cfa;
        self.cursor.sp_exact = rule.kind != Kind::Record;
        self.cursor.lr = None;
        self.walker.history.push(Step {
            saved: rule.extra,
            cfa,
            sp,
        });
        Ok(A::strip(address))
    }

    /// Arrives at an address that a trusted rule gave: it must be executable. `interrupted` if it is
    /// no return address.
    #[inline]
    fn arrive(&mut self, address: u64, interrupted: bool) -> Result<Located<'w, 'a>, StackEnd> {
        if address == 0 {
            return Err(StackEnd::Complete);
        }
        let address = match self.code.is_return_probe(Avma(address)) {
            true => self.behind_probe()?,
            false => address,
        };
        let caller = self.target(address, interrupted);
        if matches!(caller.place, Place::Nothing) {
            return Err(StackEnd::CheckFailed);
        }
        self.leaf = interrupted;
        Ok(caller)
    }

    /// The return address that a probe has replaced.
    #[cold]
    fn behind_probe(&mut self) -> Result<u64, StackEnd> {
        // The next walk may find the same word here, and another address behind it.
        self.way = None;
        let nth = self.probes;
        self.probes += 1;
        let behind = self.code.behind_return_probe(nth);
        behind.map(|at| at.0).ok_or(StackEnd::ReturnProbe)
    }

    #[inline]
    fn target(&mut self, address: u64, interrupted: bool) -> Located<'w, 'a> {
        if interrupted {
            return self.locate(address, true);
        }
        let before = self.locate(address.wrapping_sub(1), false);
        // Nothing called the signal trampoline: its first instruction is the return address itself,
        // and what lies before may be another function.
        match before.entry.rule.kind {
            Kind::Sigreturn => self.locate(address, true),
            _ => before,
        }
    }

    /// Goes to the caller by the kinds of rule that are rarely met.
    #[cold]
    fn odd_step(
        &mut self,
        rule: &Rule,
        at: &Located<'w, 'a>,
        origin: &mut FrameOrigin,
    ) -> Result<Located<'w, 'a>, StackEnd> {
        match rule.kind {
            Kind::Guess => self.guess(rule.extra, at, origin),
            Kind::Sigreturn => {
                *origin = FrameOrigin::Signal;
                let address = self.sigreturn()?;
                self.arrive(address, true)
            }
            _ => {
                *origin = FrameOrigin::Cfi;
                let (address, interrupted) = self.complex(rule, at)?;
                self.arrive(address, interrupted)
            }
        }
    }

    /// The CFA, and whether it counts from the stack or frame pointer.
    #[inline]
    fn cfa(&mut self, rule: &Rule) -> Result<(u64, bool), StackEnd> {
        let register = rule.cfa_register;
        let base = if register == A::SP && self.cursor.sp_exact {
            Some(self.cursor.sp)
        } else if register == A::FP {
            self.cursor.fp
        } else {
            return self.odd_cfa(rule).map(|cfa| (cfa, false));
        };
        let base = base.ok_or(StackEnd::NoRule)?;
        let cfa = base.wrapping_add_signed(i64::from(rule.cfa_offset));
        Ok((cfa, true))
    }

    /// A CFA that counts from some other register, or from a stack pointer that is not known.
    #[cold]
    fn odd_cfa(&mut self, rule: &Rule) -> Result<u64, StackEnd> {
        if rule.cfa_register != A::SP {
            let from = |base: u64| base.wrapping_add_signed(i64::from(rule.cfa_offset));
            let known = self.recover(rule.cfa_register).map(from);
            let cfa = known.or_else(|| {
                let kept = from(self.untouched(rule.cfa_register)?);
                self.returns_behind_a_call(kept, rule).then_some(kept)
            });
            return cfa.ok_or(StackEnd::LostRegister);
        }
        // AAPCS64: once saved, x29 points to the frame record, which is where the caller's x29 and x30 are.
        let record = rule.fp_slot > LOST && i32::from(rule.ra_slot) == i32::from(rule.fp_slot) + 1;
        let fp = self.cursor.fp.filter(|_| record).ok_or(StackEnd::NoRule)?;
        Ok(fp.wrapping_sub(slot_at(0, rule.fp_slot)))
    }

    /// What calls keep, but for the frame pointer, in the current frame.
    #[cold]
    fn kept(&self) -> KeptRegisters {
        let registers = (0..32).filter(|n| A::is_callee_saved(*n) && *n != A::FP && *n != A::SP);
        let mut kept = KeptRegisters::default();
        for (value, register) in kept.iter_mut().zip(registers) {
            *value = self.recover(register);
        }
        kept
    }

    /// The value of a register in the current frame: from the nearest callee that saved it.
    fn recover(&self, register: u8) -> Option<u64> {
        if register == A::SP {
            return self.cursor.sp_exact.then_some(self.cursor.sp);
        }
        if register == A::FP {
            return self.cursor.fp;
        }
        for step in self.walker.history.iter().rev() {
            if let Some(saved) = self.walker.rules.saved().find(step.saved, register) {
                let slot = step.cfa.wrapping_add_signed(saved?);
                if slot >= step.sp {
                    return self.stack.word(slot);
                }
            }
        }
        if !self.walker.history.is_empty() && !A::is_callee_saved(register) {
            return None;
        }
        match &self.basis {
            Basis::Sample(regs) => A::register(regs, register),
            Basis::File(file) => file.get(usize::from(register)).copied().flatten(),
        }
    }

    /// The value that a register had at the start, if it is one that functions need not keep and the call frame
    /// information of all frames below says nothing of it. Hand-written assembly counts its CFA from such a register
    /// across calls of its own functions, which leave it alone; others may not, so it takes another proof.
    fn untouched(&self, register: u8) -> Option<u64> {
        let saved = self.walker.rules.saved();
        let mut below = self.walker.history.iter();
        let keeps = below.all(|step| saved.find(step.saved, register).is_none());
        if A::is_callee_saved(register) || !keeps {
            return None;
        }
        match &self.basis {
            Basis::Sample(regs) => A::register(regs, register),
            Basis::File(file) => file.get(usize::from(register)).copied().flatten(),
        }
    }

    /// Whether a frame with this CFA returns to where the code is known to have called.
    fn returns_behind_a_call(&mut self, cfa: u64, rule: &Rule) -> bool {
        if cfa <= self.cursor.sp || !cfa.is_multiple_of(8) || rule.ra_slot == IN_REGISTER {
            return false;
        }
        let Some(address) = self.stack.word(slot_at(cfa, rule.ra_slot)).map(A::strip) else {
            return false;
        };
        let caller = self.target(address, false);
        !matches!(caller.place, Place::Nothing) && self.call_check(&caller) == CallCheck::Call
    }

    /// Tries candidates in order.
    fn guess(
        &mut self,
        list: u32,
        at: &Located<'w, 'a>,
        origin: &mut FrameOrigin,
    ) -> Result<Located<'w, 'a>, StackEnd> {
        let candidates: Candidates = SmallVec::from_slice(self.walker.rules.candidates.get(list));
        let (cursor, depth) = (self.cursor, self.walker.history.len());
        let mut end = StackEnd::NoRule;
        for (n, candidate) in candidates.iter().enumerate() {
            match self.attempt(candidate, at) {
                Ok(caller) => {
                    *origin = candidate.origin;
                    self.leaf = false;
                    if n > 0 || candidate.not_self {
                        // Other words spoke against other candidates.
                        self.way = None;
                    }
                    return Ok(caller);
                }
                Err(StackEnd::Complete) => end = StackEnd::Complete,
                // What the code itself says leads behind the copy; guesses inside of it would be wrong.
                Err(reason @ StackEnd::DumpTooShort) if candidate.check == Check::Proven => {
                    return Err(reason);
                }
                Err(reason) if end == StackEnd::NoRule => end = reason,
                Err(_) => {}
            }
            self.cursor = cursor;
            self.walker.history.truncate(depth);
        }
        let cleared = self.cursor.fp == Some(0);
        let code = self.code;
        if cleared && (is_base(&at.place, *origin) || self.walker.rules.is_base(&at.place, code)) {
            return Err(StackEnd::Complete);
        }
        self.walker.ended_by_guess = true;
        Err(blame(end, &at.place))
    }

    /// Goes to the caller by a candidate and checks it; the registers are to be put back on failure.
    fn attempt(
        &mut self,
        candidate: &Candidate,
        at: &Located<'w, 'a>,
    ) -> Result<Located<'w, 'a>, StackEnd> {
        let by_frame_pointer = candidate.rule.cfa_register == A::FP;
        if by_frame_pointer && !self.plausible_frame_pointer()? {
            return Err(StackEnd::CheckFailed);
        }
        // A link register that the frame record repeats: the function's frame is there already.
        let recorded = if candidate.not_self {
            self.recorded_address()
        } else {
            None
        };
        if let Some(register) = candidate.link {
            self.cursor.lr = self.recover(register);
        }
        let address = self.step(&candidate.rule)?;
        if address == 0 && by_frame_pointer {
            return Err(StackEnd::Complete);
        }
        if address == 0 || recorded == Some(address) || self.is_self(candidate, at, address) {
            return Err(StackEnd::CheckFailed);
        }
        if self.code.is_return_probe(Avma(address)) {
            let address = self.behind_probe()?;
            return self.arrive(address, false);
        }
        let caller = self.target(address, false);
        let executable = !matches!(caller.place, Place::Nothing);
        if executable && self.passes(candidate, at, &caller) {
            Ok(caller)
        } else {
            self.entered(address).ok_or(StackEnd::CheckFailed)
        }
    }

    /// Code that is returned to at its start, if that is at an address: what runtimes put on the stack and
    /// nothing calls.
    #[cold]
    fn entered(&mut self, address: u64) -> Option<Located<'w, 'a>> {
        self.way = None;
        match self.code.locate(Avma(address)) {
            Place::Jit {
                code, offset: 0, ..
            } if jit::is_entered_by_return(code) => Some(self.locate(address, true)),
            _ => None,
        }
    }

    /// The return address beside the frame pointer's target.
    fn recorded_address(&self) -> Option<u64> {
        let fp = self.cursor.fp?;
        self.stack.word(fp.checked_add(8)?).map(A::strip)
    }

    /// Whether the frame pointer may point to a frame: aligned, and on the stack or not far behind
    /// what was copied of it.
    fn plausible_frame_pointer(&self) -> Result<bool, StackEnd> {
        let fp = self.cursor.fp.ok_or(StackEnd::NoRule)?;
        Ok(fp >= self.cursor.sp && fp % 8 == 0 && fp < self.stack.end().saturating_add(FAR))
    }

    fn passes(
        &mut self,
        candidate: &Candidate,
        at: &Located<'w, 'a>,
        caller: &Located<'w, 'a>,
    ) -> bool {
        match candidate.check {
            Check::Executable => true,
            Check::NotRefuted => self.call_check(caller) != CallCheck::NoCall,
            Check::Call => self.call_check(caller) == CallCheck::Call,
            Check::Proven => {
                self.call_check(caller) == CallCheck::Call && self.called(candidate, at, caller)
            }
            Check::CallsHere => {
                let Some(distance) = bytes_before::<A>(caller).and_then(A::call_target) else {
                    return false;
                };
                let callee = caller.lookup.wrapping_add(1).wrapping_add_signed(distance);
                callee <= at.lookup && at.lookup - callee <= u64::from(candidate.reach.0)
            }
        }
    }

    /// Whether a call may be one of the function around a place: of its first instruction, of another function that
    /// jumps there, or of an address that the instruction does not tell.
    fn called(
        &mut self,
        candidate: &Candidate,
        at: &Located<'w, 'a>,
        caller: &Located<'w, 'a>,
    ) -> bool {
        let Some(distance) = bytes_before::<A>(caller).and_then(A::call_target) else {
            return true;
        };
        let callee = caller.lookup.wrapping_add(1).wrapping_add_signed(distance);
        let start = at.lookup.wrapping_sub(u64::from(candidate.reach.0));
        // What a program's start calls may go on in the C library by any number of jumps.
        if callee == start || self.cursor.fp == Some(0) && is_start(&caller.place) {
            return true;
        }
        let place = self.code.locate(Avma(callee));
        let Place::File {
            dso,
            offset,
            binary: Some(image),
            ..
        } = place
        else {
            return false;
        };
        let is_same_file = matches!(at.place, Place::File { dso: own, .. } if own == dso);
        A::is_stub(image.bytes_from(offset, 16))
            || is_same_file
                && self
                    .walker
                    .rules
                    .leaves_to(&place, start.wrapping_sub(callee).cast_signed())
    }

    /// Whether a return address follows a call.
    fn call_check(&mut self, target: &Located<'w, 'a>) -> CallCheck {
        if target.entry.call != CallCheck::Untested {
            return target.entry.call;
        }
        let check = match bytes_before::<A>(target) {
            // HotSpot's interpreter pushes its return entries and jumps.
            _ if is_interpreter(&target.place) => CallCheck::Call,
            _ if go::is_entered_by_return(&target.entry.rule) => CallCheck::Call,
            None => CallCheck::NoBytes,
            Some(before) if A::ends_with_call(before) => CallCheck::Call,
            Some(_) => CallCheck::NoCall,
        };
        self.walker.memo.set_call(&target.entry, check);
        check
    }

    /// Out of a signal handler, by the registers that the kernel saved; where it was interrupted.
    fn sigreturn(&mut self) -> Result<u64, StackEnd> {
        let stack = self.stack;
        if !self.cursor.sp_exact {
            return Err(StackEnd::NoRule);
        }
        let saved = A::signal_registers(self.cursor.sp, &mut |at| stack.word(at));
        let (file, ip) = saved.ok_or(StackEnd::DumpTooShort)?;
        self.continue_from(file, true)?;
        Ok(ip)
    }

    /// Makes a frame of which all registers are known the current one.
    fn continue_from(&mut self, file: RegisterFile, interrupted: bool) -> Result<(), StackEnd> {
        let sp = file[usize::from(A::SP)].ok_or(StackEnd::NoRule)?;
        let link = if A::LINK_REGISTER && interrupted {
            file[usize::from(A::RA)]
        } else {
            None
        };
        self.cursor = Cursor {
            sp,
            sp_exact: true,
            fp: file[usize::from(A::FP)],
            lr: link.map(A::strip),
        };
        self.basis = Basis::File(Box::new(file));
        self.walker.history.clear();
        Ok(())
    }

    /// Goes to the caller by a row with expressions, evaluated in full: its address, and whether it was
    /// interrupted by a signal.
    fn complex(&mut self, rule: &Rule, at: &Located<'w, 'a>) -> Result<(u64, bool), StackEnd> {
        let rules = &mut self.walker.rules;
        let complex = rules.complex(rule.extra).ok_or(StackEnd::NoRule)?;
        let table = rules
            .table(&at.place, complex.fde.table)
            .ok_or(StackEnd::NoRule)?;
        let mut context = std::mem::take(&mut rules.context);
        let mut frame = Evaluation::<A, S>::new(
            self.code,
            self.stack,
            std::array::from_fn(|n| u8::try_from(n).ok().and_then(|n| self.recover(n))),
            self.cursor.lr,
            at.lookup.wrapping_add(u64::from(!self.leaf)),
            at.lookup.wrapping_sub(complex.svma),
        );
        let outcome = table.with_row(
            complex.fde.offset,
            complex.svma,
            &mut context,
            |row, source| {
                Some(
                    frame
                        .evaluate(row, source)
                        .map(|caller| (caller, source.signal)),
                )
            },
        );
        self.walker.rules.context = context;
        let ((file, address), signal) = outcome.unwrap_or(Err(StackEnd::NoRule))?;
        let sp = file[usize::from(A::SP)].unwrap_or(0);
        if !signal && sp <= self.cursor.sp {
            return Err(StackEnd::CheckFailed);
        }
        self.continue_from(file, signal)?;
        Ok((A::strip(address), signal))
    }
}

/// Whether a frame pointer of 0 marks the base of a thread (System V ABI, AAPCS64), as it does where a chain of
/// frame pointers led to it, and at a program's start. Code that uses the register for something else may
/// also hold a 0 there. `origin` is how the place was reached.
fn is_base(place: &Place<'_, '_>, origin: FrameOrigin) -> bool {
    match *place {
        _ if origin == FrameOrigin::FramePointer => true,
        Place::File { binary: None, .. } => origin == FrameOrigin::Cfi,
        _ => is_start(place),
    }
}

/// Whether a place lies where a program starts: in `_start`, or ld.so's `_dl_start_user` behind it.
fn is_start(place: &Place<'_, '_>) -> bool {
    const START: u64 = 256;
    let Place::File {
        offset,
        binary: Some(binary),
        ..
    } = *place
    else {
        return false;
    };
    let at = binary.svma_of(offset);
    at.is_some_and(|at| at.0.wrapping_sub(binary.entry().0) < START)
}

/// Why no candidate led on: where the code is not at hand, that is why. Run-time code nearly always has
/// frame pointers, so that one behind the copied stack tells more there.
const fn blame(end: StackEnd, place: &Place<'_, '_>) -> StackEnd {
    match (place, end) {
        (_, StackEnd::Complete) => end,
        (Place::File { binary: None, .. }, _) => StackEnd::MissingFile,
        (Place::Anonymous, StackEnd::DumpTooShort) => end,
        (Place::Anonymous, _) => StackEnd::UnknownCode,
        (Place::Nothing, _) => StackEnd::CheckFailed,
        _ => end,
    }
}

/// The bytes that end at a return address, as many as a call can have and are there. `None` when there
/// are none.
fn bytes_before<'a, A: Architecture>(target: &Located<'_, 'a>) -> Option<&'a [u8]> {
    match target.place {
        Place::File { offset, binary, .. } => {
            let end = offset.0.checked_add(1)?;
            let start = end.saturating_sub(A::CALL_BYTES as u64);
            binary?.bytes_at(FileOffset(start), usize::try_from(end - start).ok()?)
        }
        Place::Jit { code, offset, .. } => {
            let end = usize::try_from(offset).ok()?.checked_add(1)?;
            code.bytes().get(end.saturating_sub(A::CALL_BYTES)..end)
        }
        Place::Anonymous | Place::Nothing => None,
    }
}

/// Whether a place lies in code that is returned to without having called.
fn is_interpreter(place: &Place<'_, '_>) -> bool {
    matches!(place, Place::Jit { code, .. } if jit::is_interpreter(*code))
}
