//! What a test does that has nothing to compare with. Shared by the tests of the library.

/// Says that a test compares nothing since an oracle is not here, and why. Where CI installs what is missing that is
/// a failure, unless `.ci/run` could not have it and will say so.
///
/// # Panics
/// With `CI=true`, if the oracle is not among those that `PJIT_LEFT_OUT` names.
#[expect(
    clippy::print_stderr,
    reason = "the test runner shows it with --nocapture"
)]
pub(crate) fn skip(oracle: &str, why: &str) {
    eprintln!("skipped, without {oracle}: {why}");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|is| is == value);
    let left_out = std::env::var("PJIT_LEFT_OUT").unwrap_or_default();
    assert!(
        !is("CI", "true") || left_out.split(' ').any(|name| name == oracle),
        "nothing to compare with, {oracle}: {why}"
    );
}
