//! Whether code of WebAssembly has lines, and what is missing where it has not.
//!
//! In: what the reading stages found, and the samples in wasmtime's code. Out: one line of the table, with the command that
//! would have given lines.

use crate::session::Target;
use crate::wasm::{self, Finding as Compiled, Source};

use super::remedy::{Draft, finding};
use super::stages::Stages;
use super::{Evidence, Level, percent};

/// Samples in code that wasmtime made of WebAssembly.
#[derive(Debug, Clone, Default)]
pub struct WasmLines {
    /// All of them, trampolines aside.
    pub samples: u64,
    /// Those with a line.
    pub with_line: u64,
    /// Those of them in code without a position of its own, between two lines.
    pub near: u64,
    /// Those of which only the function is known, and its file; not among `with_line`.
    pub function_only: u64,
    /// Why others have none.
    pub trouble: Option<Trouble>,
    /// The module's file, as far as the recording's command line tells.
    pub module: String,
}

/// What is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// No `.cwasm` was found.
    NoCompiled,
    /// Compiled files were found, and none of them is certain to be that of some code.
    NotOfThis,
    /// Those that were found have other code.
    OtherCompiled(Compiled),
    /// No `.wasm` was found, or none that the `.cwasm` could be made from.
    NoModule,
    /// The `.wasm` has no debug information.
    NoDwarf,
    /// It names a source map instead, which is not at hand.
    NoMap(String),
    /// Its source map leaves out some of the code that is hot.
    NotInMap,
    /// It has, but none of the code that is hot.
    NoLine,
}

/// Per cent of the samples with a line from which on all is well.
const GOOD: f64 = 99.0;

/// Per cent of them between two lines from which on single lines are not to be trusted.
const LOOSE: f64 = 20.0;

pub(super) fn gather(stages: &Stages<'_, '_>) -> WasmLines {
    let wasm = stages.answers.wasm;
    let mut lines = WasmLines {
        module: module(&stages.recording.features.cmdline),
        ..WasmLines::default()
    };
    for row in stages.rows() {
        let pc = &stages.collected.pcs[row.key.leaf];
        let place = match pc.target {
            Target::Jit(id, _) => {
                let code = stages.session.jit.code(id);
                let object = stages.session.jit.object(code.object());
                if !object.producer.row().compiles_wasm || wasm::is_trampoline(code.name()) {
                    continue;
                }
                wasm.place_of_jit(id, pc.address)
            }
            Target::Dso(dso) => {
                match wasm.place_of_dso(dso, crate::address::FileOffset(pc.address)) {
                    Some(place) => Some(place),
                    None => continue,
                }
            }
            Target::Nowhere | Target::Label(_) => continue,
        };
        lines.samples += row.samples;
        let answer = stages.answers.of_wasm(place);
        let only = place.is_some_and(|place| wasm.is_function_only(place.part));
        lines.function_only += if only { row.samples } else { 0 };
        let answer = answer.filter(|_| !only);
        if let Some(answer) = answer.filter(|answer| answer.has_line(stages.answers.resolution)) {
            lines.with_line += row.samples;
            lines.near += if answer.doubtful { row.samples } else { 0 };
            continue;
        }
        if lines.trouble.is_some() {
            continue;
        }
        let place = place.filter(|_| !only);
        lines.trouble = Some(match place.map(|place| wasm.source(place.part)) {
            None => match best(&wasm.findings) {
                Some(other) => Trouble::OtherCompiled(other),
                None if wasm.findings.iter().any(|finding| finding.is_used) => Trouble::NotOfThis,
                None => Trouble::NoCompiled,
            },
            Some(Source::Missing) => Trouble::NoModule,
            Some(Source::WithoutDwarf) => {
                match place.and_then(|place| wasm.source_map(place.part)) {
                    None => Trouble::NoDwarf,
                    Some(map) if map.is_there() => Trouble::NotInMap,
                    Some(map) => Trouble::NoMap(map.url.to_owned()),
                }
            }
            Some(Source::WithDwarf) => Trouble::NoLine,
        });
    }
    lines
}

/// The file that comes nearest to the recorded code.
fn best(findings: &[Compiled]) -> Option<Compiled> {
    let others = findings.iter().filter(|finding| !finding.is_used);
    others.max_by_key(|finding| finding.same).cloned()
}

/// The module on a command line.
fn module(command: &[String]) -> String {
    let is_module = |word: &&String| word.ends_with(".wasm") || word.ends_with(".wat");
    let found = command.iter().find(is_module);
    found.map_or_else(|| "app.wasm".to_owned(), String::clone)
}

/// The line of the table; none where no code of WebAssembly was sampled.
pub(super) fn judge(evidence: &Evidence, out: &mut Vec<Draft>) {
    let lines = &evidence.wasm;
    if lines.samples == 0 {
        return;
    }
    let share = percent(lines.with_line, lines.samples);
    let mut text = format!("{share:.2}% of the samples in WebAssembly have a line");
    if lines.near > 0 {
        let near = percent(lines.near, lines.samples);
        text +=
            &format!(", {near:.2}% one of two: their code lost its own, and stands between them");
    }
    if lines.function_only > 0 {
        let only = percent(lines.function_only, lines.samples);
        text += &format!(", {only:.2}% only the file of their function");
    }
    let Some(trouble) = lines.trouble.as_ref().filter(|_| share < GOOD) else {
        let is_loose = percent(lines.near, lines.samples) >= LOOSE;
        let level = if is_loose { Level::Note } else { Level::Ok };
        out.push(finding(level, "wasm-lines", text));
        return;
    };
    let (why, fix) = explain(trouble, &lines.module);
    let row = finding(Level::Note, "wasm-lines", format!("{text}: {why}"));
    out.push(row.fixed_by(fix));
}

fn explain(trouble: &Trouble, module: &str) -> (String, Option<String>) {
    let compiled = module.rsplit_once('.').map_or(module, |(stem, _)| stem);
    let compile = format!(
        "wasmtime compile {module} -o {compiled}.cwasm (by the same version and with the same flags as the run), and put \
         it beside the recording, or name it with --cwasm"
    );
    let (why, fix) = match trouble {
        Trouble::NoCompiled => ("no .cwasm was found".to_owned(), compile),
        Trouble::NotOfThis => (
            "of the rest no .cwasm was found, or several that differ".to_owned(),
            compile,
        ),
        Trouble::OtherCompiled(other) => {
            let (path, same, of) = (other.path.display(), other.same, other.of);
            if let Some(function) = &other.other {
                let why = format!("{path} is another version of the module than ran: {function} has other code");
                return (why, Some(compile));
            }
            let version = &other.version;
            let why = format!(
                "{path} has {same} of {of} functions of the run: made with other flags, by another version (this one by \
                 wasmtime {version}) or of another module"
            );
            (why, compile)
        }
        Trouble::NoModule => (
            "no .wasm was found that the .cwasm could be made from".to_owned(),
            format!("put {module} with its debug information beside the recording, or name it with --wasm"),
        ),
        Trouble::NoDwarf => (
            "the .wasm has no debug information".to_owned(),
            "compile it with -g, or rustc -C debuginfo=1, and name it with --wasm; the one that ran may be stripped".to_owned(),
        ),
        Trouble::NoMap(url) => {
            let name = url.rsplit('/').next().unwrap_or(url);
            let why = format!("the .wasm names a source map, {name}, which was not found");
            (why, format!("put {name} beside the .wasm"))
        }
        Trouble::NotInMap => {
            let why = "the compiler left out the rest in the source map of the .wasm";
            return (why.to_owned(), None);
        }
        Trouble::NoLine => (
            "the debug information of the .wasm does not tell".to_owned(),
            "compile it with -g, or rustc -C debuginfo=1".to_owned(),
        ),
    };
    (why, Some(fix))
}
