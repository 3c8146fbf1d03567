//! What a function of JavaScript or TypeScript is called, by the text around the place where it begins.
//!
//! In: a text and a place in it: what the place that V8 writes into a name comes from, by a source map. That is the parenthesis of
//! its parameters, an arrow's first parameter, or a little before. Out: the name that the text gives the function there, or nothing.
//!
//! There is no parser here. The text is looked at from the place on and backwards, a few hundred characters, and what is not clear
//! has no name: the word that the runtime had stays. A wrong name is worse than none. `names` of source maps are not asked: they
//! name identifiers, and the nearest one often is that of a parameter or of a function that was called.
//!
//! Called by [`super::source_map`].

/// How far is looked back from a function.
const BACK: usize = 300;
/// How far is looked back to the beginning of a class.
const BACK_TO_CLASS: usize = 64 << 10;
/// How far forward to the end of parameters.
const FORWARD: usize = 20_000;
/// How long a type behind parameters may be.
const TYPE: usize = 400;
/// Longer names are none.
const MOST_NAME: usize = 200;

/// The name of the function that begins at a byte of the text, if the text gives it one there.
#[must_use]
pub fn written_name(text: &str, at: usize) -> Option<&str> {
    if !text.is_char_boundary(at) {
        return None;
    }
    let name = Text(text).function_at(at, true)?;
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control();
    let is_name = !name.is_empty() && name.len() <= MOST_NAME && name.chars().all(is_plain);
    is_name.then_some(name)
}

/// Whether a function begins at a byte of the text, as V8 tells: at the parenthesis of its parameters, at an arrow's first
/// parameter, at `async` of an arrow, or at the class that has no constructor of its own.
pub(super) fn is_head(text: &str, at: usize) -> bool {
    if !text.is_char_boundary(at) {
        return false;
    }
    let end = floor(text, text.len().min(at.saturating_add(FORWARD)));
    let Some(here) = text.get(at..end) else {
        return false;
    };
    if here.starts_with('(') {
        return Text(text).behind_parameters(at) != Behind::Other;
    }
    identifier(here) == "class" || is_arrow_of_word(here) || is_async_parameters(here)
}

/// The objects in front of a name that something is assigned to: `Shape.prototype.` of `Shape.prototype.area =`.
pub(super) fn written_owner<'t>(text: &'t str, name: &'t str) -> &'t str {
    // Both are of one text.
    let start = (name.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    let Some(before) = text.get(..start) else {
        return "";
    };
    let from = floor(before, before.len().saturating_sub(BACK));
    let window = &before[from..];
    let is_part = |c: char| is_id(c) || c == '.';
    let owner = window.trim_end_matches(is_part).len();
    &window[owner..]
}

/// What stands behind parameters.
#[derive(PartialEq, Clone, Copy)]
enum Behind {
    Arrow,
    Body,
    Other,
}

#[derive(Clone, Copy)]
struct Text<'t>(&'t str);

/// Words that are not the name of what a parenthesis belongs to.
const CONTROL: [&str; 6] = ["if", "while", "for", "switch", "catch", "with"];

/// Words that are no name where a name would be followed by parameters.
const KEYWORDS: [&str; 38] = [
    "function",
    "async",
    "get",
    "set",
    "static",
    "return",
    "if",
    "while",
    "for",
    "switch",
    "catch",
    "with",
    "super",
    "new",
    "typeof",
    "await",
    "yield",
    "void",
    "delete",
    "in",
    "of",
    "do",
    "else",
    "case",
    "default",
    "throw",
    "instanceof",
    "var",
    "let",
    "const",
    "export",
    "extends",
    "class",
    "import",
    "try",
    "finally",
    "break",
    "continue",
];

/// What stands in front of a declared name in TypeScript.
const MODIFIERS: [&str; 9] = [
    "const",
    "let",
    "var",
    "readonly",
    "private",
    "public",
    "protected",
    "static",
    "override",
];

impl<'t> Text<'t> {
    fn function_at(self, at: usize, is_first: bool) -> Option<&'t str> {
        let end = floor(self.0, self.0.len().min(at.checked_add(FORWARD)?));
        let here = self.0.get(at..end)?;
        if let Some(behind) = after_function(here) {
            let behind = behind.trim_start();
            let behind = behind.strip_prefix('*').unwrap_or(behind).trim_start();
            return match identifier(behind) {
                "" => self.given(at),
                name => Some(name),
            };
        }
        if identifier(here) == "constructor" && !self.is_behind_dot(at) {
            let (_, parameters) = method(here)?;
            let is_body = self.behind_parameters(at + parameters) == Behind::Body;
            return is_body.then(|| self.class_around(at))?;
        }
        if here.starts_with('(') {
            let behind = self.behind_parameters(at);
            return match behind {
                Behind::Arrow => self.given(at),
                Behind::Body => self.owner_of_parameters(at),
                Behind::Other => None,
            };
        }
        if let Some((name, parameters)) = method(here)
            && !KEYWORDS.contains(&name)
            && self.behind_parameters(at + parameters) == Behind::Body
        {
            return Some(unquoted(name));
        }
        if is_arrow_of_word(here) || is_async_parameters(here) {
            return self.given(at);
        }
        // The first parameter: its parenthesis is in front.
        let before = self.skip_back(at)?;
        let is_parenthesis = is_first && self.0[..before].ends_with('(');
        is_parenthesis.then(|| self.function_at(before - 1, false))?
    }

    /// The name in front of the parameters of a function or method.
    fn owner_of_parameters(self, at: usize) -> Option<&'t str> {
        let mut end = self.skip_back(at)?;
        if self.0[..end].ends_with('>') && !self.0[..end].ends_with("=>") {
            end = self.skip_back(self.start_of_type_parameters(end)?)?;
        }
        let before = &self.0[..end];
        // A computed key.
        if before.ends_with(']') {
            return None;
        }
        if before.ends_with(['"', '\'']) {
            return self.string_before(end).map(unquoted);
        }
        let word = self.word_before(end);
        if word == "constructor" {
            return self.class_around(end - word.len());
        }
        let is_control = CONTROL.contains(&word);
        if is_control && !self.is_behind_dot(end - word.len()) {
            return None;
        }
        let mut keyword = end;
        if word.is_empty() {
            let star = before.ends_with('*').then(|| self.skip_back(end - 1))??;
            keyword = star;
        }
        match self.word_before(keyword) {
            "function" => self.given(keyword - "function".len()),
            _ if word.is_empty() => None,
            _ => Some(word),
        }
    }

    /// The name that an expression that begins here is given: by an assignment, or as a property.
    fn given(self, at: usize) -> Option<&'t str> {
        let mut end = self.skip_back(at)?;
        // The type parameters of an arrow.
        if self.0[..end].ends_with('>') && !self.0[..end].ends_with("=>") {
            end = self.skip_back(self.start_of_type_parameters(end)?)?;
        }
        if self.word_before(end) == "async" {
            end = self.skip_back(end - "async".len())?;
        }
        let before = &self.0[..end];
        let name = match before.as_bytes().last()? {
            b':' => self.property(end - 1),
            b'=' => self.assigned(end),
            // Never over `(`: `var X = (function () {…}())` is not X.
            _ => None,
        }?;
        self.is_code(name, at).then_some(name)
    }

    /// `NAME:` in an object.
    fn property(self, colon: usize) -> Option<&'t str> {
        let end = self.skip_back(colon)?;
        let key = if self.0[..end].ends_with(['"', '\'']) {
            self.string_before(end)?
        } else {
            self.word_before(end)
        };
        let before = self.skip_back(end - key.len())?;
        let is_key = self.0[..before].ends_with(['{', ',']);
        (is_key && !key.is_empty() && key != "default").then(|| unquoted(key))
    }

    /// `NAME =`, `NAME: Type =`, `a.b.NAME =`, `x['NAME'] =`, `NAME ||=`.
    fn assigned(self, at: usize) -> Option<&'t str> {
        let before = &self.0[..at];
        let logical = ["||=", "&&=", "??="];
        let sign = match logical.iter().find(|sign| before.ends_with(**sign)) {
            Some(sign) => sign.len(),
            None => 1,
        };
        let left = &before[..at - sign];
        if sign == 1 && left.ends_with(['=', '!', '<', '>', '+', '-', '*', '/', '%', '&', '|', '^'])
        {
            return None;
        }
        let end = self.skip_back(left.len())?;
        if let Some(name) = self.typed(end) {
            return Some(name);
        }
        if self.0[..end].ends_with(']') {
            let inside = self.skip_back(end - 1)?;
            let string = self.string_before(inside)?;
            let bracket = self.skip_back(inside - string.len())?;
            let is_key = self.0[..bracket].ends_with('[');
            return is_key.then(|| unquoted(string));
        }
        let word = self.word_before(end);
        let is_name = !word.is_empty()
            && !word.starts_with(|c: char| c.is_ascii_digit())
            && (!KEYWORDS.contains(&word) || self.is_behind_dot(end - word.len()));
        is_name.then_some(word)
    }

    /// `const NAME: Type`, up to the sign of equality that begins at `end`.
    fn typed(self, end: usize) -> Option<&'t str> {
        let from = floor(self.0, end.saturating_sub(BACK));
        let window = &self.0[from..end];
        let line = window.rfind('\n').map_or(0, |at| at + 1);
        let head = &window[line..];
        let mut at = 0;
        while at < head.len() {
            let word = identifier(&head[at..]);
            let begins = at == 0 || head[..at].ends_with([' ', '\t', ';', '{', '(']);
            if begins
                && MODIFIERS.contains(&word)
                && let Some(name) = typed_name(&head[at..])
            {
                return Some(name);
            }
            let step = if word.is_empty() {
                head[at..].chars().next().map_or(1, char::len_utf8)
            } else {
                word.len()
            };
            at += step;
        }
        None
    }

    /// The class whose body is around a place.
    fn class_around(self, at: usize) -> Option<&'t str> {
        let from = at.saturating_sub(BACK_TO_CLASS);
        let mut depth = 0usize;
        for brace in (from..at).rev() {
            match self.0.as_bytes()[brace] {
                b'}' => depth += 1,
                b'{' if depth == 0 => return self.class_before(brace),
                b'{' => depth -= 1,
                _ => {}
            }
        }
        None
    }

    /// The class whose body begins at a brace.
    fn class_before(self, brace: usize) -> Option<&'t str> {
        let from = floor(self.0, brace.saturating_sub(BACK));
        let head = &self.0[from..brace];
        let keyword = head.rmatch_indices("class").find(|(at, word)| {
            let before = head[..*at].chars().next_back();
            let behind = head[at + word.len()..].chars().next();
            !before.is_some_and(|c| is_id(c) || c == '.')
                && !behind.is_some_and(|c| is_id(c) || c == ':')
        });
        let at = keyword?.0;
        let behind = &head[at + "class".len()..];
        if behind.contains([';', '{', '}']) {
            return None;
        }
        match identifier(behind.trim_start()) {
            "" | "extends" | "implements" => self.given(from + at),
            name => Some(name),
        }
    }

    /// What stands behind the parameters that begin here.
    fn behind_parameters(self, at: usize) -> Behind {
        let Some(close) = self.closing(at) else {
            return Behind::Other;
        };
        let end = floor(self.0, (close + 1 + TYPE).min(self.0.len()));
        let behind = skip_forward(&self.0[close + 1..end]);
        if behind.starts_with("=>") {
            Behind::Arrow
        } else if behind.starts_with('{') {
            Behind::Body
        } else {
            behind.strip_prefix(':').map_or(Behind::Other, behind_type)
        }
    }

    /// Where the parenthesis that begins here is closed.
    fn closing(self, at: usize) -> Option<usize> {
        let bytes = self.0.as_bytes();
        let end = bytes.len().min(at + FORWARD);
        let mut depth = 0usize;
        let mut next = at;
        while next < end {
            match bytes[next] {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(next);
                    }
                }
                b'"' | b'\'' | b'`' => next = end_of_string(bytes, next, end)?,
                b'/' if bytes.get(next + 1) == Some(&b'*') => {
                    let close = memchr::memmem::find(&bytes[next + 2..end], b"*/")?;
                    next += close + 3;
                }
                b'/' if bytes.get(next + 1) == Some(&b'/') => {
                    next += memchr::memchr(b'\n', &bytes[next..end])?;
                }
                _ => {}
            }
            next += 1;
        }
        None
    }

    /// Where the type parameters that end here begin.
    fn start_of_type_parameters(self, end: usize) -> Option<usize> {
        let bytes = self.0.as_bytes();
        let mut depth = 0usize;
        for at in (end.saturating_sub(TYPE)..end).rev() {
            match bytes[at] {
                b'>' if at > 0 && bytes[at - 1] != b'=' => depth += 1,
                b'<' if depth == 1 => return Some(at),
                b'<' => depth = depth.checked_sub(1)?,
                _ => {}
            }
        }
        None
    }

    /// Over white space and comments to what stands in front. Nothing if that is far away.
    fn skip_back(self, from: usize) -> Option<usize> {
        let low = floor(self.0, from.saturating_sub(BACK));
        let mut at = from;
        loop {
            at = low + self.0[low..at].trim_end().len();
            if at == low && low > 0 {
                return None;
            }
            if !self.0[low..at].ends_with("*/") {
                return Some(at);
            }
            at = low + self.0[low..at - 2].rfind("/*")?;
        }
    }

    /// The word that ends here.
    fn word_before(self, end: usize) -> &'t str {
        let low = floor(self.0, end.saturating_sub(MOST_NAME + 4));
        let window = &self.0[low..end];
        let word = &window[window.trim_end_matches(is_id).len()..];
        let private = end - word.len();
        if !word.is_empty() && self.0[..private].ends_with('#') {
            &self.0[private - 1..end]
        } else {
            word
        }
    }

    /// The string that ends here, with its quotes.
    fn string_before(self, end: usize) -> Option<&'t str> {
        let quote = self.0[..end]
            .chars()
            .next_back()
            .filter(|c| matches!(c, '"' | '\''))?;
        let low = floor(self.0, end.saturating_sub(MOST_NAME + 4));
        let start = low + self.0[low..end - 1].rfind(quote)?;
        let string = &self.0[start..end];
        (!string.contains(['\n', '\\'])).then_some(string)
    }

    fn is_behind_dot(self, at: usize) -> bool {
        self.0[..at].ends_with('.')
    }

    /// Whether a name that stands on a line before that of a function is no part of a comment that ends with the line.
    fn is_code(self, name: &str, at: usize) -> bool {
        let start = (name.as_ptr() as usize).wrapping_sub(self.0.as_ptr() as usize);
        let Some(between) = self.0.get(start..at) else {
            return false;
        };
        let low = floor(self.0, start.saturating_sub(BACK));
        let before = &self.0[low..start];
        let line = before
            .rfind('\n')
            .map_or(before, |newline| &before[newline..]);
        !between.contains('\n') || !line.contains("//")
    }
}

/// What is behind `function` or `async function`.
fn after_function(text: &str) -> Option<&str> {
    let text = match identifier(text) {
        "async" => text["async".len()..].trim_start(),
        _ => text,
    };
    (identifier(text) == "function").then(|| &text["function".len()..])
}

/// `name(`, `static async *name<T>(`, `"name"(`, `#name(`: the name, and where its parameters are.
fn method(text: &str) -> Option<(&str, usize)> {
    let mut rest = text;
    loop {
        let word = identifier(rest);
        let behind = &rest[word.len()..];
        if !["static", "async", "get", "set"].contains(&word)
            || !behind.starts_with(char::is_whitespace)
        {
            break;
        }
        // `get (` is a method called so.
        if behind.trim_start().starts_with('(') {
            break;
        }
        rest = behind.trim_start();
    }
    let rest = rest.strip_prefix('*').unwrap_or(rest).trim_start();
    let name = match rest.chars().next()? {
        quote @ ('"' | '\'') => {
            let line = &rest[..rest.find('\n').unwrap_or(rest.len()).min(rest.len())];
            let end = line[1..].find(quote)? + 2;
            &line[..end]
        }
        '#' => match identifier(&rest[1..]) {
            "" => return None,
            word => &rest[..=word.len()],
        },
        _ => identifier(rest),
    };
    if name.is_empty() || name.contains('\\') {
        return None;
    }
    let mut behind = rest[name.len()..].trim_start();
    if behind.starts_with('<') {
        let window = &behind[..floor(behind, behind.len().min(TYPE))];
        let open = window.find('(')?;
        if !window[..open].trim_end().ends_with('>') {
            return None;
        }
        behind = &behind[open..];
    }
    let parameters = behind.starts_with('(');
    parameters.then_some((name, text.len() - behind.len()))
}

/// `word =>`, `async word =>`.
fn is_arrow_of_word(text: &str) -> bool {
    let arrow = |part: &str| {
        let word = identifier(part);
        !word.is_empty() && part[word.len()..].trim_start().starts_with("=>")
    };
    let behind = text.strip_prefix("async").map(str::trim_start);
    arrow(text) || behind.is_some_and(arrow)
}

/// `async (`, which is no call: what behind parameters is told by who asks.
fn is_async_parameters(text: &str) -> bool {
    let behind = text.strip_prefix("async").map(str::trim_start);
    let parameters = behind.filter(|behind| behind.starts_with('('));
    parameters.is_some_and(|parameters| Text(parameters).behind_parameters(0) == Behind::Arrow)
}

/// `private readonly NAME: Type` from its first word on: the name, if all behind it can be its type.
fn typed_name(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        let word = identifier(rest);
        if word == "declare" || MODIFIERS.contains(&word) {
            let behind = &rest[word.len()..];
            rest = behind.trim_start();
            if rest.len() == behind.len() {
                return None;
            }
            continue;
        }
        let private = usize::from(rest.starts_with('#'));
        let name = &rest[..private + identifier(&rest[private..]).len()];
        if name.len() == private {
            return None;
        }
        let behind = &rest[name.len()..];
        let behind = behind.strip_prefix(['?', '!']).unwrap_or(behind);
        let of_type = behind.trim_start().strip_prefix(':')?;
        let is_type = !of_type.replace("=>", "").contains(['=', ';']);
        return is_type.then_some(name);
    }
}

/// What stands behind the type that begins here.
fn behind_type(text: &str) -> Behind {
    let bytes = text.as_bytes();
    let mut depth = 0usize;
    let mut is_whole = false;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'=' if bytes.get(at + 1) == Some(&b'>') => {
                if depth == 0 {
                    return if is_whole {
                        Behind::Arrow
                    } else {
                        Behind::Other
                    };
                }
                at += 1;
            }
            b'{' if depth == 0 && is_whole => return Behind::Body,
            b'(' | b'[' | b'{' | b'<' => depth += 1,
            b')' | b']' | b'}' | b'>' => {
                let Some(less) = depth.checked_sub(1) else {
                    return Behind::Other;
                };
                depth = less;
                is_whole = true;
            }
            b';' | b'=' | b',' | b'?' | b'!' | b'+' if depth == 0 => return Behind::Other,
            // What is missing another type behind it.
            b'|' | b'&' if depth == 0 => is_whole = false,
            b'"' | b'\'' | b'`' => {
                let Some(end) = end_of_string(bytes, at, bytes.len()) else {
                    return Behind::Other;
                };
                at = end;
                is_whole = true;
            }
            b'\n' if depth == 0 && is_whole => {
                let next = skip_forward(&text[at..]);
                if !next.starts_with(['{', '|', '&', '=']) {
                    return Behind::Other;
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => is_whole = true,
        }
        at += 1;
    }
    Behind::Other
}

/// Where the string that begins here ends.
fn end_of_string(bytes: &[u8], start: usize, end: usize) -> Option<usize> {
    let quote = bytes[start];
    let mut at = start + 1;
    while at < end {
        match bytes[at] {
            b'\\' => at += 1,
            b'\n' if quote != b'`' => return None,
            byte if byte == quote => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Over white space and comments.
fn skip_forward(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let end = if let Some(comment) = rest.strip_prefix("/*") {
            comment.find("*/").map(|at| at + 4)
        } else if rest.starts_with("//") {
            rest.find('\n')
        } else {
            return rest;
        };
        rest = end.map_or("", |end| rest[end..].trim_start());
    }
}

/// The identifier that begins here, or nothing. At most as much as names may have is looked at.
fn identifier(text: &str) -> &str {
    let window = &text[..floor(text, text.len().min(MOST_NAME + 4))];
    if window.starts_with(|c: char| c.is_ascii_digit()) {
        return "";
    }
    let rest = window.trim_start_matches(is_id).len();
    &window[..window.len() - rest]
}

fn is_id(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '\u{200c}' | '\u{200d}')
}

fn unquoted(text: &str) -> &str {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

/// The character that is at or before a byte.
fn floor(text: &str, at: usize) -> usize {
    (0..=at)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name at the mark `¦`.
    fn at(marked: &str) -> Option<String> {
        let at = marked.find('¦').expect("a mark");
        let text = marked.replacen('¦', "", 1);
        written_name(&text, at).map(str::to_owned)
    }

    fn named(cases: &[(&str, &str)]) {
        for (text, name) in cases {
            assert_eq!(at(text).as_deref(), Some(*name), "{text}");
        }
    }

    fn nameless(cases: &[&str]) {
        for text in cases {
            assert_eq!(at(text), None, "{text}");
        }
    }

    #[test]
    fn functions_have_the_names_that_the_text_gives_them() {
        named(&[
            ("function work¦(a, b) {}", "work"),
            ("¦function work(a, b) {}", "work"),
            ("function ¦work(a, b) {}", "work"),
            ("¦async function* work(a) {}", "work"),
            ("const work = ¦(a, b) => a", "work"),
            ("const work = (¦a, b) => a", "work"),
            ("const work = ¦a => a", "work"),
            ("const work = ¦async (a) => a", "work"),
            ("const work = async ¦(a) => a", "work"),
            ("work = ¦function (a) {}", "work"),
            ("work = function ¦(a) {}", "work"),
            ("work = async function* ¦(a) {}", "work"),
            ("work = function inner¦(a) {}", "inner"),
            ("a.b.work = ¦(a) => a", "work"),
            ("a['work'] = ¦(a) => a", "work"),
            ("a.work ??= ¦(a) => a", "work"),
            ("{ work: ¦(a) => a }", "work"),
            ("{ x: 1, 'work': ¦function (a) {} }", "work"),
            ("{ work¦(a) {} }", "work"),
            ("{ ¦async *work(a) {} }", "work"),
            ("class A { static get ¦work() {} }", "work"),
            ("class A { ¦#work(a) {} }", "#work"),
            ("class A { #work¦(a) {} }", "#work"),
            ("class A { constructor¦(a) {} }", "A"),
            (
                "class A extends mixin(B) { x() {} ¦constructor(a) {} }",
                "A",
            ),
            ("const A = class extends B { ¦constructor(a) {} }", "A"),
            ("const work = /* which */ ¦(a) => a", "work"),
            ("function f(work = ¦(a) => a) {}", "work"),
            ("const größe = ¦(a) => a", "größe"),
            ("const work =\n  // faster\n  1, f = ¦(a) => a", "f"),
        ]);
    }

    #[test]
    fn types_are_stepped_over() {
        named(&[
            (
                "export function ¦work<T extends { id: number }>(a: T): T | undefined {}",
                "work",
            ),
            ("function work<T>¦(a: T): a is string {}", "work"),
            (
                "function work¦(a: number): { a: number; b: { c: string } } {}",
                "work",
            ),
            (
                "const work: (value: number) => number = ¦(value) => value",
                "work",
            ),
            (
                "const work = ¦(a: string = ''): Record<string, number> => ({})",
                "work",
            ),
            ("const work = <T,>¦(a: T): T => a", "work"),
            (
                "class A { private readonly work: (e: number) => void = ¦(e) => {} }",
                "work",
            ),
            (
                "class A<T> implements B<T> { constructor¦(private readonly a: string) {} }",
                "A",
            ),
            (
                "class A { ¦protected_<K extends keyof T>(key: K, { deep = false }: { deep?: boolean } = {}): Promise<T[K]> {} }",
                "protected_",
            ),
        ]);
    }

    /// The word of the runtime stays.
    #[test]
    fn what_is_not_clear_has_no_name() {
        nameless(&[
            "var Map = (¦function (Super) { return 1 }(Base))",
            "var Map = (function ¦(Super) { return 1 }(Base))",
            "(¦() => { x = 1 })()",
            "list.map(¦(each) => each)",
            "list.map(¦each => each)",
            "f(a, ¦function (x) {})",
            "return ¦(a) => a",
            "x = c ? undefined : ¦(a) => a",
            "x = c ? ¦(a) => a : 0",
            "x = ¦call(a)",
            "x = call¦(a)",
            "if ¦(a) { b() }",
            "// That is all.\n if (¦a === 1) { b() }",
            "¦if (a) { b() }",
            "x = { ['a' + b]¦(c) {} }",
            "x['a' + b] = ¦(c) => c",
            "x == ¦(c) => c",
            "x = a ? b¦(c) : {}",
            "x = a ? b¦(c) : d",
            "call(\n  // name =\n  ¦(x) => x)",
            "call(\n  /* name = */\n  ¦(x) => x)",
            "x = { default: ¦(a) => a }",
            "export default ¦(a) => a",
            "export default ¦function (a) {}",
            "class { constructor¦() {} }",
            "¦class A {}",
            "work = (¦",
            "work = ¦(((",
            "work = ¦(')",
            "¦",
        ]);
    }

    #[test]
    fn owners_are_those_of_the_text() {
        let text = "Old.prototype.method = function (value) {}; a = b";
        let at = text.find("function").expect("it is there");
        let name = written_name(text, at).expect("a name");
        assert_eq!(
            (name, written_owner(text, name)),
            ("method", "Old.prototype.")
        );
        assert_eq!(written_owner(text, &text[..3]), "");
        assert_eq!(written_owner(text, "method"), "");
    }

    /// Neither a crash nor more than a few thousand characters are looked at, wherever one looks.
    #[test]
    fn any_text_is_looked_at_in_bounded_time() {
        let long = [
            "(".repeat(1 << 20),
            "/*".repeat(1 << 19),
            "*/".repeat(1 << 19),
            "a".repeat(1 << 20),
            " ".repeat(1 << 20),
            "constructor".repeat(1 << 17),
            "é".repeat(1 << 19),
            "<>".repeat(1 << 19),
            "async ".repeat(1 << 17),
            "get static ".repeat(1 << 16),
            "'".repeat(1 << 20),
        ];
        for text in long {
            for at in (0..text.len()).step_by(10_007) {
                if text.is_char_boundary(at) {
                    let _ = written_name(&text, at);
                }
            }
        }
    }

    proptest::proptest! {
        /// No piece of code, cut anywhere, ends a run.
        #[test]
        fn no_text_ends_a_run(
            parts in proptest::collection::vec(
                proptest::sample::select(vec![
                    "(", ")", "{", "}", "[", "]", "<", ">", "=", "=>", ":", ",", "\"", "'", "`", "/*", "*/", "//", "\n", " ", "a",
                    "é", "function", "async", "class", "constructor", "#", "*", ".", "const", "get", "?", "||=", "1", "\\",
                ]),
                0..60,
            ),
        ) {
            let text = parts.concat();
            for at in 0..=text.len() + 1 {
                if let Some(name) = written_name(&text, at) {
                    written_owner(&text, name);
                }
            }
        }
    }
}
