//! What `--weight` is told: any text; and values of its expressions for any payload. The first byte is the length of the text.
#![no_main]

use pjit::perfdata::FieldAt;
use pjit::weigh::Spec;

/// Where a field is, by its name: all sizes, some behind the end.
fn place(name: &str) -> Option<FieldAt> {
    let sum = name
        .bytes()
        .fold(0_usize, |sum, byte| sum * 7 + usize::from(byte) & 0xff);
    FieldAt::new(sum >> 3, 1 << (sum & 3), sum & 4 != 0)
}

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
        let bound = term.expr.bind(place).expect("all names have a place");
        let is_whole = term
            .expr
            .fields()
            .all(|name| place(name).is_some_and(|at| at.number(payload).is_some()));
        assert_eq!(bound.value(payload).is_some(), is_whole);
    }
});
