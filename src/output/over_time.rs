//! `pjit summary --over-time`: when. As a page, as rows and as a document.

use serde_json::{Value, json};

use super::page::{COLUMNS as WIDTH, Column, Page, Part, Table, cut, cut_apart};
use super::summary::{PageOptions, head};
use crate::functions::FunctionId;
use crate::profile::ThreadId;
use crate::questions::budget::{self, Want};
use crate::questions::over_time::{Gaps, OverTime, Phase, Spell};
use crate::questions::summary::Summary;
use crate::run_state::RunState;

/// What is known of the time, with names.
#[derive(Clone, Copy, Debug)]
pub struct When<'w> {
    /// Phases, spells and gaps.
    pub over: &'w OverTime,
    /// By function of the recording: its name.
    pub labels: &'w [String],
}

/// Spells, and threads with gaps, that a page of 45 lines has.
const MOST: usize = 4;
/// Columns of a function in a line of another page.
const LINE_NAME: usize = 40;
/// Columns of a function in the table of all columns.
const NAME: usize = 20;

/// The page.
#[must_use]
pub fn page(summary: &Summary, over: &OverTime, options: &PageOptions) -> Page {
    let most = (options.lines / 10).max(MOST);
    let maker = Maker { summary, over };
    let tables = [
        maker.spells(most),
        maker.phases(),
        maker.gaps(most),
        maker.series(),
    ];
    let mut page = Page {
        head: head(summary, options),
        parts: Vec::new(),
        foot: maker.foot(most),
    };
    let fixed = page.head.len() + page.foot.len();
    let wants = tables
        .iter()
        .zip([35, 25, 15, 25])
        .map(|(table, share)| Want {
            lines: if table.rows.is_empty() {
                0
            } else {
                table.rows.len() + 1
            },
            share,
            least: 0,
        });
    let wants: Vec<Want> = wants.collect();
    let given = budget::split(options.lines.saturating_sub(fixed), &wants);
    for (mut table, lines) in tables.into_iter().zip(given) {
        // A spell has two lines, and half of one tells nothing.
        let rows = match table.name {
            SPELLS => lines.saturating_sub(1) / 2 * 2,
            _ => lines.saturating_sub(1),
        };
        table.rows.truncate(rows);
        if !table.rows.is_empty() {
            page.parts.push(Part::Table(table));
        }
    }
    page
}

/// Spells in a line of another page.
#[must_use]
pub fn line(summary: &Summary, spell: &Spell) -> String {
    let name = summary.labels.get(&summary.functions, spell.function);
    let spells = match spell.at.len() {
        1 => format!("a spell of {}", milliseconds(spell.median)),
        many => format!("{many} spells of ~{}", milliseconds(spell.median)),
    };
    let every = spell.every.map_or_else(String::new, |every| {
        format!(", every {:.2} s,", every as f64 * 1e-9)
    });
    let name = cut(name, LINE_NAME);
    format!("over time: {spells}{every} in {name}: --over-time")
}

const SPELLS: &str = "spells";

struct Maker<'m> {
    summary: &'m Summary,
    over: &'m OverTime,
}

impl Maker<'_> {
    fn name(&self, id: FunctionId) -> &str {
        self.summary.labels.get(&self.summary.functions, id)
    }

    fn thread(&self, id: ThreadId) -> String {
        let thread = self.over.threads.get(&id).cloned().unwrap_or_default();
        format!("{}/{}", thread.comm, thread.tid.cast_signed())
    }

    /// Seconds since the recording's first sample.
    fn since(&self, time: u64) -> f64 {
        time.saturating_sub(self.over.begin) as f64 * 1e-9
    }

    /// The heaviest, and the one with the longest of all: that is what users feel.
    fn shown_spells(&self, most: usize) -> Vec<&Spell> {
        let length = |spell: &Spell| spell.lengths[spell.longest];
        let (shown, rest) = self.over.spells.split_at(most.min(self.over.spells.len()));
        let mut shown: Vec<&Spell> = shown.iter().collect();
        let longest = rest.iter().max_by_key(|spell| length(spell));
        let longest = longest.filter(|longest| shown.iter().all(|of| length(of) < length(longest)));
        if let (Some(longest), Some(last)) = (longest, shown.last_mut()) {
            *last = longest;
        }
        shown
    }

    fn spells(&self, most: usize) -> Table {
        let shown = self.shown_spells(most);
        let rows = shown.iter().map(|spell| {
            vec![
                format!("{} x", spell.at.len()),
                milliseconds(spell.median),
                milliseconds(spell.lengths[spell.longest]),
                spell
                    .every
                    .map_or_else(String::new, |ns| format!("{:.2} s", ns as f64 * 1e-9)),
                self.thread(spell.thread),
                self.name(spell.function).to_owned(),
            ]
        });
        let mut table = Table {
            name: SPELLS,
            title: "Long spells".to_owned(),
            columns: vec![
                Column::right(""),
                Column::right("median"),
                Column::right("longest"),
                Column::right("every"),
                Column::left("thread"),
                Column::left("function; the longest"),
            ],
            rows: rows.collect(),
        }
        .fitted(WIDTH, &[4, 5], usize::MAX);
        // What is to be typed is never cut.
        let commands = shown.iter().map(|spell| self.range(spell));
        let pairs = std::mem::take(&mut table.rows).into_iter().zip(commands);
        table.rows = pairs
            .flat_map(|(row, command)| {
                let mut below = vec![String::new(); 5];
                below.push(command);
                [row, below]
            })
            .collect();
        table
    }

    /// The range of the longest, as `--time` takes it: outwards to milliseconds, so that nothing of it is left out.
    fn range(&self, spell: &Spell) -> String {
        let (from, to) = spell.at[spell.longest];
        self.time(from, to)
    }

    fn time(&self, from: u64, to: u64) -> String {
        const MILLISECOND: u64 = 1_000_000;
        let since = |time: u64| time.saturating_sub(self.over.begin);
        let (from, to) = (since(from) / MILLISECOND, since(to).div_ceil(MILLISECOND));
        let seconds = |ms: u64| format!("+{}.{:03}", ms / 1000, ms % 1000);
        format!("--time {},{}", seconds(from), seconds(to))
    }

    fn phases(&self) -> Table {
        // What numbers and heading take of a line.
        const ROOM: usize = WIDTH - 36;
        let rows = self.over.phases.iter().zip(1..).map(|(phase, number)| {
            let does = |(function, [here, rest]): &(FunctionId, [f64; 2])| {
                let shares = format!(" {:.0}% ({:.0}%)", 100.0 * here, 100.0 * rest);
                cut(self.name(*function), ROOM - shares.len()) + &shares
            };
            let mut does = phase.functions.iter().map(does);
            let mut text = does.next().unwrap_or_default();
            // The second one only where it has room.
            let second = does.next().map(|second| format!(", {second}"));
            let width = |part: &str| part.chars().count();
            if let Some(second) = second.filter(|second| width(&text) + width(second) <= ROOM) {
                text.push_str(&second);
            }
            vec![
                number.to_string(),
                format!("{:.3}", self.since(phase.from)),
                format!("{:.3}", self.since(phase.to)),
                self.share(phase),
                text,
            ]
        });
        Table {
            name: "phases",
            title: "Phases".to_owned(),
            columns: vec![
                Column::right(""),
                Column::right("from"),
                Column::right("to"),
                Column::right("share"),
                Column::left("does more of (elsewhere)"),
            ],
            rows: rows.collect(),
        }
    }

    fn share(&self, phase: &Phase) -> String {
        let all = self.over.total.period.max(1) as f64;
        format!("{:.1}%", 100.0 * phase.count.period as f64 / all)
    }

    fn gaps(&self, most: usize) -> Table {
        let rows = self.over.gaps.iter().take(most).map(|gaps| {
            let longest = gaps.longest().copied();
            let cell = |text: &dyn Fn(&crate::questions::over_time::Gap) -> String| {
                longest.as_ref().map_or_else(String::new, text)
            };
            vec![
                format!("{} x", gaps.all.len()),
                milliseconds(gaps.median()),
                cell(&|gap| milliseconds(gap.length())),
                cell(&|gap| format!("+{:.3}", self.since(gap.from))),
                cell(&|gap| {
                    gap.state
                        .map_or_else(String::new, |of| of.name().to_owned())
                }),
                self.thread(gaps.thread),
                cell(&|gap| self.name(gap.before).to_owned()),
            ]
        });
        Table {
            name: "gaps",
            title: "Without CPU".to_owned(),
            columns: vec![
                Column::right(""),
                Column::right("median"),
                Column::right("longest"),
                Column::right("at"),
                Column::left(if self.over.knows_waits { "mostly" } else { "" }),
                Column::left("thread"),
                Column::left("behind"),
            ],
            rows: rows.collect(),
        }
        .fitted(WIDTH, &[5, 6], usize::MAX)
    }

    fn series(&self) -> Table {
        let series = &self.over.series;
        let names: Vec<&str> = series.iter().map(|of| self.name(of.function)).collect();
        let names = cut_apart(&names, NAME);
        let rows = series.iter().zip(names).map(|(series, name)| {
            vec![
                format!("{:.1}%", 100.0 * series.share),
                bars(&series.columns),
                name,
            ]
        });
        Table {
            name: "series",
            title: "Over time".to_owned(),
            columns: vec![Column::right(""), Column::left(""), Column::left("")],
            rows: rows.collect(),
        }
    }

    fn foot(&self, most: usize) -> Vec<String> {
        let over = self.over;
        let mut lines = Vec::new();
        let threads = over.threads.len();
        if over.are_own {
            let s = if threads == 1 { "" } else { "s" };
            lines.push(format!(
                "looked at: {threads} thread{s} with own code; seconds since the first sample"
            ));
        } else {
            lines.push(
                "no thread has own code: all are looked at; seconds since the first sample"
                    .to_owned(),
            );
        }
        if !over.is_cpu {
            lines.push("not CPU: neither spells nor times without CPU are told".to_owned());
        } else if over.spells.is_empty() {
            lines.push(
                "no long spell of a function with 0.5 to 98 % of its thread's samples".to_owned(),
            );
        } else if !over.knows_waits {
            lines.push("samples know no calls: two calls without a break are one spell".to_owned());
        }
        let others = over.spells.len().saturating_sub(most);
        if others > 0 {
            let s = if others == 1 { "" } else { "s" };
            lines.push(format!(
                "{others} more function{s} with long spells: --budget 300"
            ));
        }
        if !over.spells.is_empty() {
            let not_told =
                "functions with more than 80 % of a thread's samples: only if they come back";
            lines.push(not_told.to_owned());
        }
        if over.phases.is_empty() {
            let few = if over.total.samples < 5000 {
                "; changes below 10 points need 5000 samples"
            } else {
                ""
            };
            lines.push(format!("no phases: nothing changed for long{few}"));
        }
        if over.lost_gaps > 0 {
            let (times, s) = (over.lost_gaps, if over.lost_gaps == 1 { "" } else { "s" });
            lines.push(format!(
                "{times} time{s} without a sample in which samples were lost: no gap{s}, but spells end there"
            ));
        }
        if !over.gaps.is_empty() && !over.knows_waits {
            lines
                .push("whether a thread waited or got no processor samples do not tell".to_owned());
        }
        lines
    }
}

fn milliseconds(ns: u64) -> String {
    format!("{:.0} ms", ns as f64 * 1e-6)
}

/// A bar for each column, full where it is highest; blank where nothing ran.
fn bars(columns: &[Option<f64>]) -> String {
    const BARS: [char; 9] = [
        ' ', '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}',
        '\u{2588}',
    ];
    let highest = columns.iter().flatten().copied().fold(0.0, f64::max);
    let bar = |share: &Option<f64>| {
        let eighths = share.map_or(0.0, |share| (8.0 * share / highest).ceil());
        BARS[(eighths as usize).min(8)]
    };
    columns.iter().map(bar).collect()
}

/// Rows of CSV: phases, spells and gaps with their times.
#[must_use]
pub fn csv_rows(summary: &Summary, over: &OverTime) -> Vec<Vec<String>> {
    let maker = Maker { summary, over };
    let head = [
        "what", "number", "from", "to", "pid", "tid", "comm", "function",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut add = |what: &str,
                   number: usize,
                   (from, to): (u64, u64),
                   thread: Option<ThreadId>,
                   function: Option<FunctionId>| {
        let thread = thread.and_then(|id| over.threads.get(&id));
        let id = |id: u32| id.cast_signed().to_string();
        let mut row = vec![
            what.to_owned(),
            number.to_string(),
            format!("{:.6}", maker.since(from)),
            format!("{:.6}", maker.since(to)),
        ];
        row.extend(match thread {
            Some(thread) => [id(thread.pid), id(thread.tid), thread.comm.clone()],
            None => Default::default(),
        });
        row.push(function.map_or_else(String::new, |of| maker.name(of).to_owned()));
        rows.push(row);
    };
    for (phase, number) in over.phases.iter().zip(1..) {
        let function = phase.functions.first().map(|(function, _)| *function);
        add("phase", number, (phase.from, phase.to), None, function);
    }
    for (spell, number) in over.spells.iter().zip(1..) {
        for at in &spell.at {
            add(
                "spell",
                number,
                *at,
                Some(spell.thread),
                Some(spell.function),
            );
        }
    }
    for (gaps, number) in over.gaps.iter().zip(1..) {
        for gap in &gaps.all {
            add(
                "gap",
                number,
                (gap.from, gap.to),
                Some(gaps.thread),
                Some(gap.before),
            );
        }
    }
    rows
}

/// As JSON has it, with so many of each at most.
#[must_use]
pub fn document(summary: &Summary, over: &OverTime, most: usize) -> Value {
    let maker = Maker { summary, over };
    let number = |seconds: f64| super::json::number(seconds);
    let since = |time: u64| number(maker.since(time));
    let seconds = |ns: u64| number(ns as f64 * 1e-9);
    let function =
        |id: FunctionId| json!({"id": summary.functions.get(id).id(), "name": maker.name(id)});
    let thread = |id: ThreadId| {
        let thread = over.threads.get(&id).cloned().unwrap_or_default();
        json!({"pid": thread.pid.cast_signed(), "tid": thread.tid.cast_signed(), "comm": thread.comm})
    };
    let phases = over.phases.iter().map(|phase| {
        let functions = phase.functions.iter();
        json!({
            "from": since(phase.from),
            "to": since(phase.to),
            "weight": phase.count.period,
            "samples": phase.count.samples,
            "functions": functions.map(|(id, [here, elsewhere])| json!({
                "function": function(*id), "share": number(*here), "elsewhere": number(*elsewhere),
            })).collect::<Value>(),
        })
    });
    let range = |(from, to): &(u64, u64)| json!([since(*from), since(*to)]);
    let spells = over.spells.iter().take(most).map(|spell| {
        json!({
            "thread": thread(spell.thread),
            "function": function(spell.function),
            "count": spell.at.len(),
            "median": seconds(spell.median),
            "longest": seconds(spell.lengths[spell.longest]),
            "longest_at": range(&spell.at[spell.longest]),
            "every": spell.every.map(seconds),
            "at": spell.at.iter().take(most).map(range).collect::<Value>(),
        })
    });
    let gaps = over.gaps.iter().take(most).map(|gaps: &Gaps| {
        json!({
            "thread": thread(gaps.thread),
            "count": gaps.all.len(),
            "total": seconds(gaps.total()),
            "longest": gaps.longest().map(|gap| seconds(gap.length())),
            "mostly": gaps.longest().and_then(|gap| gap.state).map(RunState::name),
            "at": gaps.all.iter().take(most).map(|gap| range(&(gap.from, gap.to))).collect::<Value>(),
        })
    });
    let series = over.series.iter().take(most).map(|series| {
        json!({
            "function": function(series.function),
            "share": number(series.share),
            "columns": series.columns.iter().map(|share| share.map(number)).collect::<Value>(),
        })
    });
    json!({
        "begin_ns": over.begin,
        "from": since(over.range.0),
        "to": since(over.range.1),
        "threads": over.threads.len(),
        "knows_waits": over.knows_waits,
        "phases": phases.collect::<Value>(),
        "spells": spells.collect::<Value>(),
        "gaps": gaps.collect::<Value>(),
        "series": series.collect::<Value>(),
    })
}
