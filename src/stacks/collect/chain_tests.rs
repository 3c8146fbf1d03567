//! Chains of recordings made for the purpose, from the file to the profile.

use crate::collect::{Facet, Options};
use crate::diagnostics::Diagnostics;
use crate::load::{LoadOptions, Source, load};
use crate::needs::Needs;
use crate::perfdata::testing::{
    BRANCH_STACK, CALLCHAIN, IP, TID, TIME, TestEvent, TestRecording, TestSample,
};
use crate::stack_end::StackEnd;

const KERNEL: u64 = -128_i64 as u64;
const USER: u64 = -512_i64 as u64;
/// `PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK`
const CALL_STACK: u64 = 1 | 1 << 11;

/// The addresses of the only sample's chain, and why it ended.
fn chain(
    branch_sample_type: u64,
    callchain: &[u64],
    branches: &[[u64; 3]],
) -> (Vec<u64>, StackEnd) {
    chain_and_deferred(branch_sample_type, callchain, branches, None)
}

/// The same with a CALLCHAIN_DEFERRED record (type 22) behind the sample: its number, and its words.
fn chain_and_deferred(
    branch_sample_type: u64,
    callchain: &[u64],
    branches: &[[u64; 3]],
    deferred: Option<(u64, &[u64])>,
) -> (Vec<u64>, StackEnd) {
    let ip = 0xffff_ffff_8100_0010;
    taken_in(1, ip, branch_sample_type, callchain, branches, deferred)
}

fn taken_in(
    misc: u16,
    ip: u64,
    branch_sample_type: u64,
    callchain: &[u64],
    branches: &[[u64; 3]],
    deferred: Option<(u64, &[u64])>,
) -> (Vec<u64>, StackEnd) {
    let event = TestEvent {
        sample_type: IP | TID | TIME | CALLCHAIN | BRANCH_STACK,
        branch_sample_type,
        ..TestEvent::default()
    };
    let recording = TestRecording::new(vec![event]);
    only_chain(recording, (misc, ip), callchain, branches, deferred)
}

fn only_chain(
    mut recording: TestRecording,
    (misc, ip): (u16, u64),
    callchain: &[u64],
    branches: &[[u64; 3]],
    deferred: Option<(u64, &[u64])>,
) -> (Vec<u64>, StackEnd) {
    let sample = TestSample {
        misc,
        ip,
        pid: 7,
        tid: 7,
        time: 100,
        callchain: callchain.to_vec(),
        branches: branches.to_vec(),
        ..TestSample::default()
    };
    recording.sample(0, &sample);
    if let Some((cookie, words)) = deferred {
        let body = [cookie, words.len() as u64];
        let body = body.iter().chain(words).flat_map(|word| word.to_le_bytes());
        recording.kernel_record(22, 2, &body.collect::<Vec<u8>>(), 150);
    }
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("perf.data");
    std::fs::write(&path, recording.file()).expect("written");
    let options = LoadOptions {
        reading: Options {
            max_frames: 100,
            threads: 1,
            ..Options::default()
        },
        ..LoadOptions::of(Source::File(path))
    };
    let profile = load(&options, &Diagnostics::new()).expect("a sound recording");
    let [entry] = profile.entries.raw[..] else {
        panic!("{} entries", profile.entries.len());
    };
    let address = |frame: &crate::profile::FrameId| profile[*frame].address.0;
    let frames = profile
        .stacks
        .get(entry.stack)
        .iter()
        .map(address)
        .collect();
    (frames, profile.stacks.end(entry.stack))
}

#[test]
fn branch_call_stacks_take_the_place_of_the_users_part() {
    let recorded = [
        KERNEL,
        0xffff_ffff_8100_0010,
        0xffff_ffff_8100_0020,
        USER,
        0x1000,
        0x2000,
    ];
    let branches = [
        [0x1100, 0x1200, 0],
        [0x2100, 0x1000, 0],
        [0x3100, 0x2000, 0],
    ];
    assert_eq!(
        chain(CALL_STACK, &recorded, &branches),
        (
            vec![
                0xffff_ffff_8100_0010,
                0xffff_ffff_8100_0020,
                0x1000,
                0x1100,
                0x2100,
                0x3100
            ],
            StackEnd::Recorded
        )
    );
    // Other branch records (-b) are no call stack, and without a user part there is nothing to replace.
    let kept = vec![0xffff_ffff_8100_0010, 0xffff_ffff_8100_0020, 0x1000, 0x2000];
    assert_eq!(chain(1, &recorded, &branches).0, kept);
    assert_eq!(
        chain(CALL_STACK, &recorded[..3], &branches),
        (kept[..2].to_vec(), StackEnd::KernelOnly)
    );
}

#[test]
fn call_stacks_begin_with_the_sampled_address_and_end_with_registers_that_were_not_filled() {
    let branches = [[0x1100, 0x1200, 0], [0x2100, 0x1000, 0], [0, 0, 0]];
    let of_user = |branches: &[[u64; 3]]| {
        // `PERF_RECORD_MISC_USER`
        taken_in(2, 0x5000, CALL_STACK, &[USER, 0x9], branches, None)
    };
    // The newest call went to 0x1200, a stub that has jumped to the function of 0x5000.
    assert_eq!(
        of_user(&branches),
        (vec![0x5000, 0x1100, 0x2100], StackEnd::Recorded)
    );
    // Without calls there is the chain.
    assert_eq!(of_user(&[]), (vec![0x9], StackEnd::Recorded));
    let kernel = [KERNEL, 0xffff_ffff_8100_0010, USER, 0x5000, 0x7000];
    assert_eq!(
        chain(CALL_STACK, &kernel, &[]).0,
        [0xffff_ffff_8100_0010, 0x5000, 0x7000]
    );
    // As many as a processor keeps, and no sample has more.
    let calls: Vec<[u64; 3]> = (1..=16).map(|n| [n << 12, n << 8, 0]).collect();
    assert_eq!(of_user(&calls).1, StackEnd::BranchesFull);
    assert_eq!(of_user(&calls[..15]).1, StackEnd::Recorded);
}

#[test]
fn a_chain_with_as_many_frames_as_the_kernel_records_is_cut() {
    let of_frames = |frames: u64| {
        let user = (1..frames).map(|n| n << 12);
        let chain_words = [KERNEL, 0xffff_ffff_8100_0010, USER]
            .into_iter()
            .chain(user);
        chain(0, &chain_words.collect::<Vec<u64>>(), &[]).1
    };
    assert_eq!(of_frames(126), StackEnd::Recorded);
    assert_eq!(of_frames(127), StackEnd::ChainFull);
    assert_eq!(of_frames(128), StackEnd::Recorded);
}

#[test]
fn what_a_chain_was_to_be_without_is_not_taken_for_absent() {
    const WITHOUT_KERNEL: u64 = 1 << 21;
    const WITHOUT_USER: u64 = 1 << 22;
    const IN_KERNEL: (u16, u64) = (1, 0xffff_ffff_8100_0010);
    let of = |flags, is_program: bool, ip, callchain: &[u64]| {
        let mut recording = TestRecording::new(vec![TestEvent {
            sample_type: IP | TID | TIME | CALLCHAIN | BRANCH_STACK,
            flags,
            ..TestEvent::default()
        }]);
        if is_program {
            recording.mmap2(7, 0x1000, 0x9000, 0, "/app", 1);
        }
        only_chain(recording, ip, callchain, &[], None)
    };
    // It ran in the kernel, whoever called it. Where a program is mapped, callers are where their calls are.
    assert_eq!(
        of(WITHOUT_KERNEL, true, IN_KERNEL, &[USER, 0x1000, 0x2000]),
        (vec![IN_KERNEL.1, 0x1000, 0x1fff], StackEnd::Recorded)
    );
    assert_eq!(
        of(WITHOUT_KERNEL, true, (2, 0x1000), &[USER, 0x1000, 0x2000]),
        (vec![0x1000, 0x1fff], StackEnd::Recorded)
    );
    let kernel = [KERNEL, IN_KERNEL.1, IN_KERNEL.1 + 16];
    let end = |flags, is_program| of(flags, is_program, IN_KERNEL, &kernel).1;
    assert_eq!(end(WITHOUT_USER, true), StackEnd::NotRecorded);
    // A kernel thread has nobody else in its stacks.
    assert_eq!(end(WITHOUT_USER, false), StackEnd::KernelOnly);
    assert_eq!(end(0, true), StackEnd::KernelOnly);
}

#[test]
fn a_chain_with_an_unknown_marker_is_dropped() {
    let recorded = [USER, 0x1000, -3000_i64 as u64, 0x2000];
    assert_eq!(chain(0, &recorded, &[]), (vec![], StackEnd::NotRecorded));
}

#[test]
fn a_users_part_that_comes_later_is_put_in_its_place() {
    const KERNEL: u64 = -128_i64 as u64;
    const DEFERRED: u64 = -640_i64 as u64;
    let recorded = [KERNEL, 0xffff_ffff_8100_0010, DEFERRED, 77];
    let whole = vec![0xffff_ffff_8100_0010, 0x1000, 0x2000];
    let later: Option<(u64, &[u64])> = Some((77, &[USER, 0x1000, 0x2000]));
    assert_eq!(
        chain_and_deferred(0, &recorded, &[], later),
        (whole.clone(), StackEnd::Recorded)
    );
    let unmarked: Option<(u64, &[u64])> = Some((77, &[0x1000, 0x2000]));
    assert_eq!(
        chain_and_deferred(0, &recorded, &[], unmarked),
        (whole.clone(), StackEnd::Recorded)
    );
    let of_another: Option<(u64, &[u64])> = Some((78, &[USER, 0x1000]));
    assert_eq!(
        chain_and_deferred(0, &recorded, &[], of_another),
        (whole[..1].to_vec(), StackEnd::NotRecorded)
    );
}

#[test]
fn cgroups_have_the_names_that_were_recorded() {
    use crate::perfdata::testing::CGROUP;
    let event = TestEvent {
        sample_type: IP | TID | TIME | CGROUP,
        ..TestEvent::default()
    };
    let mut recording = TestRecording::new(vec![event]);
    let named = [&7u64.to_le_bytes()[..], b"/system.slice\0\0\0"].concat();
    recording.kernel_record(19, 0, &named, 1);
    for (cgroup, time) in [(7, 10), (8, 20)] {
        let sample = TestSample {
            cgroup,
            time,
            pid: 7,
            tid: 7,
            ..TestSample::default()
        };
        recording.sample(0, &sample);
    }
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("perf.data");
    std::fs::write(&path, recording.file()).expect("written");
    let options = LoadOptions {
        needs: Needs::STACKS | Facet::Cgroup.needs(),
        reading: Options {
            threads: 1,
            ..Options::default()
        },
        ..LoadOptions::of(Source::File(path))
    };
    let profile = load(&options, &Diagnostics::new()).expect("a sound recording");
    let facets = &profile.facets;
    let entries = profile.entries.iter();
    let names = entries.filter_map(|entry| facets.text(entry.facets, Facet::Cgroup));
    let names: Vec<&str> = names.map(|name| &*facets.texts()[name].text).collect();
    assert_eq!(names, ["/system.slice", "0x8"]);
}
