//! Stand-in until the index of JIT code is there.
#![allow(missing_docs, reason = "stand-in")]
use super::jit::{JitIndex, JitObjectId, ProcessId};
use crate::address::Timestamp;
#[derive(Default)]
pub struct JitBuilder<'a>(std::marker::PhantomData<&'a ()>);
pub struct JitSearch {
    pub jitdumps: Vec<std::path::PathBuf>,
    pub perf_maps: Vec<std::path::PathBuf>,
    pub recording_dir: std::path::PathBuf,
    pub cwd: std::path::PathBuf,
    pub symfs: Option<std::path::PathBuf>,
}
pub struct RecordingClock;
impl RecordingClock {
    pub fn of(_: &crate::perfdata::Recording<'_>) -> Self {
        Self
    }
}
pub struct JitObject;
impl JitObject {
    pub fn is_perf_map(&self) -> bool {
        false
    }
    pub fn path(&self) -> &[u8] {
        b""
    }
}
impl<'a> JitBuilder<'a> {
    pub fn new(_: &'a crate::input::Store, _: JitSearch, _: RecordingClock) -> Self {
        Self::default()
    }
    pub fn marker(&mut self, _: ProcessId, _: u32, _: &[u8], _: Timestamp) {}
    pub fn fork(&mut self, _: ProcessId, _: ProcessId, _: Timestamp) {}
    pub fn exec(&mut self, _: ProcessId, _: Timestamp) {}
    pub fn exec_file_mapping(&mut self, _: ProcessId, _: crate::address::AvmaRange, _: Timestamp) {}
    pub fn anonymous(&mut self, _: ProcessId, _: u32, _: crate::address::AvmaRange, _: Timestamp) {}
    pub fn finish(self, _: &[u32], _: &crate::diagnostics::Diagnostics) -> JitIndex<'a> {
        JitIndex::default()
    }
}
impl JitIndex<'_> {
    pub fn objects(&self) -> &[JitObject] {
        &[]
    }
    pub fn object(&self, _: JitObjectId) -> &JitObject {
        &JitObject
    }
    pub fn summary(&self) -> Vec<String> {
        vec![]
    }
}
