//! What a walk has in common with the thread's last one: most of its frames, which are still there.
//!
//! In: the marks of the last walk. Out: its frames again, as far as their words on the stack are the same.

use super::{CodeSpace, Cursor, Frames, Located, Step};
use crate::address::Avma;
use crate::unwind::arch::Architecture;
use crate::unwind::rules::{Kind, SavedSets};
use crate::unwind::trail::Mark;
use crate::unwind::{FrameOrigin, Scene, UserFrame};

impl<'w, 'a, A: Architecture, S: CodeSpace<'a>> Frames<'w, '_, 'a, A, S> {
    /// Notes the current frame for the next walk.
    pub(super) fn mark(&mut self, at: &Located<'w, 'a>, origin: FrameOrigin) {
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
    pub(super) fn joined<'m>(&self, known: &mut &'m [Mark]) -> Option<&'m [Mark]> {
        let now = self.walker.marks.last()?;
        while let Some((mark, outer)) = known.split_first()
            && (mark.sp < now.sp || (mark.leaf && mark.sp == now.sp))
        {
            *known = outer;
        }
        let mark = known.first()?;
        let same = (mark.sp, mark.fp, mark.lookup, mark.id, mark.sp_exact)
            == (now.sp, now.fp, now.lookup, now.id, now.sp_exact);
        (same && !now.leaf && !mark.leaf && now.id.is_some()).then_some(known)
    }

    /// Runs along the frame pointers, where there are some, until the last walk is met or likely to be: what the
    /// walk will look up comes from memory at the same time then and not one after the other.
    pub(super) fn scout(&mut self, known: &[Mark]) {
        const MOST: usize = 64;
        let mut known = known;
        let ahead = &mut self.walker.ahead;
        ahead.clear();
        let (mut sp, mut fp) = (self.cursor.sp, self.cursor.fp);
        while let Some(record) = fp
            && record >= sp
            && ahead.len() < MOST
        {
            let Some(address) = self
                .stack
                .word::<A>(record.saturating_add(u64::from(A::WORD)))
            else {
                break;
            };
            sp = record.saturating_add(2 * u64::from(A::WORD));
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
            fp = self.stack.word::<A>(record);
        }
        for &lookup in &self.walker.ahead {
            self.walker.expect(self.code, Avma(lookup));
        }
    }

    /// Goes along the last walk, whose frame `known[0]` is the current one, as far as its words are still there and
    /// lead to the same code. Where that is, unless it is here.
    pub(super) fn follow(
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
                self.stack.word::<A>(way.ra_at) == Some(way.ra)
                    && way
                        .fp_at
                        .is_none_or(|at| self.stack.word::<A>(at) == mark.fp)
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
}
