//! The functions that a recording's files tell of, whether or not a sample hit them.

use super::LoadError;
use super::companions::source_maps;
use super::library::Library;
use super::options::LoadOptions;
use super::reading::history;
use crate::diagnostics::Diagnostics;
use crate::dso::demangle::demangle;
use crate::dso::originals::{Originals, parameters};
use crate::dso::{DsoId, DsoKind, NameStyle};
use crate::ids::Idx;
use crate::jit::JitCodeId;
use crate::needs::Needs;
use crate::profile::names::original_name;
use crate::runtimes::Producer;
use crate::session::Session;
use crate::symbolize::SourceMaps;

/// Where a name is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Teller<'n> {
    /// A file that was mapped executable, by its path; and the function's parameters, where its name there tells them.
    File(&'n str, Option<&'n str>),
    /// A dump or a perf map.
    Jit(Producer),
}

/// Which names are of interest.
pub(crate) trait Listener {
    /// Whether names of such a file are; those of dumps and perf maps are asked for one by one.
    fn wants_file(&mut self, path: &str) -> bool;
    /// Code of a dump or perf map, by its name there.
    fn see(&mut self, producer: Producer, name: &[u8]);
    /// Whether a name, as the file has it, may be one of them; asked of all, so it should be quick.
    fn wants(&self, name: &[u8]) -> bool;
    /// A name as it is shown.
    fn hear(&mut self, teller: Teller<'_>, name: &str);
}

impl Library<'_> {
    /// Hands out the functions of the files that a recording maps and of its dumps. Samples are not looked at, and nothing is told:
    /// what is wrong with the files was told when the recording was read.
    ///
    /// # Errors
    /// When the recording cannot be opened.
    pub(crate) fn names(
        options: &LoadOptions,
        listener: &mut dyn Listener,
    ) -> Result<(), LoadError> {
        let quiet = Diagnostics::new();
        history(options, &quiet, |store, recording, session, _| {
            let known = (recording, session);
            let maps = source_maps(known, store, (options, options.needs), &quiet);
            of_dumps(session, &maps, options, listener);
            of_files(session, options, listener);
        })
    }
}

fn of_dumps(
    session: &Session<'_>,
    maps: &SourceMaps<'_>,
    options: &LoadOptions,
    listener: &mut dyn Listener,
) {
    for id in (0..).take(session.jit.code_count()).map(JitCodeId) {
        let code = session.jit.code(id);
        let written = session.jit.name_with_file(id);
        let original = original_name(maps, code.producer(), &written);
        let name = original.as_ref().map_or(&*written, |(name, _)| name);
        listener.see(code.producer(), name);
        if listener.wants(name) {
            let name = demangle(name, options.names.names);
            listener.hear(Teller::Jit(code.producer()), &name);
        }
    }
}

fn of_files(session: &Session<'_>, options: &LoadOptions, listener: &mut dyn Listener) {
    let dsos = &session.dsos;
    let needs = options.needs - options.refused;
    let is_raw = options.names.names == NameStyle::Raw;
    let renames = needs.contains(Needs::ORIGINALS) && !is_raw;
    for id in (0..dsos.len()).map(DsoId::from_usize) {
        let dso = dsos.get(id);
        let path = String::from_utf8_lossy(&dso.long_name);
        if dso.kind != DsoKind::File || !dsos.is_mapped_file(id) || !listener.wants_file(&path) {
            continue;
        }
        let table = dsos.symbols(id);
        let originals = Originals::default();
        let files = || [dsos.binary(id), dsos.debug(id)];
        for raw in table.into_iter().flat_map(|table| table.names()) {
            let original = renames.then(|| originals.of(raw, files)).flatten();
            let name = original.as_ref().map_or(raw, |name| name.as_bytes());
            if listener.wants(name) {
                let parameters = parameters(raw);
                let teller = Teller::File(&path, parameters.as_deref());
                let shown = || demangle(raw, options.names.names).into_owned();
                listener.hear(teller, &original.unwrap_or_else(shown));
            }
        }
    }
}
