//! The functions of a dataset: by what one is the same in another recording, on another machine, after another start.
//!
//! No folders, process ids, addresses, lines, tiers, builds: each would make functions of two recordings different ones. All that a
//! row says is in its id, for two rows of one id would count a function twice.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::hash::hash;
use super::{Table, Values};
use crate::functions::payers::{Payer, Payers};
use crate::functions::{Functions, JIT, UNKNOWN, is_dump};
use crate::ids::{IndexVec, index_vec};
use crate::output::text::harmless;
use crate::profile::{CpuMode, Frame, FrameId, Object, Profile, Symbol};
use crate::runtimes::names::without_hash;
use crate::runtimes::{CleanName, Ecosystem, Producer, Tier};

/// The kernel's object as perf names it.
const KERNEL: &str = "[kernel.kallsyms]";

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    name: String,
    object: String,
    package: String,
    kind: &'static str,
}

/// Gives frames their ids.
pub(super) struct Frames<'p> {
    profile: &'p Profile,
    payers: Payers<'p>,
    ids: IndexVec<FrameId, Option<i64>>,
    rows: FxHashMap<i64, Named>,
}

impl<'p> Frames<'p> {
    pub(super) fn new(profile: &'p Profile, functions: &'p Functions) -> Self {
        Self {
            profile,
            payers: Payers::new(profile, functions),
            ids: index_vec![None; profile.frames.len()],
            rows: FxHashMap::default(),
        }
    }

    /// The id of a frame.
    pub(super) fn id(&mut self, frame: FrameId) -> i64 {
        if let Some(known) = self.ids[frame] {
            return known;
        }
        let named = self.named(frame);
        let parts = [&named.name, &named.object, &named.package];
        let parts = parts.into_iter().map(String::as_bytes);
        let id = hash(parts.chain(std::iter::once(named.kind.as_bytes())));
        self.ids[frame] = Some(id);
        self.rows.entry(id).or_insert(named);
        id
    }

    fn named(&mut self, id: FrameId) -> Named {
        let profile = self.profile;
        let frame = &profile[id];
        let symbol = frame.symbol.map(|symbol| &profile[symbol]);
        let object = frame.object.map(|object| &profile[object]);
        Named {
            name: harmless(&name(symbol, object)).into_owned(),
            object: harmless(&object_name(object)).into_owned(),
            package: harmless(&self.package(id)).into_owned(),
            kind: kind(frame, symbol, object),
        }
    }

    /// The package that a function belongs to; nothing if its callers pay for it.
    fn package(&mut self, frame: FrameId) -> String {
        let told = self.payers.of(&[frame]);
        if told.depth.is_none() {
            return String::new();
        }
        let payer = &self.payers.all()[told.payer];
        // How much of a path tells an own file from others depends on what else ran.
        if payer.ecosystem == Some(Ecosystem::Own) && !payer.path.is_empty() {
            let own = Payer {
                name: base_name(&payer.path).to_owned(),
                ..payer.clone()
            };
            return own.label();
        }
        payer.label()
    }

    /// All that were asked for.
    pub(super) fn table(&self) -> Table {
        let mut rows: Vec<(i64, &Named)> = Vec::with_capacity(self.rows.len());
        rows.extend(self.rows.iter().map(|(id, row)| (*id, row)));
        rows.sort_unstable_by_key(|(id, _)| *id);
        let texts = |of: fn(&Named) -> &str| Values::texts(rows.iter().map(|(_, row)| of(row)));
        Table::new(
            "frames",
            [
                (
                    "frame",
                    Values::Int64(rows.iter().map(|(id, _)| *id).collect()),
                ),
                ("name", texts(|row| &row.name)),
                ("object", texts(|row| &row.object)),
                ("package", texts(|row| &row.package)),
                ("kind", texts(|row| row.kind)),
            ],
        )
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A function's name, or that it has none. What stands where frames are missing is named by what it says.
fn name<'p>(symbol: Option<&'p Symbol>, object: Option<&'p Object>) -> Cow<'p, str> {
    let Some(symbol) = symbol else {
        let label = object.filter(|object| object.is_label());
        return label.map_or(UNKNOWN.into(), |label| {
            format!("[{}]", label.short_name.trim_matches(['[', ']'])).into()
        });
    };
    if is_address(&symbol.name) {
        return UNKNOWN.into();
    }
    let Some(producer) = symbol.producer else {
        return without_hash(&symbol.name).into();
    };
    let clean = CleanName {
        line: 0,
        column: 0,
        ..CleanName::of(&symbol.name, Some(producer))
    };
    clean.short().into()
}

/// `0x7f12ab34cd56`
fn is_address(name: &str) -> bool {
    let digits = name.strip_prefix("0x").unwrap_or_default();
    digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn object_name(object: Option<&Object>) -> Cow<'_, str> {
    match object {
        None => UNKNOWN.into(),
        Some(object) if object.is_label() => "".into(),
        Some(object) if object.is_jit || is_dump(&object.short_name) => JIT.into(),
        Some(object) if object.is_kernel && object.short_name.starts_with("[kernel") => {
            KERNEL.into()
        }
        Some(object) => {
            let name = base_name(&object.short_name);
            name.strip_suffix(" (deleted)").unwrap_or(name).into()
        }
    }
}

fn kind(frame: &Frame, symbol: Option<&Symbol>, object: Option<&Object>) -> &'static str {
    let is_jit = object.is_some_and(|object| object.is_jit)
        || symbol.is_some_and(|symbol| symbol.producer.is_some());
    match symbol {
        Some(symbol) if symbol.inlined => "inlined",
        _ if frame.mode == CpuMode::Kernel || object.is_some_and(|object| object.is_kernel) => {
            "kernel"
        }
        Some(symbol) if is_interpreter(symbol) => "interpreter",
        _ if is_jit => "jit",
        _ => "user",
    }
}

/// Whether it is a runtime's interpreter. Functions that are interpreted for some time are none: their rows would be others from
/// tier to tier.
fn is_interpreter(symbol: &Symbol) -> bool {
    let Some(producer) = symbol.producer else {
        return Producer::is_loop(&symbol.name);
    };
    let row = producer.row();
    let is_its = || {
        row.interpreter
            .is_some_and(|name| symbol.name.as_bytes() == name)
    };
    is_its() || (row.tier)(&symbol.name) == Tier::Interpreted && is_unmarked(symbol, producer)
}

/// Whether its name has no mark of a tier.
fn is_unmarked(symbol: &Symbol, producer: Producer) -> bool {
    CleanName::of(&symbol.name, Some(producer)).name == symbol.name
}
