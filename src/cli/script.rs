//! `pjit script`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;

use crate::load::LoadOptions;
use crate::output::script::{Field, ScriptOptions};

use super::input::{Environment, InputArgs};

/// Arguments of `pjit script`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  pjit script | inferno-collapse-perf | inferno-flamegraph > flame.svg
  pjit script -F comm,tid,time,event,ip,sym,dso > firefox.perf")]
pub struct ScriptArgs {
    /// Recording to read (default: perf.data)
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// The recording and its companions.
    #[command(flatten)]
    pub input: InputArgs,

    /// Columns: comm, pid, tid, cpu, time, event, ip, sym, symoff, dso, period, srcline; `+x` adds, `-x` takes away
    #[arg(short = 'F', long = "fields", value_name = "LIST", value_parser = parse_fields, allow_hyphen_values = true)]
    fields: Option<BTreeSet<Field>>,

    /// No call chains, one address a sample
    #[arg(short = 'G', long = "hide-call-graph")]
    hide_call_graph: bool,

    /// Frames of a chain printed at most
    #[arg(long = "max-stack", value_name = "N", default_value_t = 127)]
    max_stack: usize,

    /// File to write instead of standard output; it appears when it is whole
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Times in nanoseconds
    #[arg(long = "ns")]
    ns: bool,
}

impl ScriptArgs {
    /// What to load and how to print it.
    #[must_use]
    pub fn resolve(&self, environment: &Environment) -> (LoadOptions, ScriptOptions) {
        let fields = self
            .fields
            .clone()
            .unwrap_or_else(|| Field::DEFAULT.into_iter().collect());
        let mut load = self.input.load_options(self.file.as_ref(), environment);
        load.needs.every_sample = true;
        load.needs.cpu = true;
        load.needs.time_quantum = Some(1);
        load.needs.stacks = !self.hide_call_graph && fields.contains(&Field::Ip);
        load.frames.addresses = true;
        load.frames.srclines = fields.contains(&Field::Srcline);
        let script = ScriptOptions {
            fields,
            nanoseconds: self.ns,
            chains: !self.hide_call_graph,
            max_stack: self.max_stack,
        };
        (load, script)
    }
}

/// perf's grammar: names with commas, or changes of the default with `+name` and `-name`.
fn parse_fields(list: &str) -> Result<BTreeSet<Field>, String> {
    let relative = list.starts_with(['+', '-']);
    let mut fields: BTreeSet<Field> = if relative {
        Field::DEFAULT.into_iter().collect()
    } else {
        BTreeSet::new()
    };
    for word in list.split(',') {
        let name = word.trim_start_matches(['+', '-']);
        let Some(&(_, field)) = Field::NAMES.iter().find(|(known, _)| *known == name) else {
            let names: Vec<&str> = Field::NAMES.iter().map(|(name, _)| *name).collect();
            return Err(format!(
                "unknown field '{name}'; pjit knows {}",
                names.join(", ")
            ));
        };
        if word.starts_with('-') {
            fields.remove(&field);
        } else {
            fields.insert(field);
        }
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_replace_or_change_the_default() {
        let list = parse_fields("comm,ip,sym").expect("known names");
        assert_eq!(list, BTreeSet::from([Field::Comm, Field::Ip, Field::Sym]));
        let changed = parse_fields("+srcline,-period").expect("known names");
        assert!(changed.contains(&Field::Srcline) && !changed.contains(&Field::Period));
        assert!(parse_fields("comm,nonsense").is_err());
    }
}
