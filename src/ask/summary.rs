//! Where the weight goes: the question of `pjit summary`.

use serde_json::Value;

use super::{AskError, Asked, Question, Request, forget_large};
use crate::check::Numbers;
use crate::functions::Functions;
use crate::functions::edges::Edges;
use crate::functions::payers::{Grouping, Payer, Payers, Spending};
use crate::functions::tally::Tally;
use crate::load::Library;
use crate::needs::Needs;
use crate::output::answer::Paged;
use crate::output::json::{self, Common};
use crate::output::page::Page;
use crate::output::{self, stdio, summary};
use crate::profile::{Facet, Profile};
use crate::questions;
use crate::questions::hosts::{self, Hosts};
use crate::questions::over_time::{self, OverTime, worth_a_line};
use crate::questions::summary::{self as question, Wanted};
use crate::runtimes::Ecosystem;

/// Where the weight goes.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Names and paths whole.
    pub full_names: bool,
    /// Functions that are too small for a page, too: what programs read has all of them.
    pub small: bool,
    /// All edges between functions, too.
    pub edges: bool,
    /// The page is part of another one, which says what to type next.
    pub is_part: bool,
    /// The only table that is shown, if not all are.
    pub by: Option<summary::By>,
    /// When, and not where: phases, spells and gaps.
    pub over_time: bool,
    /// The table that CSV shows: self, own, foreign, packages, activities, processes, cgroups, hosts or lines.
    pub table: String,
}

/// Where it went.
pub struct Summarised {
    summary: question::Summary,
    /// If that was asked for.
    over: Option<OverTime>,
    options: summary::PageOptions,
    table: String,
    common: Common,
    numbers: Numbers,
}

impl Summarised {
    /// What the verdict on the recording counted.
    #[must_use]
    pub const fn numbers(&self) -> Numbers {
        self.numbers
    }
}

impl Question for Summary {
    type Answer = Summarised;

    fn needs(&self) -> Needs {
        let by_line = self.by == Some(summary::By::Line);
        let by_cgroup = self.by == Some(summary::By::Cgroup);
        let by_host = self.by == Some(summary::By::Host);
        let tells_processes = self.by == Some(summary::By::Process) || by_cgroup || by_host;
        questions::NEEDS
            | Needs::OPTIMISED
            | Needs::PREDICTIONS
            | Needs::LINES.only_if(by_line)
            | Facet::Cgroup.needs().only_if(by_cgroup)
            | hosts::NEEDS.only_if(by_host)
            | Needs::THREADS.only_if(tells_processes)
            | over_time::NEEDS.only_if(self.over_time || self.by.is_none())
    }

    fn answer(request: &Request<Self>, library: &Library<'_>) -> Result<Summarised, AskError> {
        if request.view.over_time && !request.load.more.is_empty() {
            let text = "--over-time is of one recording: several have no time in common";
            return Err(AskError::Request(text.to_owned()));
        }
        let asked = request.read(library)?;
        let view = &request.view;
        let Asked {
            profile,
            functions,
            tally,
            facts,
            numbers,
            filter,
            ..
        } = asked;
        if let (Some(own), true) = (&request.own.own, tally.no_own == tally.total) {
            let what = own.patterns().join(", ");
            let line = format!("--own {what}: no function with samples matches");
            library.diag().warn(line);
        }
        let edges = view
            .edges
            .then(|| Edges::of(&profile, &functions, &tally, None).all);
        let common = Common {
            quality: Some(json::quality(&profile, tally.event)),
            edges,
            filters: request.filters.texts(),
            ..Common::default()
        };
        let mut options = summary::PageOptions {
            lines: 0,
            full_names: view.full_names,
            trust: stdio::trust_line(&profile, tally.event),
            filters: filter,
            when: None,
            by: view.by,
            is_part: view.is_part,
        };
        let wanted = Wanted {
            full_names: view.full_names,
            small: view.small,
        };
        let payers = Payers::new(&profile, &functions);
        let grouping = match view.by {
            Some(summary::By::Process) => Grouping::Processes,
            Some(summary::By::Cgroup) => Grouping::Cgroups,
            Some(summary::By::Host) => Grouping::Hosts,
            _ => Grouping::Programs,
        };
        let spending = Spending::of(&profile, &tally, payers, grouping);
        for (name, regex) in &functions.corrections.packages {
            let is_it =
                |payer: &Payer| payer.ecosystem == Some(Ecosystem::Named) && payer.name == *name;
            if !spending.payers.iter().any(is_it) {
                let line = format!("--package {name}={regex}: no function with samples matches");
                library.diag().warn(line);
            }
        }
        let over = view
            .over_time
            .then(|| over(&profile, &functions, &tally))
            .transpose()?;
        let tells_when = view.by.is_none() && !view.over_time && request.load.more.is_empty();
        // Waits and other weights are no time in which a thread does something.
        let spell = (tells_when && facts.weighed.is_none())
            .then(|| worth_a_line(&profile, &functions, tally.event))
            .flatten();
        let hosts = (grouping == Grouping::Hosts)
            .then(|| Hosts::of(&profile, &functions, &tally, facts.made));
        let counted = (tally, spending);
        let summary = question::Summary {
            hosts,
            ..question::Summary::of(&profile, functions, counted, facts, wanted)
        };
        forget_large(profile);
        options.when = spell.map(|spell| output::over_time::line(&summary, &spell));
        Ok(Summarised {
            summary,
            over,
            options,
            table: view.table.clone(),
            common,
            numbers,
        })
    }
}

/// What the samples of the event say about when.
fn over(profile: &Profile, functions: &Functions, tally: &Tally) -> Result<OverTime, AskError> {
    let over = OverTime::of(profile, functions, tally.event);
    over.ok_or_else(|| {
        let path = &profile.recording.path;
        AskError::Absent(format!("{path}: no sample has a time"))
    })
}

impl Paged for Summarised {
    fn common(&mut self) -> &mut Common {
        &mut self.common
    }

    fn page(&self, lines: usize) -> Page {
        let options = summary::PageOptions {
            lines,
            ..self.options.clone()
        };
        match &self.over {
            Some(over) => output::over_time::page(&self.summary, over, &options),
            None => summary::page(&self.summary, &options),
        }
    }

    fn rows(&self) -> Vec<Vec<String>> {
        match &self.over {
            Some(over) => output::over_time::csv_rows(&self.summary, over),
            None => summary::csv_rows(&self.summary, &self.table),
        }
    }

    fn json(&self, rows: usize) -> Value {
        let mut document = json::summary(&self.summary, &self.common, rows);
        if let (Some(over), Value::Object(parts)) = (&self.over, &mut document) {
            let over = output::over_time::document(&self.summary, over, rows);
            parts.insert("over_time".to_owned(), over);
        }
        document
    }
}
