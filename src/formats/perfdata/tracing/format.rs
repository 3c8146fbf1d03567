//! One format description: name, id, fields and `print fmt`.
//!
//! In: the text of `events/SYSTEM/NAME/format` in tracefs. Out: a [`Tracepoint`]. A description whose
//! `print fmt` is not understood keeps its fields.

use super::field::{Field, Kind};
use super::print::Print;

/// A tracepoint as its format describes it.
#[derive(Debug, Clone)]
pub(super) struct Tracepoint {
    pub(super) system: String,
    pub(super) name: String,
    /// Fields in order, those that all tracepoints share first.
    pub(super) fields: Vec<Field>,
    /// How many of them all tracepoints share.
    pub(super) common: usize,
    /// How to print it; `None` when the `print fmt` is beyond what is understood.
    pub(super) print: Option<Print>,
}

impl Tracepoint {
    /// The id and what else the text says; `None` when it has no id or name.
    pub(super) fn parse(system: &str, text: &str, long_size: usize) -> Option<(u64, Self)> {
        let line = |key: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(key));
            found.map(str::trim)
        };
        let id = line("ID:")?.parse().ok()?;
        let mut point = Self {
            system: system.to_owned(),
            name: line("name:")?.to_owned(),
            fields: Vec::new(),
            common: 0,
            print: None,
        };
        point.read_fields(text, long_size);
        let print = text.split_once("print fmt:").map(|(_, print)| print);
        point.print = print.and_then(|print| Print::parse(print, &point.fields, long_size));
        Some((id, point))
    }

    fn read_fields(&mut self, text: &str, long_size: usize) {
        let lines = text
            .lines()
            .skip_while(|line| !line.starts_with("format:"))
            .skip(1);
        for line in lines {
            if line.starts_with("print fmt:") {
                break;
            }
            if line.trim().is_empty() {
                if self.common == 0 {
                    self.common = self.fields.len();
                }
            } else if let Some(field) = Field::parse(line, long_size) {
                self.fields.push(field);
            }
        }
    }
}

impl Field {
    /// `field:TYPE NAME[N]; offset:N; size:N; signed:N;`, with tabs between the parts.
    fn parse(line: &str, long_size: usize) -> Option<Self> {
        let mut parts = line.trim().split(';').map(str::trim);
        let declaration = parts.next()?.strip_prefix("field:")?;
        let mut field = Self::declared(declaration)?;
        for part in parts {
            let Some((key, value)) = part.split_once(':') else {
                continue;
            };
            match key {
                "offset" => field.offset = value.parse().ok()?,
                "size" => field.size = value.parse().ok()?,
                "signed" => field.is_signed = value != "0",
                _ => {}
            }
        }
        // Before there were lengths, a dynamic string had only an offset of two bytes.
        field.is_string |= field.kind.is_dynamic() && field.size == 2;
        let count = length_in_brackets(declaration);
        field.element = match field.kind {
            Kind::Scalar => field.size,
            _ if count > 0 => field.size / count,
            Kind::Dynamic | Kind::Relative => element_of_dynamic(declaration),
            Kind::Array if field.is_string => 1,
            Kind::Array if field.is_long => long_size,
            Kind::Array => 0,
        };
        Some(field)
    }

    /// What the declaration in C says: `char comm[16]`, `__data_loc char[] name`, `const void * p`.
    fn declared(declaration: &str) -> Option<Self> {
        let front = match declaration.strip_suffix(']') {
            Some(array) => array.rsplit_once('[')?.0.trim_end(),
            None => declaration,
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let type_ = front.trim_end_matches(is_name);
        let is_array = declaration.contains('[');
        let kind = if type_.starts_with("__data_loc") {
            Kind::Dynamic
        } else if type_.starts_with("__rel_loc") {
            Kind::Relative
        } else if is_array {
            Kind::Array
        } else {
            Kind::Scalar
        };
        let of_bytes = ["char", "u8", "s8"].iter().any(|word| type_.contains(word));
        Some(Self {
            name: front.get(type_.len()..)?.to_owned(),
            offset: 0,
            size: 0,
            kind,
            element: 0,
            is_signed: false,
            is_pointer: type_.contains('*'),
            is_long: type_.contains("long"),
            is_string: is_array && of_bytes,
        })
    }
}

/// The number of elements, 0 when there is none or it has a name.
fn length_in_brackets(declaration: &str) -> usize {
    let inside = declaration
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    inside
        .and_then(|(length, _)| length.trim().parse().ok())
        .unwrap_or(0)
}

/// Bytes of an element of `__data_loc TYPE[] name`, 0 for types that libtraceevent does not know either.
fn element_of_dynamic(declaration: &str) -> usize {
    let type_ = declaration.split('[').next().unwrap_or_default();
    match type_.split_whitespace().last() {
        Some("u8" | "s8" | "char") => 1,
        Some("u16" | "s16") => 2,
        Some("u32" | "s32") => 4,
        Some("u64" | "s64") => 8,
        _ => 0,
    }
}
