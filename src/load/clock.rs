//! How long each stage took.

use std::time::Instant;

/// How long each stage took, for `-v`.
pub(super) struct StageClock {
    last: Instant,
    laps: Vec<String>,
}

impl StageClock {
    pub(super) fn start() -> Self {
        Self {
            last: Instant::now(),
            laps: Vec::new(),
        }
    }

    pub(super) fn lap(&mut self, stage: &str) {
        let now = Instant::now();
        let seconds = now.duration_since(self.last).as_secs_f64();
        self.laps.push(format!("{stage} {seconds:.3} s"));
        self.last = now;
    }

    pub(super) fn summary(&self) -> String {
        format!("time: {}", self.laps.join(", "))
    }
}
