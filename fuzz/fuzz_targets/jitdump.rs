//! A jitdump of any bytes: records, line tables, unwinding records, lints and lists.
#![no_main]

use pjit::jitdump::dump::{Content, Reader};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let survey = pjit::jitdump::survey::survey(bytes);
    let Ok(mut reader) = Reader::new(bytes) else {
        assert!(survey.is_err());
        return;
    };
    let survey = survey.expect("the reader takes it");
    let lints = pjit::jitdump::lint::lint(&survey, None);
    let mut text = Vec::new();
    let lists = pjit::output::jitdump::Lists {
        functions: true,
        records: true,
        lines: true,
        unwinding: true,
    };
    pjit::output::jitdump::write_summary(b"x", &survey, &lints, &mut text).expect("memory");
    pjit::output::jitdump::write_lists(bytes, &survey, lists, &mut text).expect("memory");
    assert!(text.iter().all(|&b| b == b'\n' || (b >= 0x20 && b != 0x7f)));
    while let Some((_, content)) = reader.step() {
        let Content::Load(load) = content else {
            continue;
        };
        let code = load.of_lines(survey.producer);
        let _ = load.lines.as_ref().map(|lines| lines.lines(&code).len());
        let _ = load.unwinding.as_ref().map(|u| {
            (
                u.resolve(load.address, load.size).is_some(),
                u.readable_eh_frame().len(),
            )
        });
    }
});
