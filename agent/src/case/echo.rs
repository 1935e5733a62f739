//! One case: reads its JSON record, measures, and writes its tables into a folder.

use crate::errors::WrongUse;
use anyhow::Context;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use std::fs;
use std::path::Path;

/// What is made before the snapshot and shared by all cases that start from it.
pub struct Prepared {}

/// Does the slow, case-independent work; runs before the snapshot.
pub fn prepare() -> anyhow::Result<Prepared> {
    Ok(Prepared {})
}

/// Runs the case and leaves its results as regular files in `out_dir`.
pub fn run(case: &[u8], out_dir: &Path, _prepared: &mut Prepared) -> anyhow::Result<()> {
    let case: serde_json::Value = serde_json::from_slice(case)
        .map_err(|error| WrongUse(format!("the case is not JSON: {error}")))?;
    let clock_source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let echo = json!({
        "case": case,
        "kernel": rustix::system::uname().release().to_string_lossy(),
        "clock_source": fs::read_to_string(clock_source).context(clock_source)?.trim_end(),
        "monotonic_ns": nanoseconds(ClockId::Monotonic),
        "realtime_ns": nanoseconds(ClockId::Realtime),
    });
    fs::write(out_dir.join("echo.json"), echo.to_string()).context("echo.json")
}

fn nanoseconds(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
