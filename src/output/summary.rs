//! The page of `pjit summary`: how far to trust it, who pays, own functions or those that pay, what is done, what to type next.
//!
//! In: a [`Summary`]. Out: a [`Page`] that keeps a budget; rows that are left out are one row that says how much they are.

use super::caption::plural;
use super::page::{COLUMNS, Column, Page, Part, Table, cut, cut_apart_as, wrapped};
use crate::functions::payers::{Group, PayerId, Spending};
use crate::functions::tally::Count;
use crate::functions::{Basis, FunctionId, UNKNOWN};
use crate::ids::Idx;
use crate::metrics::plain_name;
use crate::profile::{Predictions, Ring};
use crate::questions::budget::{self, Want};
use crate::questions::facts::Facts;
use crate::questions::hosts::{Hosts, Unlike};
use crate::questions::summary::{Share, Summary, worth_showing};
use crate::report::percent;
use crate::runtimes::{CleanName, Ecosystem};
use crate::unit::Unit;

/// Longest name in a table.
const NAME: usize = 72;
/// A page of fewer lines has long ones.
const FEW: usize = 24;
/// Pages of fewer lines do not say what to type next.
pub(super) const FOOT: usize = 16;
/// Lines of the first table that go before all else: seven rows, with the heading and the row for the others.
const FIRST: usize = 9;
/// Longest package beside a function, and longest line of the sources.
const PACKAGE: usize = 24;
const PLACE: usize = 40;
/// Columns of what an own function mostly does.
const MOSTLY: usize = 30;
/// Longest name of those who pay.
const PAYER: usize = 34;
/// Troubles of a recording that are shown.
const TROUBLES: usize = 5;

/// Tables in the order in which they stand.
const PLACES: [&str; 8] = [
    "groups",
    "unlike",
    "packages",
    "own",
    "paying",
    "activities",
    "lines",
    "self",
];

/// The one table that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Who pays.
    Package,
    /// What is done.
    Activity,
    /// Own functions.
    Own,
    /// Programs.
    Process,
    /// Cgroups, which containers have one each of.
    Cgroup,
    /// Hosts, and what they are unlike in.
    Host,
    /// Source lines.
    Line,
}

/// How the page is made.
#[derive(Debug, Clone, Default)]
pub struct PageOptions {
    /// Lines at most.
    pub lines: usize,
    /// Names and paths whole.
    pub full_names: bool,
    /// The line about how far numbers can be trusted.
    pub trust: String,
    /// One line about filters, if there are any.
    pub filters: Option<String>,
    /// One line about when, if there is something to say.
    pub when: Option<String>,
    /// The only table, if one was chosen.
    pub by: Option<By>,
    /// What to type next is said elsewhere.
    pub is_part: bool,
}

/// Makes the page.
#[must_use]
pub fn page(summary: &Summary, options: &PageOptions) -> Page {
    let maker = PageMaker { summary, options };
    let mut page = Page {
        head: maker.head(),
        // One table alone has nothing beside it.
        parts: match options.by {
            Some(By::Host) | None => maker.lines(),
            Some(_) => Vec::new(),
        },
        foot: Vec::new(),
    };
    // One table alone is an answer to a question of its own.
    if options.by.is_none() && !options.is_part && options.lines >= FOOT {
        page.foot = maker.next();
    }
    let fixed = page.head.len() + page.parts.len() + page.foot.len();
    let left = options.lines.saturating_sub(fixed);
    let tables = maker.drafts(options.by);
    // However little room there is, the first table has some.
    let first = tables.iter().position(|(table, _)| table.rows > 0);
    let wants = tables.iter().enumerate().map(|(at, (table, share))| Want {
        lines: table.lines(),
        share: *share,
        least: if first == Some(at) { FIRST } else { 0 },
    });
    let wants: Vec<Want> = wants.collect();
    let given = budget::split(left, &wants);
    let mut shown = Vec::new();
    for (((table, _), want), lines) in tables.into_iter().zip(wants).zip(given) {
        if let (Some(rows), true) = (
            budget::rows(lines, want, table.extra, table.worth),
            table.rows > 0,
        ) {
            shown.push(Part::Table(maker.table(&table, rows)));
        }
    }
    shown.sort_by_key(|part| match part {
        Part::Table(table) => PLACES.iter().position(|name| *name == table.name),
        Part::Line { .. } => None,
    });
    page.parts.extend(shown);
    page
}

/// The lines before everything, without the `#`.
#[must_use]
pub fn head(summary: &Summary, options: &PageOptions) -> Vec<String> {
    PageMaker { summary, options }.head()
}

/// What the first lines are about.
pub struct Head<'h> {
    /// What was recorded.
    pub facts: &'h Facts,
    /// The command.
    pub verb: &'h str,
    /// What filters left, and all of it.
    pub counts: [Count; 2],
    /// How far it can be trusted.
    pub quality: &'h str,
    /// What was filtered.
    pub filter: Option<&'h str>,
    /// How it was told what is own.
    pub own: Option<String>,
}

impl Head<'_> {
    /// The lines that tell what was recorded, and how far it can be trusted: a third of the page at most. What `check` tells
    /// again is the first that there is no room for.
    #[must_use]
    pub fn lines(&self, page: usize) -> Vec<String> {
        let Self { facts, .. } = self;
        let measured = measured(facts, self.counts);
        let mut head = vec![format!("pjit {}: {}  {measured}", self.verb, facts.path)];
        let mut told: Vec<String> = facts.idle.line().into_iter().collect();
        told.extend(self.filter.map(str::to_owned));
        let mut room = (page / 3).saturating_sub(head.len() + told.len());
        let mut take = |wanted: usize| {
            let given = wanted.min(room);
            room -= given;
            given
        };
        let quality = take(1);
        let troubles = facts.findings.len();
        let needed = troubles.min(TROUBLES) + usize::from(troubles > TROUBLES);
        let first = take(needed.min(1));
        let own = take(usize::from(self.own.is_some()));
        let lines = first + take(needed - first);
        // Where not all have a line, the last one is for those that have none.
        let shown = match lines {
            lines if lines == needed => troubles.min(TROUBLES),
            lines => lines.saturating_sub(1),
        };
        head.extend((quality > 0).then(|| self.quality.to_owned()));
        for trouble in facts.findings.iter().take(shown) {
            let word = if trouble.is_failure { "FAIL" } else { "warn" };
            head.push(format!("{word} {}: {}", trouble.code, trouble.text));
        }
        if lines > shown {
            head.push(format!("{}: pjit check", left_out(facts, shown)));
        }
        head.extend(told);
        head.extend(self.own.clone().filter(|_| own > 0));
        head
    }
}

/// `+3 more`, or the names of what failed where none is shown.
fn left_out(facts: &Facts, shown: usize) -> String {
    let all = facts.findings.len();
    let mut failed: Vec<&str> = facts
        .findings
        .iter()
        .filter(|trouble| trouble.is_failure)
        .map(|trouble| trouble.code)
        .collect();
    failed.dedup();
    match (shown, failed.as_slice()) {
        (0, []) if all == 1 => "1 warning".to_owned(),
        (0, []) => format!("{all} warnings"),
        (0, failed) => format!("FAIL {}", failed.join(", ")),
        _ => format!("+{} more", all - shown),
    }
}

/// What weights are called.
struct Words {
    /// What is told apart by kind, library and thread; nothing where the unit has no word.
    what: String,
    /// Above numbers.
    column: &'static str,
}

impl Words {
    fn of(facts: &Facts) -> Self {
        let words = |what: &str, column| Self {
            what: what.to_owned(),
            column,
        };
        match facts.weighed.map(|(unit, _)| unit) {
            None if facts.is_clock => words("CPU", "seconds"),
            None if facts.is_cpu => words("CPU", "count"),
            None if facts.is_off_cpu => words("Time off CPU", "seconds"),
            // Other events happen for reasons of their own: faults and switches are no CPU.
            None => words(&facts.event, "count"),
            Some(Unit::Nanoseconds) => words("Time", "seconds"),
            Some(Unit::Bytes) => words("Bytes", "bytes"),
            Some(Unit::ByteSeconds) => words("", "byte-seconds"),
            Some(unit @ (Unit::Pages | Unit::Blocks)) => words("", unit.word()),
            Some(Unit::Count | Unit::Cycles) => words("", "count"),
        }
    }

    /// `CPU by kind`
    fn title(&self, by: &str) -> String {
        match self.what.as_str() {
            "" => format!("By {by}"),
            what => format!("{what} by {by}"),
        }
    }
}

/// `node (pid 2700), 343 samples of cpu-clock, 1.72 s CPU in 1.9 s, 7 threads`
///
/// Where filters left only some of it: `15 of 343 samples of cpu-clock, 0.08 of 1.72 s CPU`. Where the command used much more than has
/// samples: `0.20 of 0.79 s CPU sampled`.
fn measured(facts: &Facts, [left, total]: [Count; 2]) -> String {
    let is_part = left != total;
    let number = |weight: u64| match facts.weighed {
        _ if facts.is_time() => format!("{:.2}", weight as f64 / 1e9),
        Some((unit, _)) => unit.human(weight),
        None => weight.to_string(),
    };
    let unit = match facts.weighed {
        None if facts.is_clock => match facts.ring {
            Ring::All => " s CPU".to_owned(),
            Ring::User => " s user CPU".to_owned(),
            Ring::Kernel => " s kernel CPU".to_owned(),
        },
        None if facts.is_off_cpu => " s off CPU".to_owned(),
        _ if facts.is_time() => " s".to_owned(),
        Some((unit @ (Unit::Pages | Unit::Blocks), _)) => format!(" {}", unit.word()),
        Some(_) => String::new(),
        None => format!(" {}", facts.event),
    };
    let whole = number(total.period);
    let much = if is_part {
        format!("{} of {whole}{unit}", number(left.period))
    } else if let Some(used) = facts.used_unseen() {
        format!("{whole} of {}{unit} sampled", number(used))
    } else {
        format!("{whole}{unit}")
    };
    let samples = if is_part {
        format!("{} of {}", left.samples, total.samples)
    } else {
        total.samples.to_string()
    };
    let counted = match total.samples {
        1 => facts.counted().trim_end_matches('s'),
        _ => facts.counted(),
    };
    let wall = facts
        .wall_ns
        .map(|ns| format!(" in {}", short_seconds(ns)))
        .unwrap_or_default();
    let plural = if facts.threads == 1 { "" } else { "s" };
    let mut text = format!(
        "{}, {samples} {counted} of {}, {much}{wall}, {} thread{plural}",
        facts.process(),
        // Who was counted is the recorder's business.
        facts
            .weighed
            .map_or_else(|| plain_name(&facts.event), |_| &facts.event),
        facts.threads
    );
    if !facts.other_events.is_empty() {
        let others = facts.other_events.iter();
        let others = others.map(|(event, count)| format!("{event} with {count} samples"));
        let others: Vec<String> = others.collect();
        text.push_str(&format!("; not shown: {} (--event)", others.join(", ")));
    }
    text
}

fn short_seconds(ns: u64) -> String {
    format!("{:.1} s", ns as f64 / 1e9)
}

/// A table before it is known how much of it is shown.
struct Draft {
    /// Lines for what is no row: the heading, and what is said of a row below it.
    extra: usize,
    name: &'static str,
    title: &'static str,
    columns: Vec<Column>,
    /// Rows in all, and those that are worth showing.
    rows: usize,
    worth: usize,
}

impl Draft {
    /// With heading, and a row for what is left out.
    fn lines(&self) -> usize {
        match self.rows {
            0 => 0,
            rows => self.extra + self.worth + usize::from(rows > self.worth),
        }
    }
}

/// How many branches were mispredicted, and where most of them are. What that costs no processor tells.
fn mispredicted(predictions: &Predictions) -> Option<String> {
    let Predictions { missed, all, worst } = predictions;
    if !predictions.are_many() {
        return None;
    }
    let share = percent(*missed, *all);
    let mut line = format!("Mispredicted: {share:.1}% ({missed} of {all} branches)");
    if let Some((name, misses, branches)) = worst {
        let name = CleanName::of(name, None).name;
        line.push_str(&format!(
            "; most in {}: {misses} of {branches}",
            cut(&name, NAME)
        ));
    }
    Some(line)
}

struct PageMaker<'s> {
    summary: &'s Summary,
    options: &'s PageOptions,
}

impl PageMaker<'_> {
    fn head(&self) -> Vec<String> {
        let summary = self.summary;
        let head = Head {
            facts: &summary.facts,
            verb: "summary",
            counts: [summary.total, summary.unfiltered],
            quality: &self.options.trust,
            filter: self.options.filters.as_deref(),
            own: Some(format!("own: {}", summary.own_rule())),
        };
        let mut lines = head.lines(self.options.lines);
        if self.options.by.is_none() && self.options.lines >= FEW {
            lines.extend(self.shared());
            lines.extend(mispredicted(&summary.facts.predictions));
            lines.extend(self.remarks());
            lines.extend(self.options.when.clone());
        }
        self.comments(&lines)
    }

    /// Code that may be another function's than the one that has the name.
    fn shared(&self) -> Option<String> {
        /// Of all, in percent: small functions of a library have one code in nearly all programs.
        const LEAST: f64 = 5.0;
        let summary = self.summary;
        let mut sum = Count::default();
        summary
            .shared
            .iter()
            .for_each(|(.., count)| sum.add(*count));
        let (id, other, _) = summary.shared.first()?;
        let is_large = percent(sum.period, summary.total.period) >= LEAST;
        let name = summary.labels.get(&summary.functions, *id);
        let more = match summary.shared.len() {
            1 => String::new(),
            count => format!(", +{} more", count - 1),
        };
        is_large.then(|| {
            format!(
                "{} is in one code of several functions: {name} (or {other}){more}",
                self.share(sum)
            )
        })
    }

    /// What other tools do not say: time that is spent on waiting, and on being measured.
    fn remarks(&self) -> Vec<String> {
        let Summary {
            spending, facts, ..
        } = self.summary;
        // Who waits takes no time from anybody.
        if facts.weighed.is_some() || !facts.is_cpu && !facts.is_clock {
            return Vec::new();
        }
        let of = |name: &str| spending.activities.iter().find(|of| of.name == name);
        let large = |name: &str| {
            of(name).filter(|of| percent(of.count.period, self.summary.total.period) >= 3.0)
        };
        let mut lines = Vec::new();
        if let Some(spinning) = large(SPINNING) {
            let share = self.share(spinning.count);
            let first = spinning.payers.first();
            let place = first.map_or_else(String::new, |(id, _)| {
                format!(" in {}", spending.payers[*id].label())
            });
            let remedy = self.remedy().map_or_else(String::new, |switch| {
                format!(": {switch} tells whether it helps")
            });
            lines.push(format!("{share} waits by spinning{place}{remedy}"));
        }
        // Of several programs perf may be one.
        if let Some(profiling) = large("profiling itself").filter(|_| spending.groups.is_empty()) {
            let share = self.share(profiling.count);
            lines.push(format!("{share} is work for the profiler, of probes or of the runtime: without it the program is faster by that"));
        }
        lines
    }

    /// What tells a library to wait without spinning, if one is known for its habit.
    fn remedy(&self) -> Option<&'static str> {
        const SWITCHES: [(&str, &str); 4] = [
            ("openblas", "OPENBLAS_NUM_THREADS=1"),
            ("libgomp", "OMP_WAIT_POLICY=passive"),
            ("libomp", "KMP_BLOCKTIME=0"),
            ("libiomp", "KMP_BLOCKTIME=0"),
        ];
        let objects = &self.summary.objects;
        let is_hit = |name: &str| objects.iter().any(|of| of.label.contains(name));
        let known = SWITCHES.iter().find(|(name, _)| is_hit(name));
        known.map(|(_, switch)| *switch)
    }

    /// What to type next: the lines of the function that pays most, and the samples of the package that does.
    fn next(&self) -> Vec<String> {
        let summary = self.summary;
        // Other weights would have to be asked for again.
        if summary.facts.weighed.is_some() {
            return Vec::new();
        }
        let function = if self.has_own() {
            summary.own.first().copied()
        } else {
            summary.paying.first().map(|paying| paying.function)
        };
        let parts = &summary.facts.parts;
        let path = match summary.facts.path.as_str() {
            _ if !parts.is_empty() => {
                let paths = parts.iter().map(|part| format!(" {}", quoted(&part.path)));
                paths.collect()
            }
            "perf.data" | "./perf.data" => String::new(),
            path => format!(" -i {}", quoted(path)),
        };
        // Lines of code are those of one recording.
        let of_function = if parts.is_empty() { "list" } else { "peek" };
        let mut commands = Vec::new();
        if let Some(id) = function.filter(|id| self.is_named(*id)) {
            let label = summary.labels.get(&summary.functions, id);
            commands.push(format!("pjit {of_function} {}{path}", quoted(label)));
        }
        let payments = summary.spending.payments.iter();
        let mut packages = payments.map(|paid| &summary.spending.payers[paid.payer]);
        let foreign = packages.find(|payer| {
            payer
                .ecosystem
                .is_some_and(|ecosystem| ecosystem != Ecosystem::Own)
        });
        if let Some(foreign) = foreign.filter(|_| !self.has_own()) {
            let focus = quoted(&format!("package={}", foreign.name));
            commands.push(format!("pjit summary --focus {focus}{path}"));
        } else {
            commands.push(format!("pjit flamegraph{path}"));
        }
        // A command that was cut is none.
        let room = COLUMNS - 2 - NEXT.len();
        commands.retain(|command| {
            command.chars().count() <= room && !command.contains(char::is_control)
        });
        let lines = commands.iter().enumerate();
        lines
            .map(|(at, command)| {
                let title = if at == 0 { NEXT } else { "      " };
                format!("{title}{command}")
            })
            .collect()
    }

    fn is_named(&self, id: FunctionId) -> bool {
        self.summary.functions.get(id).identity.name.name != UNKNOWN
    }

    /// Whether own functions weigh enough to be worth a table.
    fn has_own(&self) -> bool {
        let summary = self.summary;
        // Packages that are own for want of anything else are told with each function.
        let are_packages = summary.functions.basis == Basis::Packages;
        // One row says nothing, and neither do those of a program without names.
        let is_told = summary.own.len() > 1 || summary.paying.len() < 2;
        let credited = |id: &FunctionId| summary.numbers[id.index()].credited.period;
        // The heaviest come first: mostly the first one is enough.
        let named = summary.own.iter().filter(|id| self.is_named(**id));
        let mut sums = named.map(credited).scan(0, |sum: &mut u64, one| {
            *sum += one;
            Some(*sum)
        });
        !are_packages && is_told && sums.any(|own| percent(own, summary.total.period) >= 1.0)
    }

    /// Comments as lines of a page, which begin with `# `.
    fn comments(&self, lines: &[String]) -> Vec<String> {
        // Where lines are counted, long ones are worth more than two.
        if self.options.full_names || self.options.lines < FEW {
            return lines.to_vec();
        }
        let lines = lines.iter().flat_map(|line| wrapped(line, COLUMNS - 2));
        lines.collect()
    }

    fn lines(&self) -> Vec<Part> {
        let summary = self.summary;
        let words = self.words();
        let mut parts = Vec::new();
        if let Some(hosts) = &summary.hosts {
            parts.extend(alike(hosts));
            return parts;
        }
        let is_large = |share: &&Share| percent(share.count.period, summary.total.period) >= 5.0;
        // Programs tell more than the names of their threads.
        let has_programs = !summary.spending.groups.is_empty();
        if !has_programs && summary.threads.iter().filter(is_large).count() > 1 {
            let weights = summary.threads.iter().map(|share| share.count.period);
            let worth = worth_showing(weights, summary.total.period).clamp(1, 6);
            parts.push(self.line(&words.title("thread"), &summary.threads, worth));
        }
        parts
    }

    /// The largest shares that a line has room for, and what the others are together.
    fn line(&self, title: &str, shares: &[Share], most: usize) -> Part {
        let title = cut(title, 36);
        let width = |items: &[String]| -> usize {
            let items = items.iter().map(|item| item.chars().count() + 2);
            title.chars().count() + 2 + items.sum::<usize>()
        };
        let lines = (1..=most).rev().map(|shown| self.shares(shares, shown));
        let mut lines = lines.filter(|items| items.len() < 3 || width(items) <= COLUMNS);
        let items = lines.next().unwrap_or_default();
        Part::Line { title, items }
    }

    fn shares(&self, shares: &[Share], shown: usize) -> Vec<String> {
        let mut items: Vec<String> = shares
            .iter()
            .take(shown)
            .map(|share| format!("{} {}", self.share(share.count), cut(&share.label, 40)))
            .collect();
        if shares.len() > shown {
            let rest = sum(shares[shown..].iter().map(|share| share.count));
            items.push(format!("+{} {}", shares.len() - shown, self.share(rest)));
        }
        items
    }

    fn words(&self) -> Words {
        Words::of(&self.summary.facts)
    }

    /// The tables, the one that has its lines first at the front, and their shares of the lines.
    fn drafts(&self, by: Option<By>) -> Vec<(Draft, usize)> {
        match by {
            Some(By::Package) => vec![(self.packages(), 100)],
            Some(By::Activity) => vec![(self.activities(), 100)],
            Some(By::Own) => vec![(self.own(), 100)],
            Some(By::Process) => vec![(self.groups("Processes"), 100)],
            Some(By::Cgroup) => vec![(self.groups("Cgroups"), 100)],
            Some(By::Host) => vec![(self.groups("Hosts"), 50), (self.unlike(), 50)],
            Some(By::Line) => vec![(self.source_lines(), 100)],
            None => {
                let functions = if self.has_own() {
                    self.own()
                } else {
                    self.paying()
                };
                let spending = [
                    (self.groups("Processes"), 12),
                    (self.packages(), 28),
                    (self.activities(), 22),
                ];
                // One row says nothing.
                let spending = spending.into_iter().filter(|(table, _)| table.rows > 1);
                std::iter::once((functions, 25))
                    .chain(spending)
                    .chain([(self.hot(), 13)])
                    .collect()
            }
        }
    }

    fn groups(&self, title: &'static str) -> Draft {
        let groups = &self.summary.spending.groups;
        self.spent(
            "groups",
            title,
            "paid by",
            groups.iter().map(|group| group.count.period),
        )
    }

    /// What hosts are unlike in.
    fn unlike(&self) -> Draft {
        let rows = self.summary.hosts.as_ref();
        let rows = rows.map_or(0, |hosts| hosts.unlike.len());
        Draft {
            extra: 1,
            name: "unlike",
            title: "Unlike the others",
            columns: vec![
                Column::left(""),
                Column::left("on"),
                Column::right("there"),
                Column::right("elsewhere"),
                Column::right("ratio"),
            ],
            rows,
            worth: rows,
        }
    }

    fn paying(&self) -> Draft {
        let paying = self.summary.paying.iter();
        Draft {
            extra: 1,
            name: "paying",
            title: "Functions that pay",
            columns: vec![
                Column::left(""),
                Column::right("credited"),
                Column::right("self"),
                Column::left("package"),
            ],
            rows: paying.len(),
            worth: self.worth(paying.map(|paying| paying.credited.period)),
        }
    }

    fn source_lines(&self) -> Draft {
        let lines = self.summary.lines.iter();
        Draft {
            extra: 1,
            name: "lines",
            title: "Lines",
            columns: vec![
                Column::left(""),
                Column::right("credited"),
                Column::left("function"),
                Column::left("package"),
            ],
            rows: lines.len(),
            worth: self.worth(lines.map(|line| line.count.period)),
        }
    }

    fn packages(&self) -> Draft {
        let payments = &self.summary.spending.payments;
        Draft {
            extra: 1 + usize::from(self.compiled_for().is_some()),
            ..self.spent(
                "packages",
                "Who pays",
                "for",
                payments.iter().map(|p| p.count.period),
            )
        }
    }

    fn activities(&self) -> Draft {
        let activities = &self.summary.spending.activities;
        let weights = activities.iter().map(|a| a.count.period);
        self.spent("activities", "What it does", "paid by", weights)
    }

    fn spent(
        &self,
        name: &'static str,
        title: &'static str,
        parts: &'static str,
        weights: impl ExactSizeIterator<Item = u64> + Clone,
    ) -> Draft {
        Draft {
            extra: 1,
            name,
            title,
            columns: vec![
                Column::left(""),
                Column::right("share"),
                Column::right(self.words().column),
                Column::left(parts),
            ],
            rows: weights.len(),
            worth: self.worth(weights),
        }
    }

    /// A row of who pays or of what is done, whose last cell has so many columns.
    fn spent_row(
        &self,
        name: &str,
        count: Count,
        (parts, room): (Vec<(String, Count)>, usize),
    ) -> Vec<String> {
        let mut text = String::new();
        for (part, of) in parts {
            let share = percent(of.period, count.period);
            let part = format!("{} {share:.0}%", cut(&part, 24));
            let more = if text.is_empty() { 0 } else { 2 } + part.chars().count();
            if share < 8.0 || text.chars().count() + more > room {
                break;
            }
            if !text.is_empty() {
                text.push_str(", ");
            }
            text.push_str(&part);
        }
        let name = if self.options.full_names {
            name.to_owned()
        } else {
            cut(name, PAYER)
        };
        vec![
            format!("  {name}"),
            self.share(count),
            self.time(count),
            text,
        ]
    }

    fn hot(&self) -> Draft {
        let weight = |id: &FunctionId| self.summary.numbers[id.index()].own.period;
        Draft {
            extra: 1,
            name: "self",
            title: "Self",
            columns: vec![
                Column::left(""),
                Column::right(self.words().column),
                Column::left("function"),
                Column::left("object"),
            ],
            rows: self.summary.hot.len(),
            worth: self.worth(self.summary.hot.iter().map(weight)),
        }
    }

    fn own(&self) -> Draft {
        let weight = |id: &FunctionId| self.summary.numbers[id.index()].credited.period;
        Draft {
            extra: 1,
            name: "own",
            title: "Own functions",
            columns: vec![
                Column::left(""),
                Column::right("credited"),
                Column::right("self"),
                Column::left("mostly in"),
            ],
            rows: self.summary.own.len(),
            worth: self.worth(self.summary.own.iter().map(weight)),
        }
    }

    fn worth(&self, weights: impl Iterator<Item = u64> + Clone) -> usize {
        // Whoever asks for one table wants its small rows, too.
        if self.options.by.is_some() {
            return weights.count();
        }
        worth_showing(weights, self.summary.total.period).max(1)
    }

    fn table(&self, draft: &Draft, rows: usize) -> Table {
        let mut order: Vec<usize> = (0..rows).collect();
        if draft.name == "packages" {
            // What is shown is what weighs most; packages stand before what nobody pays for.
            let spending = &self.summary.spending;
            let payer = |at: usize| &spending.payers[spending.payments[at].payer];
            order.sort_by_key(|at| payer(*at).ecosystem.is_none());
        }
        let cells = order.into_iter().map(|at| self.row(draft.name, at));
        let mut cells: Vec<Vec<String>> = cells.collect();
        if draft.name == "packages"
            && let Some(row) = self.compiled_for()
        {
            let names = |line: &Vec<String>| line[0].starts_with(COMPILERS);
            let at = cells.iter().position(names);
            cells.insert(at.map_or(cells.len(), |at| at + 1), row);
        }
        if draft.rows > rows {
            cells.push(self.rest(draft.name, rows, draft.rows - rows));
        }
        let table = Table {
            name: draft.name,
            title: draft.title.to_owned(),
            columns: draft.columns.clone(),
            rows: cells,
        };
        let names: &[usize] = match draft.name {
            _ if self.options.full_names => return table,
            "self" => &[2, 3],
            "own" | "paying" => &[0, 3],
            "lines" => &[0, 2, 3],
            "unlike" => &[0, 1],
            _ => &[],
        };
        table.fitted(COLUMNS, names, NAME)
    }

    /// For whom threads that compile do so, where they take enough of the time to ask.
    fn compiled_for(&self) -> Option<Vec<String>> {
        let Summary {
            spending, total, ..
        } = self.summary;
        let made = &spending.compiled_for;
        let mut payments = spending.payments.iter();
        let compilers = payments.find(|paid| {
            let payer = &spending.payers[paid.payer];
            payer.ecosystem.is_none() && payer.name == "V8"
        })?;
        let mut doings = compilers.activities.iter();
        let (_, compiling) = doings.find(|(name, _)| *name == "JIT compile")?;
        if made.is_empty() || percent(compiling.period, total.period) < 5.0 {
            return None;
        }
        let mut room = self.room_for_activities();
        let mut parts: Vec<String> = Vec::new();
        for (id, part) in made.iter().take_while(|(_, part)| *part >= 0.01) {
            let name = cut(&spending.payers[*id].label(), 20);
            let text = format!("{name} {:.0}%", 100.0 * part);
            let Some(left) = room.checked_sub(text.chars().count() + 2) else {
                break;
            };
            room = left;
            parts.push(text);
        }
        let mut row = vec![format!("  {ESTIMATE}"), String::new(), String::new()];
        row.push(parts.join(", "));
        Some(row)
    }

    /// What is left of a line beside who pays.
    fn room_for_activities(&self) -> usize {
        let spending = &self.summary.spending;
        let names = spending.payments.iter().take(SHOWN);
        let names = names.map(|paid| spending.payers[paid.payer].label());
        let estimate = (!spending.compiled_for.is_empty()).then(|| ESTIMATE.to_owned());
        room_beside(names.chain(estimate))
    }

    fn row(&self, table: &str, at: usize) -> Vec<String> {
        let summary = self.summary;
        let spending = &summary.spending;
        let payer = |id: PayerId| spending.payers[id].label();
        match table {
            "packages" => {
                let payment = &spending.payments[at];
                let parts = payment.activities.iter();
                let parts = parts
                    .map(|(name, count)| ((*name).to_owned(), *count))
                    .collect();
                let room = self.room_for_activities();
                self.spent_row(&payer(payment.payer), payment.count, (parts, room))
            }
            "activities" => {
                let activity = &spending.activities[at];
                let parts = activity.payers.iter();
                let parts = parts.map(|(id, count)| (payer(*id), *count)).collect();
                let names = spending.activities.iter().map(|a| a.name.to_owned());
                let room = room_beside(names.take(SHOWN));
                self.spent_row(activity.name, activity.count, (parts, room))
            }
            "self" => {
                let id = summary.hot[at];
                let own = summary.numbers[id.index()].own;
                let object = &summary.functions.get(id).identity.object;
                let share = format!("  {:>5}{}", self.share(own), self.half_width(own));
                vec![share, self.time(own), self.name(id), cut(object, NAME)]
            }
            "own" => {
                let id = summary.own[at];
                let numbers = &summary.numbers[id.index()];
                let parts = [numbers.credited, numbers.own];
                let mut cells = vec![format!("  {}", self.place(id))];
                cells.extend(parts.iter().map(|count| self.share(*count)));
                cells.push(self.mostly(id, numbers.credited));
                cells
            }
            "paying" => {
                let paying = &summary.paying[at];
                vec![
                    format!("  {}", self.name(paying.function)),
                    self.share(paying.credited),
                    self.share(paying.own),
                    cut(&payer(paying.payer), PACKAGE),
                ]
            }
            "lines" => {
                let line = &summary.lines[at];
                let file = line.file.rsplit('/').next().unwrap_or(&line.file);
                let file = if self.options.full_names {
                    &line.file
                } else {
                    file
                };
                vec![
                    format!("  {}", cut(&format!("{file}:{}", line.line), PLACE)),
                    self.share(line.count),
                    self.name(line.function),
                    cut(&payer(line.payer), PACKAGE),
                ]
            }
            "unlike" => {
                let rows = summary.hosts.iter().flat_map(|hosts| &hosts.unlike);
                rows.skip(at)
                    .take(1)
                    .flat_map(|row| self.unlike_row(row))
                    .collect()
            }
            _ => {
                let group = &spending.groups[at];
                let parts = group.payers.iter();
                let parts = parts.map(|(id, count)| (payer(*id), *count)).collect();
                let name = |of| group_name(of, summary.hosts.as_ref());
                let names = spending.groups.iter().map(name);
                let room = room_beside(names.take(SHOWN));
                self.spent_row(&name(group), group.count, (parts, room))
            }
        }
    }

    /// `parse  web-1  12.1%  8.0%  1.51`
    fn unlike_row(&self, row: &Unlike) -> [String; 5] {
        let share = |share: f64| format!("{:.1}%", 100.0 * share);
        [
            format!("  {}", self.place(row.function)),
            cut(&row.host, PAYER),
            share(row.here),
            share(row.elsewhere),
            row.ratio
                .map_or_else(String::new, |ratio| format!("{:.2}", ratio.value)),
        ]
    }

    /// The row that stands for all that are left out.
    fn rest(&self, table: &str, from: usize, count: usize) -> Vec<String> {
        let summary = self.summary;
        let numbers = |id: &FunctionId| &summary.numbers[id.index()];
        let spent = |rest: Count, what: &str| {
            vec![
                format!("  +{count} {what}"),
                self.share(rest),
                self.time(rest),
                String::new(),
            ]
        };
        match table {
            "packages" => {
                let payments = &summary.spending.payments[from..];
                spent(sum(payments.iter().map(|payment| payment.count)), "more")
            }
            "activities" => {
                let activities = &summary.spending.activities[from..];
                spent(
                    sum(activities.iter().map(|activity| activity.count)),
                    "more",
                )
            }
            "self" => {
                let rest = sum(summary.hot[from..].iter().map(|id| numbers(id).own));
                let share = format!("  {:>5}", self.share(rest));
                vec![
                    share,
                    self.time(rest),
                    format!("+{count} functions"),
                    String::new(),
                ]
            }
            "own" => {
                let credited = sum(summary.own[from..].iter().map(|id| numbers(id).credited));
                let own = sum(summary.own[from..].iter().map(|id| numbers(id).own));
                let shares = [credited, own].map(|weight| self.share(weight));
                let [credited_share, own_share] = shares;
                vec![
                    format!("  +{count} functions"),
                    credited_share,
                    own_share,
                    String::new(),
                ]
            }
            "paying" => {
                let rest = &summary.paying[from..];
                vec![
                    format!("  +{count} functions"),
                    self.share(sum(rest.iter().map(|paying| paying.credited))),
                    self.share(sum(rest.iter().map(|paying| paying.own))),
                    String::new(),
                ]
            }
            "lines" => {
                let rest = sum(summary.lines[from..].iter().map(|line| line.count));
                vec![
                    format!("  +{count} lines"),
                    self.share(rest),
                    String::new(),
                    String::new(),
                ]
            }
            "unlike" => {
                let mut cells = vec![String::new(); 5];
                cells[0] = format!("  +{count} functions");
                cells
            }
            _ => {
                let groups = &summary.spending.groups[from..];
                spent(sum(groups.iter().map(|group| group.count)), "more")
            }
        }
    }

    /// Up to two functions that have a tenth of the weight each.
    fn mostly(&self, id: FunctionId, credited: Count) -> String {
        let parts = self.summary.mostly.get(&id).map_or(&[][..], Vec::as_slice);
        let large = parts
            .iter()
            .filter(|(_, count)| percent(count.period, credited.period) >= 10.0);
        let large: Vec<&(FunctionId, Count)> = large.take(2).collect();
        let names = large.iter().map(|(function, _)| match *function {
            function if function == id => "itself".to_owned(),
            function => self.place(function),
        });
        let names: Vec<String> = names.collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let most = if self.options.full_names {
            usize::MAX
        } else {
            MOSTLY - 5
        };
        let names = cut_apart_as(&names, most, |name| match name {
            object if object.starts_with('[') => object.to_owned(),
            name => cut(name, most),
        });
        let texts = names.iter().zip(large);
        let texts = texts.map(|(name, (_, count))| {
            format!("{name} {:.0}%", percent(count.period, credited.period))
        });
        let mut all = String::new();
        for text in texts {
            if all.is_empty() {
                all = text;
            } else if self.options.full_names || all.len() + text.len() + 2 <= MOSTLY {
                all = format!("{all}, {text}");
            }
        }
        all
    }

    fn share(&self, count: Count) -> String {
        format!(
            "{:.1}%",
            percent(count.period, self.summary.unfiltered.period)
        )
    }

    /// Half the width of the 95 % interval within this run; nothing where each thing was recorded, for then the share is known.
    fn half_width(&self, count: Count) -> String {
        let Some(n) = self.summary.worth else {
            return String::new();
        };
        let p = count.period as f64 / self.summary.unfiltered.period.max(1) as f64;
        let width = 196.0 * (p * (1.0 - p).max(0.0) / n.max(1.0)).sqrt();
        format!(" +-{width:.1}")
    }

    fn time(&self, count: Count) -> String {
        if self.summary.facts.is_time() {
            let decimals = if self.summary.unfiltered.period < 1_000_000_000 {
                3
            } else {
                2
            };
            format!("{:.decimals$}", count.period as f64 / 1e9)
        } else {
            let weighed = self.summary.facts.weighed;
            let unit = weighed.map_or(Unit::Count, |(unit, _)| unit);
            unit.human(count.period)
        }
    }

    fn name(&self, id: FunctionId) -> String {
        let summary = self.summary;
        summary.labels.get(&summary.functions, id).to_owned()
    }

    /// Where there is no column for objects, code without a name is shown as its object.
    fn place(&self, id: FunctionId) -> String {
        let identity = &self.summary.functions.get(id).identity;
        match identity.name.name.as_str() {
            UNKNOWN if identity.object.starts_with('[') => identity.object.clone(),
            UNKNOWN => format!("[{}]", identity.object),
            _ => self.name(id),
        }
    }
}

/// Below V8's threads: for whom they compile.
const ESTIMATE: &str = "  compiled for (estimate)";
/// The row of V8's own threads.
const COMPILERS: &str = "  nobody: V8";
/// In front of what to type next.
const NEXT: &str = "Next: ";
/// Which activity is waiting without giving the processor away.
const SPINNING: &str = "waiting by spinning";

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// What is said where hosts were compared and nothing was found.
fn alike(hosts: &Hosts) -> Option<Part> {
    (hosts.compared > 0 && hosts.unlike.is_empty()).then(|| Part::Line {
        title: "Unlike the others".to_owned(),
        items: vec!["no function".to_owned()],
    })
}

/// `node`, `cc1 (12 processes)`, `web-1 (3 recordings)`
fn group_name(group: &Group, hosts: Option<&Hosts>) -> String {
    if let Some(hosts) = hosts {
        let recordings = plural(hosts.recordings_of(group), "recording");
        return format!("{} ({recordings})", group.name);
    }
    match group.processes {
        0 | 1 => group.name.clone(),
        processes => format!("{} ({processes} processes)", group.name),
    }
}

/// Rows whose names decide how wide the others are.
const SHOWN: usize = 15;

/// What is left of 80 columns beside the longest of these names, a share and a weight.
fn room_beside(names: impl Iterator<Item = String>) -> usize {
    let longest = names.map(|name| name.chars().count().min(PAYER)).max();
    80 - 21 - longest.unwrap_or(0)
}

fn sum(counts: impl Iterator<Item = Count>) -> Count {
    counts.fold(Count::default(), |mut sum, count| {
        sum.add(count);
        sum
    })
}

/// Who pays for what: a row for each pair.
fn spending_rows(spending: &Spending, table: &str) -> Vec<Vec<String>> {
    let head = ["weight", "samples", "ecosystem", "package", "activity"];
    let row = |payer: PayerId, activity: &str, count: Count| {
        let payer = &spending.payers[payer];
        vec![
            count.period.to_string(),
            count.samples.to_string(),
            payer.ecosystem.map_or("", Ecosystem::word).to_owned(),
            payer.name.clone(),
            activity.to_owned(),
        ]
    };
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    if table == "packages" {
        for payment in &spending.payments {
            let parts = payment.activities.iter();
            rows.extend(parts.map(|(name, count)| row(payment.payer, name, *count)));
        }
    } else {
        for activity in &spending.activities {
            let parts = activity.payers.iter();
            rows.extend(parts.map(|(payer, count)| row(*payer, activity.name, *count)));
        }
    }
    rows
}

/// One table, self, own, foreign, packages, activities, processes, cgroups, hosts or lines, with a heading: exact weights.
#[must_use]
pub fn csv_rows(summary: &Summary, table: &str) -> Vec<Vec<String>> {
    let share = |count: Count| {
        format!(
            "{:.6}",
            percent(count.period, summary.unfiltered.period) / 100.0
        )
    };
    let head = |words: &[&str]| {
        vec![
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>(),
        ]
    };
    match table {
        "packages" | "activities" => return spending_rows(&summary.spending, table),
        "processes" | "cgroups" | "hosts" => {
            let name = match table {
                "cgroups" => "cgroup",
                "hosts" => "host",
                _ => "program",
            };
            let of_hosts = summary.hosts.as_ref();
            let counted = of_hosts.map_or("processes", |_| "recordings");
            let mut rows = head(&["weight", "samples", "share", name, counted]);
            rows.extend(summary.spending.groups.iter().map(|group| {
                vec![
                    group.count.period.to_string(),
                    group.count.samples.to_string(),
                    share(group.count),
                    group.name.clone(),
                    of_hosts
                        .map_or(group.processes, |hosts| hosts.recordings_of(group))
                        .to_string(),
                ]
            }));
            return rows;
        }
        "lines" => {
            let mut rows = head(&[
                "weight", "samples", "share", "file", "line", "function", "object", "package",
            ]);
            rows.extend(summary.lines.iter().map(|line| {
                let function = summary.functions.get(line.function);
                vec![
                    line.count.period.to_string(),
                    line.count.samples.to_string(),
                    share(line.count),
                    line.file.clone(),
                    line.line.to_string(),
                    function.full_name(),
                    function.identity.object.clone(),
                    summary.spending.payers[line.payer].name.clone(),
                ]
            }));
            return rows;
        }
        _ => {}
    }
    if table == "foreign" {
        let mut rows = head(&[
            "weight",
            "samples",
            "share",
            "function",
            "object",
            "payer",
            "payer_object",
        ]);
        rows.extend(summary.foreign.iter().map(|row| {
            let (function, payer) = (
                summary.functions.get(row.function),
                summary.functions.get(row.payer),
            );
            vec![
                row.count.period.to_string(),
                row.count.samples.to_string(),
                share(row.count),
                function.full_name(),
                function.identity.object.clone(),
                payer.full_name(),
                payer.identity.object.clone(),
            ]
        }));
        return rows;
    }
    let mut rows = head(&[
        "credited",
        "self",
        "inclusive",
        "share",
        "kind",
        "function",
        "object",
        "id",
    ]);
    let ids = if table == "self" {
        &summary.hot
    } else {
        &summary.own
    };
    rows.extend(ids.iter().map(|id| {
        let (function, numbers) = (summary.functions.get(*id), &summary.numbers[id.index()]);
        let of = if table == "self" {
            numbers.own
        } else {
            numbers.credited
        };
        vec![
            numbers.credited.period.to_string(),
            numbers.own.period.to_string(),
            numbers.inclusive.period.to_string(),
            share(of),
            function.kind.word().to_owned(),
            function.full_name(),
            function.identity.object.clone(),
            function.id(),
        ]
    }));
    rows
}
