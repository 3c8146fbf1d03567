//! The track of phases, spells and times without CPU: ranges to select by a click.

use super::super::over_time::When;
use super::super::text::harmless;
use super::shared::Shared;
use super::tracks::{Marker, Owner, Track, What};
use crate::functions::FunctionId;
use crate::ids::Idx as _;
use crate::profile::ThreadId;

/// The track, if there is something to show.
pub(super) fn track(when: When<'_>, shared: &mut Shared<'_>) -> Option<Track> {
    let over = when.over;
    let function = |id: FunctionId| harmless(&when.labels[id.index()]).into_owned();
    let thread = |id: ThreadId| {
        let thread = over.threads.get(&id).cloned().unwrap_or_default();
        format!("{}/{}", harmless(&thread.comm), thread.tid.cast_signed())
    };
    let mut markers = Vec::new();
    let mut add = |name: &str, (from, to): (u64, u64), whose: String, label: String| {
        markers.push(Marker {
            from,
            to: Some(to),
            name: shared.strings.id(name),
            what: What::When {
                thread: whose,
                function: label,
            },
        });
    };
    for (phase, number) in over.phases.iter().zip(1..) {
        let does = phase.functions.iter().map(|(id, [here, rest])| {
            let (here, rest) = (100.0 * here, 100.0 * rest);
            format!("{} {here:.0}% ({rest:.0}%)", function(*id))
        });
        let does: Vec<String> = does.collect();
        let name = format!("Phase {number}");
        add(
            &name,
            (phase.from, phase.to),
            String::new(),
            does.join(", "),
        );
    }
    for spell in &over.spells {
        for at in &spell.at {
            add("Spell", *at, thread(spell.thread), function(spell.function));
        }
    }
    for gaps in &over.gaps {
        for gap in &gaps.all {
            let at = (gap.from, gap.to);
            add("Without CPU", at, thread(gaps.thread), function(gap.before));
        }
    }
    markers.sort_by_key(|marker| marker.from);
    (!markers.is_empty()).then_some(Track {
        owner: Owner::When,
        hits: Vec::new(),
        markers,
        weight: 0,
    })
}
