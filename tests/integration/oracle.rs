//! The samples read by somebody else's reader, linux-perf-data: the same threads, times and addresses.

use std::fs::File;
use std::io::BufReader;

use linux_perf_data::linux_perf_event_reader::EventRecord;
use linux_perf_data::{PerfFileReader, PerfFileRecord};

use crate::support::{SAMPLES, sample, stdout_of};

/// (tid, time in ns, address) of each sample in the order of time.
type Seen = Vec<(i32, u64, u64)>;

#[test]
fn samples_are_those_that_linux_perf_data_reads() {
    for name in SAMPLES {
        let mut theirs = read_by_linux_perf_data(name);
        let mut ours = read_by_pjit(name);
        theirs.sort_unstable();
        ours.sort_unstable();
        assert!(!ours.is_empty(), "{name}");
        assert_eq!(ours, theirs, "{name}");
    }
}

fn read_by_linux_perf_data(name: &str) -> Seen {
    let file = File::open(sample(name, "perf.data")).expect("the sample is there");
    let PerfFileReader {
        mut record_iter,
        mut perf_file,
    } = PerfFileReader::parse_file(BufReader::new(file)).expect("a sound recording");
    let mut seen = Vec::new();
    while let Some(record) = record_iter
        .next_record(&mut perf_file)
        .expect("sound records")
    {
        let PerfFileRecord::EventRecord { record, .. } = record else {
            continue;
        };
        if let EventRecord::Sample(s) = record.parse().expect("a sound record") {
            let field = (s.tid, s.timestamp, s.ip);
            let (Some(tid), Some(time), Some(ip)) = field else {
                panic!("{name}: a sample without tid, time or address: {field:?}");
            };
            seen.push((tid, time, ip));
        }
    }
    seen
}

fn read_by_pjit(name: &str) -> Seen {
    let text = stdout_of(&["script", "-G", "--ns", "-F", "tid,time,ip"], name);
    text.lines()
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [tid, time, ip] = words[..] else {
                panic!("{name}: {line}");
            };
            let (seconds, nanoseconds) = time
                .trim_end_matches(':')
                .split_once('.')
                .expect("a decimal point");
            let time = seconds.parse::<u64>().expect("digits") * 1_000_000_000
                + nanoseconds.parse::<u64>().expect("digits");
            let tid = tid.parse().expect("digits");
            (tid, time, u64::from_str_radix(ip, 16).expect("hexadecimal"))
        })
        .collect()
}
