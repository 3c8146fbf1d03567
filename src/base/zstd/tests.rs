//! The decoder against an encoder that somebody else wrote, against what `zstd` itself wrote, and against damage.

use std::sync::LazyLock;

use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::{Decoder, decode_all};

/// Text, tables and noise: what takes literals, repeated and new offsets, long matches and raw blocks.
fn mixed() -> Vec<u8> {
    let mut all = Vec::new();
    let mut noise = 1u64;
    for i in 0..40_000u64 {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        match i / 1000 % 4 {
            0 => all.extend(format!("function_{}::call ", noise >> 57).bytes()),
            1 => all.extend((i * 24 + (noise >> 60)).to_le_bytes()),
            2 => all.extend((noise ^ noise >> 31).to_le_bytes()),
            _ => all.extend([0; 16]),
        }
    }
    all
}

/// Feeds pieces of a length each, forgetting what was seen.
fn in_pieces(packed: &[u8], piece: usize) -> Vec<u8> {
    let (mut decoder, mut all, mut seen) = (Decoder::default(), Vec::new(), 0);
    for mut input in packed.chunks(piece) {
        while !input.is_empty() {
            decoder.feed(&mut input, seen + 1000).expect("sound data");
            all.extend_from_slice(&decoder.decoded()[seen..]);
            seen = decoder.decoded().len();
            seen -= decoder.forget(seen);
        }
    }
    assert!(decoder.is_between_frames());
    all
}

#[test]
fn streams_are_decoded_in_whatever_pieces_they_come() {
    let plain = mixed();
    let packed = compress_to_vec(&plain[..], CompressionLevel::Fastest);
    assert!(packed.len() < plain.len() / 2);
    for piece in [1, 2, 7, 1000, 200_000, usize::MAX] {
        assert!(in_pieces(&packed, piece) == plain, "{piece}");
    }
    let raw = compress_to_vec(&plain[..], CompressionLevel::Uncompressed);
    assert!(decode_all(&raw, plain.len()).as_ref() == Some(&plain));
    // One after the other, with something that is skipped between.
    let mut two = [&packed[..], &[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]].concat();
    two.extend(&raw);
    assert!(in_pieces(&two, 1234) == plain.repeat(2));
}

/// Packed by `zstd` 1.5.4.
#[test]
fn what_zstd_packed_is_unpacked() {
    let plain = include_bytes!("../../../LICENSE-APACHE");
    for packed in [
        &include_bytes!("testdata/license-fast.zst")[..],
        include_bytes!("testdata/license-1.zst"),
        include_bytes!("testdata/license-9.zst"),
        include_bytes!("testdata/license-19.zst"),
    ] {
        let unpacked = decode_all(packed, plain.len());
        assert!(unpacked.as_deref() == Some(plain));
        assert!(in_pieces(packed, 100) == plain);
    }
}

#[test]
fn no_more_is_decoded_than_was_allowed() {
    let packed = compress_to_vec(&[7; 1 << 20][..], CompressionLevel::Fastest);
    assert_eq!(decode_all(&packed, 1 << 20), Some(vec![7; 1 << 20]));
    assert_eq!(decode_all(&packed, (1 << 20) - 1), None);
    assert_eq!(decode_all(&packed[..packed.len() - 1], 1 << 20), None);
}

#[test]
fn foreign_and_damaged_data_are_refused() {
    for bytes in [
        &b"PERFILE2"[..],
        // A dictionary.
        &[0x28, 0xb5, 0x2f, 0xfd, 0x21, 9, 0, 1, 0, 0],
        // A window of a gigabyte.
        &[0x28, 0xb5, 0x2f, 0xfd, 0, 0xa0, 1, 0, 0],
        // The reserved kind of block.
        &[0x28, 0xb5, 0x2f, 0xfd, 0, 0, 7, 0, 0],
    ] {
        assert_eq!(decode_all(bytes, 1000), None, "{bytes:x?}");
    }
}

static PACKED: LazyLock<Vec<u8>> =
    LazyLock::new(|| compress_to_vec(&mixed()[..100_000], CompressionLevel::Fastest));

proptest! {
    #[test]
    fn what_was_packed_is_unpacked(plain in prop::collection::vec(0u8..20, 0..5000)) {
        let packed = compress_to_vec(&plain[..], CompressionLevel::Fastest);
        prop_assert_eq!(decode_all(&packed, plain.len()), Some(plain));
    }

    #[test]
    fn damage_does_no_harm(at in 0usize..50_000, bit in 0u8..8, cut in 0usize..50_000) {
        let mut packed = PACKED.clone();
        let len = packed.len();
        packed[at % len] ^= 1 << bit;
        packed.truncate(len - cut % 1000);
        if let Some(bytes) = decode_all(&packed, 1 << 20) {
            prop_assert!(bytes.len() <= 1 << 20);
        }
    }
}
