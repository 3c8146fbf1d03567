//! The walk from frame to frame, for any architecture.
//!
//! Here is the loop and what nearly all frames need; [`again`] goes along the last walk, [`guess`] tries candidates,
//! [`registers`] finds what rules do not track.
//!
//! In: registers and stack bytes of a sample, the code of its process. Out: frames and the reason for the end.
//! Everything that depends on a place only (which rule, which candidates) is worked out once and
//! memoised; what depends on the sample (does the candidate's return address follow a call) is checked each time.

mod again;
mod guess;
mod registers;

use std::sync::Arc;

use super::FramePointer;
use super::arch::{Architecture, RegisterFile};
use super::cfi::CfiTables;
use super::go;
use super::maker::RuleMaker;
use super::memo::{CallCheck, KnownPlace, Memo, key_of};
use super::rules::{IN_REGISTER, Kind, LOST, Rule, SavedSet};
use super::stack::{Stack, slot_at};
use super::trail::{Mark, Trail, Trails, Way};
use super::{
    CodeLocation, CodeSpace, FrameOrigin, KeptRegisters, Lifetime, Lookup, Scene, UserFrame,
    UserState,
};
use crate::address::Avma;
use crate::dso::DsoId;
use crate::perfdata::Registers;
use crate::stack_end::StackEnd;

/// Registers of which none is asked for.
const fn no_registers<A: Architecture>() -> Registers<'static> {
    Registers {
        abi: A::ABI,
        mask: 0,
        values: &[],
    }
}

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
    saved: SavedSet,
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
    place: CodeLocation<'s, 'a>,
    entry: KnownPlace,
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

    pub(super) fn place_count(&self) -> usize {
        self.memo.len()
    }

    /// See [`super::Unwinder::files`].
    pub(super) fn files(&self) -> Vec<DsoId> {
        let mut files = self.memo.files();
        files.extend(self.rules.files());
        files.sort_unstable();
        files.dedup();
        files
    }

    /// See [`super::Unwinder::forget_walks`].
    pub(super) fn forget_walks(&mut self) {
        self.trails = Trails::new();
    }

    /// Gets what is known of an address on its way.
    #[inline]
    fn expect<S: CodeSpace<'a>>(&self, code: &S, at: Avma) {
        let found = code.locate_for(at);
        if let Some(key) = key_of(&found.place.frame_place()) {
            self.memo.expect(found.noted, key);
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
        let mut frames = self.without_stack(*regs, Some(link), code);
        frames.leaf_caller(ip.0, link, recorded)
    }

    /// A walk in which nothing but code can be looked at.
    fn without_stack<'w, 'b, S: CodeSpace<'a>>(
        &'w mut self,
        regs: Registers<'b>,
        lr: Option<u64>,
        code: &'w S,
    ) -> Frames<'w, 'b, 'a, A, S> {
        Frames {
            walker: self,
            code,
            stack: Stack::new(0, &[]),
            basis: Basis::Sample(regs),
            cursor: Cursor {
                sp: 0,
                sp_exact: false,
                fp: None,
                lr,
            },
            leaf: lr.is_some(),
            way: None,
            probes: 0,
        }
    }

    /// See [`super::Unwinder::frame_pointer`].
    pub(super) fn frame_pointer<S: CodeSpace<'a>>(&mut self, at: Avma, code: &S) -> FramePointer {
        if A::LINK_REGISTER {
            return FramePointer::Own;
        }
        let place = code.locate(at);
        // That of the function that the signal interrupted.
        if RuleMaker::<A>::is_sigreturn(&place) {
            return FramePointer::Callers;
        }
        let rule = self.rules.stated(&place);
        match rule.kind {
            Kind::SignalFrame => return FramePointer::Callers,
            Kind::Frame if rule.cfa_register == A::SP => {}
            Kind::None if matches!(place, CodeLocation::File { .. }) => {
                return FramePointer::Unknown;
            }
            _ => return FramePointer::Own,
        }
        // What was saved below the stack pointer was restored. Go's frame information does not tell of frame pointers, which
        // every function keeps that has something on the stack.
        let frame = i64::from(rule.cfa_offset);
        let is_bare = frame == i64::from(A::WORD);
        let saved_at = frame.saturating_add(i64::from(rule.fp_slot) * i64::from(A::WORD));
        let is_restored = rule.fp_slot == IN_REGISTER || rule.fp_slot != LOST && saved_at < 0;
        // Right behind the instruction that saved it, the register holds it still.
        let is_topmost = rule.fp_slot != LOST && saved_at == 0;
        if is_bare || is_topmost && guess::is_just_saved::<A>(&place) {
            return FramePointer::Callers;
        }
        match self.rules.is_go(&place) {
            true => FramePointer::Own,
            false if is_restored => FramePointer::Callers,
            false => FramePointer::Other,
        }
    }

    /// See [`super::Unwinder::is_behind_call`].
    pub(super) fn is_behind_call<S: CodeSpace<'a>>(&mut self, at: Avma, code: &S) -> bool {
        let mut frames = self.without_stack(no_registers::<A>(), None, code);
        let target = frames.target(at.0, false);
        !matches!(target.place, CodeLocation::Nothing)
            && frames.call_check(&target) != CallCheck::NoCall
    }

    /// See [`super::Unwinder::is_described_call`].
    pub(super) fn is_described_call<S: CodeSpace<'a>>(&mut self, behind: Avma, code: &S) -> bool {
        let mut frames = self.without_stack(no_registers::<A>(), None, code);
        let caller = frames.target(behind.0, false);
        let Some(callee) = guess::callee::<A>(&caller.place, caller.lookup) else {
            return false;
        };
        let place = code.locate(callee);
        let CodeLocation::File {
            offset,
            binary: Some(image),
            ..
        } = place
        else {
            return false;
        };
        !A::is_stub(image.bytes_from(offset, 16)) && self.rules.stated(&place).kind == Kind::Frame
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
            // Where it was is known all the same.
            out.push(UserFrame {
                lookup: Avma(ip),
                id: None,
                origin: FrameOrigin::Ip,
            });
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
        let reached = frames.cursor.sp;
        if frames.walker.kept.is_some() {
            frames.walker.kept = Some(frames.kept());
        }
        if let Some(scene) = scene {
            let marks = std::mem::replace(&mut self.marks, trail.into_marks());
            self.trails.keep(&scene, marks);
        }
        self.span = Some((Avma(sp), Avma(reached)));
        end
    }
}

/// Takes a note of the place that lies at an address.
#[inline]
fn note<'a, S: CodeSpace<'a>>(code: &S, lookup: u64, entry: &KnownPlace) {
    if let Some(place) = entry.id {
        code.note(Avma(lookup), place);
    }
}

/// Whether a place lies in a file that is not at hand.
const fn is_unread(place: &CodeLocation<'_, '_>) -> bool {
    matches!(place, CodeLocation::File { binary: None, .. })
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
                        .map(|caller| self.landed(&rule, caller))
                        .or_else(|end| self.without_frame_pointer(end, &at, depth, &mut origin))
                }
                Kind::End => return go::end(&rule),
                Kind::None => return StackEnd::NoRule,
                _ => self.odd_step(&rule, &at, &mut origin),
            };
            match caller {
                Ok(caller) => at = caller,
                Err(end) => return end,
            }
        }
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
        // Nothing is around a program's start, whatever is said of it: Zig's says that it has a caller.
        let is_base = self.cursor.fp == Some(0) && guess::is_start(&at.place);
        if end == StackEnd::CheckFailed && is_base && !self.leaf {
            return Err(StackEnd::Complete);
        }
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
                let first = *self
                    .walker
                    .rules
                    .candidates
                    .get(rule.candidates())
                    .first()?;
                let known = recorded.is_some_and(|next| link.wrapping_sub(next.0) <= 1);
                if first.rule.ra_slot != IN_REGISTER || known || self.is_self(&first, &at, link) {
                    return None;
                }
                let caller = self.target(link, false);
                let executable = !matches!(caller.place, CodeLocation::Nothing);
                if !executable || !self.passes(&first, &at, &caller) {
                    return None;
                }
                caller.lookup
            }
            _ => return None,
        };
        Some(Avma(caller))
    }

    /// What lies at an address, with its rule; `leaf` if the address is an ip.
    #[inline]
    fn locate(&mut self, lookup: u64, leaf: bool) -> Located<'w, 'a> {
        let code = self.code;
        let Lookup { place, life, noted } = code.locate_for(Avma(lookup));
        let key = key_of(&place.frame_place());
        let memo = &self.walker.memo;
        let noted = noted.zip(key).and_then(|(id, key)| memo.numbered(id, key));
        let known = noted.or_else(|| {
            let known = key.and_then(|key| memo.get(key))?;
            note(code, lookup, &known);
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
        place: &CodeLocation<'w, 'a>,
        key: Option<u64>,
        leaf: bool,
    ) -> KnownPlace {
        let rule = self.walker.rules.rule(place, leaf, self.code);
        let Some(key) = key else {
            return KnownPlace::unkept(rule);
        };
        let entry = self.walker.memo.insert(key, rule);
        note(self.code, lookup, &entry);
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
        let ra_at = slot_at::<A>(cfa, rule.ra_slot);
        let address = if rule.ra_slot == IN_REGISTER {
            self.cursor.lr.ok_or(StackEnd::CheckFailed)?
        } else {
            let word = self.stack.word::<A>(ra_at);
            word.ok_or_else(|| self.stack.why_absent(ra_at))?
        };
        let mut fp_at = None;
        match rule.fp_slot {
            IN_REGISTER => {}
            LOST => self.cursor.fp = None,
            // Epilogues pop the register before their call frame information takes note (LLVM's never does).
            slot if slot_at::<A>(cfa, slot) < sp => {}
            slot => {
                let at = slot_at::<A>(cfa, slot);
                self.cursor.fp = self.stack.word::<A>(at);
                fp_at = Some(at);
            }
        }
        if simple && rule.ra_slot != IN_REGISTER {
            self.way = Some(Way {
                ra_at,
                ra: address,
                fp_at,
                saved: rule.saved(),
            });
        }
        self.cursor.sp = cfa;
        self.cursor.sp_exact = rule.kind != Kind::Record;
        self.cursor.lr = None;
        self.walker.history.push(Step {
            saved: rule.saved(),
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
        let address = if self.code.is_return_probe(Avma(address)) {
            self.behind_probe()?
        } else {
            address
        };
        let caller = self.target(address, interrupted);
        if matches!(caller.place, CodeLocation::Nothing) {
            return Err(StackEnd::CheckFailed);
        }
        self.leaf = interrupted;
        Ok(caller)
    }

    /// The same place, if it is behind a call. libgcc jumps to a landing pad with the registers of the function that has it, and counts its
    /// own frame from another register then: what it comes to is no return address, and other rows hold for the code before.
    #[inline]
    fn landed(&mut self, rule: &Rule, caller: Located<'w, 'a>) -> Located<'w, 'a> {
        let is_usual = rule.cfa_register == A::SP || rule.cfa_register == A::FP;
        if is_usual || self.leaf || self.call_check(&caller) != CallCheck::NoCall {
            return caller;
        }
        self.leaf = true;
        self.locate(caller.lookup.wrapping_add(1), true)
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
            Kind::Sigreturn if !is_unread(&before.place) => self.locate(address, true),
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
            Kind::Guess => self.guess(rule.candidates(), at, origin),
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
}
