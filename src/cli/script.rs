//! `pjit script`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;

use crate::collect::Payloads;
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

    /// Columns: comm, pid, tid, cpu, time, event, trace, ip, sym, symoff, dso, period, srcline; `+x` adds, `-x` takes away
    #[arg(short = 'F', long = "fields", value_name = "LIST", value_parser = parse_fields, allow_hyphen_values = true)]
    fields: Option<Fields>,

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
        let Fields { fields, is_default } = self.fields.clone().unwrap_or_default();
        let mut load = self.input.load_options(self.file.as_ref(), environment);
        load.needs.every_sample = true;
        load.needs.cpu = true;
        load.needs.time_quantum = Some(1);
        load.needs.stacks = !self.hide_call_graph && fields.contains(&Field::Ip);
        if fields.contains(&Field::Trace) {
            load.needs.trace = Payloads::Yes;
        }
        load.frames.addresses = true;
        load.frames.srclines = fields.contains(&Field::Srcline);
        let script = ScriptOptions {
            fields,
            is_default,
            nanoseconds: self.ns,
            chains: !self.hide_call_graph,
            max_stack: self.max_stack,
        };
        (load, script)
    }
}

/// The argument of `-F`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fields {
    fields: BTreeSet<Field>,
    /// perf's default, or a change of it.
    is_default: bool,
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            fields: Field::DEFAULT.into_iter().collect(),
            is_default: true,
        }
    }
}

/// perf's grammar: names with commas, or changes of the default with `+name` and `-name`.
fn parse_fields(list: &str) -> Result<Fields, String> {
    let is_default = list.starts_with(['+', '-']);
    let mut fields = if is_default {
        Fields::default().fields
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
    Ok(Fields { fields, is_default })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_replace_or_change_the_default() {
        let list = parse_fields("comm,ip,sym").expect("known names");
        assert_eq!(
            list.fields,
            BTreeSet::from([Field::Comm, Field::Ip, Field::Sym])
        );
        let changed = parse_fields("+srcline,-period")
            .expect("known names")
            .fields;
        assert!(changed.contains(&Field::Srcline) && !changed.contains(&Field::Period));
        assert!(parse_fields("comm,nonsense").is_err());
    }
}
