//! Filters that hide rows: by thread, comm, DSO, symbol and socket.

use super::super::options::ReportOptions;
use crate::address::Avma;
use crate::profile::{Entry, Frame, FrameId, Profile};

/// `--symbol-filter` looks at rows, not at samples.
pub(super) fn hidden_by_name(profile: &Profile, options: &ReportOptions, frame: &Frame) -> bool {
    let Some(part) = &options.symbol_filter else {
        return false;
    };
    !frame
        .symbol
        .is_some_and(|symbol| profile[symbol].name.contains(part.as_str()))
}

/// The filters that look at a sample's leaf and thread.
pub(super) struct Filter<'a> {
    profile: &'a Profile,
    options: &'a ReportOptions,
    comms: Option<Vec<bool>>,
    objects: Option<Vec<bool>>,
}

impl<'a> Filter<'a> {
    pub(super) fn new(profile: &'a Profile, options: &'a ReportOptions) -> Self {
        let comms = options
            .comms
            .as_ref()
            .map(|list| profile.comms.iter().map(|c| list.contains(c)).collect());
        let objects = options.dsos.as_ref().map(|list| {
            profile
                .objects
                .iter()
                .map(|o| list.contains(&o.short_name) || list.contains(&o.long_name))
                .collect()
        });
        Self {
            profile,
            options,
            comms,
            objects,
        }
    }

    pub(super) fn hides(&self, entry: &Entry, leaf: FrameId) -> bool {
        let thread = &self.profile[entry.thread];
        let frame = &self.profile[leaf];
        let is_out = |list: &Option<Vec<u32>>, id: u32| {
            list.as_ref().is_some_and(|list| !list.contains(&id))
        };
        let socket = self.options.socket;
        socket.is_some_and(|wanted| self.profile.recording.socket(entry.cpu) != wanted)
            || self
                .comms
                .as_ref()
                .is_some_and(|comms| !comms[entry.comm.0 as usize])
            || is_out(&self.options.pids, thread.pid)
            || is_out(&self.options.tids, thread.tid)
            || self.objects.as_ref().is_some_and(|objects| {
                !frame
                    .object
                    .is_some_and(|object| objects[object.0 as usize])
            })
            || self
                .options
                .symbols
                .as_ref()
                .is_some_and(|list| !self.is_listed(list, frame))
    }

    /// `-S` takes names, and addresses of a symbol's start or of a sample.
    fn is_listed(&self, list: &[String], frame: &Frame) -> bool {
        let symbol = frame.symbol.map(|symbol| &self.profile[symbol]);
        let is_at = |word: &String, address: Avma| {
            let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
            digits.is_some_and(|digits| u64::from_str_radix(digits, 16) == Ok(address.0))
        };
        list.iter().any(|word| {
            symbol.is_some_and(|s| s.name == *word || is_at(word, frame.address_of(s)))
                || is_at(word, frame.address)
        })
    }
}
