//! Listings of JIT code: bytes out of the dump, targets named as they were when a sample was taken.

use std::borrow::Cow;

use super::data::{GAP, Piece, Sweep};
use super::decoded::{Decoded, Kind, LineTexts, Lines, NOT_KNOWN, file_name_at, push_text};
use super::functions::{Function, Origin, tier};
use super::names::{Named, push_name};
use super::{Code, Listing, MOST_BYTES, MOST_INSTRUCTIONS, Material, Request, Row, SourcePlace};
use crate::address::Avma;
use crate::collect::{MapCache, SpaceAt};
use crate::disasm::{Syntax, for_arch};
use crate::dso::demangle::demangle;
use crate::jit::{JitCode, JitCodeId};
use crate::jitdump::debug_info::Line;
use crate::runtimes::Producer;
use crate::session::Target;
use crate::symbolize::{Site, SourceMaps};
use crate::wasm::WasmPlace;

/// Decodes the code of a dump. `Err`: what is to blame, and what to do.
pub(super) fn decode<'a>(
    material: &Material<'_, 'a>,
    syntax: Syntax,
    number: usize,
    function: &Function,
    id: JitCodeId,
    hits: &[u64],
) -> Result<Decoded<'a>, (String, String)> {
    let code = material.session.jit.code(id);
    let object = material.session.jit.object(code.object());
    let file = String::from_utf8_lossy(object.path()).into_owned();
    if object.is_perf_map() {
        let reason = "no bytes: the perf map gives addresses only; record with a dump (wasmtime --profile=jitdump, node --perf-prof, java with libperf-jvmti.so)";
        return Err((file, reason.to_owned()));
    }
    let all = code.bytes();
    let bytes = &all[..all
        .len()
        .min(usize::try_from(MOST_BYTES).unwrap_or(usize::MAX))];
    if bytes.is_empty() {
        return Err((file, format!("has no bytes of {}", function.name)));
    }
    let recorded = material.session.dsos.arch();
    let known = recorded.and_then(|arch| Some((arch, for_arch(arch, syntax)?)));
    let Some((arch, mut disassembler)) = known else {
        return Err((file, NOT_KNOWN.to_owned()));
    };
    let start = start_of(material, function, code);
    let sweep = Sweep {
        bytes,
        start,
        hits,
        arch,
        most: MOST_INSTRUCTIONS,
    };
    let pieces = sweep.jit(&mut *disassembler);
    let bytes = &bytes[..pieces.end()];
    Ok(Decoded {
        function: number,
        file,
        start,
        bytes,
        is_cut: bytes.len() < all.len(),
        arch,
        pieces,
        kind: Kind::Jit(id),
    })
}

/// Where the code was when it was sampled; it may have been moved since it was loaded.
fn start_of(material: &Material<'_, '_>, function: &Function, code: JitCode<'_, '_>) -> u64 {
    let sample = usize::try_from(function.sample).ok();
    let sample = sample.and_then(|at| material.samples.all.get(at));
    let found = sample.and_then(|sample| {
        let cache = MapCache::default();
        let located = SpaceAt::of(material.session, sample, &cache).locate_user(function.at);
        let is_here =
            matches!(located.target, Target::Jit(id, _) if Origin::Jit(id) == function.origin);
        is_here.then(|| function.at.0.wrapping_sub(located.address))
    });
    found.unwrap_or(code.start().0)
}

/// The listing of a piece of JIT code.
pub(super) fn finish<'c>(
    material: &'c Material<'_, '_>,
    request: &Request,
    function: &Function,
    decoded: Decoded<'_>,
    cache: &'c MapCache<'c>,
    (wasm_lines, places): (Option<&Lines>, &mut LineTexts),
) -> Listing {
    let Origin::Jit(id) = function.origin else {
        unreachable!("only JIT code is finished here")
    };
    let code = material.session.jit.code(id);
    let sample = usize::try_from(function.sample).ok();
    let sample = sample.and_then(|at| material.samples.all.get(at));
    let space = sample.map(|sample| SpaceAt::of(material.session, sample, cache));
    let end = decoded.start.saturating_add(decoded.bytes.len() as u64);
    let name_of = |target: u64| {
        if (decoded.start..end).contains(&target) {
            return Some((
                Cow::Borrowed(function.name.as_str()),
                target - decoded.start,
            ));
        }
        name_at(material, space.as_ref()?, target)
    };
    let lines = if request.lines {
        code.true_lines()
    } else {
        Vec::new()
    };
    let has_maps = code.producer().row().has_source_maps;
    let mut lines = RuntimeLines {
        lines: &lines,
        maps: has_maps.then_some(material.answers.maps),
        last: None,
    };
    let hits = hits_by_offset(function);
    let (mut rows, mut texts) = (Vec::new(), String::new());
    let mut sure = Certainty {
        is_untold: request.lines && code.has_lines() && !code.has_true_lines(),
        ..Certainty::default()
    };
    for piece in decoded.pieces.iter() {
        let text = decoded.pieces.text(piece);
        if text == GAP {
            rows.push(Row::Text(GAP.to_owned()));
            continue;
        }
        let start = texts.len();
        push_text(piece, text, name_of, &mut texts);
        let immediate = piece
            .found
            .immediate
            .and_then(|value| name_at(material, space.as_ref()?, value));
        if let Some(name) = immediate.filter(|name| name.1 == 0 && !name.0.contains('+')) {
            texts.push_str("        # ");
            push_name(&name, &mut texts);
        }
        let at = material.wasm.place_of_jit(id, piece.offset.into());
        let wasm = at.and_then(|at| wasm_place(material, wasm_lines?, at, function, places));
        let samples = samples_in(&hits, piece);
        sure.count(wasm, samples);
        if samples > 0 {
            sure.source = sure
                .source
                .take()
                .or_else(|| material.wasm.source_name(at?.part));
        }
        let wasm = wasm.map(|(place, _)| place);
        rows.push(Row::Code(Code {
            offset: piece.offset,
            len: piece.len,
            place: wasm.or_else(|| lines.at(piece.offset, places)),
            text: (start, texts.len()),
        }));
    }
    let mut all = head(code, &decoded, function, &sure);
    all.append(&mut rows);
    all.extend(decoded.end());
    Listing {
        function: decoded.function,
        file: decoded.file,
        start: decoded.start,
        bytes: decoded.bytes.to_vec(),
        has_words: decoded.arch.has_words(),
        rows: all,
        texts,
    }
}

/// Where samples are, in order, and how many.
fn hits_by_offset(function: &Function) -> Vec<(u64, u64)> {
    let hits = function.hits.iter();
    let mut hits: Vec<_> = hits.map(|hit| (hit.offset, hit.samples)).collect();
    hits.sort_unstable();
    hits
}

/// How many samples are in an instruction.
fn samples_in(hits: &[(u64, u64)], piece: &Piece) -> u64 {
    let (start, len) = (u64::from(piece.offset), u64::from(piece.len));
    let first = hits.partition_point(|hit| hit.0 < start);
    let inside = hits[first..].iter().take_while(|hit| hit.0 < start + len);
    inside.map(|hit| hit.1).sum()
}

/// How samples in JIT code came by their lines.
#[derive(Default)]
struct Certainty {
    /// Where lines are from, if there are any.
    source: Option<String>,
    /// The instruction has a position of its own.
    exact: u64,
    /// It has none, those before and behind lead to the same line.
    between: u64,
    /// They lead to different ones.
    near: u64,
    without: u64,
    /// The runtime wrote lines that are not of places in the code.
    is_untold: bool,
}

impl Certainty {
    fn count(&mut self, place: Option<(SourcePlace, bool)>, samples: u64) {
        let kind = match place {
            Some((place, _)) if place.is_near => &mut self.near,
            Some((_, true)) => &mut self.exact,
            Some((_, false)) => &mut self.between,
            None => &mut self.without,
        };
        *kind += samples;
    }

    /// What the head says of it; nothing where there is no source.
    fn words(&self) -> String {
        if self.is_untold {
            return ", lines not known".to_owned();
        }
        let Some(source) = &self.source else {
            return String::new();
        };
        let all = self.exact + self.between + self.near + self.without;
        let kinds = [
            (self.exact, "exact"),
            (self.between, "between code of one line"),
            (self.near, "between two lines (~)"),
            (self.without, "without"),
        ];
        let shares: Vec<String> = kinds
            .iter()
            .filter(|(samples, _)| *samples > 0)
            .map(|(samples, kind)| format!("{:.0}% {kind}", 100.0 * *samples as f64 / all as f64))
            .collect();
        format!(", lines from {source}: {}", shares.join(", "))
    }
}

/// What lay at an address when the sample was taken: JIT code, or a function of a mapped file.
fn name_at<'s>(
    material: &Material<'s, '_>,
    space: &SpaceAt<'_, '_>,
    address: u64,
) -> Option<Named<'s>> {
    let located = space.locate_user(Avma(address));
    match located.target {
        Target::Jit(id, _) => {
            let name = material.session.jit.code(id).name();
            let name = demangle(name, material.names);
            Some((name, located.address))
        }
        Target::Dso(dso) => file_name_at(material, dso, located.address),
        Target::Nowhere | Target::Label(_) => None,
    }
}

/// The line of WebAssembly, by the DWARF of its module, and whether the code itself has that position.
fn wasm_place(
    material: &Material<'_, '_>,
    lines: &Lines,
    at: WasmPlace,
    function: &Function,
    places: &mut LineTexts,
) -> Option<(SourcePlace, bool)> {
    let site = Site::Wasm(at.part);
    let found = lines.at(site, at.offset.into(), &function.name, places)?;
    let is_exact = material.wasm.is_exact(at);
    (found.line > 0).then_some((found, is_exact))
}

/// The lines of a piece of code, by what the runtime wrote down, or where a source map leads from there.
struct RuntimeLines<'l> {
    lines: &'l [Line<'l>],
    maps: Option<&'l SourceMaps<'l>>,
    /// The last one that was asked for.
    last: Option<(usize, Option<SourcePlace>)>,
}

impl RuntimeLines<'_> {
    fn at(&mut self, offset: u32, places: &mut LineTexts) -> Option<SourcePlace> {
        let behind = self
            .lines
            .partition_point(|line| line.offset <= offset.into());
        let number = behind.checked_sub(1)?;
        match self.last {
            Some((last, place)) if last == number => place,
            _ => {
                let place = self.find(&self.lines[number], places);
                self.last = Some((number, place));
                place
            }
        }
    }

    fn find(&self, line: &Line<'_>, places: &mut LineTexts) -> Option<SourcePlace> {
        if line.line == 0 {
            return None;
        }
        let file = String::from_utf8_lossy(line.file);
        let original = self
            .maps
            .and_then(|maps| maps.original(&file, line.line, line.column));
        let (file, line) = match original {
            Some(original) => (original.file.into(), original.line),
            None => (file, line.line),
        };
        Some(SourcePlace {
            function: None,
            file: (!file.is_empty()).then(|| places.number(&file)),
            line,
            is_near: false,
        })
    }
}

/// Two lines that say what the code is, where objdump names section and symbol.
fn head(
    code: JitCode<'_, '_>,
    decoded: &Decoded<'_>,
    function: &Function,
    sure: &Certainty,
) -> Vec<Row> {
    let version = function.version.unwrap_or_default();
    let producer = producer(code.producer(), &function.name);
    let which = if version.of > 1 {
        format!(
            ", version {} of {} with samples",
            version.number, version.of
        )
    } else {
        String::new()
    };
    let copies = match (version.loads, version.places) {
        (..=1, _) => String::new(),
        (loads, 1) => format!(", loaded {loads} times"),
        (loads, places) if loads == places => format!(", the same in {places} places"),
        (loads, places) => format!(", loaded {loads} times in {places} places"),
    };
    let size = decoded.bytes.len();
    let time = |ns: u64| format!("{}.{:03} s", ns / 1_000_000_000, ns / 1_000_000 % 1000);
    let from = match version.loaded {
        0 => "the beginning".to_owned(),
        loaded => time(loaded),
    };
    let to = version.replaced.map_or("the end".to_owned(), time);
    let mut rows = vec![
        Row::Text(format!(
            "JIT code{producer}{which}: {size} bytes at {:#x}, from {from} to {to}{copies}{}",
            decoded.start,
            sure.words()
        )),
        Row::Text(format!("{:016x} <{}>:", decoded.start, function.name)),
    ];
    if code.producer().row().patches_calls {
        let note =
            "(this runtime changes targets of calls later: they may show where they first led)";
        rows.insert(1, Row::Text(note.to_owned()));
    }
    rows
}

/// Who made it, and by which of its compilers, as far as the name tells.
fn producer(producer: Producer, name: &str) -> String {
    let tier = match tier(name) {
        "" => String::new(),
        tier => format!(", {tier}"),
    };
    match producer {
        Producer::Unknown => String::new(),
        known => {
            // Of the long names only the runtime: `V8 (Node.js, …)`.
            let runtime = known.row().name.split(" (").next().unwrap_or_default();
            format!(" ({runtime}{tier})")
        }
    }
}
