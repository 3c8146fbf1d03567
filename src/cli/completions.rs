//! `pjit completions`.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, CommandFactory};

use super::terminal::Output;
use super::{Cli, Context, Verb};

/// Arguments of `pjit completions`.
#[derive(Debug, Clone, Args)]
pub struct CompletionsArgs {
    /// bash, zsh, fish, elvish or powershell
    shell: clap_complete::Shell,
}

impl Verb for CompletionsArgs {
    fn run(&self, _: &Context<'_>) -> anyhow::Result<ExitCode> {
        // clap panics where a reader has gone.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "pjit", &mut script);
        let mut out = Output::open(None);
        out.write_all(&script)?;
        out.finish()?;
        Ok(ExitCode::SUCCESS)
    }
}
