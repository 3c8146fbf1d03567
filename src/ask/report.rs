//! Tables and call graphs as perf prints them: the question of `pjit report`.

use super::{AskError, Question, Request, filter, require_samples};
use crate::diagnostics::Diagnostics;
use crate::load::{Library, LoadError};
use crate::needs::Needs;
use crate::profile::{Facet, Profile};
use crate::report::options::{ReportOptions, RowsOf};
use crate::report::{self, ReportError};

/// Tables and call graphs.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Rows, columns, chains and layout.
    pub options: ReportOptions,
    /// Payloads of tracepoints are shown as their fields are stored, not as the kernel would print them.
    pub raw_trace: bool,
}

/// A recording whose report can be built.
pub struct Reported {
    profile: Profile,
    options: ReportOptions,
}

impl Question for Report {
    type Answer = Reported;

    fn needs(&self) -> Needs {
        let needs = self.options.needs() | self.options.filters.samples.needs();
        match &self.options.columns.sort {
            _ if needs.contains(Facet::Payload.needs()) => needs,
            Some(sort) if !sort.adds_to_default() => needs,
            Some(_) if self.raw_trace => needs | Facet::Payload.needs(),
            // perf's default for recordings of tracepoints alone.
            _ => needs | Needs::ONLY_PAYLOADS,
        }
    }

    fn answer(request: &Request<Self>, library: &Library<'_>) -> Result<Reported, AskError> {
        let mut load = request.load_options()?;
        let mut options = request.view.options.clone();
        load.reading.raw_payloads = request.view.raw_trace;
        load.reading.time_step = options.rows.time_quantum;
        let sort = options.columns.sort.as_ref();
        load.fields = sort.map_or_else(Vec::new, |sort| sort.named.clone());
        let loaded = library.load(&load);
        let mut profile = loaded.map_err(|error| match error {
            LoadError::Field(error) => {
                AskError::Request(format!("--sort: {error}")).with_hint("pjit help keys")
            }
            error => error.into(),
        })?;
        require_rows(&profile, &request.view.options, library.diag())?;
        filter(&mut profile, &request.filters, &request.own)?;
        options.settle(&profile);
        Ok(Reported { profile, options })
    }
}

/// What rows are to be of has to be there.
fn require_rows(
    profile: &Profile,
    options: &ReportOptions,
    diag: &Diagnostics,
) -> Result<(), AskError> {
    let recording = &profile.recording;
    let path = &recording.path;
    if profile.branches.is_none() {
        require_samples(profile)?;
    }
    match options.rows.of {
        RowsOf::Branches if profile.branches.is_none() => Err(AskError::Absent(format!(
            "{path}: -b needs branch stacks, and this recording has none: was it made without -b?"
        ))),
        RowsOf::Accesses => match profile.accesses {
            Some(1..) => Ok(()),
            Some(0) => Err(AskError::Absent(format!(
                "{path}: no memory data: the sampled event does not record it"
            ))),
            None => Err(AskError::Absent(format!(
                "{path}: --mem-mode needs memory data, and this recording has none: was it made without perf mem record?"
            ))),
        },
        _ => match &profile.branches {
            Some(branches) if profile.entries.is_empty() => {
                let empty = branches.empty;
                Err(AskError::Absent(format!(
                    "{path}: no branches in the samples ({empty} empty entries)"
                )))
            }
            None if recording.has_branches && options.rows.of == RowsOf::AsRecorded => {
                diag.note(format!(
                    "{path}: branch stacks were recorded, too: -b shows branches"
                ));
                Ok(())
            }
            _ => Ok(()),
        },
    }
}

impl Reported {
    /// Builds the tables.
    ///
    /// # Errors
    /// When call graphs, latencies or rates are wanted and the recording has none.
    pub fn build(&self) -> Result<report::Report<'_>, ReportError> {
        report::build(&self.profile, &self.options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{LoadOptions, Source};
    use crate::output::stdio;
    use crate::perfdata::testing::{
        ADDR, BRANCH_STACK, CGROUP, CODE_PAGE_SIZE, CPU, DATA_SRC, IP, RAW, SAMPLE_ID_ALL, TID,
        TIME, TestEvent, TestRecording, TestSample, WEIGHT_STRUCT,
    };
    use crate::profile::{Of, Show};
    use crate::report::keys::SortSpec;
    use crate::report::options::{ColumnOptions, LayoutOptions, RowOptions};

    /// A tracepoint with one number.
    fn tracing() -> Vec<u8> {
        let format = "name: probe\nID: 7\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
            \tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"a=%d\", REC->a\n";
        let mut section = b"\x17\x08\x44tracing0.6\0\0\x08".to_vec();
        section.extend(4096u32.to_le_bytes());
        for name in [&b"header_page\0"[..], b"header_event\0"] {
            section.extend(name);
            section.extend(0u64.to_le_bytes());
        }
        section.extend([0u32, 1].map(u32::to_le_bytes).concat());
        section.extend(b"sched\0");
        section.extend(1u32.to_le_bytes());
        section.extend((format.len() as u64).to_le_bytes());
        section.extend(format.as_bytes());
        section.extend([0u8; 8]);
        section
    }

    /// One sample of an event that records nothing more than it has to.
    fn plain() -> TestRecording {
        let mut recording = TestRecording::simple();
        recording.sample(0, &sample());
        recording
    }

    /// One sample with all that the table of facets knows, while two threads run.
    fn full() -> TestRecording {
        let mut recording = TestRecording::new(vec![TestEvent {
            type_: 2,
            config: 7,
            sample_type: IP
                | TID
                | TIME
                | ADDR
                | CPU
                | RAW
                | BRANCH_STACK
                | WEIGHT_STRUCT
                | DATA_SRC
                | CGROUP
                | CODE_PAGE_SIZE,
            // `context_switch`
            flags: SAMPLE_ID_ALL | 1 << 26,
            ..TestEvent::default()
        }]);
        recording.feature(1, tracing());
        let cgroup = [&9u64.to_le_bytes()[..], b"/system.slice\0\0\0"].concat();
        recording.kernel_record(19, 0, &cgroup, 1);
        // A second thread comes; one runs when recording begins.
        recording.kernel_record(14, 0, &[], 2);
        recording.sample(0, &sample());
        recording
    }

    fn sample() -> TestSample {
        TestSample {
            misc: 2,
            ip: 0x1000,
            pid: 7,
            tid: 7,
            time: 10,
            cpu: 3,
            cgroup: 9,
            code_page_size: 2 << 20,
            raw: vec![7, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0],
            // In a transaction, which it ended, and not predicted; 7 cycles.
            branches: vec![[0x1000, 0x2000, 1 | 4 | 8 | 7 << 4]],
            weight: 2 << 48 | 3 << 32 | 9,
            // A load that hit L1 and its translation there, with None of others' caches asked, atomic, and blocked by data.
            data_src: 2 | 10 << 5 | 2 << 19 | 2 << 24 | 10 << 26 | 2 << 40,
            ..TestSample::default()
        }
    }

    /// What stands in the column of a key in the only row, or what is said instead.
    fn column(recording: &TestRecording, key: &str) -> Result<String, String> {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("perf.data");
        std::fs::write(&path, recording.file()).expect("written");
        let sort = SortSpec::parse(key, SortSpec::default_keys()).expect("a key");
        let facet = Facet::ALL.into_iter().find(|facet| facet.row().name == key);
        let options = ReportOptions {
            rows: RowOptions {
                of: match facet.and_then(Facet::of) {
                    Some(Of::Branch) => RowsOf::Branches,
                    Some(Of::Access) => RowsOf::Accesses,
                    None => RowsOf::Samples,
                },
                ..RowOptions::default()
            },
            columns: ColumnOptions {
                sort: Some(sort),
                ..ColumnOptions::default()
            },
            layout: LayoutOptions {
                quiet: true,
                separator: Some(",".to_owned()),
                ..LayoutOptions::default()
            },
            ..ReportOptions::default()
        };
        let view = Report {
            options,
            raw_trace: false,
        };
        let request = Request::of(LoadOptions::of(Source::File(path)), view);
        let reported = Library::aside(|library| request.ask(library));
        let reported = reported.map_err(|error| error.to_string())?;
        let report = reported.build().map_err(|error| error.to_string())?;
        let mut out = Vec::new();
        stdio::write(&report, &mut out).expect("writing to memory");
        let text = String::from_utf8(out).expect("text");
        let (_, value) = text.trim().split_once(',').expect("two columns");
        Ok(value.trim().to_owned())
    }

    /// What a column holds where the sample has the fact, and where it has not.
    fn expected(facet: Facet) -> (&'static str, &'static str) {
        match facet {
            Facet::Cpu => ("003", "-001"),
            Facet::Parallelism => ("2", ""),
            Facet::Cgroup => ("/system.slice", "N/A"),
            Facet::Payload => ("a=5", "N/A"),
            Facet::CodePageSize => ("2M", "N/A"),
            Facet::Cost => ("9", "0"),
            Facet::InstructionLatency => ("3", "0"),
            Facet::StageCycles => ("2", "0"),
            Facet::Level => ("L1 hit", ""),
            Facet::Snoop => ("None", ""),
            Facet::Translation => ("L1 hit", ""),
            Facet::Locked => ("Yes", ""),
            Facet::Blocked => ("Data", ""),
            Facet::Mispredict => ("Y", ""),
            Facet::InTransaction => ("T", ""),
            Facet::Abort => ("A", ""),
            Facet::Cycles => ("7", ""),
            Facet::Data | Facet::DataSource | Facet::Source => unreachable!("they have no key"),
            Facet::Recording | Facet::Host => unreachable!("no sample tells them"),
        }
    }

    /// Those with a column of their own.
    fn columns() -> impl Iterator<Item = Facet> {
        let of_samples = |facet: &Facet| !matches!(facet, Facet::Recording | Facet::Host);
        let is_column =
            move |facet: &Facet| !matches!(facet.row().show, Show::Hidden) && of_samples(facet);
        Facet::ALL.into_iter().filter(is_column)
    }

    #[test]
    fn each_facet_fills_its_column() {
        let recording = full();
        for facet in columns() {
            let (value, _) = expected(facet);
            let name = facet.row().name;
            assert_eq!(column(&recording, name), Ok(value.to_owned()), "{name}");
        }
    }

    #[test]
    fn a_recording_without_the_fact_says_so() {
        let recording = plain();
        for facet in columns() {
            let (_, value) = expected(facet);
            let name = facet.row().name;
            match column(&recording, name) {
                Ok(got) => assert_eq!(got, value, "{name}"),
                Err(said) => assert!(value.is_empty() && said.contains("record"), "{said}"),
            }
        }
    }

    #[test]
    fn page_sizes_are_written_as_perf_writes_them() {
        let mut texts = Vec::new();
        for size in [
            1,
            2047,
            2048,
            4096,
            65536,
            2 << 20,
            1 << 30,
            16 << 30,
            4 << 40,
        ] {
            let mut recording = TestRecording::new(vec![TestEvent {
                sample_type: IP | TID | TIME | CODE_PAGE_SIZE,
                ..TestEvent::default()
            }]);
            recording.sample(
                0,
                &TestSample {
                    code_page_size: size,
                    ..sample()
                },
            );
            texts.push(column(&recording, "code_page_size").expect("a table"));
        }
        let expected = [
            "1B", "2047B", "2K", "4K", "64K", "2M", "1024M", "16G", "4096G",
        ];
        assert_eq!(texts, expected);
    }
}
