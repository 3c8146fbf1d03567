//! `pjit guide`: how to record, read and compare, for who has never seen the tool.

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::page::Page;
use super::terminal::Output;
use super::verb::{Context, Verb};

pub(super) const PAGE: Page = Page {
    examples: &[
        ("pjit guide", ""),
        ("pjit guide assistants", "for programs that use pjit"),
        ("pjit guide schema > pjit.schema.json", ""),
    ],
    short: &[],
    notes: "",
};

/// Arguments of `pjit guide`.
#[derive(Debug, Clone, Args)]
pub struct GuideArgs {
    /// Print only this part
    #[arg(value_enum, value_name = "PART")]
    part: Option<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// How to record each runtime
    Record,
    /// Which command answers which question, what columns mean, what not to conclude
    Read,
    /// How to compare versions
    Compare,
    /// How a program or assistant uses pjit
    Assistants,
    /// What the keys of JSON mean, as a JSON schema
    Schema,
}

const HEAD: &str = "# pjit: where CPU time goes, from `perf record` to an answer\n\n";
/// The pages of `docs/guide`.
const PARTS: [(Part, &str); 4] = [
    (Part::Record, include_str!("../../docs/guide/record.md")),
    (Part::Read, include_str!("../../docs/guide/read.md")),
    (Part::Compare, include_str!("../../docs/guide/compare.md")),
    (
        Part::Assistants,
        include_str!("../../docs/guide/assistants.md"),
    ),
];

/// For programs, and so not a part of what is printed for people.
const SCHEMA: &str = include_str!("../../docs/schema/pjit-2.schema.json");

impl Verb for GuideArgs {
    fn run(&self, _: &Context<'_>) -> anyhow::Result<ExitCode> {
        let mut out = Output::open(None);
        if self.part == Some(Part::Schema) {
            out.write_all(SCHEMA.as_bytes())?;
            out.finish()?;
            return Ok(ExitCode::SUCCESS);
        }
        if self.part.is_none() {
            out.write_all(HEAD.as_bytes())?;
        }
        let wanted = |part: Part| self.part.is_none_or(|only| only == part);
        for (at, (_, text)) in PARTS.iter().filter(|(part, _)| wanted(*part)).enumerate() {
            if at > 0 {
                writeln!(out)?;
            }
            out.write_all(text.as_bytes())?;
        }
        out.finish()?;
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::Producer;

    /// What pages say by hand is what the rows of runtimes say.
    #[test]
    fn pages_have_the_recipes_of_the_runtimes() {
        let (_, guide) = PARTS[0];
        let items: Vec<String> = (guide.split("\n- "))
            .map(|item| item.replace("\n  ", " "))
            .collect();
        let readme = include_str!("../../README.md");
        let rows = readme.lines().filter(|line| line.starts_with("| "));
        let rows: Vec<&str> = rows.collect();
        let recipes: Vec<&str> = Producer::all()
            .filter_map(|runtime| runtime.record)
            .collect();
        assert!(recipes.len() > 5, "{recipes:?}");
        for recipe in recipes {
            let has_all = |text: &str| recipe.split(' ').all(|word| text.contains(word));
            assert!(items.iter().any(|item| has_all(item)), "guide: {recipe}");
            let mut words = recipe.split(' ');
            let program = words.find(|word| !word.contains('=')).unwrap_or_default();
            let is_its = |row: &&&str| row.contains(&format!("`{program} "));
            for row in rows.iter().filter(is_its) {
                assert!(has_all(row), "README: {recipe}: {row}");
            }
        }
    }
}
