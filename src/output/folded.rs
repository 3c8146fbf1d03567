//! Folded stacks: `comm;root;…;leaf WEIGHT`, one line for each distinct stack, sorted.
//!
//! In: a profile with stacks. Out: what `inferno-collapse-perf` makes of `perf script`, had perf's stacks
//! been whole; the rules for names (argument lists cut, `;` made `:`, blanks in comms made `_`, unnamed frames
//! shown as their DSO) are those of inferno 0.12, `src/collapse/perf.rs`.

use std::borrow::Cow;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::io::{self, Write};

use rustc_hash::FxHashMap;

use crate::perfdata::CpuMode;
use crate::profile::{CommId, Entry, Frame, FrameId, Profile, StackId, ThreadId};

/// What a line weighs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Weight {
    /// Sum of periods.
    #[default]
    Period,
    /// Number of samples.
    Samples,
}

/// How to print folded stacks.
#[derive(Clone, Debug, Default)]
pub struct FoldOptions {
    /// `comm-PID` instead of `comm`.
    pub pid: bool,
    /// `comm-PID/TID` instead of `comm`.
    pub tid: bool,
    /// `_[k]` behind kernel frames.
    pub annotate_kernel: bool,
    /// `_[j]` behind frames of code made at run time.
    pub annotate_jit: bool,
    /// What to add up.
    pub weight: Weight,
    /// Only this event.
    pub event: Option<String>,
}

/// Writes all stacks of the profile, sorted by their text.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(profile: &Profile, options: &FoldOptions, out: &mut dyn Write) -> io::Result<()> {
    for (line, weight) in lines(profile, options) {
        out.write_all(line.as_bytes())?;
        writeln!(out, " {weight}")?;
    }
    Ok(())
}

/// Names of the events whose samples would be added up together, when there is more than one: their
/// weights may be of different units.
#[must_use]
pub fn mixed_events<'p>(profile: &'p Profile, options: &FoldOptions) -> Vec<&'p str> {
    let used = profile.events.iter().filter(|event| event.samples > 0);
    let names: Vec<&str> = used.map(|event| event.name.as_str()).collect();
    if options.event.is_some() || names.len() < 2 {
        Vec::new()
    } else {
        names
    }
}

/// All lines, sorted, each text once.
fn lines(profile: &Profile, options: &FoldOptions) -> Vec<(String, u64)> {
    let names: Vec<String> = profile
        .frames
        .iter()
        .map(|frame| frame_name(profile, frame, options))
        .collect();
    let mut lines: Vec<(String, u64)> = groups(profile, options)
        .into_iter()
        .map(|(entry, weight)| (line(profile, entry, &names, options), weight))
        .collect();
    lines.sort_unstable();
    // Different frames may have one name.
    lines.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = kept.1.saturating_add(next.1);
        }
        same
    });
    lines
}

/// One entry for each line that is certain to be one, with the line's weight: texts are made for these only.
fn groups<'p>(profile: &'p Profile, options: &FoldOptions) -> Vec<(&'p Entry, u64)> {
    let mut found: FxHashMap<(CommId, Option<ThreadId>, StackId, Option<FrameId>), usize> =
        FxHashMap::default();
    let mut groups: Vec<(&Entry, u64)> = Vec::new();
    for entry in &profile.entries {
        let event = &profile.events[usize::from(entry.event)];
        if options.event.as_ref().is_some_and(|e| *e != event.name) {
            continue;
        }
        let weight = match options.weight {
            Weight::Period => entry.period,
            Weight::Samples => entry.samples,
        };
        let thread = (options.pid || options.tid).then_some(entry.thread);
        let alone = profile.stacks.get(entry.stack).is_empty();
        let key = (entry.comm, thread, entry.stack, alone.then_some(entry.leaf));
        match found.entry(key) {
            Occupied(at) => {
                let sum = &mut groups[*at.get()].1;
                *sum = sum.saturating_add(weight);
            }
            Vacant(at) => {
                at.insert(groups.len());
                groups.push((entry, weight));
            }
        }
    }
    groups
}

fn line(profile: &Profile, entry: &Entry, names: &[String], options: &FoldOptions) -> String {
    let frames = profile.stacks.get(entry.stack);
    let length = |id: &FrameId| names[id.0 as usize].len() + 1;
    let mut line = String::with_capacity(32 + frames.iter().map(length).sum::<usize>());
    push_comm(profile, entry, options, &mut line);
    if frames.is_empty() {
        line.push(';');
        line.push_str(&names[entry.leaf.0 as usize]);
    }
    for frame in frames.iter().rev() {
        line.push(';');
        line.push_str(&names[frame.0 as usize]);
    }
    line
}

fn push_comm(profile: &Profile, entry: &Entry, options: &FoldOptions, line: &mut String) {
    use std::fmt::Write as _;
    let comm = harmless(&profile.comms[entry.comm.0 as usize]).replace(' ', "_");
    line.push_str(&comm);
    let thread = &profile.threads[entry.thread.0 as usize];
    // perf prints absent ids as -1.
    let id = |id: u32| i64::from(id.cast_signed());
    let written = if options.tid {
        write!(line, "-{}/{}", id(thread.pid), id(thread.tid))
    } else if options.pid {
        write!(line, "-{}", id(thread.pid))
    } else {
        Ok(())
    };
    written.expect("writing to a string cannot fail");
}

fn frame_name(profile: &Profile, frame: &Frame, options: &FoldOptions) -> String {
    let object = frame.object.map(|id| &profile.objects[id.0 as usize]);
    let mut name = match (frame.symbol, object) {
        (Some(symbol), _) => {
            without_arguments(&harmless(&profile.symbols[symbol.0 as usize].name)).to_owned()
        }
        (None, Some(object)) => {
            let file = object
                .long_name
                .rsplit('/')
                .next()
                .unwrap_or(&object.long_name);
            format!("[{}]", harmless(file))
        }
        (None, None) => "[unknown]".to_owned(),
    };
    let kernel = object.is_some_and(|object| object.is_kernel) || frame.mode == CpuMode::Kernel;
    if options.annotate_kernel && kernel {
        name.push_str("_[k]");
    } else if options.annotate_jit && object.is_some_and(|object| object.is_jit) {
        name.push_str("_[j]");
    }
    name
}

/// A name that cannot end a frame or a line, nor reach a terminal as a control character.
fn harmless(name: &str) -> Cow<'_, str> {
    if name.contains(|c: char| c == ';' || c.is_control()) {
        let replace = |c: char| match c {
            ';' => ':',
            c if c.is_control() => '?',
            c => c,
        };
        return Cow::Owned(name.chars().map(replace).collect());
    }
    Cow::Borrowed(name)
}

/// Cuts an argument list: from the first `(` outside brackets that begins neither a Go receiver
/// (`.(*T)`) nor `(anonymous namespace)`.
fn without_arguments(name: &str) -> &str {
    let mut depth = 0_i32;
    let mut previous = None;
    for (at, c) in name.char_indices() {
        match c {
            '<' | '{' | '[' => depth += 1,
            '>' | '}' | ']' | ')' => depth -= 1,
            '(' => {
                let kept = previous == Some('.') || name[at..].starts_with("(anonymous namespace)");
                if depth == 0 && !kept && at > 0 {
                    return &name[..at];
                }
                depth += 1;
            }
            _ => {}
        }
        previous = Some(c);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_lists_go_and_receivers_stay() {
        for (name, expected) in [
            ("foo(int)", "foo"),
            ("net/http.(*Client).Do", "net/http.(*Client).Do"),
            (
                "std::vector<f(int)>::push_back(int&&)",
                "std::vector<f(int)>::push_back",
            ),
            ("(anonymous namespace)::f(bool)", "(anonymous namespace)::f"),
            (
                "{lambda(auto:1&)#1}::operator()",
                "{lambda(auto:1&)#1}::operator",
            ),
            ("Hot.fib(int)", "Hot.fib"),
        ] {
            assert_eq!(without_arguments(name), expected);
        }
    }

    #[test]
    fn names_cannot_break_lines_or_frames() {
        assert_eq!(harmless("a;b\nc\x1b[31m"), "a:b?c?[31m");
        assert_eq!(harmless("plain"), "plain");
    }
}
