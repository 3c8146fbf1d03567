//! Flame graphs as SVG, drawn by `inferno`.
//!
//! In: a tree and its weights. inferno takes lines of text and draws every frame as four elements, so it gets only what a
//! picture has room for; what is left out is drawn as one grey frame for each caller, that it is not taken for the
//! caller's own weight. Names cannot break lines, frames or XML.

use std::borrow::Cow;
use std::io::{self, Write};

pub use inferno::flamegraph::color::{BackgroundColor, Palette};
use inferno::flamegraph::color::{Color, PaletteMap};
use inferno::flamegraph::{self, Direction, TextTruncateDirection};

use crate::flame::{
    ColorBy, Comparison, Finding, Findings, Flame, Kind, NodeId, Pruned, RUNTIME, Shape, Weights,
};
use crate::ids::{Idx, IndexVec, index_vec};

use super::caption::{Caption, grouped, shortened};
use super::text::markup;

/// How to draw.
#[derive(Clone, Debug, Default)]
pub struct SvgOptions {
    /// Instead of what was recorded.
    pub title: Option<String>,
    /// Instead of event, samples and total.
    pub subtitle: Option<String>,
    /// A comment inside the file.
    pub notes: Option<String>,
    /// Width in pixels; as wide as there is room if not given.
    pub width: Option<usize>,
    /// Height of a frame in pixels.
    pub height: Option<usize>,
    /// Size of the text in pixels.
    pub font_size: Option<usize>,
    /// One of inferno's palettes; colours tell kinds of code apart if not given.
    pub colors: Option<Palette>,
    /// Behind it all.
    pub background: Option<BackgroundColor>,
    /// Similar names in similar colours.
    pub hash: bool,
    /// The root on top; if not given, where the picture is taller than a screen.
    pub inverted: Option<bool>,
    /// What colours tell, if no palette is given.
    pub color_by: Option<ColorBy>,
    /// What is counted, instead of the event's unit.
    pub count_name: Option<String>,
    /// Colours of some names.
    pub palette_map: Option<PaletteMap>,
    /// How two runs are shown. Widths are always those of one.
    pub comparison: Comparison,
}

/// What is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Drawing<'d> {
    /// All of it.
    pub flame: &'d Flame,
    /// What widths are.
    pub weights: &'d Weights,
    /// What it weighs on the other side, and what is known of both.
    pub other: Option<(&'d Weights, &'d Findings)>,
    /// By what weights were multiplied so that parts of one are not lost.
    pub fixed: u64,
    /// What there is room for.
    pub pruned: Pruned,
    /// What it says of itself.
    pub caption: &'d Caption,
    /// Whether weights are nanoseconds.
    pub is_time: bool,
    /// What is counted if they are not.
    pub unit: &'d str,
}

/// The name of the frame that stands for what is left out.
pub const LEFT_OUT: &str = "[…]";
/// How a file made here begins; see [`is_ours`].
const MARK: &str = "pjit flamegraph ";
/// Stands in inferno's output where two lines will.
const SUBTITLE: &str = "pjit-subtitle";
/// Longest name, in characters.
const LONGEST: usize = 600;

/// Whether a file that begins so is a picture made here.
#[must_use]
pub fn is_ours(beginning: &[u8]) -> bool {
    let mark = format!("<!--NOTES: {MARK}");
    memchr::memmem::find(beginning, mark.as_bytes()).is_some()
}

/// Colours of names, a line each: `NAME->rgb(R,G,B)`.
///
/// # Errors
/// When the lines are not text.
pub fn read_palette(mut lines: &[u8]) -> io::Result<PaletteMap> {
    PaletteMap::from_reader(&mut lines)
}

/// Writes the picture.
///
/// # Errors
/// When there is nothing of any weight, or `out` cannot be written.
pub fn write(drawing: &Drawing<'_>, options: &SvgOptions, out: &mut dyn Write) -> io::Result<()> {
    let own = &drawing.weights.own;
    let all: u128 = own.iter().map(|weight| u128::from(*weight)).sum();
    let marks = Marks::of(drawing, options);
    let lines = Lines::of(drawing, marks.as_ref(), shift(all));
    let (factor, count_name) = unit(drawing, all);
    let mut palette = palette(drawing, marks.as_ref(), options);
    let mut inferno = flamegraph::Options::default();
    inferno.title = title(drawing, options);
    inferno.subtitle = Some(SUBTITLE.to_owned());
    inferno.notes = notes(drawing, options);
    inferno.image_width = options.width;
    inferno.deterministic = !options.hash;
    inferno.hash = options.hash;
    inferno.bgcolors = options
        .background
        .or(Some(BackgroundColor::Flat(rgb(0x00f8_f8f8))));
    inferno.palette_map = Some(&mut palette);
    let fixed = drawing.fixed.max(1) as f64;
    inferno.factor = factor * 2_f64.powi(shift(all).cast_signed()) / fixed;
    inferno.count_name = count_name;
    // The least weight is settled; lines come in the order of the tree, backwards as inferno takes those of a chart.
    inferno.min_width = 0.0;
    inferno.flame_chart = true;
    inferno.text_truncate_direction = TextTruncateDirection::Right;
    if let Some(colors) = options.colors {
        inferno.colors = colors;
        inferno.bgcolors = options.background;
    }
    if let Some(height) = options.height {
        inferno.frame_height = height;
    }
    if let Some(size) = options.font_size {
        inferno.font_size = size;
    }
    if let Some(name) = &options.count_name {
        inferno.count_name.clone_from(name);
        inferno.factor = 2_f64.powi(shift(all).cast_signed()) / fixed;
    }
    let rows = drawing.flame.depth(drawing.weights, drawing.pruned.least);
    let is_tall = rows > rows_of_screen(inferno.frame_height);
    if options.inverted.unwrap_or(is_tall) {
        inferno.direction = Direction::Inverted;
    }
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut inferno, lines.backwards(), &mut svg)?;
    if let Some(marks) = &marks {
        svg = marks.told(&svg);
    }
    let head = subtitle(drawing, options, inferno.font_size);
    if drawing.other.is_none() && drawing.caption.command().is_some() {
        svg = with_title_at(&svg, 1.35 * inferno.font_size as f64);
    }
    write_with_subtitle(&svg, &head, out)
}

/// Moves the title up: below it is room for more lines than inferno knows of.
fn with_title_at(svg: &[u8], y: f64) -> Vec<u8> {
    let svg = String::from_utf8_lossy(svg);
    let place = |text: &str| {
        let from = text.find("<text id=\"title\"")?;
        let from = from + text[from..].find(" y=\"")? + " y=\"".len();
        Some((from, from + text[from..].find('"')?))
    };
    match place(&svg) {
        Some((from, to)) => format!("{}{y:.2}{}", &svg[..from], &svg[to..]).into_bytes(),
        None => svg.into_owned().into_bytes(),
    }
}

/// Pixels of a screen's height.
const SCREEN: usize = 900;
/// Height of a frame, as inferno has it.
const FRAME_HEIGHT: usize = 16;

/// Rows of frames of this height that a screen has room for, beside the head.
#[must_use]
pub fn rows_of_screen(height: impl Into<Option<usize>>) -> usize {
    const HEAD: usize = 100;
    (SCREEN - HEAD) / height.into().unwrap_or(FRAME_HEIGHT).max(1)
}

/// inferno adds up 64-bit numbers, of which viewers know 53 bits: by how many powers of two weights are divided.
fn shift(all: u128) -> u32 {
    (128 - all.leading_zeros()).saturating_sub(53)
}

/// By what weights are multiplied to be shown, and what they are then.
fn unit(drawing: &Drawing<'_>, all: u128) -> (f64, String) {
    if !drawing.is_time {
        return (1.0, crate::flame::shown(drawing.unit).into_owned());
    }
    // Shares are those of the rounded numbers: five digits of the largest have to stay.
    match all {
        5_000_000_000.. => (1e-6, "ms".to_owned()),
        5_000_000.. => (1e-3, "µs".to_owned()),
        _ => (1.0, "ns".to_owned()),
    }
}

fn title(drawing: &Drawing<'_>, options: &SvgOptions) -> String {
    let made = || drawing.caption.title(100);
    let title = options.title.clone().unwrap_or_else(made);
    crate::flame::shown(&title).into_owned()
}

/// Made a comment by inferno, in which XML allows no two hyphens in a row.
fn notes(drawing: &Drawing<'_>, options: &SvgOptions) -> String {
    let own = options.notes.as_deref().unwrap_or_default();
    let Caption {
        recorded, quality, ..
    } = drawing.caption;
    let version = env!("CARGO_PKG_VERSION");
    let notes = format!("{MARK}{version}. {own} Recorded: {recorded}. {quality} ");
    let notes = crate::flame::shown(&notes)
        .replace("--", "- -")
        .replace("--", "- -");
    notes.replace("  ", " ")
}

/// Colours of the names that frames have, and of what is left out.
fn palette(drawing: &Drawing<'_>, marks: Option<&Marks<'_>>, options: &SvgOptions) -> PaletteMap {
    let mut palette = PaletteMap::default();
    palette.insert(LEFT_OUT, rgb(0x00d8_d8d8));
    palette.insert("", rgb(kind_color(Kind::Comm)));
    if let Some(marks) = marks {
        for at in 1..drawing.flame.nodes.len() {
            if drawing.weights.total[at] >= drawing.pruned.least {
                palette.insert(marks.word(at), marks.color(at));
            }
        }
        palette.insert("", rgb(GREY));
    }
    for (name, color) in options.palette_map.iter().flat_map(PaletteMap::iter) {
        palette.insert(name, color);
    }
    palette
}

/// A colour, lighter or darker by name, so that neighbours can be told apart.
fn shaded(base: u32, name: &str) -> Color {
    let bytes = name.bytes();
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let base = rgb(base);
    let share = 1.0 - 0.16 * ((hash >> 40) as f32 / (1 << 24) as f32);
    let darker = |part: u8| (f32::from(part) * share) as u8;
    Color {
        r: darker(base.r),
        g: darker(base.g),
        b: darker(base.b),
    }
}

const fn kind_color(kind: Kind) -> u32 {
    match kind {
        Kind::Comm => 0x00d5_d8e0,
        Kind::User => 0x00fb_d37c,
        Kind::Inlined => 0x00a9_d8f5,
        Kind::Jit => 0x008e_dcae,
        Kind::Kernel => 0x00f4_a07f,
    }
}

const fn rgb(color: u32) -> Color {
    Color {
        r: (color >> 16) as u8,
        g: (color >> 8) as u8,
        b: color as u8,
    }
}

/// The function's name in a line: inferno cuts blanks at its ends, takes `# ` at the beginning of a line for a comment and
/// numbers at the end for counts, and the kind from what stands behind it.
fn word(name: &str, kind: Kind) -> String {
    let mut name: Cow<'_, str> = Cow::Borrowed(name);
    if name.len() > LONGEST {
        name = Cow::Owned(shortened(&name, LONGEST));
    }
    let mut word: String = name.into_owned();
    if word.starts_with(char::is_whitespace) || word.ends_with(char::is_whitespace) {
        let inner = word.trim();
        let before = word.find(inner).unwrap_or(0);
        let behind = word.len() - before - inner.len();
        word = format!("{}{inner}{}", "␣".repeat(before), "␣".repeat(behind));
    }
    let is_count = |tail: &str| {
        tail.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    if let Some(at) = word.rfind(' ').filter(|at| is_count(&word[at + 1..])) {
        word.replace_range(at..=at, "\u{a0}");
    }
    if word.starts_with("# ") {
        word.replace_range(1..2, "\u{a0}");
    }
    word.push_str(match kind {
        Kind::Comm | Kind::User => "",
        Kind::Kernel => "_[k]",
        Kind::Jit => "_[j]",
        Kind::Inlined => "_[i]",
    });
    word
}

const GREY: u32 = 0x00e0_e0e0;
/// No name has it: `shown` replaces it. Between two of them is the number of a node.
const SIGN: char = '\u{fffe}';

/// What is told of each node: by its colour, and by the title of its frame. In inferno's lines nodes have numbers behind their
/// names, since one name may have several colours.
enum Marks<'d> {
    Changes(Changes<'d>),
    Painted(Painted<'d>),
}

impl<'d> Marks<'d> {
    /// Nothing where a palette of inferno's makes the colours.
    fn of(drawing: &'d Drawing<'d>, options: &'d SvgOptions) -> Option<Self> {
        if let Some(changes) = Changes::of(drawing, options.comparison) {
            return Some(Self::Changes(changes));
        }
        options.colors.is_none().then(|| {
            Self::Painted(Painted {
                drawing,
                by: color_by(drawing, options),
                named: options.palette_map.as_ref(),
            })
        })
    }

    const fn drawing(&self) -> &'d Drawing<'d> {
        match self {
            Self::Changes(changes) => changes.drawing,
            Self::Painted(painted) => painted.drawing,
        }
    }

    /// The name of a node in a line: with its number.
    fn word(&self, node: usize) -> String {
        let flame = self.drawing().flame;
        let name = flame.label(NodeId::from_usize(node)).unwrap_or_default();
        // Colours tell the kind.
        format!("{}{SIGN}{node}{SIGN}", word(&name, Kind::User))
    }

    fn color(&self, node: usize) -> Color {
        match self {
            Self::Changes(changes) => changes.color(node),
            Self::Painted(painted) => painted.color(node),
        }
    }

    /// What stands behind the weight in the title.
    fn text(&self, node: usize) -> String {
        match self {
            Self::Changes(changes) => changes.text(node),
            Self::Painted(painted) => painted.text(node),
        }
    }

    /// The picture with names as they are, and what is told in the titles.
    fn told(&self, svg: &[u8]) -> Vec<u8> {
        const END: &str = "%)</title>";
        let svg = String::from_utf8_lossy(svg);
        let mut out = String::with_capacity(svg.len());
        for (at, piece) in svg.split("<title>").enumerate() {
            if at > 0 {
                out.push_str("<title>");
            }
            let (title, rest) = match piece.find(END).filter(|_| at > 0) {
                Some(end) => piece.split_at(end),
                None => ("", piece),
            };
            let number = title
                .split(SIGN)
                .nth(1)
                .and_then(|number| number.parse().ok());
            let number = number.or(title.starts_with("all (").then_some(0));
            push_without_numbers(title, &mut out);
            let number = number.filter(|node| *node < self.drawing().flame.nodes.len());
            let text = number.map(|node| self.text(node)).unwrap_or_default();
            if text.is_empty() {
                push_without_numbers(rest, &mut out);
            } else {
                out.push_str("%; ");
                out.push_str(&markup(&text));
                out.push(')');
                push_without_numbers(&rest[END.len() - "</title>".len()..], &mut out);
            }
        }
        out.into_bytes()
    }
}

fn color_by(drawing: &Drawing<'_>, options: &SvgOptions) -> ColorBy {
    match options.color_by {
        Some(by) if !drawing.flame.natures.is_empty() => by,
        Some(_) => ColorBy::Kind,
        None => drawing.flame.usual_colors(),
    }
}

/// Colours of packages and of activities, the heaviest first.
const COLORS: [u32; 8] = [
    0x00fb_d37c,
    0x00a9_d8f5,
    0x008e_dcae,
    0x00dc_bdf2,
    0x00f4_a98c,
    0x00f5_b3d0,
    0x00cb_dc74,
    0x00a8_baf3,
];
/// Of the others, and of what belongs to no package.
const OTHER: u32 = 0x00e6_ddd0;
const NONE: u32 = 0x00d5_d8e0;

/// Names that colours tell, with the colours.
fn colored(flame: &Flame, by: ColorBy) -> Vec<(&str, u32)> {
    let names = match by {
        ColorBy::Package => flame
            .packages
            .split_last()
            .map_or(&[][..], |(_, names)| names),
        ColorBy::Activity => &flame.activities,
        ColorBy::Kind => {
            let kinds = Kind::ALL[1..].iter();
            return kinds
                .map(|kind| (kind.label(), kind_color(*kind)))
                .collect();
        }
    };
    let mut colored: Vec<(&str, u32)> = names.iter().map(String::as_str).zip(COLORS).collect();
    if names.len() > COLORS.len() {
        colored.push(("others", OTHER));
    }
    if by == ColorBy::Package {
        colored.extend(flame.packages.last().map(|name| (name.as_str(), NONE)));
    }
    colored
}

/// Whose nodes are, or what runs there, or what kind of code they are.
struct Painted<'d> {
    drawing: &'d Drawing<'d>,
    by: ColorBy,
    /// Colours that the user gave names.
    named: Option<&'d PaletteMap>,
}

impl Painted<'_> {
    fn color(&self, node: usize) -> Color {
        let flame = self.drawing.flame;
        let function = &flame.functions[flame.nodes[node].function];
        let named = self
            .named
            .and_then(|named| named.get(&word(&function.name, function.kind)));
        if let Some(color) = named {
            return color;
        }
        let nature = flame
            .natures
            .get(NodeId::from_usize(node))
            .copied()
            .unwrap_or_default();
        let numbered = |at: u16| COLORS.get(usize::from(at)).copied().unwrap_or(OTHER);
        let base = match self.by {
            _ if function.kind == Kind::Comm => kind_color(Kind::Comm),
            ColorBy::Package if usize::from(nature.package) + 1 == flame.packages.len() => NONE,
            ColorBy::Package => numbered(nature.package),
            _ if function.name == RUNTIME && function.symbol.is_none() => NONE,
            ColorBy::Activity => numbered(nature.activity),
            ColorBy::Kind => kind_color(function.kind),
        };
        shaded(base, &function.name)
    }

    /// What the recording calls it, whose it is, what runs.
    fn text(&self, node: usize) -> String {
        let flame = self.drawing.flame;
        let Some(function) = flame.function(NodeId::from_usize(node)) else {
            return String::new();
        };
        let mut parts: Vec<String> = function.raw.iter().map(|raw| shortened(raw, 200)).collect();
        if let Some(nature) = flame.natures.get(NodeId::from_usize(node))
            && self.by != ColorBy::Kind
            && function.kind != Kind::Comm
        {
            let of = |names: &[String], at: u16| names.get(usize::from(at)).cloned();
            parts.extend(of(&flame.packages, nature.package));
            parts.extend(of(&flame.activities, nature.activity));
            if function.name == RUNTIME && nature.folded > 0 {
                parts.push(format!("up to {} frames", nature.folded));
            }
        }
        // The picture's script takes what stands in front of the last bracket for the name; these are in no name.
        parts.join(" · ").replace('(', "❨").replace(')', "❩")
    }
}

/// What changed at each node: its colour, and what its title says.
struct Changes<'d> {
    drawing: &'d Drawing<'d>,
    /// New side and base.
    sides: [&'d Weights; 2],
    findings: &'d Findings,
    /// By node: whether a change is below it.
    around: IndexVec<NodeId, bool>,
    negate: bool,
}

impl<'d> Changes<'d> {
    fn of(drawing: &'d Drawing<'d>, comparison: Comparison) -> Option<Self> {
        let (other, findings) = drawing.other?;
        let mut around = index_vec![false; drawing.flame.nodes.len()];
        for (at, node) in drawing.flame.nodes.iter().enumerate().skip(1).rev() {
            if around[at] || findings.of[node.function].way != 0 {
                around[node.parent] = true;
            }
        }
        Some(Self {
            drawing,
            sides: match comparison.shape {
                Shape::Before => [other, drawing.weights],
                Shape::Both | Shape::After => [drawing.weights, other],
            },
            findings,
            around,
            negate: comparison.negate,
        })
    }

    fn finding(&self, node: usize) -> Finding {
        let function = self.drawing.flame.nodes[node].function;
        self.findings
            .of
            .get(function)
            .copied()
            .unwrap_or(Finding::NONE)
    }

    /// Red for more, blue for less, where the test says so; pale around it.
    fn color(&self, node: usize) -> Color {
        let way = self.finding(node).way;
        if way == 0 && !self.around[node] {
            return rgb(GREY);
        }
        let [new, base] = self.sides.map(|side| side.total[node]);
        let is_more = if way == 0 { new >= base } else { way > 0 };
        rgb(match (is_more != self.negate, way == 0) {
            (true, false) => 0x00ff_6464,
            (false, false) => 0x0064_64ff,
            (true, true) => 0x00ff_dcdc,
            (false, true) => 0x00dc_dcff,
        })
    }

    /// `0.70 → 1.05 s, 1.50 times, slower`
    fn text(&self, node: usize) -> String {
        let fixed = self.drawing.fixed.max(1) as f64;
        let [new, base] = self.sides.map(|side| side.total[node] as f64 / fixed);
        let (step, unit) = match new.max(base) {
            _ if !self.drawing.is_time => (1.0, String::new()),
            most if most >= 1e9 => (1e9, " s".to_owned()),
            most if most >= 1e6 => (1e6, " ms".to_owned()),
            _ => (1e3, " µs".to_owned()),
        };
        let digits = if self.drawing.is_time { 2 } else { 0 };
        let times = match (new > 0.0, base > 0.0) {
            (true, true) => format!(", {:.2} times", new / base),
            (true, false) => ", new here".to_owned(),
            _ => ", vanished".to_owned(),
        };
        let (base, new) = (base / step, new / step);
        let mut text = format!("{base:.digits$} → {new:.digits$}{unit}{times}");
        if node > 0 && self.finding(node) != Finding::NONE {
            text.push_str(&format!(", {}", self.finding(node).word));
        }
        text
    }
}

/// Labels may be cut within a number.
fn push_without_numbers(text: &str, out: &mut String) {
    let mut pieces = text.split(SIGN);
    out.push_str(pieces.next().unwrap_or_default());
    while let Some(number) = pieces.next() {
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        out.push_str(&number[digits..]);
        out.push_str(
            pieces
                .next()
                .filter(|_| digits == number.len())
                .unwrap_or_default(),
        );
    }
}

/// The lines that inferno gets.
struct Lines {
    text: String,
    ends: Vec<usize>,
}

impl Lines {
    fn of(drawing: &Drawing<'_>, marks: Option<&Marks<'_>>, shift: u32) -> Self {
        let Drawing { flame, weights, .. } = *drawing;
        let least = drawing.pruned.least;
        let mut left_out: IndexVec<NodeId, u64> = index_vec![0_u64; flame.nodes.len()];
        for (at, node) in flame.nodes.iter().enumerate().skip(1) {
            let parent = node.parent.index();
            if weights.total[at] < least && weights.total[parent] >= least {
                left_out[parent] = left_out[parent].saturating_add(weights.total[at]);
            }
        }
        let mut lines = Self {
            text: String::new(),
            ends: Vec::new(),
        };
        let mut path = String::new();
        // Nodes that the path leads to, and its length before each.
        let mut open: Vec<(NodeId, usize)> = Vec::new();
        for (at, node) in flame.nodes.iter().enumerate().skip(1) {
            if weights.total[at] < least {
                continue;
            }
            while let Some((last, len)) = open.pop_if(|(last, _)| *last != node.parent) {
                lines.push_left_out(&path, left_out[last] >> shift);
                path.truncate(len);
            }
            open.push((NodeId::from_usize(at), path.len()));
            if !path.is_empty() {
                path.push(';');
            }
            match marks {
                Some(marks) => path.push_str(&marks.word(at)),
                None => {
                    let kind = flame.functions[node.function].kind;
                    let label = flame.label(NodeId::from_usize(at));
                    path.push_str(&word(&label.unwrap_or_default(), kind));
                }
            }
            lines.push(&path, weights.own[at] >> shift);
        }
        while let Some((last, len)) = open.pop() {
            lines.push_left_out(&path, left_out[last] >> shift);
            path.truncate(len);
        }
        lines.push_left_out(&path, left_out[0] >> shift);
        lines
    }

    fn push_left_out(&mut self, path: &str, weight: u64) {
        if path.is_empty() {
            self.push(LEFT_OUT, weight);
        } else if weight > 0 {
            self.push(&format!("{path};{LEFT_OUT}"), weight);
        }
    }

    fn push(&mut self, path: &str, weight: u64) {
        if weight > 0 && !path.is_empty() {
            self.text.push_str(path);
            self.text.push_str(&format!(" {weight}"));
            self.ends.push(self.text.len());
        }
    }

    fn backwards(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let lines: Vec<&str> = starts
            .zip(&self.ends)
            .map(|(start, end)| &self.text[start..*end])
            .collect();
        lines.into_iter().rev()
    }
}

/// What the colours of a difference mean.
fn change_legend(comparison: Comparison) -> String {
    let (mut more, mut less) = ("#ff6464", "#6464ff");
    if comparison.negate {
        std::mem::swap(&mut more, &mut less);
    }
    let entry = |color, word| format!("  <tspan fill=\"{color}\">■</tspan> {word}");
    entry(more, "more") + &entry(less, "less") + ", pale around it"
}

/// Two lines of XML below the title: what is shown, with a legend, and how far it can be trusted.
fn subtitle(drawing: &Drawing<'_>, options: &SvgOptions, font_size: usize) -> String {
    let Drawing {
        caption, pruned, ..
    } = drawing;
    let mut first = match &options.subtitle {
        Some(text) => crate::flame::shown(text).into_owned(),
        None => shortened(&caption.shown, 120),
    };
    let left_out = (pruned.left_out > 0).then(|| {
        let frames = grouped(pruned.left_out as u64);
        format!("left out below {:.3}%: {frames} frames", pruned.percent)
    });
    let mut second = String::new();
    // The text of a difference is longer: what did not fit in one line was cut off at both ends.
    match drawing.other {
        Some((_, findings)) => {
            let said = caption.said.iter();
            for part in said.chain(&findings.note).chain(&left_out) {
                second.push_str(&format!("{part} · "));
            }
        }
        None => first.extend(left_out.iter().map(|text| format!(" · {text}"))),
    }
    let room = 160_usize.saturating_sub(second.chars().count()).max(40);
    second.push_str(&shortened(&caption.quality, room));
    if !caption.others.is_empty() {
        let others = caption.others.join(", ");
        second.push_str(&format!(" · not shown: {}", shortened(&others, 60)));
    }
    let mut legend = String::new();
    if drawing.other.is_some() {
        legend = change_legend(options.comparison);
    } else if options.colors.is_none() {
        for (label, color) in colored(drawing.flame, color_by(drawing, options)) {
            legend.push_str(&format!(
                "  <tspan fill=\"#{color:06x}\" stroke=\"#555\" stroke-width=\"0.5\">■</tspan> "
            ));
            legend.push_str(&markup(&shortened(label, 18)));
        }
    }
    let mut xml = String::new();
    let mut line = |y: f64, size: f64, text: &str, more: &str| {
        let (y, size) = (y * font_size as f64, size * font_size as f64);
        xml.push_str(&format!(
            "<tspan x=\"50%\" y=\"{y:.2}\" font-size=\"{size:.1}\">"
        ));
        xml.push_str(&markup(text));
        xml.push_str(more);
        xml.push_str("</tspan>");
    };
    match (caption.command(), drawing.other) {
        (Some(command), None) => {
            line(2.25, 0.75, &shortened(command, 200), "");
            line(3.1, 0.85, &first, "");
            line(4.0, 0.85, "", &legend);
            line(4.83, 0.78, &second, "");
        }
        _ => {
            line(3.45, 1.0, &first, &legend);
            line(4.65, 1.0, &second, "");
        }
    }
    xml
}

fn write_with_subtitle(svg: &[u8], head: &str, out: &mut dyn Write) -> io::Result<()> {
    // As text it would be escaped, so the first one is inferno's element.
    let mark = format!(">{SUBTITLE}<");
    let Some(at) = memchr::memmem::find(svg, mark.as_bytes()) else {
        return out.write_all(svg);
    };
    out.write_all(&svg[..=at])?;
    out.write_all(head.as_bytes())?;
    out.write_all(&svg[at + mark.len() - 1..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flame::{Limit, Options, build, prune};
    use crate::report::testing::ProfileBuilder;

    fn draw(stacks: &[(&str, &str, u64)]) -> String {
        let mut builder = ProfileBuilder::default();
        for (comm, stack, period) in stacks {
            builder.sample(comm, stack, *period);
        }
        let profile = builder.finish();
        let flame = build(&profile, &Options::default());
        let weights = flame.weights(|cell| cell.period);
        let limit = Limit {
            percent: 0.0,
            frames: None,
        };
        let drawing = Drawing {
            flame: &flame,
            weights: &weights,
            other: None,
            fixed: 1,
            pruned: prune(&flame, &weights, limit),
            caption: &Caption::of(&profile, crate::profile::EventId(0)),
            is_time: false,
            unit: "cycles",
        };
        let mut out = Vec::new();
        write(&drawing, &SvgOptions::default(), &mut out).expect("it draws");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn names_cannot_end_lines_frames_or_elements() {
        let svg = draw(&[
            (
                "# x",
                "</script><script>alert(1)</script>;\u{7}\u{1b}[31m;main 12",
                3,
            ),
            ("# x", " padded ;a\u{202e}b\u{ffff};main 12", 4),
            ("", "-->;]]>;f 1 2", 5),
            ("-", "f_[k]", 2),
        ]);
        let mut reader = quick_xml::Reader::from_str(&svg);
        let mut titles = 0;
        loop {
            match reader.read_event().expect("well-formed") {
                quick_xml::events::Event::Eof => break,
                quick_xml::events::Event::Start(e) if e.name().as_ref() == b"title" => titles += 1,
                _ => {}
            }
        }
        // Each name once, the comms, and everything.
        assert_eq!(titles, 13, "{svg}");
        let is_control =
            |c: char| c.is_control() && c != '\n' || c == '\u{202e}' || c == '\u{ffff}';
        assert!(!svg.contains(is_control));
        let total = "all (14 cycles, 100%)";
        assert!(svg.contains(total) && svg.contains("main\u{a0}12 (7 cycles, 50.00%)"));
    }

    #[test]
    fn weights_beyond_what_can_be_added_up_are_divided() {
        let svg = draw(&[("x", "a;main", u64::MAX / 2), ("x", "b;main", u64::MAX / 4)]);
        assert!(svg.contains(", 66.67%)"));
        let sum = svg
            .split("total_samples=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        let sum: u64 = sum.and_then(|sum| sum.parse().ok()).expect("a number");
        assert!(sum < 1 << 53);
    }

    #[test]
    fn long_names_are_shortened() {
        let name = "x".repeat(65_536);
        let svg = draw(&[("x", &format!("{name};main"), 1)]);
        assert!(svg.len() < 40_000, "{}", svg.len());
    }
}
