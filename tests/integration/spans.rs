//! `--between` and `--within`: a program that marks its requests by probes, and prints how long each took.

use std::collections::BTreeSet;

use crate::live::Lab;
use crate::probes::Probes;
use crate::support::folded;

/// A request: thread, number, milliseconds.
type Request = (u32, i64, f64);

/// A recorded run, and what it printed, the slowest first.
fn recorded(lab: &Lab) -> Option<(Vec<Request>, [String; 2])> {
    let program = lab.path("requests");
    let program = program.to_str().expect("UTF-8");
    let marks = [
        "begin=begin_request number=%di",
        "end=end_request number=%di",
    ];
    let probes = Probes::on(program, "spans", &marks)?;
    let events = ["begin", "end"].map(|name| probes.event(name));
    let options = [
        "-F",
        "1999",
        "-e",
        "cpu-clock",
        "-g",
        "-e",
        &events[0],
        "-e",
        &events[1],
    ];
    let printed = probes.record(lab, "r.data", &options, &[program])?;
    drop(probes);
    let request = |line: &str| {
        let mut words = line.split(' ');
        let mut next = || words.next().expect("three words");
        (
            next().parse().expect("a thread"),
            next().parse().expect("a number"),
            next().parse().expect("milliseconds"),
        )
    };
    let mut requests: Vec<Request> = printed.lines().map(request).collect();
    requests.sort_by(|a, b| b.2.total_cmp(&a.2));
    Some((requests, events))
}

/// Functions of the program in folded stacks.
fn ways(folded_text: &str) -> BTreeSet<&'static str> {
    let ways = ["quick_way", "slow_way", "other_work"];
    let stacks = folded(folded_text);
    let is_in = |way: &&str| stacks.keys().any(|stack| stack.contains(*way));
    ways.into_iter().filter(is_in).collect()
}

/// How many spans there are of how many, and how long the shortest and the longest are, by the header.
fn spans(page: &str) -> (usize, usize, f64, f64) {
    let line = page
        .lines()
        .find(|line| line.contains("Spans: "))
        .expect("a line");
    let rest = line.rsplit(": ").next().expect("numbers");
    let words: Vec<&str> = rest
        .split([' ', ','])
        .filter(|word| !word.is_empty())
        .collect();
    let number = |at: usize| words[at].parse::<f64>().expect("a number");
    (number(0) as usize, number(2) as usize, number(3), number(6))
}

#[test]
fn requests_that_were_slow_are_shown_alone() {
    let Some(lab) = Lab::with(
        "spans",
        "requests",
        &["-O1", "-fno-omit-frame-pointer", "-pthread"],
    ) else {
        return;
    };
    let Some((requests, [begin, end])) = recorded(&lab) else {
        return;
    };
    assert_eq!(requests.len(), 40, "{requests:?}");
    let pair = format!("{begin}..{end}");
    let fold = |when: &[&str]| {
        lab.show(
            &[
                &["fold", "--event", "cpu-clock", "--weight", "samples"],
                when,
            ]
            .concat(),
            "r.data",
        )
    };
    let whole = fold(&[]);
    assert_eq!(ways(&whole).len(), 3, "{whole}");
    let between = fold(&["--between", &pair]);
    assert_eq!(
        ways(&between),
        BTreeSet::from(["quick_way", "slow_way"]),
        "{between}"
    );
    // By the number that both events have it is the same.
    assert_eq!(fold(&["--between", &format!("{pair} by number")]), between);
    let report = [
        "report",
        "--stdio",
        "-g",
        "none",
        "-s",
        "tid,sym",
        "--no-children",
        "--between",
        &pair,
    ];
    let page = lab.show(&report, "r.data");
    let near = |got: f64, printed: f64| (got - printed).abs() < 0.5 + 0.02 * printed;
    let (count, all, shortest, longest) = spans(&page);
    assert_eq!((count, all), (40, 40), "{page}");
    assert!(
        near(shortest, requests[39].2) && near(longest, requests[0].2),
        "{page} {requests:?}"
    );
    assert!(page.contains("2 begins without end"), "{page}");
    // What it was that took long.
    for (number, how) in [(4, "4"), (4, "10%"), (1, "1"), (1, "1%")] {
        let within = ["--within", &pair, "--slowest", how];
        let page = lab.show(&[&["summary"][..], &within].concat(), "r.data");
        let page = page.replace("\n#   ", " ");
        let (count, all, shortest, longest) = spans(&page);
        assert_eq!((count, all), (number, 40), "{page}");
        assert!(
            near(shortest, requests[number - 1].2) && near(longest, requests[0].2),
            "{page} {requests:?}"
        );
        let is_slow = |request: &Request| request.1 % 10 == 7;
        let expected: BTreeSet<&str> = requests[..number]
            .iter()
            .map(|request| {
                if is_slow(request) {
                    "slow_way"
                } else {
                    "quick_way"
                }
            })
            .collect();
        assert_eq!(ways(&fold(&within)), expected, "{how} {requests:?}");
    }
    let script = [
        "script",
        "-G",
        "-F",
        "tid",
        "--within",
        &pair,
        "--slowest",
        "1",
    ];
    let tids: BTreeSet<String> = lab
        .show(&script, "r.data")
        .lines()
        .map(|line| line.trim().to_owned())
        .collect();
    // Of two that took as long, the probes may see the other one longer than the program does.
    let longest = requests.iter().filter(|of| near(of.2, requests[0].2));
    let longest: BTreeSet<String> = longest.map(|of| of.0.to_string()).collect();
    assert!(
        tids.len() == 1 && tids.is_subset(&longest),
        "{tids:?} {requests:?}"
    );
    // A time of which nothing is left, and events that are not there.
    let (status, _, said) = lab.pjit(
        &["report", "--within", &pair, "--slowest", ">1000s"],
        "r.data",
    );
    assert!(status == 1 && said.contains("no span of 40"), "{said}");
    let (status, _, said) = lab.pjit(
        &["report", "--between", &format!("{begin}..nothing")],
        "r.data",
    );
    assert!(status == 1 && said.contains("no event `nothing`"), "{said}");
    let (status, _, said) = lab.pjit(&["report", "--between", "a"], "r.data");
    assert!(
        status == 2 && said.contains("--between: a pair is `EVENT..EVENT`"),
        "{said}"
    );
}

#[test]
fn spans_are_one_choice_in_all_views() {
    let Some(lab) = Lab::with(
        "spans-all",
        "requests",
        &["-O1", "-fno-omit-frame-pointer", "-pthread"],
    ) else {
        return;
    };
    let Some((_, [begin, end])) = recorded(&lab) else {
        return;
    };
    let when = ["--within", &format!("{begin}..{end}"), "--slowest", "5"];
    let show = |verb: &[&str]| lab.show(&[verb, &when].concat(), "r.data");
    let lines = show(&["script", "-G", "-F", "event"]);
    let expected = lines
        .lines()
        .filter(|line| line.contains("cpu-clock"))
        .count() as u64;
    assert!(expected > 20, "{lines}");
    let json = |verb: &[&str]| -> u64 {
        let document = show(&[verb, &["--event", "cpu-clock", "--format", "json"]].concat());
        let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
        assert!(document.to_string().contains("--slowest 5"), "{document}");
        document["event"]["samples"].as_u64().expect("a number")
    };
    assert_eq!(json(&["summary"]), expected);
    assert_eq!(json(&["peek", "main"]), expected);
    let stacks = show(&["fold", "--event", "cpu-clock", "--weight", "samples"]);
    assert_eq!(folded(&stacks).values().sum::<u64>(), expected);
    let rows = show(&[
        "export",
        "--event",
        "cpu-clock",
        "--format",
        "csv",
        "--samples",
        "-o",
        "-",
    ]);
    assert_eq!(rows.lines().count() as u64 - 1, expected);
    // With a time less is left, and pairs are made of all events first.
    let half = show(&[
        "fold",
        "--event",
        "cpu-clock",
        "--weight",
        "samples",
        "--time",
        "0%-50%",
    ]);
    assert!(folded(&half).values().sum::<u64>() <= expected);
}
