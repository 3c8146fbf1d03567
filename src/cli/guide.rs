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

    /// The commands between backticks of a text.
    fn commands(text: &str) -> impl Iterator<Item = &str> {
        text.split('`').skip(1).step_by(2)
    }

    /// What pages say by hand is what the rows of runtimes say, and they have no other recipes for the same programs.
    #[test]
    fn pages_have_the_recipes_of_the_runtimes() {
        let recipes: Vec<&str> = Producer::all()
            .flat_map(|runtime| runtime.recipes)
            .map(|recipe| recipe.begins)
            .collect();
        assert!(recipes.len() > 10, "{recipes:?}");
        let is_begun = |command: &str, recipe: &str| {
            let rest = command.strip_prefix(recipe);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        let (_, guide) = PARTS[0];
        let guide = guide.split_once("With perf itself").expect("there").1;
        let readme = include_str!("../../README.md");
        let readme = readme.split_once("## Your runtime").expect("there").1;
        let readme = readme.split_once("\n## ").expect("there").0;
        let [guide, readme] = [guide.replace("\n  ", " "), readme.replace('\n', " ")];
        for recipe in &recipes {
            let mut all = commands(&guide);
            assert!(all.any(|command| is_begun(command, recipe)), "{recipe}");
        }
        let program = |command: &str| {
            let mut words = command.split(' ');
            let word = words.find(|word| *word != "env" && !word.contains('='));
            word.unwrap_or_default().to_owned()
        };
        let known: Vec<String> = recipes.iter().map(|recipe| program(recipe)).collect();
        let mut found = 0;
        for command in commands(&guide).chain(commands(&readme)) {
            if known.contains(&program(command)) {
                let mut recipes = recipes.iter();
                assert!(recipes.any(|recipe| is_begun(command, recipe)), "{command}");
                found += 1;
            }
        }
        assert!(found > recipes.len(), "{found}");
    }
}
