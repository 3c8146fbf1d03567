//! Frames as dense numbers, as far as trees and rows tell them apart.

use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use super::super::LabelId;
use super::super::classes::ClassId;
use super::super::trie::FineId;
use crate::ids::{Idx, IndexSlice, IndexVec};
use crate::intern::ItemIndex;
use crate::profile::FrameId;

/// Numbers that are equal for frames that neither a tree nor a row tells apart.
#[derive(Debug, Default)]
pub(crate) struct Fine {
    /// By frame.
    pub(super) of_frame: IndexVec<FrameId, FineId>,
    /// By number: what a tree tells apart.
    pub(crate) label: IndexVec<FineId, LabelId>,
    /// By number: what rows tell apart, as callers; nothing for what has no row.
    pub(crate) class: IndexVec<FineId, Option<ClassId>>,
    /// By number: a frame that has it.
    pub(crate) frame: IndexVec<FineId, FrameId>,
}

impl Fine {
    /// `labels` count from 0 in the order of the frames; there are no `classes` when callers have no rows.
    pub(crate) fn of(
        labels: &IndexSlice<FrameId, [LabelId]>,
        classes: Option<&IndexSlice<FrameId, [Option<ClassId>]>>,
    ) -> Self {
        let Some(classes) = classes else {
            return Self::of_labels(labels);
        };
        let mut fine = Self::default();
        fine.of_frame.reserve(labels.len());
        let mut ids = ItemIndex::with_capacity(labels.len());
        for ((frame, &label), &class) in labels.iter_enumerated().zip(classes) {
            let new = fine.label.next_idx();
            let of = |id: FineId| (fine.label[id], fine.class[id]);
            let hash = |pair: (LabelId, Option<ClassId>)| FxBuildHasher.hash_one(pair);
            let own = (label, class);
            let known = ids.find_or_add(hash(own), new, |id| of(id) == own, |id| hash(of(id)));
            if known.is_none() {
                fine.label.push(label);
                fine.class.push(class);
                fine.frame.push(frame);
            }
            fine.of_frame.push(known.unwrap_or(new));
        }
        fine
    }

    fn of_labels(labels: &IndexSlice<FrameId, [LabelId]>) -> Self {
        let mut fine = Self::default();
        for (frame, &label) in labels.iter_enumerated() {
            if label.index() == fine.frame.len() {
                fine.label.push(label);
                fine.class.push(None);
                fine.frame.push(frame);
            }
        }
        let of_frame = labels.iter().map(|label| FineId::from_usize(label.index()));
        fine.of_frame = of_frame.collect();
        fine
    }
}
