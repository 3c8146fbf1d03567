//! Frames as dense numbers, as far as trees and rows tell them apart.

use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use super::super::trie::NONE;
use crate::ids::IndexVec;
use crate::intern::ItemIndex;
use crate::profile::FrameId;

/// Numbers that are equal for frames that neither a tree nor a row tells apart.
#[derive(Debug, Default)]
pub(crate) struct Fine {
    /// By frame.
    pub(super) of_frame: IndexVec<FrameId, u32>,
    /// By number: what a tree tells apart.
    pub(crate) label: Vec<u32>,
    /// By number: what rows tell apart, as callers.
    pub(crate) class: Vec<u32>,
    /// By number: a frame that has it.
    pub(crate) frame: Vec<FrameId>,
    /// Whether several numbers share a label, so that branches of a node may have to be merged.
    pub(crate) is_finer_than_labels: bool,
}

impl Fine {
    /// `labels` count from 0 in the order of the frames; there are no `classes` when callers have no rows.
    pub(crate) fn of(labels: &[u32], classes: Option<&[u32]>) -> Self {
        let mut fine = Self::default();
        let Some(classes) = classes else {
            for (frame, &label) in (0..).zip(labels) {
                if label as usize == fine.frame.len() {
                    fine.label.push(label);
                    fine.frame.push(FrameId(frame));
                }
            }
            fine.class = vec![0; fine.label.len()];
            fine.of_frame = labels.to_vec().into();
            return fine;
        };
        fine.of_frame.raw.reserve_exact(labels.len());
        let mut ids = ItemIndex::with_capacity(labels.len());
        let mut seen_labels = vec![NONE; labels.len()];
        for (frame, (&label, &class)) in (0..).zip(labels.iter().zip(classes)) {
            let new = fine.label.len() as u32;
            let of = |id: u32| (fine.label[id as usize], fine.class[id as usize]);
            let hash = |of: (u32, u32)| FxBuildHasher.hash_one(of);
            let own = (label, class);
            let known = ids.find_or_add(hash(own), new, |id| of(id) == own, |id| hash(of(id)));
            if known.is_none() {
                fine.label.push(label);
                fine.class.push(class);
                fine.frame.push(FrameId(frame));
            }
            let id = known.unwrap_or(new);
            let seen = &mut seen_labels[label as usize];
            if *seen == NONE {
                *seen = id;
            }
            fine.is_finer_than_labels |= *seen != id;
            fine.of_frame.push(id);
        }
        fine
    }
}
