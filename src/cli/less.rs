//! The shared options without those that do nothing for a verb: they are not shown, and refused with the reason.
//!
//! Known all the same, so that the message can say more than that there is no such option.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Deref;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, error::ErrorKind};

use super::input::InputArgs;

/// A verb and what it has no use for.
pub trait Unfit: Debug + Clone {
    /// The verb, and what it does instead.
    const WHY: &'static str;
    /// Names of the options, as clap knows them.
    const OPTIONS: &'static [&'static [&'static str]];
}

/// How names are shown.
const NAMES: &[&str] = &[
    "no_inline",
    "inline",
    "no_demangle",
    "demangle",
    "demangle_kernel",
];
/// What is done about cut stacks.
const CUTS: &[&str] = &[
    "no_cut_marks",
    "cut_marks",
    "stitch",
    "no_stitch",
    "no_root",
];

/// `pjit stat`: looks at counts, and at most at which functions probes are on.
#[derive(Debug, Clone)]
pub struct OfStat;

impl Unfit for OfStat {
    const WHY: &'static str = "stat adds up counts and reads no stacks";
    const OPTIONS: &'static [&'static [&'static str]] = &[
        NAMES,
        CUTS,
        &[
            "jitdump",
            "perf_map",
            "force",
            "vmlinux",
            "kallsyms",
            "ignore_vmlinux",
            "modules",
            "cwasm",
            "wasm",
            "source_map",
        ],
    ];
}

/// `pjit check`: looks at whether there are names and stacks, not at what they are.
#[derive(Debug, Clone)]
pub struct OfCheck;

impl Unfit for OfCheck {
    const WHY: &'static str = "check shows no names";
    const OPTIONS: &'static [&'static [&'static str]] = &[NAMES, &["force", "source_map"]];
}

/// `pjit fetch`: looks at which names are missing, and finds functions by theirs.
#[derive(Debug, Clone)]
pub struct OfFetch;

impl Unfit for OfFetch {
    const WHY: &'static str = "fetch shows no stacks";
    const OPTIONS: &'static [&'static [&'static str]] =
        &[NAMES, CUTS, &["force", "source_map", "cwasm", "wasm"]];
}

/// `pjit bundle`: packs what any view may ask for.
#[derive(Debug, Clone)]
pub(super) struct OfBundle;

impl Unfit for OfBundle {
    const WHY: &'static str = "bundle packs everything for all views";
    const OPTIONS: &'static [&'static [&'static str]] = &[NAMES, CUTS, &["force"]];
}

/// The shared options of a verb.
#[derive(Debug, Clone)]
pub struct Less<U>(InputArgs, PhantomData<U>);

impl<U> Deref for Less<U> {
    type Target = InputArgs;

    fn deref(&self) -> &InputArgs {
        &self.0
    }
}

impl<U: Unfit> Args for Less<U> {
    fn augment_args(command: Command) -> Command {
        let hidden = |built: Command, id: &&str| built.mut_arg(*id, |arg| arg.hide(true));
        U::OPTIONS
            .iter()
            .copied()
            .flatten()
            .fold(InputArgs::augment_args(command), hidden)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<U: Unfit> FromArgMatches for Less<U> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let is_given = |id: &&&str| matches.value_source(id) == Some(ValueSource::CommandLine);
        if let Some(id) = U::OPTIONS.iter().copied().flatten().find(is_given) {
            let option = id.replace('_', "-");
            let text = format!("--{option} has no effect: {}\n", U::WHY);
            return Err(Error::raw(ErrorKind::UnknownArgument, text));
        }
        InputArgs::from_arg_matches(matches).map(|args| Self(args, PhantomData))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
