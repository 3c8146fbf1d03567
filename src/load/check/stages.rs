//! What the reading stages made of a recording: all that evidence is taken from.

use super::Weights;
use crate::collect::{Collected, Pc, PcId, Row};
use crate::diagnostics::Diagnostics;
use crate::dso::DsoId;
use crate::ids::IndexSlice;
use crate::input::Story;
use crate::perfdata::Recording;
use crate::profile::{EventId, FrameId};
use crate::session::{Samples, Session, Target};
use crate::stitch::Mended;
use crate::symbolize::{Answers, Site, Symbol};
use crate::wasm::WasmCode;
use crate::weigh::Trim;

/// What the reading stages made of a recording.
pub struct Stages<'s, 'a> {
    /// The recording.
    pub recording: &'s Recording<'a>,
    /// Its history.
    pub session: &'s Session<'a>,
    /// Its samples, as they were weighed.
    pub samples: &'s Samples,
    /// Its stacks.
    pub collected: &'s Collected,
    /// The event that is judged, of several.
    pub judged: Option<EventId>,
    /// Whether times, CPUs or spans were chosen, so that samples are left out.
    pub is_narrowed: bool,
    /// What `pjit record` tells of it.
    pub story: Option<&'s Story>,
    /// What views leave out in front of its stacks, where all that was recorded are probes of allocators or switches.
    pub trim: Option<Trim>,
    /// An address of each frame of its profile.
    pub met: &'s IndexSlice<FrameId, [Option<PcId>]>,
    /// What was put under cut stacks.
    pub mended: &'s Mended,
    /// What was asked of the symbols, and the answers.
    pub answers: Answers<'s>,
    /// What weights could be made of.
    pub weights: &'s Weights,
    /// Where code of WebAssembly is.
    pub wasm: &'s WasmCode<'a>,
    /// What is told of what was looked for.
    pub diag: &'s Diagnostics,
}

impl Stages<'_, '_> {
    /// Rows of the event that is judged. Those of others say nothing of what is shown: all samples of a tracepoint lie in one
    /// named function.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.collected.rows.iter().filter(|row| self.judges(row))
    }

    /// Whether a row is of the event that is judged.
    pub fn judges(&self, row: &Row) -> bool {
        self.judged.is_none_or(|event| event == row.key.event)
    }

    /// The same without those of the idle task, whose code nearly always has a name: nobody looks at it.
    pub fn busy_rows(&self) -> impl Iterator<Item = &Row> {
        let threads = &self.session.threads;
        self.rows().filter(|row| !threads[row.key.thread].is_idle())
    }

    /// Where views show a row: of calls of an allocator who called it, of switches who waited. Else it's the leaf.
    pub fn shown(&self, row: &Row) -> &Pc {
        let leaf = &self.collected.pcs[row.key.leaf];
        let Some(trim) = self.trim else {
            return leaf;
        };
        let stack = self.collected.stacks.get(row.key.stack).iter();
        let mut frames = stack.map(|pc| &self.collected.pcs[*pc]);
        let is_shown = |pc: &&Pc| match pc.target {
            Target::Label(_) => false,
            Target::Dso(dso) => {
                let symbol = self.symbol(dso, pc.address);
                symbol.is_none_or(|symbol| !trim.leaves_out(&symbol.name))
            }
            Target::Nowhere | Target::Jit(..) => true,
        };
        frames.find(is_shown).unwrap_or(leaf)
    }

    /// The symbol at an address of a file.
    pub fn symbol(&self, dso: DsoId, address: u64) -> Option<&Symbol> {
        let answer = self.answers.get(Site::Dso(dso), address)?;
        let index = answer.symbol?;
        self.answers.resolution.symbols.get(index)
    }
}
