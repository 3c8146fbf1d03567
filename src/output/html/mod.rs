//! The interactive page: one file that fetches nothing, with all nodes of the tree in it.
//!
//! In: a tree and its caption. The page's own text is in `page.html`, `style.css`, `tree.js` (what is computed of the tree) and
//! `app.js` (the document) beside this file. Data is one JSON object, compressed and in base64, so that no name of a recording
//! is ever read as HTML; the page puts names into the document as text only.

use std::borrow::Cow;
use std::io::{self, Write};

use sha2::{Digest, Sha256};

use super::caption::{Caption, shortened};
use super::gzip;
use crate::flame::{ColorBy, Comparison, Findings, Flame, FunctionId, Kind, Weights, shown};
use crate::ids::{IndexVec, index_vec};
use crate::profile::{EventId, Profile};
use crate::unit::Unit;

mod code;
mod data;
mod time;

use super::over_time::When;
pub use code::{FunctionCode, codes};

/// How the page begins.
#[derive(Clone, Debug, Default)]
pub struct PageOptions {
    /// Instead of what was recorded.
    pub title: Option<String>,
    /// Instead of event, samples and total.
    pub subtitle: Option<String>,
    /// The root on top.
    pub inverted: bool,
    /// What colours tell at first.
    pub color_by: Option<ColorBy>,
    /// From the leaves.
    pub reverse: bool,
    /// How two runs are shown.
    pub comparison: Comparison,
    /// Threads that compress.
    pub threads: usize,
}

/// What is in the page.
#[derive(Clone, Copy, Debug)]
pub struct Content<'c> {
    /// The tree.
    pub flame: &'c Flame,
    /// Whose events and threads its series are.
    pub profile: &'c Profile,
    /// What it says of itself.
    pub caption: &'c Caption,
    /// The event that is shown first.
    pub event: EventId,
    /// Weights of that event.
    pub weights: &'c Weights,
    /// What is known of two sides, if the series are of two.
    pub findings: Option<&'c Findings>,
    /// Code of functions, the heaviest first.
    pub code: &'c [FunctionCode],
    /// What is known of the time, if the page is to have its panel; the tree needs its moments for that.
    pub when: Option<When<'c>>,
}

impl<'c> Content<'c> {
    /// The same, if the tree has moments.
    fn shown_when(&self) -> Option<When<'c>> {
        self.when.filter(|_| !self.flame.moments.is_empty())
    }

    fn extra(&self) -> Extra {
        match self.shown_when().map(|when| time::period(when.over)) {
            None => Extra::Nothing,
            Some(None) => Extra::Panel,
            Some(Some(_)) => Extra::Heat,
        }
    }
}

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const TREE: &str = include_str!("tree.js");
const APP: &str = include_str!("app.js");
/// Of the time panel, which not all pages have.
const PANEL: &str = include_str!("panel.html");
const PANEL_STYLE: &str = include_str!("panel.css");
const TIME: &str = include_str!("time.js");
const PANEL_SCRIPT: &str = include_str!("panel.js");
/// Where that goes in the page's own function.
const PANEL_PLACE: &str = "  // panel.js\n";
/// Of the heat map, which not all panels have.
const HEAT_STYLE: &str = include_str!("heat.css");
const HEAT_SCRIPT: &str = include_str!("heat.js");
/// Where that goes in the panel.
const HEAT_PLACE: &str = "  // heat.js\n";

/// What a page has besides the graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Extra {
    Nothing,
    Panel,
    /// The panel with its heat map.
    Heat,
}

/// Whether a file that begins so is a page made here.
#[must_use]
pub fn is_ours(beginning: &[u8]) -> bool {
    memchr::memmem::find(beginning, b"name=\"generator\" content=\"pjit ").is_some()
}

/// Writes the page.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(content: &Content<'_>, options: &PageOptions, out: &mut dyn Write) -> io::Result<()> {
    let title = title(content, options);
    let extra = content.extra();
    let style = style(extra);
    let script = script(extra);
    // What is put in is not looked through again.
    for (at, piece) in PAGE.split('@').enumerate() {
        if at.is_multiple_of(2) {
            out.write_all(piece.as_bytes())?;
            continue;
        }
        let text = match piece {
            "generator" => concat!("pjit ", env!("CARGO_PKG_VERSION")).to_owned(),
            "title" => escaped(&title).into_owned(),
            "lines" => escaped(&lines(content, options)).into_owned(),
            "command" => {
                let command = content.caption.command().unwrap_or_default();
                escaped(&shortened(command, 1000)).into_owned()
            }
            "style" => style.clone(),
            "style hash" => hash(&style),
            "script" => script.clone(),
            "script hash" => hash(&script),
            "panel" if extra > Extra::Nothing => PANEL.to_owned(),
            "panel" => String::new(),
            "noscript" => top_table(content),
            "data" => packed(content, options)?,
            _ => piece.to_owned(),
        };
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// What the page's policy calls the only script, and the only style, by their text behind the line end of the tag: a name of a
/// recording that became a script by some mistake would not run.
fn hash(text: &str) -> String {
    let digest = Sha256::new().chain_update("\n").chain_update(text);
    format!("sha256-{}", base64(&digest.finalize()))
}

fn packed(content: &Content<'_>, options: &PageOptions) -> io::Result<String> {
    let mut bytes = Vec::new();
    gzip::write(
        &data::bytes(content, options),
        options.threads,
        gzip::Effort::OfPage.for_functions(content.profile.symbols.len()),
        &mut bytes,
    )?;
    Ok(base64(&bytes))
}

fn title(content: &Content<'_>, options: &PageOptions) -> String {
    let made = || content.caption.title(160);
    let title = options.title.clone().unwrap_or_else(made);
    shown(&title).into_owned()
}

fn lines(content: &Content<'_>, options: &PageOptions) -> String {
    let caption = content.caption;
    let facts = options.subtitle.clone();
    let facts = facts.unwrap_or_else(|| caption.whole());
    format!("{} · {}", shown(&facts), caption.quality)
}

fn style(extra: Extra) -> String {
    let parts = [
        (STYLE, Extra::Nothing),
        (PANEL_STYLE, Extra::Panel),
        (HEAT_STYLE, Extra::Heat),
    ];
    let parts = parts.iter().filter(|(_, of)| extra >= *of);
    parts.map(|(style, _)| squeezed(style)).collect()
}

/// The page's script.
fn script(extra: Extra) -> String {
    if extra == Extra::Nothing {
        return script_of(TREE) + &script_of(APP);
    }
    let heat = if extra == Extra::Heat {
        HEAT_SCRIPT
    } else {
        ""
    };
    let panel = PANEL_SCRIPT.replace(HEAT_PLACE, heat);
    script_of(TREE) + &script_of(TIME) + &script_of(&APP.replace(PANEL_PLACE, &panel))
}

/// A script without indentation and comments, and without blanks and line ends where none is needed outside of texts.
fn script_of(text: &str) -> String {
    const SIGNS: [(&str, &str); 13] = [
        (" + ", "+"),
        (" - ", "-"),
        (" / ", "/"),
        (" <= ", "<="),
        (" -= ", "-="),
        (" >> ", ">>"),
        (" % ", "%"),
        ("while (", "while("),
        (" (", "("),
        (" [", "["),
        (" {", "{"),
        (") ", ")"),
        ("] ", "]"),
    ];
    let lines = squeezed(text);
    let mut goes_on = false;
    lines.lines().fold(String::new(), |mut all, line| {
        let is_const = is_const(line);
        if is_const && goes_on {
            all.pop();
            all.push(',');
        }
        if line.starts_with('}') {
            let end = all.trim_end_matches('\n').len();
            all.truncate(end);
            if all.ends_with(';') {
                all.pop();
            }
        }
        let line = match line.strip_prefix("const ") {
            Some(rest) if is_const && goes_on => rest,
            _ => line,
        };
        goes_on = is_const;
        push_short(line, &SIGNS, &mut all);
        // What ends so goes on in the next line whatever is between.
        if !line.ends_with(['{', ';', ',']) {
            all.push('\n');
        }
        all
    })
}

/// Whether a line is one declaration of constants and nothing else, so that the next such line can go on with it.
fn is_const(line: &str) -> bool {
    let count = |signs: &[char]| line.matches(signs).count();
    line.starts_with("const ")
        && line.ends_with(';')
        && count(&[';']) == 1
        && count(&['(', '[', '{']) == count(&[')', ']', '}'])
}

/// The script or the style without indentation and comments, and without blanks around signs outside of texts.
fn squeezed(text: &str) -> String {
    const SIGNS: [(&str, &str); 21] = [
        (" = ", "="),
        (" => ", "=>"),
        (" === ", "==="),
        (" && ", "&&"),
        (" || ", "||"),
        (" ? ", "?"),
        (" : ", ":"),
        (" < ", "<"),
        (" > ", ">"),
        (" * ", "*"),
        (" >= ", ">="),
        (" += ", "+="),
        (", ", ","),
        ("; ", ";"),
        (") {", "){"),
        ("{ ", "{"),
        (" }", "}"),
        (" !== ", "!=="),
        (": ", ":"),
        ("if (", "if("),
        ("for (", "for("),
    ];
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.fold(String::with_capacity(text.len()), |mut all, line| {
        push_short(line, &SIGNS, &mut all);
        all.push('\n');
        all
    })
}

/// A line without blanks around signs, but for its texts; as it is where it has texts of another kind.
fn push_short(line: &str, signs: &[(&str, &str)], all: &mut String) {
    if line.contains(['"', '\\']) {
        all.push_str(line);
        return;
    }
    let short = |line: String, (long, short): &(&str, &str)| line.replace(long, short);
    let mut rest = line;
    while !rest.is_empty() {
        let code = rest.find(['\'', '`']).unwrap_or(rest.len());
        all.push_str(&signs.iter().fold(rest[..code].to_owned(), short));
        let text = &rest[code..];
        let Some(quote) = text.chars().next() else {
            break;
        };
        // What is put into a text has quotes of the other kind.
        let end = text[1..].find(quote).map_or(text.len(), |end| end + 2);
        all.push_str(&text[..end]);
        rest = &text[end..];
    }
}

fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['<', '>', '&', '"', '\'']) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// The functions with the largest own weight, for readers without JavaScript: people, `grep`, programs.
fn top_table(content: &Content<'_>) -> String {
    const MOST: usize = 20;
    let Content { flame, weights, .. } = content;
    let mut own: IndexVec<FunctionId, u64> = index_vec![0_u64; flame.functions.len()];
    for (node, weight) in flame.nodes.iter().zip(&weights.own).skip(1) {
        let sum = &mut own[node.function];
        *sum = sum.saturating_add(*weight);
    }
    let all = weights.total.first().copied().unwrap_or(0).max(1);
    let is_function = |f: &usize| own[*f] > 0 && flame.functions[*f].kind != Kind::Comm;
    let mut order: Vec<usize> = (0..own.len()).filter(is_function).collect();
    order.sort_by_key(|f| std::cmp::Reverse(own[*f]));
    let mut html = String::from("<table><tr><th>Self</th><th>Function</th><th>Object</th></tr>\n");
    for f in order.into_iter().take(MOST) {
        let function = &flame.functions[f];
        let object = function.object.map_or("", |object| &flame.objects[object]);
        html.push_str(&format!(
            "<tr><td>{:.2}%</td><td>{}</td><td>{}</td></tr>\n",
            100.0 * own[f] as f64 / all as f64,
            escaped(&shortened(&function.name, 300)),
            escaped(&shortened(object, 100)),
        ));
    }
    html + "</table>"
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            text.push(if digit <= three.len() {
                char::from(DIGITS[value as usize])
            } else {
                '='
            });
        }
    }
    text
}

/// The word by which the page knows a unit.
fn unit_word(profile: &Profile, event: EventId) -> &'static str {
    match profile[event].unit {
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "B",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xff, 0xef, 0xbe]), "/+++");
    }

    #[test]
    fn the_page_keeps_to_its_size() {
        assert_eq!(APP.matches(PANEL_PLACE).count(), 1);
        assert_eq!(PANEL_SCRIPT.matches(HEAT_PLACE).count(), 1);
        for (extra, most) in [
            (Extra::Nothing, 32 * 1024),
            (Extra::Panel, 41 * 1024),
            (Extra::Heat, 44 * 1024),
        ] {
            let bytes = script(extra).len();
            assert!(bytes <= most, "{bytes} bytes of script");
        }
        assert!(style(Extra::Heat).len() <= 7 * 1024);
        for script in [APP, TIME, PANEL_SCRIPT, HEAT_SCRIPT] {
            for word in ["innerHTML", "insertAdjacent", "eval("] {
                assert!(!script.contains(word), "{word}");
            }
        }
        assert!(!PAGE.contains("unsafe"), "the policy names what may run");
        assert!(PAGE.matches('@').count().is_multiple_of(2));
    }

    #[test]
    fn what_is_put_into_the_document_is_no_element() {
        assert_eq!(
            escaped("</script><b a='\"&"),
            "&lt;/script&gt;&lt;b a=&#39;&quot;&amp;"
        );
    }
}
