//! 32-bit processes on this machine: their stacks, recorded live.

use std::process::Command;

use crate::live::{Lab, below, total};
use crate::support::skip;

/// Whether programs of 32 bits can be built.
fn can_build(lab: &Lab) -> bool {
    let built = Command::new("cc")
        .args(["-m32", "-o"])
        .arg(lab.path("tried"))
        .arg(Lab::program("narrow.c"))
        .output();
    let built = built.is_ok_and(|output| output.status.success());
    if !built {
        skip("cc-m32", "programs of 32 bits cannot be built");
    }
    built
}

/// Whatever calls the function that takes the time is known, down to the start: the program, the C library with its call-back,
/// a signal handler, with frame pointers and without.
#[test]
fn stacks_of_32_bit_programs_are_whole() {
    for (name, flag) in [
        ("fp", "-fno-omit-frame-pointer"),
        ("nofp", "-fomit-frame-pointer"),
    ] {
        let test = format!("narrow-{name}");
        if !cfg!(target_arch = "x86_64") || !can_build(&Lab::empty(&test)) {
            return;
        }
        let Some(lab) = Lab::with(&test, "narrow", &["-m32", flag]) else {
            return;
        };
        let options = [
            "-e",
            "cpu-clock:u",
            "-F",
            "1999",
            // Other tests run beside it: nothing may be lost while perf waits for a processor.
            "-m",
            "16M",
            "--call-graph",
            "dwarf,8192",
        ];
        if lab.record("perf.data", &options, &["./narrow"]).is_none() {
            return;
        }
        let folded = lab.show(&["fold", "--no-inline"], "perf.data");
        let stacks = folded.lines().filter(|line| line.contains(";leaf "));
        let mut handled = 0;
        for stack in stacks {
            let frames: Vec<&str> = stack.split([';', ' ']).collect();
            assert_eq!(frames[..2], ["narrow", "_start"], "{name}: {stack}");
            let callers = &frames[..frames.len() - 2];
            let own = callers.ends_with(&["outer", "middle"]);
            let called_back = callers.ends_with(&["order"]) && callers.contains(&"qsort");
            assert!(own || called_back, "{name}: {stack}");
            assert!(callers.contains(&"main"), "{name}: {stack}");
            let handler = callers.iter().position(|frame| *frame == "handler");
            let is_raised = handler.is_none_or(|at| callers[..at].contains(&"raise"));
            assert!(is_raised, "{name}: {stack}");
            handled += usize::from(handler.is_some());
        }
        let (all, whole) = (total(&folded), below(&folded, "_start"));
        assert!(
            all > 0 && whole * 100 >= all * 95,
            "{name}: {whole} of {all}\n{folded}"
        );
        assert!(handled > 0, "{name}: no sample in the handler\n{folded}");
        let told = lab.show(&["check", "--min-resolved", "0"], "perf.data");
        assert!(!told.contains("registers"), "{told}");
    }
}
