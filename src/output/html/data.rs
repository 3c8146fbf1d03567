//! What the page knows, as one JSON object of columns: rows of numbers compress to a fraction of their text.

use std::fmt::Write;

use super::time::{Columns, gcd};
use super::{Content, PageOptions, unit_word};
use crate::flame::{Comparison, Findings, Flame, Function, Kind, NodeId, RUNTIME, shown};
use crate::ids::{Idx, IndexVec, index_vec};
use crate::output::columns::{list, number, text};
use crate::profile::{EventId, ThreadId};

/// All that the page reads: the object, and where it has a time the columns of moments behind a zero, which no JSON has.
pub(super) fn bytes(content: &Content<'_>, options: &PageOptions) -> Vec<u8> {
    let when = content.shown_when();
    let columns = when.map(|when| Columns::of(content.flame, when.over.begin));
    let mut bytes = json(content, options, columns.as_ref()).into_bytes();
    if let Some(columns) = columns {
        bytes.push(0);
        bytes.extend(columns.bytes);
    }
    bytes
}

/// The object.
fn json(content: &Content<'_>, options: &PageOptions, columns: Option<&Columns>) -> String {
    let Content { flame, .. } = content;
    let mut json = String::with_capacity(flame.nodes.len() * 8 + flame.functions.len() * 48);
    json.push_str("{\"runs\":");
    json.push(if content.findings.is_some() { '2' } else { '1' });
    json.push_str(if options.reverse {
        ",\"view\":\"up\""
    } else {
        ",\"view\":\"down\""
    });
    let _ = write!(json, ",\"inverted\":{}", options.inverted);
    if let Some(findings) = content.findings {
        let Comparison { shape, negate, .. } = options.comparison;
        let shape = shape.word();
        let [new, base] = findings.scale;
        let _ = write!(
            json,
            ",\"shape\":\"{shape}\",\"scale\":[{new},{base}],\"negate\":{negate},\"words\":"
        );
        list(&mut json, words(findings), text);
        if let Some(note) = &findings.note {
            json.push_str(",\"note\":");
            text(note, &mut json);
        }
    }
    let usual = options.color_by.unwrap_or_else(|| flame.usual_colors());
    let _ = write!(json, ",\"color\":\"{}\",\"runtime\":", usual.word());
    let is_runtime = |f: &Function| f.kind != Kind::Comm && f.symbol.is_none() && f.name == RUNTIME;
    let runtime = flame.functions.iter().position(is_runtime);
    let _ = match runtime {
        Some(function) => write!(json, "{function}"),
        None => write!(json, "-1"),
    };
    let threads = threads(content);
    push_events_and_threads(content, &threads, &mut json);
    json.push_str(",\"objects\":");
    list(&mut json, &flame.objects, |object, json| text(object, json));
    push_functions(flame, content.findings, &mut json);
    push_nodes(flame, &mut json);
    push_natures(flame, &mut json);
    push_cells(flame, columns, &mut json);
    if let (Some(columns), Some(when)) = (columns, content.shown_when()) {
        columns.push_json(&when, &threads, &mut json);
    }
    if !content.code.is_empty() {
        json.push_str(",\"code\":");
        list(&mut json, content.code, |code, json| code.push(json));
    }
    json.push('}');
    json
}

/// Threads that are in the tree and told apart.
fn threads(content: &Content<'_>) -> Vec<Option<ThreadId>> {
    let mut threads: Vec<Option<ThreadId>> = if content.findings.is_some() {
        Vec::new()
    } else {
        content
            .flame
            .series
            .iter()
            .map(|series| series.thread)
            .collect()
    };
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// Events and threads that are in the tree, numbered anew.
fn push_events_and_threads(content: &Content<'_>, threads: &[Option<ThreadId>], json: &mut String) {
    let Content { flame, profile, .. } = content;
    let mut events: Vec<EventId> = flame.series.iter().map(|series| series.event).collect();
    events.sort_unstable();
    events.dedup();
    let shown_first = events.binary_search(&content.event).unwrap_or(0);
    let _ = write!(json, ",\"measure\":\"{shown_first}p\",\"events\":");
    list(json, &events, |event, json| {
        json.push_str("{\"name\":");
        text(&shown(&profile[*event].name), json);
        json.push_str(",\"unit\":");
        text(unit_word(profile, *event), json);
        json.push('}');
    });
    json.push_str(",\"threads\":");
    list(json, threads, |thread, json| {
        // All samples are the first one's where threads are not told apart.
        let thread = &profile[thread.unwrap_or(ThreadId(0))];
        // perf prints absent ids as -1.
        let (pid, tid) = (thread.pid.cast_signed(), thread.tid.cast_signed());
        let _ = write!(json, "[{pid},{tid},");
        text(&shown(&profile[thread.comm]), json);
        json.push(']');
    });
    json.push_str(",\"series\":");
    list(json, &flame.series, |series, json| {
        let event = events.binary_search(&series.event).unwrap_or(0);
        let thread = threads.binary_search(&series.thread).unwrap_or(0);
        let _ = write!(json, "[{event},{thread},{}]", series.run);
    });
}

/// What findings say, each once.
fn words(findings: &Findings) -> Vec<&'static str> {
    let mut words: Vec<&str> = findings.of.iter().map(|finding| finding.word).collect();
    words.sort_unstable();
    words.dedup();
    words
}

fn push_functions(flame: &Flame, findings: Option<&Findings>, json: &mut String) {
    json.push_str(",\"kinds\":");
    list(json, &Kind::ALL, |kind, json| text(kind.label(), json));
    json.push_str(",\"fns\":{\"name\":");
    list(json, &flame.functions, |function, json| {
        text(&function.name, json)
    });
    json.push_str(",\"object\":");
    list(json, &flame.functions, |function, json| {
        match function.object {
            Some(object) => number(object.index() as u64, json),
            None => json.push_str("-1"),
        }
    });
    json.push_str(",\"kind\":");
    list(json, &flame.functions, |function, json| {
        number(function.kind as u64, json)
    });
    json.push_str(",\"raw\":");
    list(json, &flame.functions, |function, json| {
        text(&function.raw.join(" · "), json)
    });
    json.push_str(",\"same\":");
    let same = flame.united();
    let others = same.iter_enumerated().filter(|(id, same)| id != *same);
    list(json, others, |(id, other), json| {
        let _ = write!(json, "[{},{}]", id.0, other.0);
    });
    if let Some(findings) = findings {
        json.push_str(",\"way\":");
        list(json, &findings.of, |finding, json| {
            let _ = write!(json, "{}", finding.way);
        });
        let words = words(findings);
        json.push_str(",\"word\":");
        list(json, &findings.of, |finding, json| {
            let word = words.binary_search(&finding.word).unwrap_or(0);
            number(word as u64, json);
        });
    }
    json.push('}');
}

/// Of each node how many levels it closes, and its function.
fn push_nodes(flame: &Flame, json: &mut String) {
    json.push_str(",\"up\":");
    let mut depths: IndexVec<NodeId, u32> = index_vec![0_u32; flame.nodes.len()];
    for (at, node) in flame.nodes.iter().enumerate().skip(1) {
        depths[at] = depths[node.parent] + 1;
    }
    list(json, depths.windows(2), |pair, json| {
        number(u64::from(pair[0] + 1 - pair[1]), json)
    });
    json.push_str(",\"fn\":");
    list(json, flame.nodes.iter().skip(1), |node, json| {
        number(u64::from(node.function.0), json)
    });
}

/// Of each node whose it is and what runs there, by names.
fn push_natures(flame: &Flame, json: &mut String) {
    for (key, names) in [
        ("packages", &flame.packages),
        ("activities", &flame.activities),
    ] {
        let _ = write!(json, ",\"{key}\":");
        list(json, names, |name, json| text(name, json));
    }
    let natures = || flame.natures.iter().skip(1);
    json.push_str(",\"package\":");
    list(json, natures(), |nature, json| {
        number(u64::from(nature.package), json)
    });
    json.push_str(",\"activity\":");
    list(json, natures(), |nature, json| {
        number(u64::from(nature.activity), json)
    });
}

/// What series weigh at nodes, or the unit of that alone where the columns of moments have the rest.
fn push_cells(flame: &Flame, columns: Option<&Columns>, json: &mut String) {
    let cells = &flame.cells;
    if let Some(columns) = columns {
        let _ = write!(json, ",\"unit\":{}", columns.unit);
        return;
    }
    let unit = cells.iter().fold(0, |unit, cell| gcd(unit, cell.period));
    let unit = unit.max(1);
    let _ = write!(json, ",\"unit\":{unit},\"cells\":{{\"node\":");
    let mut last = 0;
    list(json, cells, |cell, json| {
        number(u64::from(cell.node.0 - last), json);
        last = cell.node.0;
    });
    json.push_str(",\"series\":");
    list(json, cells, |cell, json| {
        number(u64::from(cell.series.0), json)
    });
    json.push_str(",\"period\":");
    list(json, cells, |cell, json| number(cell.period / unit, json));
    json.push_str(",\"samples\":");
    list(json, cells, |cell, json| number(cell.samples, json));
    json.push('}');
}
