//! `pjit help`: the page of a command, or one of the lists that are too long for it.

use std::process::ExitCode;

use clap::Args;

use super::help;
use super::page::Page;
use super::terminal::Output;
use super::verb::{Context, Verb, wrong_usage};
use crate::near::near_words;

pub(super) const PAGE: Page = Page {
    examples: &[
        ("pjit help summary", "all options of summary"),
        ("pjit help keys", "what report can sort by"),
    ],
    short: &[],
    notes: "Topics: keys, weights, fields, formats, status.",
};

/// Arguments of `pjit help`.
#[derive(Debug, Clone, Args)]
pub struct HelpArgs {
    /// Command, or one of keys, weights, fields, formats, status
    #[arg(value_name = "COMMAND|TOPIC")]
    word: Option<String>,
}

impl Verb for HelpArgs {
    fn run(&self, _: &Context<'_>) -> anyhow::Result<ExitCode> {
        let text = match &self.word {
            None => {
                help::overview() + "\nTopics: pjit help " + &words().join(", pjit help ") + "\n"
            }
            Some(word) => match topic(word) {
                Some(topic) => topic.text(),
                None => help::of_verb(word, true).ok_or_else(|| wrong_usage(unknown(word)))?,
            },
        };
        let mut out = Output::open(None);
        std::io::Write::write_all(&mut out, text.as_bytes())?;
        out.finish()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Says that there is no such page, and which ones are near.
pub(super) fn unknown(word: &str) -> String {
    let found = near_words(word, help::verbs().chain(words()));
    let similar = if found.is_empty() {
        String::new()
    } else {
        format!("; similar: {}", found.join(", "))
    };
    format!("no command and no topic '{word}'{similar}")
}

/// A list that several options share.
pub(super) struct Topic {
    pub(super) word: &'static str,
    /// What is listed, in a few words.
    pub(super) about: &'static str,
    head: &'static str,
    /// Words with what they mean.
    rows: &'static [(&'static str, &'static str)],
    tail: &'static str,
}

impl Topic {
    /// The page.
    pub(super) fn text(&self) -> String {
        let width = self.rows.iter().map(|(word, _)| word.len()).max();
        let width = width.unwrap_or(0);
        let mut text = format!("{}\n\n", self.head);
        for (word, what) in self.rows {
            text.push_str(&format!("  {word:width$}  {what}\n"));
        }
        if !self.tail.is_empty() {
            text.push_str(&format!("\n{}\n", self.tail));
        }
        text
    }

    /// The words, as completions offer them.
    pub(super) fn listed(&self) -> impl Iterator<Item = &'static str> {
        self.rows.iter().map(|(word, _)| *word)
    }
}

/// The topic with this name.
pub(super) fn topic(word: &str) -> Option<&'static Topic> {
    TOPICS.iter().find(|topic| topic.word == word)
}

/// All of them.
pub(super) fn words() -> Vec<&'static str> {
    TOPICS.iter().map(|topic| topic.word).collect()
}

const TOPICS: [Topic; 5] = [
    Topic {
        word: "keys",
        about: "Keys of report --sort and --fields",
        head: "Keys of pjit report -s (rows) and -F (columns). A comma joins them: -s dso,sym.",
        rows: &[
            ("overhead", "share of the total"),
            ("overhead_children", "share with callees"),
            ("overhead_sys", "share in kernel mode"),
            ("overhead_us", "share in user mode"),
            ("overhead_guest_sys", "share in a guest's kernel mode"),
            ("overhead_guest_us", "share in a guest's user mode"),
            ("latency", "share of latency (perf record --latency)"),
            ("latency_children", "share of latency with callees"),
            ("sample", "number of samples"),
            ("period", "sum of periods"),
            ("pid", "process, with its name"),
            ("comm", "name of the thread"),
            ("comm_nodigit", "the same with <N> for numbers"),
            ("dso", "program, library, dump or kernel"),
            ("symbol", "function, with its mode"),
            ("parent", "frame that --parent matches"),
            ("cpu", "processor (perf record --sample-cpu, -a)"),
            ("socket", "socket of the processor"),
            ("srcline", "source file and line"),
            ("srcfile", "source file"),
            ("trace", "text of a tracepoint"),
            ("symbol_size", "size of the function"),
            ("dso_size", "size of the mapping"),
            ("cgroup", "control group (perf record --all-cgroups)"),
            ("cgroup_id", "device and inode of the cgroup namespace"),
            ("time", "time, in steps of --time-quantum"),
            ("code_page_size", "size of the page with the code"),
            ("addr", "address of the instruction"),
            ("tid", "thread, with its name"),
            ("tgid", "number of the process"),
            ("symoff", "function and offset in it"),
            ("parallelism", "number of threads that ran"),
            ("state", "what a thread waits for (--weight wall)"),
            ("kind", "own, library, runtime, kernel"),
            ("own", "nearest own function"),
            ("package", "package that pays"),
            ("activity", "what the code does"),
            ("recording", "recording, if several are added up"),
            ("host", "host that it was recorded on"),
            ("dso_from", "object that a branch leaves (-b)"),
            ("dso_to", "object that it leads to"),
            ("symbol_from", "function that it leaves"),
            ("symbol_to", "function that it leads to"),
            ("addr_from", "the same with the offset in it"),
            ("addr_to", "the same of the target"),
            ("srcline_from", "source line of the branch"),
            ("srcline_to", "source line of its target"),
            ("mispredict", "Y, N, or N/A"),
            ("in_tx", "in a transaction"),
            ("abort", "ended a transaction"),
            ("cycles", "cycles since the branch before"),
            ("local_weight", "what one access to memory cost"),
            ("weight", "the same times the samples of the row"),
            ("local_ins_lat", "the part that the instruction waited"),
            ("ins_lat", "the same times the samples"),
            ("local_p_stage_cyc", "the part of a stage of the pipeline"),
            ("p_stage_cyc", "the same times the samples"),
            ("mem", "cache or memory with the data (--mem-mode)"),
            ("snoop", "what other caches were asked"),
            ("tlb", "where the translation of the address was"),
            ("locked", "atomic access"),
            ("blocked", "what the access waited for"),
            ("symbol_daddr", "name or address of the data"),
            ("dso_daddr", "object with the data"),
            ("dcacheline", "cache line of the data"),
        ],
        tail: "Fields of tracepoints are keys too: FIELD, EVENT.FIELD, EVENT.*, trace_fields, each with /raw.\n\
               FIELD~2 joins values between the same powers of two. The beginning of a key is enough.",
    },
    Topic {
        word: "weights",
        about: "What --weight can count",
        head: "pjit VERB --weight WORD changes what a sample counts. pjit record -h says how to record.",
        rows: &[
            ("period", "what was recorded (default)"),
            ("samples", "each sample once"),
            ("alloc", "allocated bytes"),
            ("alloc-count", "allocations"),
            ("live", "bytes that were never freed"),
            ("live-count", "blocks that were never freed"),
            ("peak", "bytes that were there when there were most"),
            ("lifetime", "bytes times the time that they were there"),
            ("offcpu", "time without a processor"),
            ("blocked", "time waiting for something"),
            ("runnable", "time waiting for a processor"),
            ("oncpu", "time on a processor"),
            ("wall", "the whole time of threads"),
            ("faults", "new pages of memory"),
            ("duration", "time from a call to its return"),
        ],
        tail: "EXPR or EVENT=EXPR,... adds up fields of tracepoints, such as 'nmemb*size'.\n\
               A..B or 'A..B by FIELD' is the time between two events.",
    },
    Topic {
        word: "fields",
        about: "Columns of script --fields",
        head: "Columns of pjit script -F. A comma joins them; +NAME adds and -NAME removes one.",
        rows: &[
            ("comm", "name of the thread"),
            ("pid", "process"),
            ("tid", "thread"),
            ("cpu", "processor"),
            ("time", "seconds since the machine started"),
            ("event", "event"),
            ("trace", "text of a tracepoint"),
            ("ip", "address, and the call chain"),
            ("sym", "function"),
            ("symoff", "offset in the function"),
            ("dso", "program or library"),
            ("period", "period"),
            ("srcline", "source file and line"),
            ("addr", "address of the data"),
            ("data_src", "cache or memory with the data"),
            ("weight", "what the access cost"),
            ("ins_lat", "the part that the instruction waited"),
            ("brstack", "branches before the sample, by address"),
            ("brstacksym", "the same by function"),
            ("brstackoff", "the same by address in the file"),
        ],
        tail: "",
    },
    Topic {
        word: "formats",
        about: "Formats that pjit writes",
        head: "What each command writes. export and flamegraph choose by the file name.",
        rows: &[
            ("text", "for people: summary, peek, list, check, diff, gate"),
            ("markdown", "for comments on pull requests: the same"),
            (
                "json",
                "for programs: the same; pjit guide schema explains it",
            ),
            ("csv", "one table: the same"),
            (".svg", "flamegraph: a picture"),
            (".html", "flamegraph: a page to explore"),
            (".json.gz", "export: Firefox Profiler"),
            (".pb.gz", "export: pprof"),
            (".speedscope.json", "export: speedscope"),
            (".csv.gz", "export: a row for each stack, for SQL"),
            (".tar.gz", "bundle: a recording with its files"),
        ],
        tail: "pjit fold prints folded stacks. pjit script prints the text of perf script.",
    },
    Topic {
        word: "status",
        about: "Exit status",
        head: "Exit status of all commands:",
        rows: &[
            ("0", "done; check: the recording is fit; gate: passed"),
            ("1", "error, or a warning with --strict"),
            ("2", "wrong arguments"),
            ("3", "check: not fit; gate: failed"),
            ("4", "gate: cannot be decided"),
            (
                "125",
                "record: cannot record; other numbers are the command's",
            ),
        ],
        tail: "",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::script::Field;
    use crate::report::keys::known_keys;
    use crate::weigh::Spec;

    fn sorted<'w>(words: impl Iterator<Item = &'w str>) -> Vec<&'w str> {
        let mut words: Vec<&str> = words.collect();
        words.sort_unstable();
        words
    }

    #[test]
    fn topics_list_all_words() {
        let of = |word: &str| sorted(topic(word).expect("a topic").listed());
        assert_eq!(of("keys"), sorted(known_keys().into_iter()));
        assert_eq!(
            of("weights"),
            sorted(Spec::PRESETS.iter().map(|(word, _)| *word))
        );
        assert_eq!(
            of("fields"),
            sorted(Field::NAMES.iter().map(|(word, _)| *word))
        );
    }

    #[test]
    fn what_is_mistyped_is_near() {
        assert_eq!(
            unknown("sumary"),
            "no command and no topic 'sumary'; similar: summary"
        );
        assert_eq!(unknown("zzz"), "no command and no topic 'zzz'");
    }
}
