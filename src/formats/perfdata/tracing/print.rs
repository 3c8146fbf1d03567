//! A payload as text, by the `print fmt` of its tracepoint or as a list of its fields.
//!
//! In: a tracepoint and a payload. Out: the text that `perf script` prints (libtraceevent, `event-parse.c`:
//! `pretty_print`, `print_str_arg`, `tep_print_fields`). Called by [`super::Tracepoints::render`].

use super::expr::{self, Expr, without_casts};
use super::field::{Field, Kind};
use super::pointer;
use super::printf::Spec;
use super::{Context, Tracepoint};

/// No payload has more to say: the kernel's own buffer for such a line has as many bytes. A format of a file may ask for a
/// megabyte of blanks.
const MAX_OUTPUT: usize = 8 << 10;
/// What stands at the end of a longer one.
const CUT: &[u8] = b"[cut]";

/// A `print fmt`, ready to be printed.
#[derive(Debug, Clone)]
pub(super) struct Print(Vec<Piece>);

#[derive(Debug, Clone)]
enum Piece {
    Text(Vec<u8>),
    Value {
        conversion: Conversion,
        spec: Spec,
        /// Value of the `*`.
        star: Option<Expr>,
        value: Expr,
    },
}

#[derive(Debug, Clone)]
enum Conversion {
    /// With its letter.
    Number(char),
    String,
    /// With what follows the `p`.
    Pointer(String),
}

impl Print {
    /// Understands the text behind `print fmt:`, or does not.
    pub(super) fn parse(text: &str, fields: &[Field], long_size: usize) -> Option<Self> {
        let (format, arguments) = expr::parse(text, fields, long_size)?;
        let mut arguments = arguments.into_iter();
        let mut pieces = Vec::new();
        let mut rest = format.as_str();
        while !rest.is_empty() {
            let (plain, after) = literal(rest);
            if !plain.is_empty() {
                pieces.push(Piece::Text(plain));
            }
            rest = match after.strip_prefix('%') {
                Some(conversion) => read_conversion(conversion, &mut arguments, &mut pieces)?,
                None => after,
            };
        }
        Some(Self(pieces))
    }
}

/// The text up to the next conversion, without escapes, and the rest.
fn literal(format: &str) -> (Vec<u8>, &str) {
    let mut text = String::new();
    let mut rest = format.chars();
    loop {
        let before = rest.as_str();
        match rest.next() {
            None => break,
            Some('%') if rest.as_str().starts_with('%') => {
                rest.next();
                text.push('%');
            }
            Some('%') => return (text.into_bytes(), before),
            Some('\\') => text.extend(rest.next().map(|c| match c {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            })),
            Some(c) => text.push(c),
        }
    }
    (text.into_bytes(), "")
}

/// Reads one conversion behind its `%`; gives what follows, or `None` when an argument is missing.
fn read_conversion<'f>(
    format: &'f str,
    arguments: &mut impl Iterator<Item = Expr>,
    pieces: &mut Vec<Piece>,
) -> Option<&'f str> {
    let (spec, rest) = Spec::parse(format);
    let star = match spec.star {
        Some(_) => Some(arguments.next()?),
        None => None,
    };
    let Some(letter) = rest.chars().next() else {
        return Some("");
    };
    let mut rest = &rest[letter.len_utf8()..];
    let conversion = match letter {
        'c' | 'd' | 'i' | 'u' | 'x' | 'X' | 'o' => Conversion::Number(letter),
        's' => Conversion::String,
        'p' => {
            let (kind, after) = rest.split_at_checked(pointer::suffix_len(rest))?;
            rest = after;
            Conversion::Pointer(kind.to_owned())
        }
        other => {
            pieces.push(Piece::Text(format!(">{other}<").into_bytes()));
            return Some(rest);
        }
    };
    let value = arguments.next()?;
    pieces.push(Piece::Value {
        conversion,
        spec,
        star,
        value,
    });
    Some(rest)
}

/// Appends the text of a payload.
pub(super) fn payload(point: &Tracepoint, context: &Context<'_>, out: &mut Vec<u8>) {
    let Some(Print(pieces)) = &point.print else {
        out.extend_from_slice(b"[FAILED TO PARSE]");
        return fields(point, context, out);
    };
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.extend_from_slice(text),
            Piece::Value {
                conversion,
                spec,
                star,
                value,
            } => {
                let star = star.as_ref().map(|star| context.number(star, point) as i32);
                let printer = Printer { point, context };
                printer.value(conversion, *spec, star, value, out);
            }
        }
        if out.len() > MAX_OUTPUT {
            break;
        }
    }
    shorten(out);
}

/// Cuts a text that is too long, and says so.
fn shorten(out: &mut Vec<u8>) {
    if out.len() > MAX_OUTPUT {
        out.truncate(MAX_OUTPUT - CUT.len());
        // A character is whole or not there.
        let kept = out.utf8_chunks().last();
        let rest = kept.map_or(0, |chunk| chunk.invalid().len());
        out.truncate(out.len() - rest);
        out.extend_from_slice(CUT);
    }
}

struct Printer<'p> {
    point: &'p Tracepoint,
    context: &'p Context<'p>,
}

impl Printer<'_> {
    fn value(
        &self,
        conversion: &Conversion,
        spec: Spec,
        star: Option<i32>,
        value: &Expr,
        out: &mut Vec<u8>,
    ) {
        match conversion {
            Conversion::Pointer(kind) => {
                pointer::print(kind, value, star, self.point, self.context, out);
            }
            Conversion::Number(letter) => {
                let spec = star.map_or(spec, |star| spec.with_star(star));
                spec.number(*letter, self.context.number(value, self.point), out);
            }
            Conversion::String => {
                let spec = star.map_or(spec, |star| spec.with_star(star));
                self.string(spec, value, out);
            }
        }
    }

    fn string(&self, spec: Spec, value: &Expr, out: &mut Vec<u8>) {
        let (point, context) = (self.point, self.context);
        match value {
            Expr::Atom(text, _) => spec.string(text.as_bytes(), out),
            Expr::Field(field) => self.field_as_string(spec, &point.fields[*field], out),
            Expr::Str(field) => {
                let bytes = context.bytes(&point.fields[*field]);
                if !bytes.is_empty() {
                    spec.string(bytes, out);
                }
            }
            Expr::Choice(parts) => {
                let [condition, yes, no] = &**parts;
                let is_true = context.number(condition, point) != 0;
                self.string(spec, if is_true { yes } else { no }, out);
            }
            Expr::Flags(value, delimiter, names) => {
                flags(spec, context.number(value, point), delimiter, names, out);
            }
            Expr::Symbolic(value, names) => {
                let value = context.number(value, point);
                match names.iter().find(|(v, _)| *v == value.cast_signed()) {
                    Some((_, name)) => spec.string(name.as_bytes(), out),
                    None => out.extend_from_slice(format!("{value:#x}").as_bytes()),
                }
            }
            Expr::Hex(data, length, blanks) => self.hex(data, length, *blanks, out),
            Expr::Numbers(parts) => self.numbers(parts, out),
            Expr::Bits(field) => {
                let text = bit_mask(context.bytes(&point.fields[*field]));
                spec.string(text.as_bytes(), out);
            }
            Expr::Cpus(field) => {
                let text = cpu_list(context.bytes(&point.fields[*field]));
                spec.string(text.as_bytes(), out);
            }
            _ => {}
        }
    }

    /// A field that is as large as a pointer is one: to a string of the kernel, maybe.
    fn field_as_string(&self, spec: Spec, field: &Field, out: &mut Vec<u8>) {
        if field.kind != Kind::Scalar || field.size != self.context.long_size {
            return spec.string(self.context.bytes(field), out);
        }
        let address = self.context.scalar(field);
        match self.context.strings.get(&address) {
            Some(text) => out.extend_from_slice(text.as_bytes()),
            None => out.extend_from_slice(format!("{address:x}").as_bytes()),
        }
    }

    /// Where the data of `__print_hex` and `__print_array` start.
    fn start_of(&self, data: &Expr) -> Option<usize> {
        match without_casts(data).1 {
            Expr::Field(field) => Some(self.point.fields[*field].offset),
            Expr::Dynamic(field) => Some(self.context.range(&self.point.fields[*field]).start),
            _ => None,
        }
    }

    fn hex(&self, data: &Expr, length: &Expr, blanks: bool, out: &mut Vec<u8>) {
        let Some(start) = self.start_of(data) else {
            return;
        };
        let length = self.context.number(length, self.point);
        for (i, byte) in self.context.elements(start, length, 1).iter().enumerate() {
            let blank = if i > 0 && blanks { " " } else { "" };
            out.extend_from_slice(format!("{blank}{byte:02x}").as_bytes());
        }
    }

    fn numbers(&self, parts: &[Expr; 3], out: &mut Vec<u8>) {
        let [data, count, size] = parts;
        let Some(start) = self.start_of(data) else {
            return;
        };
        let number = |expr| self.context.number(expr, self.point);
        let (size, is_bad) = match number(size) {
            size @ (1 | 2 | 4 | 8) => (size as usize, None),
            bad => (1, Some(bad as i32)),
        };
        let numbers: Vec<String> = self
            .context
            .elements(start, number(count), size)
            .iter()
            .enumerate()
            .map(|(i, value)| match is_bad {
                Some(bad) if i == 0 => format!("BAD SIZE:{bad} {value:#x}"),
                _ => format!("{value:#x}"),
            })
            .collect();
        out.extend_from_slice(format!("{{{}}}", numbers.join(",")).as_bytes());
    }
}

/// Names of the bits that are set, and the rest as a number.
fn flags(spec: Spec, value: u64, delimiter: &str, names: &[(i64, String)], out: &mut Vec<u8>) {
    let mut value = value.cast_signed();
    let mut is_first = true;
    let mut delimit = |into: &mut Vec<u8>| {
        if !std::mem::take(&mut is_first) {
            into.extend_from_slice(delimiter.as_bytes());
        }
    };
    for (bits, name) in names {
        if value == 0 && *bits < 0 {
            spec.string(name.as_bytes(), out);
            break;
        }
        if *bits > 0 && value & bits == *bits {
            delimit(out);
            spec.string(name.as_bytes(), out);
            value &= !bits;
        }
    }
    if value != 0 {
        delimit(out);
        out.extend_from_slice(format!("{value:#x}").as_bytes());
    }
}

/// Hexadecimal digits of a bit mask, highest first, a comma after every 32 bits.
fn bit_mask(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (i, byte) in bytes.iter().enumerate().rev() {
        text.push_str(&format!("{byte:02x}"));
        if i > 0 && i % 4 == 0 {
            text.push(',');
        }
    }
    text
}

/// `0-3,8`
fn cpu_list(bytes: &[u8]) -> String {
    let is_set = |cpu: usize| bytes.get(cpu / 8).is_some_and(|b| b >> (cpu % 8) & 1 != 0);
    let mut runs = Vec::new();
    let mut cpu = 0;
    while cpu < bytes.len() * 8 {
        let first = cpu;
        while is_set(cpu) {
            cpu += 1;
        }
        match cpu - first {
            0 => cpu += 1,
            1 => runs.push(first.to_string()),
            _ => runs.push(format!("{first}-{}", cpu - 1)),
        }
    }
    runs.join(",")
}

/// Appends ` name=value` for each field of the tracepoint's own.
pub(super) fn fields(point: &Tracepoint, context: &Context<'_>, out: &mut Vec<u8>) {
    for field in point.fields.iter().skip(point.common) {
        out.extend_from_slice(format!(" {}=", field.name).as_bytes());
        value(field, context, out);
        if out.len() > MAX_OUTPUT {
            break;
        }
    }
    shorten(out);
}

fn value(field: &Field, context: &Context<'_>, out: &mut Vec<u8>) {
    match field.kind {
        Kind::Scalar => out.extend_from_slice(scalar(field, context).as_bytes()),
        _ => array(field, context.bytes(field), out),
    }
}

/// The value of a field by its type.
pub(super) fn field_text(field: &Field, context: &Context<'_>) -> String {
    let mut out = Vec::new();
    value(field, context, &mut out);
    shorten(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn scalar(field: &Field, context: &Context<'_>) -> String {
    let value = context.scalar(field);
    match (field.is_signed, field.size) {
        _ if field.is_pointer => format!("{value:#x}"),
        (true, 4) if field.is_long => format!("{:#x}", value as u32),
        (true, 4) => (value as i32).to_string(),
        (true, 2) => format!("{:2}", value as i16),
        (true, 1) => (value as i8).to_string(),
        (true, _) => value.cast_signed().to_string(),
        (false, _) if field.is_long => format!("{value:#x}"),
        (false, _) => value.to_string(),
    }
}

fn array(field: &Field, bytes: &[u8], out: &mut Vec<u8>) {
    let text = bytes.split(|&b| b == 0).next().unwrap_or_default();
    let is_shown = |b: &u8| matches!(b, b' '..=b'~' | b'\t'..=b'\r');
    if field.is_string && text.iter().all(is_shown) {
        out.extend_from_slice(text);
        return;
    }
    let numbers: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    out.extend_from_slice(format!("ARRAY[{}]", numbers.join(", ")).as_bytes());
}
