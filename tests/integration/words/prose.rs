//! Lengths of sentences, and stiff words.

use std::path::Path;

use regex::Regex;

use super::{read, texts};

/// Words and turns that the best READMEs nearly never have. Each is counted once a place.
const STIFF: &[&str] = &[
    r"beside\b",
    r"besides\b",
    r"behind\b",
    r"in place of\b",
    r"of late\b",
    r"there (?:stands?|lies|come|comes)\b",
    r"(?:stands?|lies|lay) (?:in|at|beyond|there|further|under|where)\b",
    r"what (?:lies|stands|comes|it takes|is (?:installed|missing|given|recorded|left|shown))\b",
    r"that of\b",
    r"those (?:of|that|which|with|without|in)\b",
    r"for \w+'s sake\b",
    r"as you like\b",
    r"(?:tells?|told) (?:of|how|what|where|which|whether|by|without|from|in|the|header)\b",
    r"say(?:s|ing)? so\b",
    r"nobody\b",
    r"somebody\b",
    r"by (?:itself|themselves)\b",
    r"of (?:its|their) own\b",
    r"be it\b",
    r"thereof\b",
    r"thereby\b",
    r"wherein\b",
    r"whereby\b",
    r"whence\b",
    r"hence\b",
    r"namely\b",
    r"likewise\b",
    r"in turn\b",
    r"so many\b",
    r"so much\b",
    r"deceiv\w+",
    r"(?:is|are) to be\b",
    r"may be (?:given|had|said)\b",
    r"falls? short\b",
    r"at (?:most|least)(?:[.,;)]|$)",
    r"whatsoever\b",
    r"upon\b",
    r"c(?:omes?|ame) out\b",
    r"(?:to|of|from|by) which\b",
    r"on purpose\b",
    r"fit for\b",
    r"take(?:s|n)? for\b",
    r"gone there\b",
    r"with regard to\b",
    r"as regards\b",
];

/// Limits of a text: words a sentence in the median, of nine in ten, of the longest; stiff words in a thousand.
#[derive(Clone, Copy)]
pub(crate) struct Limits(
    pub(crate) usize,
    pub(crate) usize,
    pub(crate) usize,
    pub(crate) f64,
);

/// What is counted of a text.
#[derive(Default)]
pub(crate) struct Measure {
    /// Words of each sentence, with the sentence.
    sentences: Vec<(usize, String)>,
    stiff: Vec<String>,
}

struct Patterns {
    stiff: Regex,
    word: Regex,
    end: Regex,
    short: Regex,
    code: Regex,
    image: Regex,
    link: Regex,
    tag: Regex,
    address: Regex,
    bullet: Regex,
    option: Regex,
    command: Regex,
}

impl Patterns {
    fn new() -> Self {
        let of = |text: &str| Regex::new(text).expect("a valid expression");
        Self {
            stiff: of(&format!(r"(?i)\b(?:{})", STIFF.join("|"))),
            word: of(r"[A-Za-z0-9_'’][\w'’./+-]*"),
            end: of(r#"[.!?]["')\]]*\s"#),
            short: of(r"\b(?:e\.g|i\.e|etc|vs|cf|approx|no)\.$"),
            code: of(r"`+[^`]*`+"),
            image: of(r"!\[[^]]*\]\([^)]*\)"),
            link: of(r"\[([^]]*)\](?:\([^)]*\)|\[[^]]*\])"),
            tag: of(r"<[^>]+>"),
            address: of(r"https?://\S+"),
            bullet: of(r"^\s*(?:[-*+]|\d+[.)])\s+"),
            option: of(r"^\s+(?:-\S|<|\[)"),
            command: of(r"^\s+(?:pjit|perf|ssh|sudo|\$) "),
        }
    }

    /// Paragraphs and items of lists, without code, tables and headings.
    fn paragraphs(&self, text: &str, is_markdown: bool) -> Vec<String> {
        let mut found = Vec::new();
        let mut block: Vec<String> = Vec::new();
        let mut is_fenced = false;
        let (mut after_blank, mut is_listed) = (true, false);
        for line in text.lines().chain([""]) {
            let mut bare = line.trim();
            if is_markdown && bare.starts_with("```") {
                is_fenced = !is_fenced;
                bare = "";
            } else if is_fenced {
                continue;
            }
            let is_code = line.starts_with("    ") && after_blank && !is_listed;
            let is_skipped = is_markdown
                && (is_code
                    || ["|", "#", "<", "[!", "![", "---"]
                        .iter()
                        .any(|with| bare.starts_with(with)));
            let is_head = !is_markdown
                && (bare.ends_with(':') && bare.len() < 40
                    || bare.starts_with("Usage")
                    || self.command.is_match(line));
            let bullet = self.bullet.find(line);
            let is_option = !is_markdown && self.option.is_match(line);
            if (bare.is_empty() || is_skipped || is_head || bullet.is_some() || is_option)
                && !block.is_empty()
            {
                found.push(std::mem::take(&mut block).join(" "));
            }
            if !bare.is_empty() && !is_skipped && !is_head {
                let words = match bullet {
                    _ if is_option => bare.split_once("  ").map_or("", |(_, help)| help.trim()),
                    Some(mark) => &line[mark.end()..],
                    None => bare,
                };
                block.push(words.trim().to_owned());
            }
            is_listed = bullet.is_some() || is_listed && (bare.is_empty() || line.starts_with(' '));
            after_blank = bare.is_empty() || is_skipped && after_blank;
        }
        found
    }

    fn clean(&self, prose: &str) -> String {
        let prose = self.image.replace_all(prose, "");
        let prose = self.tag.replace_all(&prose, "");
        let prose = self.link.replace_all(&prose, "$1");
        let prose = self.code.replace_all(&prose, "CODE");
        self.address.replace_all(&prose, "ADDRESS").replace('*', "")
    }

    fn sentences<'p>(&self, prose: &'p str) -> Vec<&'p str> {
        let mut found = Vec::new();
        let mut begin = 0;
        for end in self.end.find_iter(prose) {
            if !self.short.is_match(&prose[begin..=end.start()]) {
                found.push(&prose[begin..end.end()]);
                begin = end.end();
            }
        }
        found.push(&prose[begin..]);
        found
    }
}

impl Measure {
    /// Of a text in Markdown, or as help prints it.
    pub(crate) fn of(text: &str, is_markdown: bool) -> Self {
        let patterns = Patterns::new();
        let mut measure = Self::default();
        for paragraph in patterns.paragraphs(text, is_markdown) {
            let prose = patterns.clean(&paragraph);
            let stiff = patterns.stiff.find_iter(&prose);
            measure
                .stiff
                .extend(stiff.map(|found| found.as_str().to_owned()));
            for sentence in patterns.sentences(&prose) {
                let words = patterns.word.find_iter(sentence).count();
                if words > 1 {
                    measure.sentences.push((words, sentence.trim().to_owned()));
                }
            }
        }
        measure.sentences.sort();
        measure
    }

    fn at(&self, tenths: usize) -> usize {
        let rank = (self.sentences.len() * tenths).div_ceil(10).max(1) - 1;
        self.sentences.get(rank).map_or(0, |(words, _)| *words)
    }

    fn stiff_of_thousand(&self) -> f64 {
        let words: usize = self.sentences.iter().map(|(words, _)| words).sum();
        1000.0 * self.stiff.len() as f64 / words.max(1) as f64
    }

    /// What is above the limits; nothing if all is well.
    pub(crate) fn above(&self, limits: Limits) -> Vec<String> {
        let Limits(median, most, longest, stiff) = limits;
        let mut found = Vec::new();
        for (tenths, limit, what) in [
            (5, median, "median"),
            (9, most, "90 %"),
            (10, longest, "longest"),
        ] {
            let words = self.at(tenths);
            if words > limit {
                found.push(format!("{what} {words} above {limit}"));
            }
        }
        if let Some((words, sentence)) = self.sentences.last().filter(|(words, _)| *words > longest)
        {
            found.push(format!("{words} words: {sentence}"));
        }
        if self.stiff_of_thousand() > stiff {
            found.push(format!(
                "{:.1} stiff in 1000: {:?}",
                self.stiff_of_thousand(),
                self.stiff
            ));
        }
        found
    }
}

#[test]
fn what_is_counted() {
    let measure = Measure::of(
        "# A heading beside\n\nOne two `three four` five. Six\nseven!\n\n    code beside\n\n| a | behind |\n\n- An item of which e.g. little is known\n",
        true,
    );
    let words: Vec<usize> = measure.sentences.iter().map(|(words, _)| *words).collect();
    assert_eq!(words, [2, 4, 8]);
    assert_eq!(measure.stiff, ["of which"]);
    assert_eq!((measure.at(5), measure.at(9), measure.at(10)), (4, 8, 8));
    assert!(!measure.above(Limits(3, 8, 8, 100.0)).is_empty());
    assert!(!measure.above(Limits(4, 8, 8, 2.0)).is_empty());
    assert!(measure.above(Limits(4, 8, 8, 100.0)).is_empty());
    let help = "Usage: pjit beside\n\n  -o, --output <FILE>  Write to FILE\n                       and no more\n";
    let measure = Measure::of(help, false);
    assert_eq!(
        measure.sentences,
        [(6, "Write to FILE and no more".to_owned())]
    );
}

/// A little above what the READMEs and pages of the tools that people like most have.
#[test]
fn sentences_are_short_and_words_plain() {
    let mut wrong = Vec::new();
    for path in texts() {
        let limits = match path.to_str() {
            Some("README.md") => Limits(12, 24, 36, 2.0),
            _ => Limits(14, 26, 45, 2.0),
        };
        let above = Measure::of(&read(&path), true).above(limits);
        wrong.extend(
            above
                .into_iter()
                .map(|what| format!("{}: {what}", path.display())),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Prose, tables and headings. What is shown of an output is as wide as it is.
#[test]
fn lines_fit_in_100_columns() {
    let mut wrong = Vec::new();
    for path in texts() {
        let mut is_fenced = false;
        for (number, line) in read(&path).lines().enumerate() {
            is_fenced ^= line.starts_with("```");
            let is_block = is_fenced || line.starts_with("    ");
            if line.chars().count() > 100 && !is_block {
                wrong.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_readme_fits_a_few_screens() {
    let text = read(Path::new("README.md"));
    assert!(
        text.lines().count() <= 130,
        "{} lines",
        text.lines().count()
    );
    let picture = text.lines().position(|line| line.starts_with("!["));
    assert!(
        picture.is_some_and(|line| line < 15),
        "a picture on the first screen"
    );
}

/// A page begins with the question that it answers, and a command.
#[test]
fn pages_open_with_a_question_and_a_command() {
    for path in texts()
        .iter()
        .filter(|path| path.parent() == Some(Path::new("docs")))
    {
        let text = read(path);
        let mut lines = text.lines().filter(|line| !line.is_empty());
        let heading = lines.next().unwrap_or_default();
        assert!(
            heading.starts_with("# ") && heading.trim_end_matches('`').ends_with('?'),
            "{}: {heading}",
            path.display()
        );
        let command = lines.next().unwrap_or_default();
        assert!(command.starts_with("    "), "{}: {command}", path.display());
    }
}
