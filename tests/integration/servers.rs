//! Exports for servers that keep profiles: what Pyroscope and Parca refuse, or take and never find again, by the rules of their
//! sources (2026).

use std::collections::BTreeSet;

use crate::support::{pjit, sample};

/// Fields of a message: numbers, and bytes.
#[derive(Default)]
struct Message<'b> {
    numbers: Vec<(u64, u64)>,
    bytes: Vec<(u64, &'b [u8])>,
}

fn varint(rest: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, behind) = rest.split_first().expect("a number");
        *rest = behind;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}

impl<'b> Message<'b> {
    fn of(mut rest: &'b [u8]) -> Self {
        let mut message = Self::default();
        while !rest.is_empty() {
            let key = varint(&mut rest);
            match key & 7 {
                0 => message.numbers.push((key >> 3, varint(&mut rest))),
                2 => {
                    let length = usize::try_from(varint(&mut rest)).expect("it fits");
                    let (bytes, behind) = rest.split_at(length);
                    rest = behind;
                    message.bytes.push((key >> 3, bytes));
                }
                kind => panic!("no field is of kind {kind}"),
            }
        }
        message
    }

    fn number(&self, field: u64) -> u64 {
        let mut found = self.numbers.iter().filter(|(known, _)| *known == field);
        found.next().map_or(0, |(_, number)| *number)
    }

    fn all(&self, field: u64) -> impl Iterator<Item = &'b [u8]> {
        let found = self.bytes.iter().filter(move |(known, _)| *known == field);
        found.map(|(_, bytes)| *bytes)
    }

    fn messages(&self, field: u64) -> Vec<Self> {
        self.all(field).map(Self::of).collect()
    }

    fn packed(&self, field: u64) -> Vec<u64> {
        let mut numbers = Vec::new();
        for mut bytes in self.all(field) {
            while !bytes.is_empty() {
                numbers.push(varint(&mut bytes));
            }
        }
        numbers
    }
}

/// The profile that an export writes, not packed.
fn exported(name: &str, more: &[&str]) -> Vec<u8> {
    let mut command = pjit();
    command.args(["export", "--format", "pprof", "-o", "-"]);
    command.args(more).arg("-i").arg(sample(name, "perf.data"));
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {more:?}: {said}");
    let mut bytes = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(&output.stdout[..]);
    std::io::Read::read_to_end(&mut reader, &mut bytes).expect("gzip");
    bytes
}

struct Profile<'b> {
    message: Message<'b>,
    strings: Vec<String>,
}

impl<'b> Profile<'b> {
    fn of(bytes: &'b [u8]) -> Self {
        let message = Message::of(bytes);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        let strings = message.all(6).map(text).collect();
        Self { message, strings }
    }

    fn string(&self, at: u64) -> &str {
        &self.strings[usize::try_from(at).expect("it fits")]
    }

    /// Type and unit of the values of each column.
    fn columns(&self) -> Vec<[&str; 2]> {
        let types = self.message.messages(1).into_iter();
        let texts = types.map(|of| [of.number(1), of.number(2)].map(|at| self.string(at)));
        texts.collect()
    }

    fn comments(&self) -> Vec<&str> {
        let comments = self.message.packed(13).into_iter();
        comments.map(|at| self.string(at)).collect()
    }

    /// Sums of the values.
    fn sums(&self) -> Vec<u64> {
        let mut sums = vec![0; self.columns().len()];
        for sample in self.message.messages(2) {
            let values = sample.packed(2);
            assert_eq!(values.len(), sums.len());
            sums.iter_mut()
                .zip(values)
                .for_each(|(sum, value)| *sum += value);
        }
        sums
    }

    /// Names and values of a sample's labels.
    fn labels(&self) -> BTreeSet<(&str, &str)> {
        let samples = self.message.messages(2).into_iter();
        let labels = samples.flat_map(|sample| sample.messages(3));
        let texts =
            labels.map(|label| (self.string(label.number(1)), self.string(label.number(2))));
        texts.collect()
    }

    fn assert_is_taken(&self, name: &str) {
        let is_word = |text: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            !text.is_empty() && text.chars().all(plain)
        };
        assert_eq!(self.strings[0], "", "{name}");
        let columns = self.columns();
        for [column, unit] in &columns {
            assert!(is_word(column) && is_word(unit), "{name}: {column} {unit}");
        }
        let names: BTreeSet<_> = columns.iter().map(|[column, _]| column).collect();
        assert_eq!(names.len(), columns.len(), "{name}: {columns:?}");
        let main = self.string(self.message.number(14));
        assert!(names.contains(&main), "{name}: {main}");
        let count = |field| {
            let all = self.message.messages(field);
            let ids: Vec<u64> = all.iter().map(|of| of.number(1)).collect();
            let counted: Vec<u64> = (1..=ids.len() as u64).collect();
            assert_eq!(ids, counted, "{name}: field {field}");
            ids.len() as u64
        };
        let (mappings, locations, functions) = (count(3), count(4), count(5));
        for location in self.message.messages(4) {
            assert!(location.number(2) <= mappings, "{name}");
            for line in location.messages(4) {
                assert!((1..=functions).contains(&line.number(1)), "{name}");
            }
        }
        for sample in self.message.messages(2) {
            let stack = sample.packed(1);
            assert!(
                stack.iter().all(|at| (1..=locations).contains(at)),
                "{name}"
            );
            assert!(sample.packed(2).iter().any(|value| *value > 0), "{name}");
            assert!(sample.messages(3).len() <= 100, "{name}");
        }
        for (label, value) in self.labels() {
            assert!(
                is_word(label) && !value.is_empty(),
                "{name}: {label}={value}"
            );
        }
        assert!(
            self.strings.iter().all(|text| text.len() < 1 << 16),
            "{name}"
        );
    }
}

#[test]
fn what_is_exported_is_what_servers_take() {
    for name in [
        "minijit",
        "native",
        "node",
        "wasmtime",
        "heap",
        "typescript",
        "waits",
        "wasm",
    ] {
        let bytes = exported(name, &[]);
        Profile::of(&bytes).assert_is_taken(name);
    }
}

/// The names of events that servers refuse stand in comments, and each column has a name of its own.
#[test]
fn columns_have_names_that_selectors_can_have() {
    let bytes = exported("heap", &["--weight", "samples"]);
    let profile = Profile::of(&bytes);
    profile.assert_is_taken("heap");
    let columns = profile.columns();
    assert!(columns.len() > 2, "{columns:?}");
    for [column, _] in &columns[1..] {
        let comment = format!("{column}: ");
        let comments = profile.comments();
        let called = comments.iter().filter(|text| text.starts_with(&comment));
        assert_eq!(called.count(), 1, "{column}: {comments:?}");
    }
    let bytes = exported("native", &[]);
    let profile = Profile::of(&bytes);
    assert_eq!(
        profile.columns(),
        [["samples", "count"], ["cpu", "nanoseconds"]]
    );
    assert!(
        profile
            .comments()
            .iter()
            .any(|text| text.starts_with("cpu: cpu-clock"))
    );
}

#[test]
fn fixed_labels_and_limits_hold_and_sums_stay() {
    let whole = exported("node", &[]);
    let all = Profile::of(&whole);
    let labels = ["--label", "host=a b", "--label", "version=1.2"];
    let bytes = exported("node", &labels);
    let labelled = Profile::of(&bytes);
    labelled.assert_is_taken("node");
    for label in [("host", "a b"), ("version", "1.2")] {
        assert!(labelled.labels().contains(&label));
        let of_each = |sample: &Message<'_>| {
            let mut labels = sample.messages(3).into_iter();
            labels.any(|of| (labelled.string(of.number(1)), labelled.string(of.number(2))) == label)
        };
        assert!(labelled.message.messages(2).iter().all(of_each));
    }
    assert_eq!(labelled.sums(), all.sums());
    let mut stacks = usize::MAX;
    for most in [whole.len() - 1, whole.len() / 2, whole.len() / 4] {
        let bytes = exported("node", &["--max-bytes", &most.to_string()]);
        let cut = Profile::of(&bytes);
        cut.assert_is_taken("node");
        assert!(bytes.len() <= most, "{} of {most}", bytes.len());
        // Near the limit: a quarter of it is not given away.
        assert!(bytes.len() > most / 4 * 3, "{} of {most}", bytes.len());
        assert_eq!(cut.sums(), all.sums());
        let left = cut.message.messages(2).len();
        assert!(left < stacks, "{left} of {stacks}");
        stacks = left;
        let told = |text: &&str| text.contains("lightest stacks are in [rest]");
        assert_eq!(cut.comments().iter().filter(|text| told(text)).count(), 1);
    }
    for (more, said) in [
        (["--max-bytes", "100"], "more than --max-bytes 100"),
        (["--label", "pid=7"], "cannot give 'pid'"),
        (["--label", "a-b=7"], "takes KEY=VALUE"),
        (["--label", "host="], "KEY=VALUE"),
        (["--merge", "-v"], "--merge is for speedscope alone"),
    ] {
        let mut command = pjit();
        command.args([
            "export",
            "--format",
            "pprof",
            "-o",
            "-",
            "--max-stacks",
            "9",
        ]);
        command
            .args(more)
            .arg("-i")
            .arg(sample("node", "perf.data"));
        let output = command.output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && text.contains(said),
            "{more:?}: {text}"
        );
    }
}
