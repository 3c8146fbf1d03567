//! `-g`/`--call-graph`, `-G` and `--percent-limit`: options whose order on the command line counts.
//!
//! perf lets each of them change one set of settings as it comes, so the later of `-g …,2` and `--percent-limit 3`
//! decides the threshold of branches.

use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, error::ErrorKind,
    value_parser,
};

use crate::report::options::{
    BARE_CALL_GRAPH, CallGraph, CallGraphMode, ChainOrder, ReportOptions,
};

const CALL_GRAPH: &str = "call_graph";
const NO_CALL_GRAPH: &str = "no_call_graph";
const INVERTED: &str = "inverted";
const PERCENT_LIMIT: &str = "percent_limit";

/// The options in the order given.
#[derive(Debug, Clone, Default)]
pub struct CallGraphArgs {
    steps: Vec<Step>,
    is_inverted: bool,
}

#[derive(Debug, Clone)]
enum Step {
    Graph(String),
    NoGraph,
    Limit(f64),
}

impl CallGraphArgs {
    /// Applies the options to the settings so far. Returns whether call graphs were asked for.
    pub fn apply(&self, options: &mut ReportOptions) -> bool {
        let mut is_wanted = false;
        for step in &self.steps {
            match step {
                // The argument was checked when the command line was read.
                Step::Graph(argument) => {
                    let _ = options.chains.call_graph.apply(argument);
                    is_wanted = options.chains.call_graph.mode != CallGraphMode::None;
                }
                Step::NoGraph => {
                    options.chains.call_graph.mode = CallGraphMode::None;
                    is_wanted = false;
                }
                Step::Limit(percent) => {
                    options.rows.percent_limit = *percent;
                    options.chains.call_graph.threshold = *percent;
                }
            }
        }
        if self.is_inverted {
            options.chains.call_graph.order = Some(ChainOrder::Caller);
        }
        is_wanted
    }
}

impl Args for CallGraphArgs {
    fn augment_args(command: Command) -> Command {
        let heading = "Call graphs";
        command
            .arg(
                Arg::new(CALL_GRAPH)
                    .short('g')
                    .long("call-graph")
                    .value_name("SPEC")
                    .num_args(0..=1)
                    .default_missing_value(BARE_CALL_GRAPH)
                    .action(ArgAction::Append)
                    .help_heading(heading)
                    .help(
                        "Call graphs: none, or caller|callee, graph|fractal|flat|folded, percent, ...",
                    ),
            )
            .arg(Arg::new(NO_CALL_GRAPH).long("no-call-graph").action(ArgAction::SetTrue).hide(true))
            .arg(
                Arg::new(INVERTED)
                    .short('G')
                    .long("inverted")
                    .action(ArgAction::SetTrue)
                    .help_heading(heading)
                    .help("Show callers first, as -g caller"),
            )
            .arg(
                Arg::new(PERCENT_LIMIT)
                    .long("percent-limit")
                    .value_name("PERCENT")
                    .value_parser(value_parser!(f64))
                    .action(ArgAction::Append)
                    .help_heading("Rows")
                    .help("Hide rows and branches below this share"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for CallGraphArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut steps: Vec<(usize, Step)> = Vec::new();
        let graphs = matches.get_many::<String>(CALL_GRAPH).unwrap_or_default();
        for (at, argument) in matches
            .indices_of(CALL_GRAPH)
            .unwrap_or_default()
            .zip(graphs)
        {
            if let Err(error) = CallGraph::default().apply(argument) {
                return Err(Error::raw(ErrorKind::InvalidValue, format!("{error}\n")));
            }
            steps.push((at, Step::Graph(argument.clone())));
        }
        let limits = matches.get_many::<f64>(PERCENT_LIMIT).unwrap_or_default();
        for (at, percent) in matches
            .indices_of(PERCENT_LIMIT)
            .unwrap_or_default()
            .zip(limits)
        {
            if !percent.is_finite() || *percent < 0.0 {
                let text = format!("--percent-limit takes a percentage, not '{percent}'\n");
                return Err(Error::raw(ErrorKind::InvalidValue, text));
            }
            steps.push((at, Step::Limit(*percent)));
        }
        if matches.get_flag(NO_CALL_GRAPH) {
            steps.push((
                matches.index_of(NO_CALL_GRAPH).unwrap_or(usize::MAX),
                Step::NoGraph,
            ));
        }
        steps.sort_by_key(|(at, _)| *at);
        let steps = steps.into_iter().map(|(_, step)| step).collect();
        Ok(Self {
            steps,
            is_inverted: matches.get_flag(INVERTED),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
