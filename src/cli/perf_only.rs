//! Options that `perf report` has and pjit does not: recognised, so that the message can say so.
//!
//! Without this table a script would learn only that an option is unknown, and an abbreviation that is ambiguous in perf would
//! mean something here.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, error::ErrorKind};

struct PerfOnly {
    long: &'static str,
    short: Option<char>,
    takes_value: bool,
    /// What to use instead, if anything.
    instead: &'static str,
}

const fn flag(long: &'static str, instead: &'static str) -> PerfOnly {
    PerfOnly {
        long,
        short: None,
        takes_value: false,
        instead,
    }
}

const fn valued(long: &'static str, instead: &'static str) -> PerfOnly {
    PerfOnly {
        long,
        short: None,
        takes_value: true,
        instead,
    }
}

const NO_TRACES: &str = "it decodes no hardware traces";

const OPTIONS: &[PerfOnly] = &[
    PerfOnly {
        short: Some('D'),
        ..flag("dump-raw-trace", "perf report -D shows raw records")
    },
    flag(
        "branch-history",
        "pjit script -F brstacksym shows the branches of each sample",
    ),
    flag("disable-order", "it always orders records by time"),
    valued("itrace", NO_TRACES),
    flag("show-ref-call-graph", ""),
    flag("stitch-lbr", ""),
    flag(
        "total-cycles",
        "pjit report -s symbol_to,cycles shows cycles of branches",
    ),
    flag("data-type", ""),
];

/// The options of the table; parsing one of them is an error.
#[derive(Debug, Clone, Default)]
pub struct PerfOnlyArgs;

impl Args for PerfOnlyArgs {
    fn augment_args(command: Command) -> Command {
        OPTIONS.iter().fold(command, |command, option| {
            let action = if option.takes_value {
                ArgAction::Append
            } else {
                ArgAction::Count
            };
            let arg = Arg::new(option.long)
                .long(option.long)
                .action(action)
                .hide(true);
            // perf's `--itrace` may stand alone.
            let arg = if option.takes_value {
                arg.num_args(0..=1)
            } else {
                arg
            };
            command.arg(match option.short {
                Some(short) => arg.short(short),
                None => arg,
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for PerfOnlyArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        for option in OPTIONS {
            let is_given = if option.takes_value {
                matches.indices_of(option.long).is_some() || matches.contains_id(option.long)
            } else {
                matches.get_count(option.long) > 0
            };
            if is_given {
                let more = if option.instead.is_empty() {
                    String::new()
                } else {
                    format!(": {}", option.instead)
                };
                let text = format!("pjit has no --{}{more}\n", option.long);
                return Err(Error::raw(ErrorKind::UnknownArgument, text));
            }
        }
        Ok(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        Self::from_arg_matches(matches).map(|_| ())
    }
}
