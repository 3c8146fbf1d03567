//! The chains below a row, as `perf report --stdio` draws them.
//!
//! In: a [`CallTree`] whose branches are chosen and ordered. Out: text. Layout facts from `callchain__fprintf_graph`,
//! `callchain__fprintf_flat` and `callchain__fprintf_folded` of perf (`ui/stdio/hist.c`).

use std::io::{self, Write};

use super::stdio_text::{push_colored, short_address};
use super::text::harmless;
use crate::profile::FrameId;
use crate::report::options::{CallGraphMode, ChainKey, ChainValue};
use crate::report::{CallTree, Report, Table, TreeNodeId, known_srcline, percent, tree_threshold};

/// Blanks in front of every line of a tree.
const MARGIN: usize = 12;

/// A level's line when nothing of it follows, behind its `|` or blank.
const INDENT: &[u8] = b"          ";

/// What drawing a row's tree needs to know.
pub(super) struct TreeStyle<'r, 'p> {
    report: &'r Report<'p>,
    /// What percentages of a graph refer to.
    total: u64,
    /// The row's own value.
    value: u64,
    threshold: u64,
}

impl<'r, 'p> TreeStyle<'r, 'p> {
    pub(super) fn of(report: &'r Report<'p>, table: &Table, value: u64) -> Self {
        let threshold = tree_threshold(
            table.threshold_total,
            report.options.chains.call_graph.threshold,
        );
        Self {
            report,
            total: table.chain_total,
            value,
            threshold,
        }
    }
}

/// Writes the tree of a row.
pub(super) fn write(
    tree: &CallTree,
    style: &TreeStyle<'_, '_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    if tree.top().is_empty() {
        return Ok(());
    }
    match style.report.options.chains.call_graph.mode {
        CallGraphMode::None => Ok(()),
        CallGraphMode::Graph | CallGraphMode::Fractal => Drawing {
            tree,
            style,
            text: Vec::new(),
            is_begun: false,
        }
        .write(out),
        CallGraphMode::Flat => write_flat(tree, style, out),
        CallGraphMode::Folded => write_folded(tree, style, out),
    }
}

impl TreeStyle<'_, '_> {
    fn print_limit(&self) -> usize {
        match self.report.options.chains.call_graph.print_limit {
            0 => usize::MAX,
            limit => limit as usize,
        }
    }

    fn push_value(&self, period: u64, count: u64, total: u64, text: &mut Vec<u8>) {
        let value = match self.report.options.chains.call_graph.value {
            ChainValue::Period => period.to_string(),
            ChainValue::Count => count.to_string(),
            ChainValue::Percent => {
                let share = percent(period, total);
                return push_colored(
                    text,
                    share,
                    self.report.options.layout.color,
                    &format!("{share:.2}%"),
                );
            }
        };
        text.extend_from_slice(value.as_bytes());
    }

    /// `name`, `name (inlined)`, `name file:line`, `0x1234`.
    fn push_frame(&self, id: FrameId, text: &mut Vec<u8>) {
        let profile = self.report.profile;
        let frame = &profile[id];
        let Some(symbol) = frame.symbol.map(|symbol| &profile[symbol]) else {
            text.extend_from_slice(short_address(frame.address.0).as_bytes());
            return;
        };
        text.extend_from_slice(harmless(&symbol.name).as_bytes());
        let key = self.report.options.chains.call_graph.key;
        let line = known_srcline(profile, self.report.options, frame);
        match line.as_deref().map(harmless) {
            Some(line) if key != ChainKey::Function => {
                text.push(b' ');
                text.extend_from_slice(line.as_bytes());
            }
            None if key == ChainKey::Address => {
                let offset = frame.offset_in(symbol);
                text.extend_from_slice(format!(" +{offset}").as_bytes());
            }
            _ => {}
        }
        if symbol.inlined {
            text.extend_from_slice(b" (inlined)");
        }
    }
}

/// A node whose branches are being drawn.
struct Level<'t> {
    branches: &'t [TreeNodeId],
    next: usize,
    /// What percentages refer to.
    total: u64,
    /// What the branches drawn so far leave of it.
    remaining: u64,
    /// Chains of the branches drawn so far, and of all.
    count: u64,
    all_count: u64,
}

struct Drawing<'t, 's, 'r, 'p> {
    tree: &'t CallTree,
    style: &'s TreeStyle<'r, 'p>,
    text: Vec<u8>,
    /// Whether part of the text has been written already.
    is_begun: bool,
}

impl Drawing<'_, '_, '_, '_> {
    fn write(mut self, out: &mut dyn Write) -> io::Result<()> {
        let style = self.style;
        let is_fractal = style.report.options.chains.call_graph.mode == CallGraphMode::Fractal;
        let mut margin = vec![b' '; MARGIN];
        let (mut branches, mut all_count) = (self.tree.top(), self.tree.top_count);
        if let [only] = branches
            && self.tree.nodes[*only].period() == style.value
        {
            if self.draw_head(*only) {
                margin.extend_from_slice(b"   ");
            }
            branches = self.tree.children(*only);
            all_count = self.tree.nodes[*only].children_count;
        }
        let total = if is_fractal { style.value } else { style.total };
        self.draw_branches(branches, total, all_count, is_fractal, &mut margin, out)?;
        if self.is_begun || !self.text.is_empty() {
            self.text.push(b'\n');
        }
        out.write_all(&self.text)
    }

    /// Draws the one way all chains take. Returns whether anything of it was to be drawn.
    fn draw_head(&mut self, node: TreeNodeId) -> bool {
        let options = self.style.report.options;
        // The first frame is the row itself when rows are symbols.
        let is_repeated = options.columns.fields.is_none()
            && options
                .columns
                .sort
                .as_ref()
                .is_some_and(|sort| sort.starts_with_symbol());
        let run = &self.tree.run(node)[usize::from(is_repeated)..];
        for (i, frame) in run.iter().take(self.style.print_limit()).enumerate() {
            if i == 0 {
                self.text.resize(MARGIN, b' ');
                self.text.extend_from_slice(b"|\n");
                self.text.resize(self.text.len() + MARGIN, b' ');
                self.text.extend_from_slice(b"---");
            } else {
                self.text.resize(self.text.len() + MARGIN + 3, b' ');
            }
            self.style.push_frame(*frame, &mut self.text);
            self.text.push(b'\n');
        }
        !run.is_empty()
    }

    fn draw_branches(
        &mut self,
        branches: &[TreeNodeId],
        total: u64,
        all_count: u64,
        is_fractal: bool,
        prefix: &mut Vec<u8>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let level = |nodes, period, amount| Level {
            branches: nodes,
            next: 0,
            total: period,
            remaining: period,
            count: 0,
            all_count: amount,
        };
        let mut open = vec![level(branches, total, all_count)];
        while let Some(top) = open.last_mut() {
            let Some(&node) = top
                .branches
                .get(top.next)
                .filter(|_| top.next < self.style.print_limit())
            else {
                self.draw_remainder(top, is_fractal, prefix);
                open.pop();
                prefix.truncate(prefix.len().saturating_sub(if open.is_empty() {
                    0
                } else {
                    INDENT.len() + 1
                }));
                continue;
            };
            let at = &self.tree.nodes[node];
            top.next += 1;
            top.remaining = top.remaining.wrapping_sub(at.period());
            top.count += at.count();
            let is_last = top.next == top.branches.len() && (!is_fractal || top.remaining == 0);
            let line = if is_last { b' ' } else { b'|' };
            self.draw_node(node, top.total, line, prefix);
            prefix.push(line);
            prefix.extend_from_slice(INDENT);
            let whole = if is_fractal {
                at.children_period
            } else {
                top.total
            };
            open.push(level(self.tree.children(node), whole, at.children_count));
            if self.text.len() >= 1 << 16 {
                out.write_all(&self.text)?;
                self.text.clear();
                self.is_begun = true;
            }
        }
        Ok(())
    }

    /// Draws the line above a node and its frames.
    fn draw_node(&mut self, node: TreeNodeId, total: u64, line: u8, prefix: &[u8]) {
        let at = &self.tree.nodes[node];
        let text = &mut self.text;
        text.extend_from_slice(prefix);
        text.push(b'|');
        text.extend_from_slice(INDENT);
        text.push(b'\n');
        for (i, frame) in self.tree.run(node).iter().enumerate() {
            text.extend_from_slice(prefix);
            text.push(line);
            if i == 0 {
                text.extend_from_slice(b"--");
                self.style.push_value(at.period(), at.count(), total, text);
                text.extend_from_slice(b"--");
            } else {
                text.extend_from_slice(INDENT);
            }
            self.style.push_frame(*frame, text);
            text.push(b'\n');
        }
    }

    /// What the branches of a fractal graph leave of their parent.
    fn draw_remainder(&mut self, level: &Level<'_>, is_fractal: bool, prefix: &[u8]) {
        if !is_fractal || level.remaining == 0 || level.remaining == level.total {
            return;
        }
        let count = level.all_count.saturating_sub(level.count);
        if self.style.report.options.chains.call_graph.value == ChainValue::Count && count == 0 {
            return;
        }
        self.text.extend_from_slice(prefix);
        self.text.extend_from_slice(b" --");
        self.style
            .push_value(level.remaining, count, level.total, &mut self.text);
        self.text.extend_from_slice(b"--[...]\n");
    }
}

/// From the outermost node of a chain to its last.
fn way_to(tree: &CallTree, node: TreeNodeId) -> Vec<TreeNodeId> {
    let way = std::iter::successors(Some(node), |node| tree.nodes[*node].parent);
    let mut way: Vec<TreeNodeId> = way.collect();
    way.reverse();
    way
}

fn write_flat(tree: &CallTree, style: &TreeStyle<'_, '_>, out: &mut dyn Write) -> io::Result<()> {
    let mut text = Vec::new();
    for node in tree
        .ends(style.threshold)
        .into_iter()
        .take(style.print_limit())
    {
        text.clear();
        let at = &tree.nodes[node];
        text.extend_from_slice(b"           ");
        style.push_value(at.period(), at.count(), style.total, &mut text);
        text.push(b'\n');
        for frame in way_to(tree, node)
            .into_iter()
            .flat_map(|node| tree.run(node))
        {
            text.extend_from_slice(b"                ");
            style.push_frame(*frame, &mut text);
            text.push(b'\n');
        }
        text.push(b'\n');
        out.write_all(&text)?;
    }
    Ok(())
}

fn write_folded(tree: &CallTree, style: &TreeStyle<'_, '_>, out: &mut dyn Write) -> io::Result<()> {
    let separator = style
        .report
        .options
        .layout
        .separator
        .as_deref()
        .unwrap_or(";");
    let mut text = Vec::new();
    for node in tree
        .ends(style.threshold)
        .into_iter()
        .take(style.print_limit())
    {
        text.clear();
        let at = &tree.nodes[node];
        style.push_value(at.own_period, at.own_count, style.total, &mut text);
        text.push(b' ');
        for (i, frame) in way_to(tree, node)
            .into_iter()
            .flat_map(|node| tree.run(node))
            .enumerate()
        {
            if i > 0 {
                text.extend_from_slice(separator.as_bytes());
            }
            style.push_frame(*frame, &mut text);
        }
        text.push(b'\n');
        out.write_all(&text)?;
    }
    Ok(())
}
