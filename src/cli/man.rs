//! `pjit man`.

use std::io;
use std::process::ExitCode;

use clap::{Args, CommandFactory};

use super::terminal::Output;
use super::{Cli, Context, Verb};

/// Arguments of `pjit man`.
#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// Command to describe
    command: Option<String>,
}

impl Verb for ManArgs {
    fn run(&self, _: &Context<'_>) -> anyhow::Result<ExitCode> {
        let mut out = Output::open(None);
        write_page(self.command.as_deref(), &mut out)?;
        out.finish()?;
        Ok(ExitCode::SUCCESS)
    }
}

fn write_page(command: Option<&str>, out: &mut Output) -> io::Result<()> {
    let mut whole = Cli::command();
    whole.build();
    let page = match command {
        None => whole,
        Some(name) => {
            let found = whole.find_subcommand(name).cloned();
            let unknown =
                || io::Error::new(io::ErrorKind::InvalidInput, format!("no command '{name}'"));
            found.ok_or_else(unknown)?.name(format!("pjit-{name}"))
        }
    };
    clap_mangen::Man::new(page).render(out)
}
