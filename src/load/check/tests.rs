//! Limits, levels and advice.

use super::advice::{dump_size, for_short_stacks, for_stripped, quoted};
use super::remedy::Remedy;
use super::*;
use crate::jit::{Absence, ProcessId};

/// 1000 samples, all well.
fn good() -> Evidence {
    Evidence {
        loss: Loss {
            samples: 1000,
            ..Loss::default()
        },
        judged: Judged {
            samples: 1000,
            ..Judged::default()
        },
        ends: vec![ends(StackEnd::Complete, 1000)],
        clock: Clock::Monotonic,
        ..Evidence::default()
    }
}

fn ends(end: StackEnd, samples: u64) -> EndShare {
    EndShare {
        end,
        samples,
        culprits: Vec::new(),
    }
}

fn culprit(path: &str, samples: u64) -> Culprit {
    Culprit {
        name: path.rsplit('/').next().unwrap_or_default().to_owned(),
        path: path.to_owned(),
        samples,
        runtime: None,
        build_id: None,
        inode: None,
        rest: None,
    }
}

fn level(verdict: &Verdict, check: &str) -> Option<Level> {
    let mut found = verdict.findings.iter().filter(|f| f.check == check);
    found.next().map(|finding| finding.level)
}

#[test]
fn what_is_good_is_fit() {
    let verdict = judge(&good(), Limits::default());
    assert!(verdict.is_fit(false) && verdict.is_fit(true), "{verdict:?}");
    assert!(verdict.findings.iter().all(|f| f.level == Level::Ok));
}

#[test]
fn complete_stacks_are_held_against_their_limit() {
    let with = |complete, limit| {
        let evidence = Evidence {
            ends: vec![
                ends(StackEnd::Complete, complete),
                ends(StackEnd::DumpTooShort, 1000 - complete),
            ],
            ..good()
        };
        let limits = Limits {
            min_complete: limit,
            ..Limits::default()
        };
        judge(&evidence, limits)
    };
    assert_eq!(level(&with(900, None), "stacks"), Some(Level::Ok));
    assert_eq!(level(&with(899, None), "stacks"), Some(Level::Fail));
    assert_eq!(level(&with(900, Some(95.0)), "stacks"), Some(Level::Fail));
    assert_eq!(level(&with(500, Some(50.0)), "stacks"), Some(Level::Ok));
    // From one per cent on it is worth a warning.
    assert_eq!(level(&with(990, None), "stacks.short"), Some(Level::Warn));
    assert_eq!(level(&with(991, None), "stacks.short"), Some(Level::Note));
    assert!(with(990, None).is_fit(false) && !with(990, None).is_fit(true));
    assert_eq!(
        with(899, None).failed(false).collect::<Vec<_>>(),
        ["stacks"]
    );
}

#[test]
fn ends_that_no_option_helps_against_alarm_only_when_they_matter() {
    let with = |bad| {
        let evidence = Evidence {
            ends: vec![
                ends(StackEnd::Complete, 1000 - bad),
                ends(StackEnd::CheckFailed, bad),
            ],
            ..good()
        };
        level(&judge(&evidence, Limits::default()), "stacks.implausible")
    };
    assert_eq!(with(50), Some(Level::Note));
    assert_eq!(with(200), Some(Level::Warn));
}

#[test]
fn names_and_losses_are_held_against_their_limits() {
    let unresolved = |samples| Evidence {
        unresolved: vec![Unresolved {
            reason: Reason::NoSymbols,
            samples,
            culprits: vec![culprit("/usr/lib/libc.so.6", samples)],
        }],
        ..good()
    };
    let verdict = |evidence: Evidence| judge(&evidence, Limits::default());
    assert_eq!(level(&verdict(unresolved(100)), "symbols"), Some(Level::Ok));
    assert_eq!(
        level(&verdict(unresolved(101)), "symbols"),
        Some(Level::Fail)
    );
    // Names of the idle task are no names of what is shown.
    let mostly_idle = Evidence {
        judged: Judged {
            samples: 1000,
            idle: 900,
            ..Judged::default()
        },
        ..unresolved(50)
    };
    let found = verdict(mostly_idle);
    assert_eq!(level(&found, "symbols"), Some(Level::Fail));
    assert_eq!(found.numbers.named, Some(0.5));
    let unfollowed = Evidence {
        unfollowed: 3,
        ..good()
    };
    let found = level(&verdict(unfollowed), "samples.not-followed");
    assert_eq!(found, Some(Level::Warn));
    let brief = |missing| Evidence {
        brief: Brief {
            threads: 100,
            unsampled: 90,
            missing,
            sampled: 1_000_000_000,
            used: None,
        },
        ..good()
    };
    let of_brief = |missing| level(&verdict(brief(missing)), "samples.brief");
    assert_eq!(of_brief(50_000_000), None);
    assert_eq!(of_brief(60_000_000), Some(Level::Warn));
    assert_eq!(of_brief(1_010_000_000), Some(Level::Fail));
    // What the kernel counted is known better than what lives of threads let one fear.
    let used = |ms: u64, ring| Evidence {
        brief: Brief {
            used: Some(ms * 1_000_000),
            ..brief(1_010_000_000).brief
        },
        judged: Judged {
            ring,
            ..good().judged
        },
        ..good()
    };
    let of_used = |ms, ring| {
        let found = verdict(used(ms, ring));
        assert_eq!(level(&found, "samples.brief"), None);
        level(&found, "samples.unseen")
    };
    for (ms, all, user) in [
        (900, None, None),
        (1100, None, None),
        (1120, Some(Level::Warn), Some(Level::Warn)),
        (1300, Some(Level::Fail), Some(Level::Warn)),
    ] {
        assert_eq!(of_used(ms, Ring::All), all, "{ms}");
        assert_eq!(of_used(ms, Ring::User), user, "{ms}");
    }
    let short = Evidence {
        brief: Brief {
            sampled: 10_000_000,
            used: Some(50_000_000),
            ..Brief::default()
        },
        ..good()
    };
    assert_eq!(level(&verdict(short), "samples.unseen"), None);
    let lost = |lost| Evidence {
        loss: Loss {
            samples: 1000,
            lost,
            ..Loss::default()
        },
        ..good()
    };
    assert_eq!(level(&verdict(lost(1)), "samples"), Some(Level::Note));
    assert_eq!(level(&verdict(lost(20)), "samples"), Some(Level::Warn));
    assert_eq!(level(&verdict(lost(60)), "samples"), Some(Level::Fail));
    // Of several events, the one that is judged decides.
    let of_judged = |own| Evidence {
        loss: Loss {
            samples: 1000,
            lost: 400,
            lost_of_judged: Some(own),
            ..Loss::default()
        },
        judged: Judged {
            event: Some("cpu-clock".to_owned()),
            samples: 100,
            ..Judged::default()
        },
        ..good()
    };
    assert_eq!(level(&verdict(of_judged(0)), "samples"), Some(Level::Ok));
    assert_eq!(level(&verdict(of_judged(10)), "samples"), Some(Level::Fail));
    let cut = |missing| Evidence {
        whole: Whole {
            damage: Some(Damage::Cut(missing)),
            bytes: 1000,
            ..Whole::default()
        },
        ..good()
    };
    assert_eq!(level(&verdict(cut(40)), "recording"), Some(Level::Warn));
    assert_eq!(level(&verdict(cut(400)), "recording"), Some(Level::Fail));
}

#[test]
fn a_dump_whose_clock_is_guessed_is_a_warning() {
    let with = |clock, clock_fit| {
        let evidence = Evidence {
            clock,
            dumps: vec![Dump {
                functions: 5,
                clock_fit,
                ..Dump::default()
            }],
            ..good()
        };
        level(&judge(&evidence, Limits::default()), "clock")
    };
    assert_eq!(with(Clock::Monotonic, ClockFit::Same), Some(Level::Ok));
    assert_eq!(with(Clock::Scheduler, ClockFit::Shifted), Some(Level::Warn));
    assert_eq!(with(Clock::Scheduler, ClockFit::Assumed), Some(Level::Warn));
    assert_eq!(with(Clock::Scheduler, ClockFit::Converted), Some(Level::Ok));
    assert_eq!(with(Clock::Scheduler, ClockFit::Unused), Some(Level::Warn));
    // Nothing tells in which order two processors recorded.
    let absent = |is_apart| with(Clock::Absent { is_apart }, ClockFit::Same);
    assert_eq!(absent(true), Some(Level::Warn));
    assert_eq!(absent(false), Some(Level::Ok));
}

#[test]
fn dump_sizes_are_rounded_and_bounded() {
    let sizes = |known, beyond, needed, copied| DumpSizes {
        short: 10,
        known,
        beyond,
        needed,
        copied,
    };
    assert_eq!(dump_size(&sizes(10, 0, 17_800, 8192)), Some(18_432));
    assert_eq!(dump_size(&sizes(10, 0, 16_384, 8192)), Some(16_384));
    // What is needed may be less than what was copied and did not suffice: the kernel shortened another one.
    assert_eq!(dump_size(&sizes(10, 0, 4000, 8192)), Some(9216));
    assert_eq!(dump_size(&sizes(10, 0, 65_000, 8192)), Some(65_528));
    assert_eq!(dump_size(&sizes(0, 0, 0, 8192)), Some(65_528));
    assert_eq!(dump_size(&sizes(10, 10, 0, 8192)), Some(65_528));
    assert_eq!(dump_size(&sizes(10, 10, 0, 65_528)), None);
    // As much as fits beside registers and chain.
    assert_eq!(dump_size(&sizes(10, 10, 0, 65_272)), None);
    // One way, that which helps most of them.
    let fix = |sizes, is_go| {
        let remedy = for_short_stacks(&sizes, is_go);
        remedy.text(None).expect("it helps")
    };
    let large = "pjit record --call-graph dwarf,18432";
    assert_eq!(fix(sizes(10, 0, 17_800, 8192), false), large);
    assert_eq!(fix(sizes(10, 3, 17_800, 8192), true), large);
    let beyond = fix(sizes(10, 9, 17_800, 8192), false);
    assert!(beyond.starts_with("pjit record -g, with everything"));
    // Go keeps frame pointers without being told to.
    assert_eq!(fix(sizes(10, 9, 17_800, 8192), true), "pjit record -g");
}

#[test]
fn missing_callers_are_a_warning_from_five_per_cent_on() {
    let with = |missing| {
        let evidence = Evidence {
            ends: vec![
                ends(StackEnd::Recorded, 1000 - missing),
                ends(StackEnd::CallerMissing, missing),
            ],
            rooted: 1000,
            ..good()
        };
        level(
            &judge(&evidence, Limits::default()),
            "stacks.caller-missing",
        )
    };
    assert_eq!(with(0), None);
    assert_eq!(with(49), Some(Level::Note));
    assert_eq!(with(50), Some(Level::Warn));
}

#[test]
fn advice_on_unnamed_code_is_for_the_program_that_made_it() {
    let fix = |program: &str| {
        let evidence = Evidence {
            unresolved: vec![Unresolved {
                reason: Reason::JitWithoutDump,
                samples: 500,
                culprits: vec![culprit("//anon", 500)],
            }],
            untold: vec![program.to_owned()],
            ..good()
        };
        let verdict = judge(&evidence, Limits::default());
        let found = verdict.findings.iter().find(|f| f.check == "symbols.jit");
        found.expect("a finding").fixes.join(" ")
    };
    assert!(fix("bun").contains("BUN_JSC_useJITDump=1") && !fix("bun").contains("perf-prof"));
    assert!(fix("luajit").contains("LuaJIT has no switch"));
    assert!(fix("server").contains("pjit guide record"));
}

#[test]
fn a_file_that_is_there_is_not_called_missing() {
    let evidence = Evidence {
        unresolved: vec![Unresolved {
            reason: Reason::NotElf,
            samples: 500,
            culprits: vec![culprit("sbcl.core", 500)],
        }],
        ..good()
    };
    let verdict = judge(&evidence, Limits::default());
    let is_it = |finding: &&Finding| finding.check == "symbols.not-elf";
    let found = verdict.findings.iter().find(is_it).expect("a finding");
    assert!(found.text.contains("no ELF files") && found.text.contains("sbcl.core"));
    assert!(found.fixes.is_empty());
}

#[test]
fn a_trace_without_samples_is_named() {
    let found = |sort: u32| {
        let trace = Some(Trace { sort, bytes: 384 });
        let unread = Unread {
            trace,
            ..Unread::default()
        };
        let evidence = Evidence {
            unread,
            ..Evidence::default()
        };
        let mut findings = judge(&evidence, Limits::default()).findings.into_iter();
        findings.find(|f| f.check == "samples").expect("a finding")
    };
    let core_sight = found(3);
    assert!(
        core_sight
            .text
            .contains("a CoreSight ETM trace of 384 bytes")
    );
    assert!(
        core_sight.fixes[0].starts_with("perf inject"),
        "{core_sight:?}"
    );
    assert!(!core_sight.text.contains("JIT"), "{core_sight:?}");
    let intel = found(1);
    assert!(
        intel.text.ends_with("; JIT code cannot be decoded from it"),
        "{intel:?}"
    );
}

#[test]
fn stripped_files_have_packages() {
    let of = |paths: &[&str]| {
        let culprits: Vec<Culprit> = paths.iter().map(|path| culprit(path, 1)).collect();
        for_stripped(&culprits)
    };
    assert_eq!(
        of(&[
            "/usr/lib/x86_64-linux-gnu/libm.so.6",
            "/lib64/ld-linux-x86-64.so.2",
            "/usr/bin/python3.11"
        ]),
        ["apt install libc6-dbg python3.11-dbg"]
    );
    assert_eq!(
        of(&["/usr/lib/a b/libz.so.1", "/opt/app/server"]),
        [
            "apt install the -dbgsym packages that find-dbgsym-packages '/usr/lib/a b/libz.so.1' (of debian-goodies) names",
            "build server with -g, without -s and strip"
        ]
    );
    let known = Culprit {
        build_id: BuildId::new(&[0xab, 0xcd]),
        ..culprit("/opt/app/server", 1)
    };
    assert_eq!(
        for_stripped(std::slice::from_ref(&known))
            .last()
            .map(String::as_str),
        Some("pjit fetch may bring the debug file of server (build ID abcd)")
    );
    // Only a part of it is missing, and no server has a `.dwo` file.
    let parted = Culprit {
        rest: Some("/src/a.dwo".to_owned()),
        ..known
    };
    assert_eq!(
        for_stripped(&[parted]),
        [
            "copy the /src/a.dwo that server was built with to symfs/src/a.dwo, and give it: --symfs symfs"
        ]
    );
}

/// Two containers have another program each at one path.
#[test]
fn files_of_one_name_are_told_by_their_inodes() {
    let of = |inode, samples| Culprit {
        inode: Some(inode),
        ..culprit("/opt/app/run", samples)
    };
    let mut evidence = good();
    evidence.unresolved = vec![Unresolved {
        reason: Reason::MissingFile,
        samples: 500,
        culprits: vec![of(7, 300), of(8, 100), of(9, 100)],
    }];
    let text = |evidence: &Evidence| {
        let findings = judge(evidence, Limits::default()).findings;
        let found = findings
            .into_iter()
            .find(|of| of.check == "symbols.missing-file");
        found.expect("a finding").text
    };
    let told = text(&evidence);
    assert!(
        told.contains("run (inode 7) 30.00%, run (inode 8) 10.00%"),
        "{told}"
    );
    evidence.unresolved[0].culprits.truncate(1);
    assert!(text(&evidence).contains("run 30.00%"));
}

#[test]
fn words_are_safe_in_a_shell() {
    assert_eq!(quoted("/usr/lib/libc.so.6"), "/usr/lib/libc.so.6");
    assert_eq!(quoted("a b"), "'a b'");
    assert_eq!(quoted("$(x)'"), r"'$(x)'\'''");
    assert_eq!(quoted(""), "''");
}

#[test]
fn advice_is_for_those_who_made_the_code() {
    let advised = |runtime, keeps_frames| {
        let mut evidence = good();
        evidence.keeps_frames = keeps_frames;
        evidence.ends = vec![EndShare {
            culprits: vec![Culprit {
                runtime,
                ..culprit("/app/jit-7.dump", 600)
            }],
            ..ends(StackEnd::CheckFailed, 600)
        }];
        let verdict = judge(&evidence, Limits::default());
        let found = verdict
            .findings
            .iter()
            .find(|f| f.check == "stacks.implausible");
        found.expect("a finding").fixes.join("\n")
    };
    let with_runtime = |runtime| advised(runtime, false);
    let (c, java) = (with_runtime(None), with_runtime(Some(Producer::HotSpot)));
    assert!(
        c.contains("-fno-omit-frame-pointer") && !c.contains("java"),
        "{c}"
    );
    assert!(
        java.contains("-XX:+PreserveFramePointer") && !java.contains("-fno-omit"),
        "{java}"
    );
    assert!(!with_runtime(Some(Producer::Llvm)).contains("-fno-omit"));
    // What was done is not advised.
    let java = advised(Some(Producer::HotSpot), true);
    assert!(
        java.contains("-agentpath:") && !java.contains("Preserve"),
        "{java}"
    );
    assert_eq!(advised(None, true), c);
}

#[test]
fn a_dump_that_its_writer_gave_up_is_not_told_to_be_cut_by_its_end() {
    let fixes = |functions, producer| {
        let mut evidence = good();
        evidence.dumps = vec![Dump {
            name: "jit-7.dump".to_owned(),
            functions,
            producer,
            cut: Some(100),
            ..Dump::default()
        }];
        let verdict = judge(&evidence, Limits::default());
        let mut found = verdict.findings.iter().filter(|f| f.check == "dumps.cut");
        found.next().expect("a finding").fixes.join("\n")
    };
    assert!(fixes(2, Producer::DotNet).contains("DOTNET_PerfMapStubGranularity=2"));
    for other in [fixes(2, Producer::V8), fixes(2000, Producer::DotNet)] {
        assert!(other.contains("end by itself"), "{other}");
    }
}

#[test]
fn samples_where_nothing_was_mapped_and_dumps_that_were_cut_are_told_together() {
    let mut evidence = good();
    evidence.unresolved = vec![Unresolved {
        reason: Reason::Unmapped,
        samples: 300,
        culprits: Vec::new(),
    }];
    let unmapped = |evidence: &Evidence| {
        let verdict = judge(evidence, Limits::default());
        let found = verdict
            .findings
            .iter()
            .find(|f| f.check == "symbols.unmapped");
        let found = found.expect("a finding");
        format!("{} {}", found.text, found.fixes.join(" "))
    };
    assert!(unmapped(&evidence).contains("pjit record -m"));
    evidence.dumps = vec![Dump {
        name: "jit-7.dump".to_owned(),
        cut: Some(100),
        ..Dump::default()
    }];
    let text = unmapped(&evidence);
    assert!(
        text.contains("jit-7.dump was cut") && !text.contains("pjit record -m"),
        "{text}"
    );
}

#[test]
fn tables_of_jumps_that_a_dump_leaves_out_are_little() {
    let fixes = |samples, is_growing| {
        let mut evidence = good();
        evidence.unresolved = vec![Unresolved {
            reason: Reason::JitWithoutDump,
            samples,
            culprits: Vec::new(),
        }];
        evidence.dumps = vec![Dump {
            name: "jit-7.dump".to_owned(),
            producer: Producer::V8,
            is_growing,
            ..Dump::default()
        }];
        let verdict = judge(&evidence, Limits::default());
        let found = verdict.findings.iter().find(|f| f.check == "symbols.jit");
        found.expect("a finding").fixes.join(" ")
    };
    let little = fixes(30, false);
    assert!(
        little.contains("jumps to wasm") && !little.contains("--perf-prof"),
        "{little}"
    );
    assert!(!fixes(300, false).contains("jumps to wasm"));
    assert!(fixes(300, true).starts_with("jit-7.dump is still being written"));
}

fn of_event(name: &str, samples: u64) -> OfEvent {
    OfEvent {
        name: name.to_owned(),
        samples,
        is_sampled: true,
        is_too_often: false,
    }
}

#[test]
fn a_clock_that_was_asked_for_too_often_tells_no_time() {
    let mut evidence = good();
    evidence.events = vec![OfEvent {
        is_too_often: true,
        ..of_event("cpu-clock", 1000)
    }];
    let verdict = judge_for(&evidence, None, Limits::default());
    let told = verdict
        .findings
        .iter()
        .find(|row| row.check == "samples.period");
    assert!(told.is_some_and(|row| row.level == Level::Warn && row.text.contains("10 µs")));
}

#[test]
fn samples_of_one_event_are_no_evidence_for_another() {
    let mut evidence = good();
    evidence.loss.samples = 1003;
    evidence.judged.event = Some("page-faults".to_owned());
    evidence.events = vec![of_event("cpu-clock", 3), of_event("page-faults", 1000)];
    let few = |about: Option<(&str, u64)>| {
        let about = about.map(|(name, samples)| (name.to_owned(), samples));
        let verdict = judge_for(&evidence, about, Limits::default());
        let found = verdict.findings.iter().find(|f| f.check == "samples.few");
        found.map(|finding| (finding.level, finding.text.clone()))
    };
    let text = "3 samples of cpu-clock are too few to tell shares".to_owned();
    assert_eq!(
        few(Some(("cpu-clock", 3))),
        Some((Level::Fail, text.clone()))
    );
    assert_eq!(few(Some(("page-faults", 1000))), None);
    // Of nothing in particular: the event that is judged decides.
    assert_eq!(few(None), Some((Level::Note, text)));
    let verdict = judge(&evidence, Limits::default());
    let samples = verdict.findings.iter().find(|f| f.check == "samples");
    let samples = samples.expect("a line").text.as_str();
    let told = "1003 (1000 of page-faults, 3 of cpu-clock; what follows is about page-faults) recorded (10% means 10 +- 1.9%)";
    assert!(samples.starts_with(told), "{samples}");
}

#[test]
fn programs_get_numbers() {
    let mut evidence = Evidence {
        ends: vec![
            ends(StackEnd::Complete, 600),
            ends(StackEnd::DumpTooShort, 400),
        ],
        unresolved: vec![Unresolved {
            reason: Reason::NoSymbols,
            samples: 250,
            culprits: Vec::new(),
        }],
        sizes: DumpSizes {
            short: 400,
            known: 400,
            beyond: 0,
            needed: 14_000,
            copied: 8192,
        },
        ..good()
    };
    let numbers = |evidence: &Evidence| judge(evidence, Limits::default()).numbers;
    assert_eq!(
        numbers(&evidence),
        Numbers {
            samples: 1000,
            lost: 0,
            complete: Some(0.6),
            named: Some(0.75),
            advised_stack_size: Some(14_336),
            advises_copies: false,
            advises_no_z: false,
        }
    );
    evidence.ends = vec![ends(StackEnd::NotRecorded, 1000)];
    assert_eq!(numbers(&evidence).complete, None);
    assert_eq!(numbers(&evidence).advised_stack_size, None);
    evidence.ends = vec![ends(StackEnd::Recorded, 1000)];
    evidence.whole.damage = Some(Damage::EndKept);
    let advised = |rooted, calls_kept, evidence: &mut Evidence| {
        (evidence.rooted, evidence.calls_kept) = (rooted, calls_kept);
        numbers(evidence).advises_copies
    };
    assert!(advised(100, 0, &mut evidence));
    assert!(!advised(990, 0, &mut evidence), "frame pointers do");
    assert!(!advised(100, 16, &mut evidence), "they were not followed");
    assert!(numbers(&evidence).advises_no_z);
}

#[test]
fn chains_that_were_asked_to_be_short_need_no_other_kernel() {
    for (asked_frames, fix) in [(0, "sysctl"), (8, "without --max-stack")] {
        let evidence = Evidence {
            ends: vec![ends(StackEnd::ChainFull, 1000)],
            rooted: 0,
            asked_frames,
            ..good()
        };
        let verdict = judge(&evidence, Limits::default());
        let mut found = verdict.findings.iter();
        let found = found.find(|found| found.check == "stacks.too-deep");
        let found = found.expect("a finding");
        assert!(found.fixes.concat().contains(fix), "{:?}", found.fixes);
    }
}

/// Copies of Go's stacks end where its runtime changes stacks, and frame pointers lead on.
#[test]
fn advice_for_go_is_of_one_mind() {
    for of_go in [10, 400] {
        let advice = |end, other| {
            let evidence = Evidence {
                ends: vec![ends(end, 400), ends(other, 600)],
                ends_in_go: vec![(end, of_go)],
                rooted: 950,
                ..good()
            };
            let verdict = judge(&evidence, Limits::default());
            let fixes = verdict
                .findings
                .iter()
                .flat_map(|found| found.fixes.clone());
            fixes.collect::<Vec<_>>().join(" ")
        };
        let copied = advice(StackEnd::OtherStack, StackEnd::Complete);
        let followed = advice(StackEnd::CallerMissing, StackEnd::Recorded);
        assert_eq!(copied.contains("pjit record -g"), of_go == 400, "{copied}");
        assert_eq!(followed.contains("without -g"), of_go == 10, "{followed}");
    }
}

/// Who recorded with `pjit record` is told what to do otherwise, not to do the same.
#[test]
fn own_recordings_are_advised_options() {
    let by = Again::By("pjit record --again out".to_owned());
    let own = |remedy: &Remedy| remedy.text(Some(&by));
    let anew = |remedy: &Remedy| remedy.text(Some(&Again::Anew));
    let others = |remedy: &Remedy| remedy.text(None);
    let longer = Remedy::from("record longer, or ").then(Remedy::record("-F 9999"));
    assert_eq!(
        own(&longer).as_deref(),
        Some("record longer, or pjit record --again out -F 9999")
    );
    // The processes may have ended.
    for text in [anew(&longer), others(&longer)] {
        assert_eq!(
            text.as_deref(),
            Some("record longer, or pjit record -F 9999")
        );
    }
    let agent = Remedy::java_agent().then(", whose dump has the code");
    assert_eq!(
        own(&agent).as_deref(),
        Some("pjit record --again out --java-agent libperf-jvmti.so, whose dump has the code")
    );
    assert_eq!(
        anew(&agent).as_deref(),
        Some("java -agentpath:libperf-jvmti.so, whose dump has the code")
    );
    let done = Remedy::done("pjit record, which takes the clock of dumps");
    assert_eq!((own(&done), anew(&done)), (None, None));
    assert_eq!(
        others(&done).as_deref(),
        Some("pjit record, which takes the clock of dumps")
    );
    let tell = Remedy::from("have the runtime tell: ").then(Remedy::record_or());
    let tell = tell.then("node --perf-prof");
    for text in [own(&tell), anew(&tell)] {
        assert_eq!(
            text.as_deref(),
            Some("have the runtime tell: node --perf-prof")
        );
    }
    assert_eq!(
        others(&tell).as_deref(),
        Some("have the runtime tell: pjit record, or node --perf-prof")
    );
    let evidence = Evidence {
        ends: vec![ends(StackEnd::NotRecorded, 1000)],
        again: Some(by),
        ..good()
    };
    let verdict = judge(&evidence, Limits::default());
    let fixes = verdict.findings.iter().flat_map(|found| &found.fixes);
    let fixes: Vec<&String> = fixes.collect();
    assert!(!fixes.iter().any(|fix| *fix == "pjit record"), "{fixes:?}");
}

#[test]
fn a_dump_that_is_missing_is_not_well() {
    let absent = JitAbsent {
        path: b"/tmp/jit-7.dump".to_vec(),
        pid: 7,
        process: ProcessId(0),
        why: Absence::Missing,
    };
    let mut evidence = Evidence {
        absent: vec![absent],
        ..good()
    };
    let verdict = judge(&evidence, Limits::default());
    assert_eq!(level(&verdict, "dumps"), Some(Level::Note));
    assert_eq!(level(&verdict, "dumps.missing"), Some(Level::Warn));
    evidence.absent[0].why = Absence::Empty;
    evidence.loses_dumps = Producer::CPython.row().loses_dumps;
    let verdict = judge(&evidence, Limits::default());
    assert_eq!(level(&verdict, "dumps.missing"), None);
    let mut found = verdict.findings.iter();
    let empty = found.find(|found| found.check == "dumps.empty");
    let empty = empty.expect("it is told");
    assert!(empty.fixes[0].starts_with("PYTHONPERFSUPPORT=1 pjit record"));
    assert_eq!(
        level(&judge(&good(), Limits::default()), "dumps"),
        Some(Level::Ok)
    );
}
