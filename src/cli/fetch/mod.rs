//! `pjit fetch`: debug files from debuginfod servers, before others look for them.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::input::{InputArgs, ListArgs};
use super::less::{Less, OfFetch};
use super::page::Page;
use super::record::parse_bytes;
use super::verb::{Context, Verb};

#[cfg(target_os = "linux")]
mod run;

pub(super) const PAGE: Page = Page {
    examples: &[
        ("pjit fetch --dry-run", "what would be asked for"),
        ("pjit fetch && pjit summary", ""),
        ("pjit fetch --sources parse_number", "then: pjit list"),
        (
            "DEBUGINFOD_URLS=https://debuginfod.elfutils.org pjit fetch",
            "",
        ),
    ],
    short: &["dry-run", "executables", "sources", "max-size"],
    notes: "Runs debuginfod-find for each build without symbols or inlined functions, the heaviest first. No other command asks a server. What it brings is in its cache, and all commands find it there.\n\nBuild IDs go to the servers in DEBUGINFOD_URLS. With --sources, paths of sources go there too. Names and addresses of samples stay here.\n\nEach file is checked: one of another build is removed. If no server has a file, ask again ten minutes later.\n\nExit status: 0 if all that servers have was fetched, 1 if something went wrong, 2 for wrong arguments or without a server.",
};

/// Arguments of `pjit fetch`.
#[derive(Debug, Clone, Args)]
pub struct FetchArgs {
    /// Recordings to fetch for [default: perf.data]
    #[arg(value_name = "FILE", conflicts_with = "input")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    list: ListArgs,

    /// List the files and the commands, and ask no server
    #[arg(long = "dry-run")]
    dry_run: bool,

    /// Also fetch programs and libraries that are not here
    #[arg(long = "executables", conflicts_with = "sources")]
    executables: bool,

    /// Fetch the sources of this function instead
    #[arg(long = "sources", value_name = "FUNCTION")]
    sources: Option<String>,

    /// Fetch at most this much in all, such as 500M
    #[arg(long = "max-size", value_name = "SIZE", value_parser = parse_bytes, default_value = "2G")]
    max_size: u64,

    /// The recording and its companions.
    #[command(flatten)]
    pub input: Less<OfFetch>,
}

impl Verb for FetchArgs {
    #[cfg(target_os = "linux")]
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        run::run(self, context)
    }

    #[cfg(not(target_os = "linux"))]
    fn run(&self, _: &Context<'_>) -> anyhow::Result<ExitCode> {
        let _ = (&self.files, &self.list, &self.sources, self.max_size);
        let _ = (self.dry_run, self.executables);
        anyhow::bail!("fetch: only Linux has debuginfod-find")
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.input)
    }

    fn takes_several(&self) -> bool {
        true
    }
}
