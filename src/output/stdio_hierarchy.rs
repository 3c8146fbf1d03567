//! `--hierarchy`: rows as a tree of their keys, as `perf report --stdio --hierarchy` prints them.
//!
//! In: a table's layout. Out: text. Layout facts from `hist_entry__hierarchy_fprintf` and `print_hierarchy_header` of perf
//! (`ui/stdio/hist.c`).

use std::io::{self, Write};

use super::stdio_layout::Layout;
use crate::report::keys::{Key, Role};
use crate::report::{HierarchyNode, TreeMaker, hierarchy, levels};

/// Blanks for each level.
const INDENT: usize = 3;

/// Writes a table, with its header unless `-q`.
pub(super) fn write(
    layout: &Layout<'_, '_>,
    mut trees: Option<&mut TreeMaker<'_, '_>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let shape = Shape::of(layout);
    if !layout.report.options.layout.quiet {
        out.write_all(&shape.header())?;
    }
    let mut line = Vec::new();
    for node in hierarchy(layout.report, layout.table) {
        if !layout.report.is_shown(layout.table, &node.row) {
            continue;
        }
        line.clear();
        shape.push_node(&node, &mut line);
        out.write_all(&line)?;
        match (node.leaf, &mut trees) {
            (Some(place), Some(trees)) => layout.write_tree(trees, place, &node.row, out)?,
            (None, _) if !node.has_shown_children => shape.write_nothing_below(&node, out)?,
            _ => {}
        }
    }
    Ok(())
}

struct Shape<'l, 'r, 'p> {
    layout: &'l Layout<'r, 'p>,
    /// Counters and their widths.
    counters: Vec<(Key, usize)>,
    levels: Vec<Vec<Key>>,
}

impl<'l, 'r, 'p> Shape<'l, 'r, 'p> {
    fn of(layout: &'l Layout<'r, 'p>) -> Self {
        let columns = layout
            .fields
            .iter()
            .copied()
            .zip(layout.widths.iter().copied());
        Self {
            layout,
            counters: columns.filter(|(key, _)| key.is_counter()).collect(),
            levels: levels(layout.report, layout.table),
        }
    }

    fn width(&self, key: Key) -> usize {
        let at = self.layout.fields.iter().position(|field| *field == key);
        at.map_or(0, |at| self.layout.widths[at])
    }

    /// What the innermost level is indented by, less its own level; nothing with `-t`.
    fn deepest_indent(&self) -> usize {
        if self.layout.has_separator() {
            0
        } else {
            (self.levels.len() - 1) * INDENT
        }
    }

    fn header(&self) -> Vec<u8> {
        let separator = self.layout.separator().as_bytes();
        let mut text = b"# ".to_vec();
        text.resize(text.len() + self.deepest_indent(), b' ');
        for (key, width) in &self.counters {
            self.layout.push_column_name(*key, *width, &mut text);
            text.extend_from_slice(separator);
        }
        let names = self.names();
        text.extend_from_slice(names.as_bytes());
        text.extend_from_slice(b"\n# ");
        text.resize(text.len() + self.deepest_indent(), b'.');
        for (i, (_, width)) in self.counters.iter().enumerate() {
            if i > 0 {
                text.extend_from_slice(if self.layout.has_separator() {
                    separator
                } else {
                    b".."
                });
            }
            text.resize(text.len() + width, b'.');
        }
        text.extend_from_slice(separator);
        let widths = self
            .levels
            .iter()
            .enumerate()
            .map(|(depth, keys)| self.level_width(depth, keys));
        let width = widths.max().unwrap_or(0).max(names.len());
        text.resize(text.len() + width, b'.');
        text.extend_from_slice(b"\n#\n");
        text
    }

    /// `Command / Shared Object / Symbol`, keys of one level joined by `+`.
    fn names(&self) -> String {
        let level = |keys: &Vec<Key>| {
            let names: Vec<&str> = keys
                .iter()
                .map(|key| self.layout.column_name(*key).trim())
                .collect();
            names.join("+")
        };
        let levels: Vec<String> = self.levels.iter().map(level).collect();
        levels.join(" / ")
    }

    fn level_width(&self, depth: usize, keys: &[Key]) -> usize {
        let widths: usize = keys.iter().map(|key| self.width(*key)).sum();
        depth * INDENT + widths + keys.len() - 1
    }

    fn push_node(&self, node: &HierarchyNode, line: &mut Vec<u8>) {
        let has_separator = self.layout.has_separator();
        let separator = self.layout.separator().as_bytes();
        line.resize(line.len() + node.depth * INDENT, b' ');
        for (i, (key, width)) in self.counters.iter().enumerate() {
            if i > 0 || !has_separator {
                line.extend_from_slice(separator);
            }
            let start = line.len();
            let counts = std::iter::once(&node.row.counts).chain(&node.members);
            self.layout.push_counters(*key, counts, *width, line);
            line.resize(line.len().max(start + width), b' ');
        }
        line.resize(line.len() + self.deepest_indent(), b' ');
        for key in &self.levels[node.depth] {
            line.extend_from_slice(separator);
            let mut cell = Vec::new();
            if let Role::Part(part) = &key.descriptor().role {
                self.layout
                    .push_text_cell(*key, part, &node.row, self.width(*key), &mut cell);
            }
            line.extend_from_slice(cell.trim_ascii_start());
        }
        line.push(b'\n');
    }

    fn write_nothing_below(&self, node: &HierarchyNode, out: &mut dyn Write) -> io::Result<()> {
        let counters: usize = self.counters.iter().map(|(_, width)| width + 2).sum();
        let levels = if self.layout.has_separator() {
            0
        } else {
            (self.levels.len() + node.depth) * INDENT
        };
        let blanks = levels + counters + 2;
        writeln!(
            out,
            "{:blanks$}no entry >= {:.2}%",
            "", self.layout.report.options.rows.percent_limit
        )
    }
}
