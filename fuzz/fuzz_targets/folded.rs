//! Folded stacks of any bytes: what is read becomes a tree, and the tree of it and itself is no larger.
#![no_main]

use pjit::flame;
use pjit::profile::EventId;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (Ok(one), Ok(other)) = (flame::read_folded(bytes), flame::read_folded(bytes)) else {
        return;
    };
    let joined = flame::join([vec![one], vec![other]], EventId(0), 1);
    let weights = |run: u8| {
        let series = &joined.flame.series;
        joined.flame.weights(|cell| {
            if series[cell.series].run == run {
                cell.period
            } else {
                0
            }
        })
    };
    assert_eq!(weights(0), weights(1));
});
