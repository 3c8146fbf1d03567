//! The kernel's `%p` with a letter: functions, network addresses, UUIDs, bytes.
//!
//! In: what follows the `%p`, and the argument. Out: text as libtraceevent prints it (`print_arg_pointer`).
//! Called by [`super::print`].

use super::expr::{Expr, without_casts};
use super::{Context, Tracepoint};

/// How many characters behind `%p` belong to it.
pub(super) fn suffix_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let one_of = |i: usize, letters: &[u8]| usize::from(letters.contains(&at(i)));
    match at(0) {
        b'F' | b'S' | b'f' | b's' => 1,
        b'M' | b'm' => 1 + one_of(1, b"RF"),
        b'U' => 1 + one_of(1, b"LlBb"),
        b'h' => 1 + one_of(1, b"CDN"),
        b'I' | b'i' => match at(1) {
            b'4' => 2 + one_of(2, b"hnlb"),
            b'6' => 2 + one_of(2, b"c"),
            b'S' => {
                let options = text[2..].bytes().take_while(|b| b"pfs".contains(b)).count();
                let order = one_of(2 + options, b"hnlb");
                2 + options + order + one_of(2 + options + order, b"c")
            }
            _ => 1,
        },
        _ => 0,
    }
}

/// Appends a pointer.
pub(super) fn print(
    kind: &str,
    value: &Expr,
    star: Option<i32>,
    point: &Tracepoint,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) {
    let text = match kind.as_bytes().first() {
        Some(b'F' | b'f' | b'S' | b's') => {
            let with_offset = kind.starts_with(['F', 'S']);
            function(context.number(value, point), with_offset, context)
        }
        Some(b'h') => match value {
            Expr::Dynamic(field) => {
                let bytes = context.bytes(&point.fields[*field]);
                bytes_text(kind, bytes, star_length(star))
            }
            _ => format!("ARG TYPE NOT FIELD BUT {}", type_number(value)),
        },
        Some(b'M' | b'm' | b'I' | b'i' | b'U') => structure(kind, value, point, context),
        _ => match context.number(value, point) {
            0 => "(nil)".to_owned(),
            address => format!("{address:#x}"),
        },
    };
    out.extend_from_slice(text.as_bytes());
}

fn function(address: u64, with_offset: bool, context: &Context<'_>) -> String {
    match (context.functions)(address) {
        Some((name, start)) if with_offset => {
            format!("{name}+{:#x}", address.wrapping_sub(start))
        }
        Some((name, _)) => name,
        None => format!("{address:#x}"),
    }
}

/// `%*ph`: bytes with a separator.
fn bytes_text(kind: &str, bytes: &[u8], length: usize) -> String {
    let separator = match kind.as_bytes().get(1) {
        Some(b'C') => ":",
        Some(b'D') => "-",
        Some(b'N') => "",
        _ => " ",
    };
    let shown: Vec<String> = bytes
        .iter()
        .take(length)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    shown.join(separator)
}

/// Pointers to something of a fixed form in the payload.
fn structure(kind: &str, value: &Expr, point: &Tracepoint, context: &Context<'_>) -> String {
    let value = without_casts(value).1;
    let socket = kind.as_bytes().get(1) == Some(&b'S') && !kind.starts_with(['M', 'm', 'U']);
    let bytes = match value {
        Expr::Field(field) => context.bytes(&point.fields[*field]),
        Expr::Dynamic(field) if socket => context.bytes(&point.fields[*field]),
        _ if socket => {
            return format!(
                "ARG NOT FIELD NOR DYNAMIC ARRAY BUT TYPE {}",
                type_number(value)
            );
        }
        _ => return format!("ARG TYPE NOT FIELD BUT {}", type_number(value)),
    };
    match kind.as_bytes() {
        [b'M' | b'm', rest @ ..] => mac(kind.starts_with('m'), rest, bytes),
        [b'U', rest @ ..] => uuid(rest, bytes),
        [i, b'4', rest @ ..] => match bytes.first_chunk() {
            Some(address) if bytes.len() == 4 => ip4(*i, rest, *address),
            _ => "INVALIDIPv4".to_owned(),
        },
        [i, b'6', rest @ ..] => match bytes.first_chunk() {
            Some(address) if bytes.len() == 16 => ip6(*i, rest.contains(&b'c'), *address),
            _ => "INVALIDIPv6".to_owned(),
        },
        [i, b'S', rest @ ..] => socket_address(*i, rest, bytes),
        _ => String::new(),
    }
}

fn mac(is_plain: bool, options: &[u8], bytes: &[u8]) -> String {
    if bytes.len() != 6 {
        return "INVALIDMAC".to_owned();
    }
    let separator = match options.first() {
        _ if is_plain => "",
        Some(b'F') => "-",
        _ => ":",
    };
    let mut parts: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    if options.first() == Some(&b'R') {
        parts.reverse();
    }
    parts.join(separator)
}

fn uuid(options: &[u8], bytes: &[u8]) -> String {
    const AS_IT_IS: [usize; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    const LITTLE_ENDIAN: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let Some(bytes) = bytes.first_chunk::<16>().filter(|_| bytes.len() == 16) else {
        return "INVALIDUUID".to_owned();
    };
    let order = match options.first() {
        Some(b'L' | b'l') => LITTLE_ENDIAN,
        _ => AS_IT_IS,
    };
    let mut text = String::new();
    for (i, at) in order.into_iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{:02x}", bytes[at]));
    }
    match options.first() {
        Some(b'L' | b'B') => text.to_uppercase(),
        _ => text,
    }
}

fn ip4(letter: u8, options: &[u8], mut address: [u8; 4]) -> String {
    if matches!(options.first(), Some(b'h' | b'l')) {
        address.reverse();
    }
    let [a, b, c, d] = address;
    if letter == b'i' {
        format!("{a:03}.{b:03}.{c:03}.{d:03}")
    } else {
        format!("{a}.{b}.{c}.{d}")
    }
}

fn ip6(letter: u8, is_short: bool, address: [u8; 16]) -> String {
    if letter == b'I' && is_short {
        return short_ip6(address);
    }
    let words: Vec<String> = address
        .as_chunks::<2>()
        .0
        .iter()
        .map(|[high, low]| format!("{high:02x}{low:02x}"))
        .collect();
    words.join(if letter == b'I' { ":" } else { "" })
}

/// The longest run of zeros as `::`, mapped IPv4 addresses in their own form.
fn short_ip6(address: [u8; 16]) -> String {
    let word = |i: usize| u16::from_be_bytes([address[2 * i], address[2 * i + 1]]);
    let is_mapped = (0..5).all(|i| word(i) == 0) && word(5) == 0xffff;
    let is_isatap = word(4) | 0x0200 == 0x0200 && word(5) == 0x5efe;
    let words = if is_mapped || is_isatap { 6 } else { 8 };
    let zeros_from = |i: usize| (i..words).take_while(|&j| word(j) == 0).count();
    // The first of the longest runs; a single zero is none.
    let run = (0..words)
        .map(|i| (zeros_from(i), i))
        .filter(|&(len, _)| len > 1)
        .max_by_key(|&(len, i)| (len, std::cmp::Reverse(i)));
    let mut text = String::new();
    let mut i = 0;
    while i < words {
        match run {
            Some((len, start)) if start == i => {
                text.push_str("::");
                i += len;
            }
            _ => {
                if !text.is_empty() && !text.ends_with(':') {
                    text.push(':');
                }
                text.push_str(&format!("{:x}", word(i)));
                i += 1;
            }
        }
    }
    if words == 6 {
        if !text.ends_with(':') {
            text.push(':');
        }
        let [.., a, b, c, d] = address;
        text.push_str(&format!("{a}.{b}.{c}.{d}"));
    }
    text
}

/// `struct sockaddr`: family, port and address (`AF_INET`, `AF_INET6` of Linux).
fn socket_address(letter: u8, options: &[u8], bytes: &[u8]) -> String {
    let has = |option: u8| letter == b'I' && options.contains(&option);
    let family = bytes.first_chunk().map(|b| u16::from_le_bytes(*b));
    let port = bytes
        .get(2..)
        .and_then(|b| b.first_chunk())
        .map_or(0, |b| u16::from_be_bytes(*b));
    match family {
        Some(2) => match bytes.get(4..).and_then(|b| b.first_chunk()) {
            Some(address) if bytes.len() >= 16 => {
                let order = options;
                let order = order
                    .iter()
                    .position(|b| b"hnlb".contains(b))
                    .map_or(&order[..0], |at| &order[at..]);
                let address = ip4(letter, order, *address);
                if has(b'p') {
                    format!("{address}:{port}")
                } else {
                    address
                }
            }
            _ => "INVALIDIPv4".to_owned(),
        },
        Some(10) => match bytes.get(8..).and_then(|b| b.first_chunk()) {
            Some(address) if bytes.len() >= 28 => {
                let address = ip6(letter, has(b'c'), *address);
                if has(b'p') {
                    format!("[{address}]:{port}")
                } else {
                    address
                }
            }
            _ => "INVALIDIPv6".to_owned(),
        },
        _ => String::new(),
    }
}

/// libtraceevent's number for a kind of argument (`enum tep_print_arg_type`), which its complaints print.
fn type_number(value: &Expr) -> u32 {
    match value {
        Expr::Atom(..) => 1,
        Expr::Field(_) | Expr::Record => 2,
        Expr::Flags(..) => 3,
        Expr::Symbolic(..) => 4,
        Expr::Hex(_, _, true) => 5,
        Expr::Numbers(_) => 6,
        Expr::Cast(..) => 7,
        Expr::Str(_) => 8,
        Expr::Dynamic(_) => 10,
        Expr::Unary(..) | Expr::Binary(..) | Expr::Choice(_) | Expr::Index(..) => 11,
        Expr::Bits(_) => 13,
        Expr::DynamicLength(_) => 14,
        Expr::Hex(_, _, false) => 15,
        Expr::Cpus(_) => 16,
    }
}

/// The precision that a `*` gives to `%*ph`.
pub(super) fn star_length(star: Option<i32>) -> usize {
    star.map_or(1, |n| usize::try_from(n).unwrap_or(0))
}
