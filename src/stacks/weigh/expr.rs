//! Expressions over the fields of tracepoints: `nmemb*size`, `(size>4096)*size`, `max(ret,0)`.
//!
//! In: the text of a user. Out: an [`Expr`], which is bound to the fields of one event and then is a short program for a
//! stack of numbers. Numbers have 128 bits and stay at their limits; a division by nothing gives 0.

use crate::perfdata::FieldAt;

/// Most operations of an expression: more is a mistake, or an attack on the stack.
const MAX_OPS: usize = 256;
/// Deepest nesting of parentheses.
const MAX_DEPTH: usize = 32;

/// An expression with names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expr {
    ops: Vec<Op<String>>,
}

/// An expression with places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    ops: Vec<Op<FieldAt>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Op<F> {
    Number(i128),
    Field(F),
    Negate,
    Binary(Binary),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Min,
    Max,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    Unequal,
}

impl Binary {
    fn apply(self, a: i128, b: i128) -> i128 {
        match self {
            Self::Add => a.saturating_add(b),
            Self::Subtract => a.saturating_sub(b),
            Self::Multiply => a.saturating_mul(b),
            Self::Divide => a.checked_div(b).unwrap_or(0),
            Self::Min => a.min(b),
            Self::Max => a.max(b),
            Self::Less => i128::from(a < b),
            Self::LessEqual => i128::from(a <= b),
            Self::Greater => i128::from(a > b),
            Self::GreaterEqual => i128::from(a >= b),
            Self::Equal => i128::from(a == b),
            Self::Unequal => i128::from(a != b),
        }
    }
}

impl Expr {
    /// Understands a text.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser {
            rest: text,
            ops: Vec::new(),
            depth: 0,
        };
        parser.comparison()?;
        parser.skip_blanks();
        if parser.rest.is_empty() {
            Ok(Self { ops: parser.ops })
        } else {
            Err(format!("`{}` is left over", parser.rest))
        }
    }

    /// The names of the fields, in order and each as often as it occurs.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.ops.iter().filter_map(|op| match op {
            Op::Field(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// The same with places in place of names; the name that has none if there is one.
    ///
    /// # Errors
    /// The name of a field that `place` does not know.
    pub fn bind(&self, place: impl Fn(&str) -> Option<FieldAt>) -> Result<Bound, &str> {
        let ops = self.ops.iter().map(|op| {
            Ok(match op {
                Op::Number(number) => Op::Number(*number),
                Op::Field(name) => Op::Field(place(name).ok_or(name.as_str())?),
                Op::Negate => Op::Negate,
                Op::Binary(binary) => Op::Binary(*binary),
            })
        });
        ops.collect::<Result<_, &str>>().map(|ops| Bound { ops })
    }
}

impl Bound {
    /// Its value for a payload; `None` when the payload is too short for a field.
    #[must_use]
    pub fn value(&self, payload: &[u8]) -> Option<i128> {
        let mut stack: smallvec::SmallVec<[i128; 8]> = smallvec::SmallVec::new();
        for op in &self.ops {
            let value = match op {
                Op::Number(number) => *number,
                Op::Field(at) => at.number(payload)?,
                Op::Negate => stack.pop()?.saturating_neg(),
                Op::Binary(binary) => {
                    let (b, a) = (stack.pop()?, stack.pop()?);
                    binary.apply(a, b)
                }
            };
            stack.push(value);
        }
        stack.pop()
    }
}

struct Parser<'t> {
    rest: &'t str,
    ops: Vec<Op<String>>,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, word: &str) -> bool {
        self.skip_blanks();
        let after = self.rest.strip_prefix(word);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        if self.take(word) {
            return Ok(());
        }
        let found = if self.rest.is_empty() {
            "the end"
        } else {
            self.rest
        };
        Err(format!("`{word}` expected before `{found}`"))
    }

    fn push(&mut self, op: Op<String>) -> Result<(), String> {
        if self.ops.len() >= MAX_OPS {
            return Err("too long".to_owned());
        }
        self.ops.push(op);
        Ok(())
    }

    fn comparison(&mut self) -> Result<(), String> {
        const OPERATORS: [(&str, Binary); 6] = [
            ("<=", Binary::LessEqual),
            (">=", Binary::GreaterEqual),
            ("==", Binary::Equal),
            ("!=", Binary::Unequal),
            ("<", Binary::Less),
            (">", Binary::Greater),
        ];
        self.chain(&OPERATORS, Self::sum)
    }

    fn sum(&mut self) -> Result<(), String> {
        const OPERATORS: [(&str, Binary); 2] = [("+", Binary::Add), ("-", Binary::Subtract)];
        self.chain(&OPERATORS, Self::product)
    }

    fn product(&mut self) -> Result<(), String> {
        const OPERATORS: [(&str, Binary); 2] = [("*", Binary::Multiply), ("/", Binary::Divide)];
        self.chain(&OPERATORS, Self::unary)
    }

    /// Operands with operators of one rank between them, from left to right.
    fn chain(
        &mut self,
        operators: &[(&str, Binary)],
        operand: fn(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        operand(self)?;
        while let Some((_, binary)) = operators.iter().find(|(word, _)| self.take(word)) {
            operand(self)?;
            self.push(Op::Binary(*binary))?;
        }
        Ok(())
    }

    fn unary(&mut self) -> Result<(), String> {
        if self.take("-") {
            self.nested(Self::unary)?;
            return self.push(Op::Negate);
        }
        if self.take("(") {
            self.nested(Self::comparison)?;
            return self.expect(")");
        }
        self.skip_blanks();
        if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            return self.number();
        }
        self.name()
    }

    fn nested(&mut self, part: fn(&mut Self) -> Result<(), String>) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("nested too deeply".to_owned());
        }
        part(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn word(&mut self) -> &'t str {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let len = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(len);
        self.rest = rest;
        word
    }

    fn number(&mut self) -> Result<(), String> {
        let word = self.word();
        let number = match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => word.parse(),
        };
        let number = number.map_err(|_| format!("`{word}` is no number"))?;
        self.push(Op::Number(number.into()))
    }

    fn name(&mut self) -> Result<(), String> {
        let rest = self.rest;
        let name = self.word();
        let function = match name {
            "" if rest.is_empty() => return Err("something is missing at the end".to_owned()),
            "" => return Err(format!("`{rest}` is neither a field nor a number")),
            "min" => Binary::Min,
            "max" => Binary::Max,
            _ => return self.push(Op::Field(name.to_owned())),
        };
        if !self.take("(") {
            return self.push(Op::Field(name.to_owned()));
        }
        self.nested(Self::comparison)?;
        self.expect(",")?;
        self.nested(Self::comparison)?;
        self.expect(")")?;
        self.push(Op::Binary(function))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> i128 {
        let expr = Expr::parse(text).expect("a sound expression");
        let bound = expr.bind(|_| None).expect("no fields");
        bound.value(&[]).expect("numbers only")
    }

    #[test]
    fn operators_bind_as_in_c() {
        assert_eq!(value("1+2*3-4/2"), 5);
        assert_eq!(value("(1+2)*3"), 9);
        assert_eq!(value("2-3-4"), -5);
        assert_eq!(value("-2*-3"), 6);
        assert_eq!(value("1+1 < 3"), 1);
        assert_eq!(value("(5>4096)*5"), 0);
        assert_eq!(value("(0x1000>=4096)*5 == 5"), 1);
        assert_eq!(value("max(min(7, 3), 2) != 3"), 0);
    }

    #[test]
    fn nothing_overflows_and_nothing_is_divided_by_nothing() {
        assert_eq!(value("7/0"), 0);
        let max = u64::MAX;
        assert_eq!(value(&format!("{max}*{max}*{max}*{max}")), i128::MAX);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place() {
        let error = |text: &str| Expr::parse(text).expect_err("no expression");
        assert_eq!(error("size+"), "something is missing at the end");
        assert_eq!(error("(size"), "`)` expected before `the end`");
        assert_eq!(error("size size"), "`size` is left over");
        assert_eq!(error("12ab"), "`12ab` is no number");
        assert_eq!(error(&"(".repeat(1000)), "nested too deeply");
        assert_eq!(error(&"-".repeat(1000)), "nested too deeply");
        assert_eq!(error(&"1+".repeat(1000)), "too long");
    }

    #[test]
    fn fields_are_named() {
        let expr = Expr::parse("min(nmemb,4)*size").expect("a sound expression");
        assert_eq!(expr.fields().collect::<Vec<_>>(), ["nmemb", "size"]);
        assert_eq!(expr.bind(|_| None), Err("nmemb"));
    }
}
