//! A recording once more: what its `record.json` says of it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::folder::STORY;
use super::{Failure, Request};
use crate::find::SearchPaths;
use crate::record::plan::Target;
use crate::record::plan::environment::Choice;
use crate::record::plan::options::{Asked, CallGraph};
use crate::record::plan::probes::Alloc;
use crate::record::plan::trouble::Trouble;

/// A recording once more.
pub struct Again {
    /// What was asked for.
    pub request: Request,
    /// The folder in which it was.
    pub here: PathBuf,
    /// Samples a second that were taken, which may be fewer than were asked for.
    pub frequency: Option<u64>,
}

/// What is recorded once more.
///
/// # Errors
/// When the folder does not say.
pub fn again(folder: &Path) -> Result<Again, Failure> {
    let wrong = |why: String| {
        let text = format!("{}: {why}", folder.join(STORY).display());
        Failure::of(Trouble::new(
            text,
            ["--again takes a folder of pjit record"],
        ))
    };
    let text = std::fs::read(folder.join(STORY)).map_err(|error| wrong(error.to_string()))?;
    let story: Value = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    let request =
        request(&story).ok_or_else(|| wrong("does not say what was recorded".to_owned()))?;
    let here = story["cwd"].as_str().unwrap_or(".").into();
    Ok(Again {
        request,
        here,
        frequency: story["frequency"].as_u64(),
    })
}

fn request(story: &Value) -> Option<Request> {
    let words = |value: &Value| -> Vec<OsString> {
        let words = value.as_array().into_iter().flatten();
        words
            .filter_map(|word| word.as_str().map(OsString::from))
            .collect()
    };
    let texts = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items
            .filter_map(|word| word.as_str().map(str::to_owned))
            .collect()
    };
    let command = words(&story["command"]);
    let processes = story["processes"].as_array().into_iter().flatten();
    let processes: Vec<u32> = processes
        .filter_map(|pid| u32::try_from(pid.as_u64()?).ok())
        .collect();
    let target = match (command.is_empty(), processes.is_empty()) {
        (false, _) => Target::Command(command),
        (_, false) => Target::Processes(processes),
        _ if story["machine"] == true => Target::Machine,
        _ => return None,
    };
    let asked = &story["asked"];
    let call_graph = asked["call_graph"].as_str().map(|word| {
        let size = word
            .strip_prefix("dwarf,")
            .and_then(|size| size.parse().ok());
        size.map_or_else(|| CallGraph::Other(word.to_owned()), CallGraph::Dwarf)
    });
    let duration = asked["duration"].as_f64();
    Some(Request {
        target,
        stop_watch: words(&story["stop_watch"]),
        duration: duration.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        until_exit: asked["until_exit"] == true,
        load: asked["load"].as_str().map(str::to_owned),
        asked: Asked {
            events: texts(&asked["events"]),
            frequency: asked["frequency"].as_u64(),
            period: asked["period"].as_u64(),
            call_graph,
            ring: asked["ring"].as_u64(),
            uncompressed: asked["uncompressed"] == true,
            off_cpu: asked["off_cpu"] == true,
            alloc: asked["alloc"].as_object().map(|alloc| Alloc {
                live: alloc.get("live").is_some_and(|live| *live == true),
                least: alloc.get("min").and_then(Value::as_u64),
                library: alloc.get("lib").and_then(Value::as_str).map(PathBuf::from),
            }),
            metrics: asked["metrics"] == true,
            more: texts(&asked["perf"]),
        },
        files: asked["files"] == true,
        search: SearchPaths::default(),
        choice: Choice {
            without: texts(&asked["no_switch"]),
            java_agent: asked["java_agent"].as_str().map(PathBuf::from),
        },
        folder: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_recorded_is_read_again() {
        let story = json!({
            "command": ["java", "A"],
            "frequency": 249,
            "asked": {
                "call_graph": "dwarf,8192", "frequency": 499, "no_switch": ["php"],
                "alloc": { "live": true, "min": 100, "lib": null },
            },
        });
        let request = request(&story).expect("a command");
        assert_eq!(
            request.target,
            Target::Command(vec!["java".into(), "A".into()])
        );
        assert_eq!(request.asked.call_graph, Some(CallGraph::Dwarf(8192)));
        assert_eq!(request.asked.frequency, Some(499));
        assert_eq!(request.choice.without, ["php"]);
        let alloc = request.asked.alloc.expect("allocations");
        assert_eq!((alloc.live, alloc.least), (true, Some(100)));
        // What was taken may be less than what was asked for.
        let folder = tempfile::tempdir().expect("a folder");
        let taken = |story: &Value| {
            std::fs::write(folder.path().join(STORY), story.to_string()).expect("written");
            again(folder.path()).map(|again| again.frequency).ok()
        };
        assert_eq!(taken(&story), Some(Some(249)));
        assert_eq!(taken(&json!({"command": ["java"]})), Some(None));
        assert_eq!(taken(&json!(null)), None);
        assert!(super::request(&json!({"command": 7})).is_none());
        assert!(super::request(&json!([])).is_none());
    }
}
