//! What the reading stages made of a recording: all that evidence is taken from.

use super::Weights;
use crate::collect::{Collected, PcId};
use crate::diagnostics::Diagnostics;
use crate::ids::IndexSlice;
use crate::perfdata::Recording;
use crate::profile::FrameId;
use crate::session::{Samples, Session};
use crate::stitch::Mended;
use crate::symbolize::Answers;
use crate::wasm::WasmCode;

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
