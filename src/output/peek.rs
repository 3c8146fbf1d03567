//! The page of `pjit peek`: a block for each function, and the same as JSON and CSV.

use std::collections::BinaryHeap;

use serde_json::{Value, json};

use super::json;
use super::page::{Column, Page, Part, Table, cut_apart};
use super::summary::Head;
use crate::functions::Functions;
use crate::functions::tally::{Count, Tally};
use crate::ids::Idx;
use crate::questions::facts::Facts;
use crate::questions::peek::{Block, Node, Step};
use crate::report::percent;

/// Longest name.
const NAME: usize = 72;

/// The answer of `pjit peek`.
pub struct Peek<'p> {
    /// What the first lines say.
    pub facts: &'p Facts,
    /// All functions.
    pub functions: &'p Functions,
    /// Their names in tables.
    pub labels: &'p [String],
    /// Their numbers.
    pub tally: &'p Tally,
    /// A block for each match, the heaviest first.
    pub blocks: &'p [Block],
    /// Matches that have no block, since there are too many, and the inclusive weight of the heaviest.
    pub more: (usize, Count),
    /// The line about quality.
    pub quality: &'p str,
    /// The line about filters.
    pub filter: Option<String>,
    /// Names whole.
    pub full_names: bool,
}

/// Makes the page of so many lines at most.
#[must_use]
pub fn page(peek: &Peek<'_>, lines: usize) -> Page {
    let head = Head {
        facts: peek.facts,
        verb: "peek",
        counts: [peek.tally.total, peek.tally.unfiltered],
        quality: peek.quality,
        filter: peek.filter.as_deref(),
        own: None,
    };
    let mut page = Page {
        head: head.lines(lines),
        ..Page::default()
    };
    let mut left = lines.saturating_sub(page.head.len() + 1);
    let mut shown = 0;
    let blocks = peek.blocks.iter();
    let names = blocks.map(|block| peek.labels[block.function.index()].as_str());
    let names = cut_apart(&names.collect::<Vec<_>>(), most_of(peek));
    for (number, (block, name)) in peek.blocks.iter().zip(&names).enumerate() {
        // Earlier blocks are heavier; each may take half of what is there.
        let part = if number + 1 == peek.blocks.len() {
            left
        } else {
            left.div_ceil(2)
        };
        let Some(table) = table(peek, (block, name), part) else {
            break;
        };
        left -= (table.rows.len() + 1).min(left);
        page.parts.push(Part::Table(table));
        shown += 1;
    }
    let (more, most) = peek.more;
    let rest = &peek.blocks[shown..];
    if rest.len() + more > 0 {
        let heaviest = rest
            .iter()
            .map(|block| peek.tally.of_function(block.function).inclusive.period)
            .max();
        let share = percent(
            heaviest.unwrap_or(most.period),
            peek.tally.unfiltered.period,
        );
        page.foot.push(format!(
            "+{} functions match, up to {share:.1}% inclusive (--budget)",
            rest.len() + more
        ));
    }
    page
}

/// A block in so many lines, if there is room for its heading and a row.
fn table(peek: &Peek<'_>, (block, name): (&Block, &str), lines: usize) -> Option<Table> {
    let whole = rows(peek, block, usize::MAX);
    let rows = if whole.len() < lines {
        whole
    } else {
        // What is left out takes rows, too, so try with fewer.
        let mut most = lines.saturating_sub(1);
        loop {
            if most == 0 {
                return None;
            }
            let rows = rows(peek, block, most);
            if rows.len() < lines {
                break rows;
            }
            most -= 1;
        }
    };
    let function = peek.functions.get(block.function);
    let numbers = peek.tally.of_function(block.function);
    let share = |count: Count| percent(count.period, peek.tally.unfiltered.period);
    let mut title = format!(
        "{name}   {}  self {:.1}%  inclusive {:.1}%  ({} {} of {})",
        function.identity.object,
        share(numbers.own),
        share(numbers.inclusive),
        numbers.inclusive.samples,
        peek.facts.counted(),
        peek.tally.unfiltered.samples
    );
    if block.is_recursive {
        title.push_str("  recursive: edges overlap");
    }
    let columns = vec![
        Column::left(""),
        Column::right(""),
        Column::right(""),
        Column::left(""),
    ];
    Some(Table {
        name: "peek",
        title,
        columns,
        rows,
    })
}

/// The heaviest steps of a block, and a row for each place where some are left out.
fn rows(peek: &Peek<'_>, block: &Block, most: usize) -> Vec<Vec<String>> {
    let chosen = Chosen::of(block, most);
    let inclusive = peek.tally.of_function(block.function).inclusive;
    let mut writer = RowWriter {
        peek,
        inclusive,
        rows: Vec::new(),
        names: Vec::new(),
    };
    writer.nodes("called by", " (inlines it)", 0, &block.callers, &chosen);
    writer.nodes("calls", " (inlined)", 0, &block.callees, &chosen);
    let RowWriter {
        mut rows, names, ..
    } = writer;
    let (names, tails): (Vec<&str>, Vec<&str>) =
        names.iter().map(|(name, tail)| (&**name, *tail)).unzip();
    let names = cut_apart(&names, most_of(peek));
    for (row, (name, tail)) in rows.iter_mut().zip(names.iter().zip(tails)) {
        let blanks = row.pop().unwrap_or_default();
        row.push(blanks + name + tail);
    }
    rows
}

/// Nodes that are shown: those of most weight, each after the one it is below.
struct Chosen {
    least: Vec<*const Node>,
}

impl Chosen {
    fn of(block: &Block, most: usize) -> Self {
        let mut heap: BinaryHeap<(u64, std::cmp::Reverse<usize>)> = BinaryHeap::new();
        let mut nodes: Vec<&Node> = Vec::new();
        let push = |node, seen: &mut Vec<_>, queue: &mut BinaryHeap<_>| {
            let node: &Node = node;
            queue.push((node.count.period, std::cmp::Reverse(seen.len())));
            seen.push(node);
        };
        block
            .callers
            .iter()
            .chain(&block.callees)
            .for_each(|node| push(node, &mut nodes, &mut heap));
        let mut least = Vec::new();
        while let Some((_, at)) = heap.pop().filter(|_| least.len() < most) {
            let node = nodes[at.0];
            least.push(std::ptr::from_ref(node));
            node.next
                .iter()
                .for_each(|next| push(next, &mut nodes, &mut heap));
        }
        least.sort_unstable();
        Self { least }
    }

    fn has(&self, node: &Node) -> bool {
        self.least.binary_search(&std::ptr::from_ref(node)).is_ok()
    }
}

struct RowWriter<'p> {
    peek: &'p Peek<'p>,
    inclusive: Count,
    /// Their last cells are blanks yet, before names and what stands behind these.
    rows: Vec<Vec<String>>,
    names: Vec<(String, &'static str)>,
}

impl RowWriter<'_> {
    /// `mark`: of whom a call was inlined.
    fn nodes(
        &mut self,
        word: &str,
        mark: &'static str,
        level: usize,
        nodes: &[Node],
        chosen: &Chosen,
    ) {
        let mut word = word;
        let mut hidden = (0, Count::default());
        for node in nodes {
            if !chosen.has(node) {
                hidden.0 += 1;
                hidden.1.add(node.count);
                continue;
            }
            let inlined = if node.inlined { mark } else { "" };
            let name = name(self.peek, node.step);
            self.row(word, node.count, level, (name, inlined));
            word = "";
            self.nodes("", mark, level + 1, &node.next, chosen);
        }
        if hidden.0 > 0 {
            let text = format!("+{} functions", hidden.0);
            self.row(word, hidden.1, level, (text, ""));
        }
    }

    fn row(&mut self, word: &str, count: Count, level: usize, name: (String, &'static str)) {
        let of_function = percent(count.period, self.inclusive.period);
        let of_total = percent(count.period, self.peek.tally.unfiltered.period);
        self.rows.push(vec![
            format!("  {word:9}"),
            format!("{of_function:.1}%"),
            format!("{of_total:.1}%"),
            " ".repeat(2 * level),
        ]);
        self.names.push(name);
    }
}

/// Columns of a name at most.
const fn most_of(peek: &Peek<'_>) -> usize {
    if peek.full_names { usize::MAX } else { NAME }
}

fn name(peek: &Peek<'_>, step: Step) -> String {
    match step {
        Step::Function(id) => peek.labels[id.index()].clone(),
        Step::Itself => "(self)".to_owned(),
        Step::Root => "(root)".to_owned(),
        Step::End(end) => format!("(stack ends: {})", end.label()),
    }
}

/// The same as JSON, with so many functions.
#[must_use]
pub fn to_json(peek: &Peek<'_>, common: &json::Common, rows: usize) -> Value {
    let facts = peek.facts;
    let mut answer = json::head("peek", &[(facts, None)]);
    let (shown, left) = peek.blocks.split_at(rows.min(peek.blocks.len()));
    let blocks = shown.iter().map(|block| {
        let mut value = json::function(
            peek.functions.get(block.function),
            peek.tally.of_function(block.function),
        );
        let more = json!({
            "recursive": block.is_recursive,
            "callers": nodes(peek, &block.callers),
            "callees": nodes(peek, &block.callees),
        });
        json::extend(&mut value, more);
        value
    });
    json::extend(
        &mut answer,
        json!({
            "event": json::event(facts, peek.tally.unfiltered),
            "quality": common.quality,
            "filters": common.filters,
            "focus": blocks.collect::<Value>(),
            "omitted": {"functions": left.len() + peek.more.0},
            "warnings": json::warnings(&[facts], common),
        }),
    );
    answer
}

fn nodes(peek: &Peek<'_>, of: &[Node]) -> Value {
    let node = |node: &Node| {
        let (id, name) = match node.step {
            Step::Function(id) => {
                let function = peek.functions.get(id);
                (Some(function.id()), function.identity.name.name.clone())
            }
            step => (None, name(peek, step)),
        };
        json!({
            "id": id,
            "name": name,
            "weight": node.count.period,
            "samples": node.count.samples,
            "inlined": node.inlined,
            "next": nodes(peek, &node.next),
        })
    };
    of.iter().map(node).collect()
}

/// The edges of the first level as rows of CSV.
#[must_use]
pub fn csv_rows(peek: &Peek<'_>) -> Vec<Vec<String>> {
    let head = [
        "function",
        "object",
        "direction",
        "other",
        "weight",
        "samples",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for block in peek.blocks {
        let function = peek.functions.get(block.function);
        for (direction, nodes) in [("called by", &block.callers), ("calls", &block.callees)] {
            rows.extend(nodes.iter().map(|node| {
                let other = match node.step {
                    Step::Function(id) => peek.functions.get(id).full_name(),
                    step => name(peek, step),
                };
                vec![
                    function.full_name(),
                    function.identity.object.clone(),
                    direction.to_owned(),
                    other,
                    node.count.period.to_string(),
                    node.count.samples.to_string(),
                ]
            }));
        }
    }
    rows
}
