//! What `--weight` is told: any text; and values of its expressions for any payload. The first byte is the length of the text.
#![no_main]

use pjit::weigh::Spec;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&len, rest)) = bytes.split_first() else {
        return;
    };
    let (text, payload) = rest.split_at(usize::from(len).min(rest.len()));
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let Ok(Spec::Expressions(terms)) = Spec::parse(text) else {
        return;
    };
    for term in terms {
        assert!(term.expr.fields().count() <= text.len());
        // Without a description of a tracepoint no name has a place; numbers alone have a value.
        if let Ok(bound) = term.expr.bind(|_| None) {
            assert!(bound.value(payload).is_some());
        }
    }
});
