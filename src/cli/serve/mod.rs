//! `pjit serve`: profiles of one process for whoever asks over HTTP, as programs in Go have them.
//!
//! It is `pjit record` and `pjit export` and nothing else. Who may ask is whoever is on this machine, or has the token. What is
//! recorded is said on the command line and nowhere in a request.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::page::Page;
use super::verb::{Context, Verb};

#[cfg(target_os = "linux")]
mod http;
#[cfg(target_os = "linux")]
mod server;

pub(super) const PAGE: Page = Page {
    examples: &[
        ("pjit serve -p 4711", "then: go tool pprof localhost:6061"),
        ("sudo pjit serve -a", "the whole machine"),
        (
            "pjit serve -p 4711 --listen 10.0.0.5:6061 --token FILE",
            "for other machines",
        ),
    ],
    short: &[],
    notes: "/debug/pprof/profile?seconds=N shows CPU time. The last word can also be allocs, heap or offcpu. One request is answered at a time.\n\nThe token is the first line of FILE. Send it as Authorization: Bearer TOKEN. Nothing is encrypted.\n\nserve ends if it is asked after the end of the process.",
};

/// Arguments of `pjit serve`.
#[derive(Debug, Clone, Args)]
#[command(override_usage = "pjit serve [OPTIONS] -p PID
       pjit serve [OPTIONS] -a")]
pub struct ServeArgs {
    /// Profile this process
    #[arg(
        short = 'p',
        long = "pid",
        value_name = "PID",
        required_unless_present = "machine",
        conflicts_with = "machine"
    )]
    process: Option<u32>,

    /// Profile the whole machine
    #[arg(short = 'a', long = "all-cpus")]
    machine: bool,

    /// Listen on this address; for other machines with --token
    #[arg(long = "listen", value_name = "ADDRESS", default_value = "127.0.0.1:6061", value_parser = parse_address)]
    address: SocketAddr,

    /// Answer only requests with the token of this file
    #[arg(long = "token", value_name = "FILE")]
    token: Option<PathBuf>,
}

fn parse_address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse()
        .map_err(|_| "takes an address and a port, such as 127.0.0.1:6061")
}

impl Verb for ServeArgs {
    #[cfg(target_os = "linux")]
    fn run(&self, _: &Context<'_>) -> anyhow::Result<ExitCode> {
        server::run(self)
    }

    #[cfg(not(target_os = "linux"))]
    fn run(&self, _: &Context<'_>) -> anyhow::Result<ExitCode> {
        let _ = (self.process, self.machine, self.address, &self.token);
        anyhow::bail!("serve: only Linux has perf; recordings from there are read here")
    }
}
