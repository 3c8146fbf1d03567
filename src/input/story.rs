//! What `pjit record` wrote beside a recording: how its command ended, when, and what runtimes were told.
//!
//! In: `record.json` of a folder. Out: a [`Story`], if it is one. Anybody may have put it there, so it takes away and never proves.

use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::find::story_in;
use super::{Door, Store};
use crate::runtimes::{KEEPS_FRAMES, LAST_OF_HOTSPOT};

/// A command and some variables.
const MOST: u64 = 1 << 20;

/// What `pjit record` wrote beside a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story {
    /// When perf was started.
    began: SystemTime,
    /// When it had ended.
    pub ended: SystemTime,
    /// The command's exit status, as shells have it; nothing where no command was started.
    pub status: Option<u8>,
    /// How long the command ran.
    pub ran: Option<Duration>,
    /// How long after its beginning perf ended, if that was before its time.
    pub perf_ended: Option<Duration>,
    /// CPU time of the command and of the children that it waited for, in programs and in the kernel. Nothing where options of
    /// perf may have left out some of that.
    pub used: Option<[Duration; 2]>,
    /// The command; nothing where none was started.
    pub command: Vec<String>,
    /// Whether runtimes were told to keep frame pointers.
    pub keeps_frames: bool,
}

impl Story {
    /// The one in a folder.
    #[must_use]
    pub fn of(folder: &Path, store: &Store) -> Option<Self> {
        Self::read(&Self::text(&story_in(folder), store)?)
    }

    /// What lies behind a door, if that is no longer than a story is.
    pub(crate) fn text(door: &Door, store: &Store) -> Option<Vec<u8>> {
        let judged = store.open(door).ok()?;
        let mut bytes = Vec::new();
        let read = judged.file().take(MOST + 1).read_to_end(&mut bytes).ok()?;
        (read as u64 <= MOST).then_some(bytes)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let story: Value = serde_json::from_slice(bytes).ok()?;
        let seconds = |value: &Value| Duration::try_from_secs_f64(value.as_f64()?).ok();
        let span = |name: &str| seconds(&story[name]);
        let time = |name: &str| UNIX_EPOCH.checked_add(span(name)?);
        let is_plain = story["asked"]["perf"].as_array().is_none_or(Vec::is_empty);
        let used = |part: &str| seconds(&story["cpu"][part]).filter(|_| is_plain);
        let options = story["environment"][LAST_OF_HOTSPOT].as_str();
        let command = story["command"].as_array().map_or(&[][..], Vec::as_slice);
        let status = story["status"].as_u64().filter(|_| !command.is_empty());
        Some(Self {
            began: time("began")?,
            ended: time("ended")?,
            status: status.and_then(|status| u8::try_from(status).ok()),
            ran: span("ran"),
            perf_ended: span("perf_ended"),
            used: used("user").zip(used("system")).map(<[Duration; 2]>::from),
            command: command
                .iter()
                .filter_map(|word| Some(word.as_str()?.to_owned()))
                .collect(),
            keeps_frames: options.is_some_and(|options| options.contains(KEEPS_FRAMES)),
        })
    }

    /// Whether it is of the recording that began then, in ns since 1970: another one may have come into the folder.
    #[must_use]
    pub fn is_of(&self, began: u64) -> bool {
        let began = UNIX_EPOCH.checked_add(Duration::from_nanos(began));
        began.is_some_and(|began| (self.began..=self.ended).contains(&began))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_tells_of_its_own_recording_only() {
        let text = br#"{"command": ["false"], "began": 10.5, "ended": 12, "status": 1, "ran": 1.25,
            "perf_ended": null}"#;
        let story = Story::read(text).expect("one");
        assert_eq!(story.ran, Some(Duration::from_millis(1250)));
        assert_eq!((story.perf_ended, story.used), (None, None));
        assert_eq!((story.status, story.keeps_frames), (Some(1), false));
        assert_eq!(story.command, ["false"]);
        assert!(story.is_of(11_000_000_000));
        assert!(!story.is_of(10_000_000_000));
        assert!(!story.is_of(13_000_000_000));
    }

    #[test]
    fn cpu_time_is_told_where_options_of_perf_leave_nothing_out() {
        let used = |more: &str| {
            let text = format!(
                r#"{{"command": ["x"], "began": 1, "ended": 2, "cpu": {{"user": 0.5, "system": 0.25}}{more}}}"#
            );
            Story::read(text.as_bytes()).expect("one").used
        };
        let told = Some([500, 250].map(Duration::from_millis));
        assert_eq!(used(""), told);
        assert_eq!(used(r#", "asked": {"perf": []}"#), told);
        assert_eq!(used(r#", "asked": {"perf": ["-D", "500"]}"#), None);
        assert_eq!(used(r#", "cpu": {"user": -1, "system": 1}"#), None);
    }

    #[test]
    fn java_is_told_by_the_variable_that_it_reads_last() {
        let told = |options: &str| {
            let text = format!(
                r#"{{"command": ["java"], "began": 1, "ended": 2, "environment": {{"_JAVA_OPTIONS": "{options}"}}}}"#
            );
            Story::read(text.as_bytes()).expect("one").keeps_frames
        };
        assert!(told("-XX:+DumpPerfMapAtExit -XX:+PreserveFramePointer"));
        assert!(!told("-XX:+DumpPerfMapAtExit"));
    }

    #[test]
    fn what_is_no_story_tells_nothing() {
        for text in ["", "[]", "{}", r#"{"began": -1, "ended": 1e300}"#, "7"] {
            assert_eq!(Story::read(text.as_bytes()), None, "{text}");
        }
        let machine = br#"{"command": [], "began": 1, "ended": 2, "status": 0}"#;
        assert_eq!(Story::read(machine).expect("one").status, None);
    }
}
