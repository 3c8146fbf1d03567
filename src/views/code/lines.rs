//! The lines of a block: instructions with their numbers, and what stands between them.
//!
//! Before an instruction stand the lines of its file from the last printed one to its own, at most five where a file begins or
//! goes back (`objdump.c:show_line`), and the function when another one was inlined there.

use std::borrow::Cow;
use std::collections::HashMap;

use smallvec::SmallVec;

use crate::assembly::{Assembly, Code, Listing, Row, Source, SourcePlace, TextId};

use super::{Options, Value, WORTH_NAMING, shown_path};

/// Numbers before an instruction, one for each event.
pub type Values = SmallVec<[Value; 1]>;

/// A line below a block's header.
#[derive(Debug, Clone, PartialEq)]
pub enum Line<'a> {
    /// A line of source, or of what objdump says; without a number where there is none.
    Text {
        /// Of the line in its file.
        number: Option<u32>,
        /// Without blanks in front.
        text: Cow<'a, str>,
    },
    /// An instruction.
    Code {
        /// What stands in front.
        values: Values,
        /// Where it is.
        address: u64,
        /// With TABs.
        text: Cow<'a, str>,
        /// Its place in the sources.
        place: Option<Box<str>>,
    },
}

/// Lines of source before the first one of a file, as objdump has it.
const CONTEXT: u32 = 5;

/// The numbers before all rows of code.
pub(super) struct Samples {
    /// Of those with samples; with each the per cent of the function's period, of the event that has most.
    pub(super) rows: HashMap<usize, (Values, f64)>,
    /// Of all others.
    pub(super) none: Values,
}

impl Samples {
    pub(super) fn at(&self, row: usize) -> (&Values, f64) {
        let own = self.rows.get(&row);
        own.map_or((&self.none, 0.0), |(values, share)| (values, *share))
    }
}

pub(super) fn of<'a>(
    assembly: &'a Assembly,
    listing: &'a Listing,
    samples: &Samples,
    options: &Options,
) -> Vec<Line<'a>> {
    let mut printer = Printer {
        assembly,
        listing,
        options,
        files: HashMap::new(),
        function: None,
        place: None,
        last_place: None,
        lines: vec![empty(), empty(), empty()],
    };
    let (mut texts, mut codes) = (0, 0);
    for row in &listing.rows {
        match row {
            Row::Text(text) => {
                printer.head(text, texts);
                texts += 1;
            }
            Row::Code(code) => {
                let (values, share) = samples.at(codes);
                printer.code(code, values, share);
                codes += 1;
            }
        }
    }
    printer.lines
}

fn empty() -> Line<'static> {
    text(None, "")
}

fn text(number: Option<u32>, text: &str) -> Line<'_> {
    Line::Text {
        number,
        text: Cow::Borrowed(text.trim_start()),
    }
}

/// The place of an instruction as `-l` names it.
pub(super) fn named_place(assembly: &Assembly, code: &Code, options: &Options) -> Option<String> {
    let place = code.place.filter(|place| place.line > 0)?;
    let file = &assembly.texts[place.file?];
    let near = if place.is_near { "~" } else { "" };
    let file = shown_path(file, options.full_paths);
    Some(match place.number() {
        Some(line) => format!("{near}{file}:{line}"),
        None => format!("{near}{file}"),
    })
}

/// How much of a file was printed.
#[derive(Default)]
struct Printed {
    max: u32,
    last: u32,
}

struct Printer<'a, 'p> {
    assembly: &'a Assembly,
    listing: &'a Listing,
    options: &'p Options,
    files: HashMap<TextId, Printed>,
    function: Option<TextId>,
    place: Option<SourcePlace>,
    last_place: Option<String>,
    lines: Vec<Line<'a>>,
}

impl<'a> Printer<'a, '_> {
    /// What objdump says before the code. perf numbers these by the lines of its output.
    fn head(&mut self, what: &'a str, before: u32) {
        if before > 0 && self.lines.len() > 3 && what != "..." {
            self.lines.push(empty());
        }
        let number = (what != "...").then_some(3 + 2 * before);
        self.lines.push(text(number, what));
    }

    fn code(&mut self, code: &'a Code, values: &Values, share: f64) {
        if self.options.source {
            self.source(code.place);
        }
        let address = self.listing.start.wrapping_add(code.offset.into());
        let place = self.place_behind(code, share);
        let text = self.listing.text(code);
        let text = if self.options.raw {
            format!("{}\t{text}", self.bytes(code, 0)).into()
        } else {
            text.into()
        };
        self.lines.push(Line::Code {
            values: values.clone(),
            address,
            text,
            place: place.map(String::into_boxed_str),
        });
        if self.options.raw {
            self.more_bytes(code, address, values.len());
        }
    }

    /// `-l`: the place behind instructions with samples, where it is another than the last one that was named.
    fn place_behind(&mut self, code: &Code, share: f64) -> Option<String> {
        if !self.options.print_lines || share <= WORTH_NAMING {
            return None;
        }
        let place = named_place(self.assembly, code, self.options)?;
        if self.last_place.as_ref() == Some(&place) {
            return None;
        }
        self.last_place = Some(place.clone());
        Some(place)
    }

    /// The lines of source that objdump prints before an instruction.
    fn source(&mut self, place: Option<SourcePlace>) {
        let Some(place) = place else { return };
        let number = place.number();
        if place.function.is_some() && place.function != self.function {
            self.function = place.function;
            let name = place.function.map_or("", |name| &self.assembly.texts[name]);
            // C++ and Rust names bring their parentheses, or do without.
            let is_long = name.contains("::") || name.ends_with(')');
            let end = if is_long { ":" } else { "():" };
            self.lines.push(Line::Text {
                number,
                text: format!("{}{end}", name.trim_start()).into(),
            });
        }
        let is_new = self
            .place
            .is_none_or(|last| (last.file, last.line) != (place.file, place.line));
        self.place = Some(place);
        let (Some(file), Some(line)) = (place.file, number) else {
            return;
        };
        let found = self
            .assembly
            .sources
            .binary_search_by_key(&file, |known| known.0);
        match found.ok().map(|at| &self.assembly.sources[at].1) {
            Some(source) => self.source_lines(file, line, source),
            // JIT code names files that only its runtime has.
            None if is_new && place.function.is_none() => {
                let name = &self.assembly.texts[file];
                self.lines.push(text(number, name));
            }
            None => {}
        }
    }

    fn source_lines(&mut self, file: TextId, line: u32, source: &'a Source) {
        let printed = self.files.entry(file).or_default();
        if line == printed.last {
            return;
        }
        let mut first = if line > CONTEXT { line - CONTEXT } else { 1 };
        if printed.max >= first {
            first = if printed.max < line {
                printed.max + 1
            } else {
                line
            };
        }
        for number in first..=line {
            if let Some(source) = source.line(number) {
                self.lines.push(text(Some(number), source));
            }
        }
        printed.max = printed.max.max(line);
        printed.last = line;
    }

    /// Up to seven bytes of an instruction as objdump prints them; a word as one number.
    fn bytes(&self, code: &Code, from: usize) -> String {
        const MOST: usize = 7;
        let start = code.offset as usize;
        let bytes = &self.listing.bytes[start..start + code.len as usize];
        if let ([a, b, c, d], true) = (bytes, self.listing.has_words) {
            return format!("{:08x} ", u32::from_le_bytes([*a, *b, *c, *d]));
        }
        let shown = bytes.iter().skip(from).take(MOST);
        let mut text: String = shown.map(|byte| format!("{byte:02x} ")).collect();
        if from == 0 {
            while text.len() < 3 * MOST {
                text.push(' ');
            }
        }
        text
    }

    /// What does not fit the first line follows with an address of its own.
    fn more_bytes(&mut self, code: &Code, address: u64, columns: usize) {
        let none = Value {
            percent: 0.0,
            number: 0,
        };
        for from in (7..code.len as usize).step_by(7) {
            self.lines.push(Line::Code {
                values: SmallVec::from_elem(none, columns),
                address: address.wrapping_add(from as u64),
                text: self.bytes(code, from).trim_end().to_owned().into(),
                place: None,
            });
        }
    }
}
