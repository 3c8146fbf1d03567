//! The interactive page: one file that fetches nothing, with all nodes of the tree in it.
//!
//! In: a tree and its caption. The page's own text is in `page.html`, `style.css`, `tree.js` (what is computed of the tree) and
//! `app.js` (the document) beside this file; `scripts/page` makes them small, into `made`. Data is one JSON object, compressed and
//! in base64, so that no name of a recording is ever read as HTML; the page puts names into the document as text only.

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
use super::text::markup;
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
/// The time panel, which not all pages have.
const PANEL: &str = include_str!("panel.html");

/// What a page has besides the graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Extra {
    Nothing,
    Panel,
    /// The panel with its heat map.
    Heat,
}

impl Extra {
    /// The page's script, as `scripts/page` made it.
    const fn script(self) -> &'static str {
        match self {
            Self::Nothing => include_str!("made/plain.js"),
            Self::Panel => include_str!("made/panel.js"),
            Self::Heat => include_str!("made/heat.js"),
        }
    }

    /// The page's style, likewise.
    const fn style(self) -> &'static str {
        match self {
            Self::Nothing => include_str!("made/plain.css"),
            Self::Panel => include_str!("made/panel.css"),
            Self::Heat => include_str!("made/heat.css"),
        }
    }
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
    let (style, script) = (extra.style(), extra.script());
    // What is put in is not looked through again.
    for (at, piece) in PAGE.split('@').enumerate() {
        if at.is_multiple_of(2) {
            out.write_all(piece.as_bytes())?;
            continue;
        }
        let text = match piece {
            "generator" => concat!("pjit ", env!("CARGO_PKG_VERSION")).to_owned(),
            "title" => escaped(&title),
            "lines" => escaped(&lines(content, options)),
            "command" => {
                let command = content.caption.command().unwrap_or_default();
                escaped(&shortened(command, 1000))
            }
            "style" => style.to_owned(),
            "style hash" => hash(style),
            "script" => script.to_owned(),
            "script hash" => hash(script),
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

/// Markup in which apostrophes are escaped, too.
fn escaped(text: &str) -> String {
    markup(text).replace('\'', "&#39;")
}

/// The functions with the largest own weight, for readers without JavaScript: people, `grep`, programs.
fn top_table(content: &Content<'_>) -> String {
    const MOST: usize = 20;
    let Content { flame, weights, .. } = content;
    let mut own: IndexVec<FunctionId, u64> = index_vec![0_u64; flame.functions.len()];
    let same = flame.united();
    for (node, weight) in flame.nodes.iter().zip(&weights.own).skip(1) {
        let sum = &mut own[same[node.function]];
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
        for (extra, [script, style]) in [
            (Extra::Nothing, [24 * 1024, 5 * 1024]),
            (Extra::Panel, [33 * 1024, 6 * 1024]),
            (Extra::Heat, [35 * 1024, 7 * 1024]),
        ] {
            let bytes = [extra.script().len(), extra.style().len()];
            assert!(bytes[0] <= script && bytes[1] <= style, "{bytes:?} bytes");
            for word in ["innerHTML", "insertAdjacent", "eval(", "</script", "<!--"] {
                assert!(!extra.script().contains(word), "{word}");
            }
            assert!(!extra.style().contains("</"));
        }
        assert!(!PAGE.contains("unsafe"), "the policy names what may run");
        assert!(PAGE.matches('@').count().is_multiple_of(2));
    }

    #[test]
    fn what_was_made_is_made_of_these_sources() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/output/html");
        let lines = include_str!("made/sources.sha256").lines();
        let mut known: Vec<&str> = lines
            .map(|line| {
                let (sum, name) = line.split_once("  ./").expect("a sum and a name");
                let text = std::fs::read(folder.join(name)).expect("a source");
                let digest = Sha256::digest(text);
                let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                assert_eq!(hex, sum, "{name} is newer: run scripts/page");
                name
            })
            .collect();
        known.sort_unstable();
        let files = std::fs::read_dir(folder).expect("a folder");
        let names = files.map(|file| file.expect("an entry").file_name());
        let names = names.map(|name| name.into_string().expect("a name"));
        let mut sources: Vec<String> = names
            .filter(|name| name.ends_with(".js") || name.ends_with(".css"))
            .collect();
        sources.sort_unstable();
        assert_eq!(known, sources);
    }

    #[test]
    fn what_is_put_into_the_document_is_no_element() {
        assert_eq!(
            escaped("</script><b a='\"&"),
            "&lt;/script&gt;&lt;b a=&#39;&quot;&amp;"
        );
    }
}
