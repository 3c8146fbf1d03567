//! The ten functions of a recording in which most samples were taken: `cargo run --example hottest -- perf.data`.

use std::collections::HashMap;
use std::io::Write;

use anyhow::Context;
use pjit::diagnostics::Diagnostics;
use pjit::load::{LoadOptions, Source, load};
use pjit::needs::Needs;
use pjit::output::text::harmless;
use pjit::profile::SymbolId;

fn main() -> anyhow::Result<()> {
    let path = std::env::args_os().nth(1).context("usage: hottest FILE")?;
    let mut options = LoadOptions::of(Source::File(path.into()));
    // No call chains: where samples were taken is enough.
    options.needs = Needs::empty();
    let profile = load(&options, &Diagnostics::new())?;
    // Weights of different events do not add up: the first event only.
    let event = profile.entries.first().context("no samples")?.event;
    let mut of_function: HashMap<Option<SymbolId>, u64> = HashMap::new();
    for entry in profile.entries.iter().filter(|e| e.event == event) {
        *of_function.entry(profile[entry.leaf].symbol).or_default() += entry.period;
    }
    let total = of_function.values().sum::<u64>().max(1) as f64;
    let mut hottest: Vec<_> = of_function.into_iter().collect();
    hottest.sort_by_key(|&(symbol, period)| (std::cmp::Reverse(period), symbol));
    let mut out = std::io::stdout().lock();
    for (symbol, period) in hottest.into_iter().take(10) {
        write!(out, "{:6.2}%  ", 100.0 * period as f64 / total)?;
        let Some(symbol) = symbol.map(|symbol| &profile[symbol]) else {
            writeln!(out, "[unknown]")?;
            continue;
        };
        // Names come from the recording: they may hold anything.
        let (object, name) = (&profile[symbol.object].short_name, &symbol.name);
        writeln!(out, "{}  {}", harmless(object), harmless(name))?;
    }
    Ok(())
}
