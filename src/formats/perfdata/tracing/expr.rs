//! The arguments of a `print fmt`: C expressions over the fields of a payload.
//!
//! In: the text behind `print fmt:` and the fields. Out: the format string and an [`Expr`] for each argument, or
//! `None` for what is not understood. Recursive descent; depth and size are bounded, whatever the text.

use super::field::{Field, Kind};

/// Longer texts are not read (the longest of Linux 6.18 has 13 000 bytes).
const MAX_TEXT: usize = 256 << 10;
/// Parentheses and functions in each other; expressions of Linux reach 20.
const MAX_DEPTH: u32 = 64;
/// Height of an expression, which is how deep its evaluation recurses.
const MAX_HEIGHT: u32 = 256;

/// An expression. Fields are indices into the tracepoint's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expr {
    /// A number, string or name, and its value as a number (0 for what is none).
    Atom(String, u64),
    /// `REC` before its field is named.
    Record,
    /// `REC->name`
    Field(usize),
    /// `(type)expression`
    Cast(Cast, Box<Expr>),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `a ? b : c`
    Choice(Box<[Expr; 3]>),
    /// `array[index]`
    Index(Box<Expr>, Box<Expr>),
    /// `__print_flags(value, "delimiter", {bits, "name"}, …)`
    Flags(Box<Expr>, String, Vec<(i64, String)>),
    /// `__print_symbolic(value, {value, "name"}, …)`
    Symbolic(Box<Expr>, Vec<(i64, String)>),
    /// `__print_hex(data, length)`, or without blanks `__print_hex_str`.
    Hex(Box<Expr>, Box<Expr>, bool),
    /// `__print_array(data, count, size)`
    Numbers(Box<[Expr; 3]>),
    /// `__get_str(field)`
    Str(usize),
    /// `__get_bitmask(field)`
    Bits(usize),
    /// `__get_cpumask(field)`
    Cpus(usize),
    /// `__get_dynamic_array(field)`
    Dynamic(usize),
    /// `__get_dynamic_array_len(field)`
    DynamicLength(usize),
}

/// What a cast leaves of a number, in bits; 0 leaves all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cast {
    pub(super) bits: u32,
    /// The same for what is behind a pointer of that type.
    pub(super) pointed: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unary {
    Not,
    Complement,
    Minus,
    Plus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Multiply,
    Divide,
    Remainder,
    Add,
    Subtract,
    ShiftLeft,
    ShiftRight,
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
    Equal,
    Different,
    And,
    Xor,
    Or,
    BothTrue,
    OneTrue,
}

impl Binary {
    /// The operator and how tightly it binds.
    fn of(op: &str) -> Option<(Self, u8)> {
        Some(match op {
            "*" => (Self::Multiply, 10),
            "/" => (Self::Divide, 10),
            "%" => (Self::Remainder, 10),
            "+" => (Self::Add, 9),
            "-" => (Self::Subtract, 9),
            "<<" => (Self::ShiftLeft, 8),
            ">>" => (Self::ShiftRight, 8),
            "<" => (Self::Less, 7),
            ">" => (Self::Greater, 7),
            "<=" => (Self::LessOrEqual, 7),
            ">=" => (Self::GreaterOrEqual, 7),
            "==" => (Self::Equal, 6),
            "!=" => (Self::Different, 6),
            "&" => (Self::And, 5),
            "^" => (Self::Xor, 4),
            "|" => (Self::Or, 3),
            "&&" => (Self::BothTrue, 2),
            "||" => (Self::OneTrue, 1),
            _ => return None,
        })
    }

    /// As libtraceevent calculates: everything is unsigned and has 64 bits.
    pub(super) fn apply(self, a: u64, b: u64) -> u64 {
        match self {
            Self::Multiply => a.wrapping_mul(b),
            Self::Divide => a.checked_div(b).unwrap_or(0),
            Self::Remainder => a.checked_rem(b).unwrap_or(0),
            Self::Add => a.wrapping_add(b),
            Self::Subtract => a.wrapping_sub(b),
            Self::ShiftLeft => a.wrapping_shl(b as u32),
            Self::ShiftRight => a.wrapping_shr(b as u32),
            Self::Less => u64::from(a < b),
            Self::Greater => u64::from(a > b),
            Self::LessOrEqual => u64::from(a <= b),
            Self::GreaterOrEqual => u64::from(a >= b),
            Self::Equal => u64::from(a == b),
            Self::Different => u64::from(a != b),
            Self::And => a & b,
            Self::Xor => a ^ b,
            Self::Or => a | b,
            Self::BothTrue => u64::from(a != 0 && b != 0),
            Self::OneTrue => u64::from(a != 0 || b != 0),
        }
    }
}

impl Unary {
    pub(super) fn apply(self, value: u64) -> u64 {
        match self {
            Self::Not => u64::from(value == 0),
            Self::Complement => !value,
            Self::Minus => value.wrapping_neg(),
            Self::Plus => value,
        }
    }
}

impl Cast {
    fn to(type_: &str) -> Self {
        let pointed = type_.trim_end_matches(['*', ' ']);
        let is_pointer = pointed.len() < type_.len();
        Self {
            bits: if is_pointer { 0 } else { bits_of(type_) },
            pointed: if is_pointer { bits_of(pointed) } else { 0 },
        }
    }
}

fn bits_of(type_: &str) -> u32 {
    match type_.strip_prefix("unsigned ").unwrap_or(type_) {
        "u8" | "s8" | "char" => 8,
        "u16" | "s16" | "short" => 16,
        "u32" | "s32" | "int" => 32,
        _ => 0,
    }
}

/// The value of C's `strtoull(text, NULL, 0)`.
fn number(text: &str) -> u64 {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', ..] => (text, 8),
        _ => (text, 10),
    };
    let end = digits
        .find(|c: char| !c.is_digit(radix))
        .unwrap_or(digits.len());
    match digits.get(..end) {
        None | Some("") => 0,
        Some(digits) => u64::from_str_radix(digits, radix).unwrap_or(u64::MAX),
    }
}

/// Names that some formats have in place of their values.
fn known_name(name: &str) -> Option<i64> {
    const SOFTIRQS: [&str; 10] = [
        "HI_SOFTIRQ",
        "TIMER_SOFTIRQ",
        "NET_TX_SOFTIRQ",
        "NET_RX_SOFTIRQ",
        "BLOCK_SOFTIRQ",
        "IRQ_POLL_SOFTIRQ",
        "TASKLET_SOFTIRQ",
        "SCHED_SOFTIRQ",
        "HRTIMER_SOFTIRQ",
        "RCU_SOFTIRQ",
    ];
    match name {
        "HRTIMER_NORESTART" => Some(0),
        "HRTIMER_RESTART" => Some(1),
        _ => (0i64..)
            .zip(SOFTIRQS)
            .find(|(_, n)| *n == name)
            .map(|(n, _)| n),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token<'t> {
    /// A name or number.
    Item(&'t str),
    /// A string, escapes as they are; adjacent ones joined.
    Text(String),
    /// A character.
    Char(u8),
    /// An operator or delimiter.
    Op(&'t str),
}

fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '"' | '\'' => quoted(rest, first)?,
            c if is_word(c) => rest.find(|next| !is_word(next)).unwrap_or(rest.len()),
            _ => operator(rest),
        };
        let (token, after) = rest.split_at_checked(len)?;
        let inside = token.get(1..len.saturating_sub(1)).unwrap_or_default();
        match (first, tokens.last_mut()) {
            ('"', Some(Token::Text(before))) => before.push_str(inside),
            ('"', _) => tokens.push(Token::Text(inside.to_owned())),
            ('\'', _) => tokens.push(Token::Char(*inside.as_bytes().first()?)),
            (c, _) if is_word(c) => tokens.push(Token::Item(token)),
            _ => tokens.push(Token::Op(token)),
        }
        rest = after.trim_start();
    }
    Some(tokens)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Length of a string with its quotes.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !is_escaped {
            return Some(at + 1);
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    None
}

fn operator(text: &str) -> usize {
    const LONG: [&str; 9] = ["->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||"];
    let is_long = LONG.iter().any(|op| text.starts_with(op));
    let first = text.chars().next().map_or(1, char::len_utf8);
    if is_long { 2 } else { first }
}

/// The format string and the arguments of a `print fmt`.
pub(super) fn parse(text: &str, fields: &[Field], long_size: usize) -> Option<(String, Vec<Expr>)> {
    let text = Some(text).filter(|text| text.len() <= MAX_TEXT)?;
    let tokens = tokens(text)?;
    let (Token::Text(format), rest) = tokens.split_first()? else {
        return None;
    };
    let mut parser = Parser {
        tokens: rest,
        fields,
        long_size,
        depth: 0,
    };
    let mut arguments = Vec::new();
    while !parser.tokens.is_empty() {
        parser.expect(",")?;
        arguments.push(parser.expression()?.expr);
    }
    Some((format.clone(), arguments))
}

/// An expression and the longest way down in it.
struct Tree {
    expr: Expr,
    height: u32,
}

impl Tree {
    fn leaf(expr: Expr) -> Self {
        Self { expr, height: 1 }
    }

    fn number(value: u64) -> Self {
        Self::leaf(Expr::Atom(value.cast_signed().to_string(), value))
    }

    /// A tree over others, unless that grows too high.
    fn over<const N: usize>(
        parts: [Self; N],
        make: impl FnOnce([Expr; N]) -> Expr,
    ) -> Option<Self> {
        let height = 1 + parts.iter().map(|part| part.height).max().unwrap_or(0);
        let expr = make(parts.map(|part| part.expr));
        (height <= MAX_HEIGHT).then_some(Self { expr, height })
    }
}

struct Parser<'t> {
    /// What has not been read.
    tokens: &'t [Token<'t>],
    fields: &'t [Field],
    long_size: usize,
    depth: u32,
}

impl<'t> Parser<'t> {
    fn next(&mut self) -> Option<&'t Token<'t>> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    fn op(&self) -> Option<&'t str> {
        match self.tokens.first() {
            Some(Token::Op(op)) => Some(op),
            _ => None,
        }
    }

    /// Takes an operator if it is the next token.
    fn accept(&mut self, op: &str) -> bool {
        let is_next = self.op() == Some(op);
        if is_next {
            self.next();
        }
        is_next
    }

    fn expect(&mut self, op: &str) -> Option<()> {
        self.accept(op).then_some(())
    }

    fn item(&mut self) -> Option<&'t str> {
        match self.next() {
            Some(Token::Item(item)) => Some(item),
            _ => None,
        }
    }

    fn field(&mut self) -> Option<usize> {
        let name = self.item()?;
        self.fields.iter().position(|field| field.name == name)
    }

    /// A field in parentheses that were opened already.
    fn field_argument(&mut self) -> Option<usize> {
        let field = self.field()?;
        self.expect(")")?;
        Some(field)
    }

    fn expression(&mut self) -> Option<Tree> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let condition = self.binary(0)?;
        let tree = if self.accept("?") {
            let yes = self.expression()?;
            self.expect(":")?;
            let no = self.expression()?;
            Tree::over([condition, yes, no], |parts| Expr::Choice(Box::new(parts)))
        } else {
            Some(condition)
        };
        self.depth -= 1;
        tree
    }

    fn binary(&mut self, loosest: u8) -> Option<Tree> {
        let mut left = self.unary()?;
        while let Some((op, binding)) = self.op().and_then(Binary::of)
            && binding > loosest
        {
            self.next();
            let right = self.binary(binding)?;
            left = match (&left.expr, &right.expr) {
                (Expr::Atom(_, a), Expr::Atom(_, b)) => Tree::number(op.apply(*a, *b)),
                _ => Tree::over([left, right], |[a, b]| {
                    Expr::Binary(op, Box::new(a), Box::new(b))
                })?,
            };
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Tree> {
        let op = match self.op() {
            Some("!") => Unary::Not,
            Some("~") => Unary::Complement,
            Some("-") => Unary::Minus,
            Some("+") => Unary::Plus,
            _ => return self.postfix(),
        };
        self.next();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let operand = self.unary()?;
        self.depth -= 1;
        match operand.expr {
            Expr::Atom(_, value) => Some(Tree::number(op.apply(value))),
            _ => Tree::over([operand], |[value]| Expr::Unary(op, Box::new(value))),
        }
    }

    fn postfix(&mut self) -> Option<Tree> {
        let mut tree = self.primary()?;
        loop {
            if self.accept("[") {
                let index = self.expression()?;
                self.expect("]")?;
                tree = Tree::over([tree, index], |[array, index]| {
                    Expr::Index(Box::new(array), Box::new(index))
                })?;
            } else if tree.expr == Expr::Record && self.accept("->") {
                tree = Tree::leaf(Expr::Field(self.field()?));
            } else {
                return Some(tree);
            }
        }
    }

    fn primary(&mut self) -> Option<Tree> {
        match self.next()? {
            Token::Text(text) => Some(Tree::leaf(Expr::Atom(text.clone(), number(text)))),
            Token::Char(c) => Some(Tree::number(u64::from(*c))),
            Token::Item("REC") => Some(Tree::leaf(Expr::Record)),
            Token::Item(name) if self.accept("(") => self.function(name),
            Token::Item(word) => Some(self.atom(word)),
            Token::Op("(") => match self.cast() {
                Some(cast) => {
                    let value = self.unary_below()?;
                    match value.expr {
                        // Strings and numbers keep their text, which is what flags show.
                        Expr::Atom(text, value) => {
                            let value = cut(value, cast.bits);
                            Some(Tree::leaf(Expr::Atom(text, value)))
                        }
                        _ => Tree::over([value], |[value]| Expr::Cast(cast, Box::new(value))),
                    }
                }
                None => {
                    let inside = self.expression()?;
                    self.expect(")")?;
                    Some(inside)
                }
            },
            Token::Op(_) => None,
        }
    }

    /// The operand of a cast.
    fn unary_below(&mut self) -> Option<Tree> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let operand = self.unary();
        self.depth -= 1;
        operand
    }

    /// Names and numbers in a row are one.
    fn atom(&mut self, first: &str) -> Tree {
        let mut text = first.to_owned();
        while let Some(Token::Item(word)) = self.tokens.first() {
            text.push(' ');
            text.push_str(word);
            self.next();
        }
        let value = number(&text);
        Tree::leaf(Expr::Atom(text, value))
    }

    /// The type of a cast behind its opening parenthesis, if it is one: names and stars, and a value behind it.
    fn cast(&mut self) -> Option<Cast> {
        let is_name = |token: &&Token<'_>| matches!(token, Token::Item(word) if *word != "REC" && !word.starts_with(|c: char| c.is_ascii_digit()));
        let names = self.tokens.iter().take_while(is_name).count();
        let stars = self
            .tokens
            .iter()
            .skip(names)
            .take_while(|token| **token == Token::Op("*"))
            .count();
        let (type_, rest) = self.tokens.split_at_checked(names + stars)?;
        let (Token::Op(")"), rest) = rest.split_first()? else {
            return None;
        };
        let is_sure = stars > 0
            || names > 1
            || matches!(type_, [Token::Item(word)] if bits_of(word) > 0 || word.ends_with("_t"));
        let has_value = match rest.first() {
            Some(Token::Op("(")) | Some(Token::Item(_) | Token::Text(_) | Token::Char(_)) => true,
            Some(Token::Op("~" | "-" | "!")) => is_sure,
            _ => false,
        };
        if names == 0 || !has_value {
            return None;
        }
        self.tokens = rest;
        let words: Vec<&str> = type_
            .iter()
            .filter_map(|token| match token {
                Token::Item(word) | Token::Op(word) => Some(*word),
                _ => None,
            })
            .collect();
        Some(Cast::to(&words.join(" ")))
    }

    /// A function behind its opening parenthesis.
    fn function(&mut self, name: &str) -> Option<Tree> {
        match name {
            "__print_flags" => self.flags(),
            "__print_symbolic" => self.symbolic(),
            "__print_hex" => self.hex(true),
            "__print_hex_str" => self.hex(false),
            "__print_array" => self.numbers(),
            "__get_str" | "__get_rel_str" => self.field_argument().map(Expr::Str).map(Tree::leaf),
            "__get_bitmask" | "__get_rel_bitmask" => {
                self.field_argument().map(Expr::Bits).map(Tree::leaf)
            }
            "__get_cpumask" | "__get_rel_cpumask" => {
                self.field_argument().map(Expr::Cpus).map(Tree::leaf)
            }
            "__get_dynamic_array"
            | "__get_rel_dynamic_array"
            | "__get_sockaddr"
            | "__get_sockaddr_rel"
            | "__get_rel_sockaddr" => self.field_argument().map(Expr::Dynamic).map(Tree::leaf),
            "__get_dynamic_array_len" | "__get_rel_dynamic_array_len" => self
                .field_argument()
                .map(Expr::DynamicLength)
                .map(Tree::leaf),
            "__builtin_expect" => {
                let condition = self.expression()?;
                self.expect(",")?;
                self.expression()?;
                self.expect(")")?;
                Some(condition)
            }
            "sizeof" => self.size_of(),
            _ => None,
        }
    }

    fn flags(&mut self) -> Option<Tree> {
        let value = self.expression()?;
        self.expect(",")?;
        let delimiter = match self.tokens.first() {
            Some(Token::Text(text)) => {
                self.next();
                text.clone()
            }
            _ => String::new(),
        };
        let names = self.names()?;
        Tree::over([value], |[value]| {
            Expr::Flags(Box::new(value), delimiter, names)
        })
    }

    fn symbolic(&mut self) -> Option<Tree> {
        let value = self.expression()?;
        let names = self.names()?;
        Tree::over([value], |[value]| Expr::Symbolic(Box::new(value), names))
    }

    /// `, {value, "name"}, … )`
    fn names(&mut self) -> Option<Vec<(i64, String)>> {
        let mut names = Vec::new();
        while self.accept(",") {
            if self.op() == Some(")") {
                break;
            }
            self.expect("{")?;
            let value = named_value(&self.expression()?.expr)?;
            self.expect(",")?;
            let Expr::Atom(name, _) = self.expression()?.expr else {
                return None;
            };
            self.expect("}")?;
            names.push((value, name));
        }
        self.expect(")")?;
        Some(names)
    }

    fn hex(&mut self, blanks: bool) -> Option<Tree> {
        let data = self.expression()?;
        self.expect(",")?;
        let length = self.expression()?;
        self.expect(")")?;
        Tree::over([data, length], |[data, length]| {
            Expr::Hex(Box::new(data), Box::new(length), blanks)
        })
    }

    fn numbers(&mut self) -> Option<Tree> {
        let data = self.expression()?;
        self.expect(",")?;
        let count = self.expression()?;
        self.expect(",")?;
        let size = self.expression()?;
        self.expect(")")?;
        Tree::over([data, count, size], |parts| Expr::Numbers(Box::new(parts)))
    }

    /// Of the types that libtraceevent knows, and of fields that are no arrays.
    fn size_of(&mut self) -> Option<Tree> {
        let size = match self.item()? {
            "REC" => {
                self.expect("->")?;
                let field = &self.fields[self.field()?];
                (field.kind == Kind::Scalar).then_some(field.size)?
            }
            first => {
                let Expr::Atom(type_, _) = self.atom(first).expr else {
                    return None;
                };
                match type_.trim_start_matches("__") {
                    "unsigned" | "int" | "unsigned int" | "u32" | "s32" => 4,
                    "long" | "unsigned long" => self.long_size,
                    "long long" | "unsigned long long" | "u64" | "s64" => 8,
                    "u16" | "s16" => 2,
                    "u8" | "s8" => 1,
                    _ => return None,
                }
            }
        };
        self.expect(")")?;
        Some(Tree::number(size as u64))
    }
}

/// The value of an entry of flags or symbols. Names without a known value and negative results are -1
/// to libtraceevent (`eval_flag`).
fn named_value(expr: &Expr) -> Option<i64> {
    let Expr::Atom(text, value) = expr else {
        return None;
    };
    match text.as_bytes().first() {
        Some(b'0'..=b'9') => Some(value.cast_signed()),
        _ => Some(known_name(text).unwrap_or(-1)),
    }
}

/// The low `bits` bits; 0 leaves all.
pub(super) fn cut(value: u64, bits: u32) -> u64 {
    match bits {
        1..64 => value & ((1 << bits) - 1),
        _ => value,
    }
}

/// What is cast, and the outermost cast.
pub(super) fn without_casts(mut expr: &Expr) -> (Option<Cast>, &Expr) {
    let mut outermost = None;
    while let Expr::Cast(cast, inner) = expr {
        outermost = outermost.or(Some(*cast));
        expr = inner;
    }
    (outermost, expr)
}
