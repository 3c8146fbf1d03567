//! What flame graph tools make of the output.

use inferno::collapse::Collapse;
use inferno::collapse::perf::Folder;

use crate::support::{SAMPLES, stdout_of};

#[test]
fn inferno_folds_the_script_to_what_fold_prints() {
    for name in SAMPLES {
        for options in [&[][..], &["--no-inline"][..]] {
            let script = stdout_of(&[&["script"], options].concat(), name);
            let mut folded = Vec::new();
            Folder::default()
                .collapse(script.as_bytes(), &mut folded)
                .expect("inferno reads it");
            let folded = String::from_utf8(folded).expect("text");
            let mut theirs: Vec<&str> = folded.lines().collect();
            theirs.sort_unstable();
            let fold = stdout_of(&[&["fold"], options].concat(), name);
            let mut ours: Vec<&str> = fold.lines().collect();
            assert!(ours.is_sorted(), "{name}");
            ours.sort_unstable();
            assert_eq!(ours, theirs, "{name} {options:?}");
        }
    }
}

#[test]
fn a_flame_graph_of_the_folded_stacks_holds_every_sample() {
    for name in SAMPLES {
        let fold = stdout_of(&["fold"], name);
        let weight = |line: &str| -> u64 {
            let (_, weight) = line.rsplit_once(' ').expect("a weight");
            weight.parse().expect("a number")
        };
        let total: u64 = fold.lines().map(weight).sum();
        let mut svg = Vec::new();
        let mut options = inferno::flamegraph::Options::default();
        inferno::flamegraph::from_lines(&mut options, fold.lines(), &mut svg).expect("it draws");
        let svg = String::from_utf8(svg).expect("text");
        let grouped = group_thousands(total);
        assert!(
            svg.contains(&format!("all ({grouped} samples, 100%)")),
            "{name}: {grouped}"
        );
    }
}

fn group_thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
