//! What is told of a replay: each thread notes of its calls how long they took, how late they began
//! and whether they ended as recorded; together they are the manifest's entry `replay`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::script::plan::{PlannedStep, RecordedEnd, ReplayPlan};

/// Calls of one name, or of one thread.
#[derive(Debug, Default, Clone, Copy)]
struct Sum {
    calls: u64,
    time_ns: u64,
    /// Calls that ended otherwise than recorded, and the first of them.
    otherwise: u64,
    first: i64,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        if other.otherwise > 0 && (self.otherwise == 0 || other.first < self.first) {
            self.first = other.first;
        }
        self.calls += other.calls;
        self.time_ns += other.time_ns;
        self.otherwise += other.otherwise;
    }
}

/// What one thread of the replay notes.
#[derive(Debug, Default)]
pub struct Notes {
    by_name: BTreeMap<&'static str, Sum>,
    by_thread: BTreeMap<u32, Sum>,
    /// Calls of which the recording tells how they ended.
    comparable: u64,
    late_ns: Vec<i64>,
    read_bytes: u64,
    written_bytes: u64,
    /// Calls that wrote what was recorded.
    kept_writes: u64,
    /// Calls that wrote what was made from the seed.
    seeded_writes: u64,
    copied_bytes: u64,
}

/// Whether a call ended as it was recorded.
pub fn is_as_recorded(ended: RecordedEnd, result: i64) -> bool {
    match ended {
        RecordedEnd::Unknown => true,
        RecordedEnd::Well => result >= 0,
        RecordedEnd::With(wanted) => result == wanted,
        RecordedEnd::Failed(None) => result < 0,
        RecordedEnd::Failed(Some(error)) => result == -i64::from(error),
    }
}

impl Notes {
    /// Notes a call that took so long, and began so much after it was due, where it was.
    pub fn add(&mut self, step: &PlannedStep, result: i64, time_ns: i64, late_ns: Option<i64>) {
        if step.call < 0 {
            return;
        }
        let is_otherwise = !is_as_recorded(step.ended, result);
        let sum = Sum {
            calls: 1,
            time_ns: time_ns.max(0).cast_unsigned(),
            otherwise: is_otherwise.into(),
            first: step.call,
        };
        self.by_name.entry(step.name).or_default().add(sum);
        self.by_thread.entry(step.thread).or_default().add(sum);
        self.comparable += u64::from(step.ended != RecordedEnd::Unknown);
        self.late_ns.extend(late_ns.map(|late_ns| late_ns.max(0)));
        let bytes = result.max(0).cast_unsigned();
        match verb(step.name) {
            "read" => self.read_bytes += bytes,
            "write" => {
                self.written_bytes += bytes;
                let is_kept = step.writes.is_some();
                *(if is_kept { &mut self.kept_writes } else { &mut self.seeded_writes }) += 1;
            }
            "copy" => self.copied_bytes += bytes,
            _ => {}
        }
    }

    pub fn merge(&mut self, other: Self) {
        other.by_name.iter().for_each(|(key, it)| self.by_name.entry(key).or_default().add(*it));
        for (thread, sum) in other.by_thread {
            self.by_thread.entry(thread).or_default().add(sum);
        }
        self.comparable += other.comparable;
        self.late_ns.extend(other.late_ns);
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
        self.kept_writes += other.kept_writes;
        self.seeded_writes += other.seeded_writes;
        self.copied_bytes += other.copied_bytes;
    }

    /// Calls that ended otherwise than recorded.
    pub fn otherwise_calls(&self) -> u64 {
        self.by_name.values().map(|sum| sum.otherwise).sum()
    }

    /// The manifest's entry.
    pub fn json(mut self, plan: &ReplayPlan) -> Value {
        let (mut by_name, mut otherwise, mut by_thread) = (Map::new(), Map::new(), Map::new());
        for (name, sum) in &self.by_name {
            by_name.insert((*name).into(), json!({ "calls": sum.calls, "time_ns": sum.time_ns }));
            if sum.otherwise > 0 {
                let found = json!({ "calls": sum.otherwise, "first_call": sum.first });
                otherwise.insert((*name).into(), found);
            }
        }
        for (thread, sum) in &self.by_thread {
            let number = plan.facts.threads[*thread as usize].to_string();
            let found = json!({
                "calls": sum.calls, "time_ns": sum.time_ns, "otherwise": sum.otherwise,
            });
            by_thread.insert(number, found);
        }
        self.late_ns.sort_unstable();
        let late = &self.late_ns;
        // The nearest-rank percentile.
        let percentile = |per_mille: usize| {
            let rank = (late.len() * per_mille).div_ceil(1000);
            late.get(rank.saturating_sub(1)).copied()
        };
        let otherwise_calls = self.otherwise_calls();
        let left_out: Vec<Value> = plan
            .left_out
            .iter()
            .map(|((name, why), calls)| json!({ "name": name, "calls": calls, "why": why }))
            .collect();
        json!({
            "recorded_calls": plan.facts.calls,
            "calls": self.by_name.values().map(|sum| sum.calls).sum::<u64>(),
            "comparable_calls": self.comparable,
            "as_recorded_calls": self.comparable - otherwise_calls,
            "by_name": by_name,
            "by_thread": by_thread,
            "otherwise": otherwise,
            "left_out": left_out,
            "elsewhere": plan.elsewhere,
            "carried": plan.carried,
            "idle_threads": plan.facts.idle_threads,
            "read_bytes": self.read_bytes,
            "written_bytes": self.written_bytes,
            "kept_writes": self.kept_writes,
            "seeded_writes": self.seeded_writes,
            "copied_bytes": self.copied_bytes,
            "start_error_ns": {
                "p50": percentile(500),
                "p90": percentile(900),
                "p99": percentile(990),
                "p99.9": percentile(999),
                "max": late.last(),
            },
        })
    }
}

/// What a call is in the transactions table.
pub fn verb(name: &'static str) -> &'static str {
    match name {
        "pread" | "pread64" | "readv" | "preadv" | "preadv2" => "read",
        "pwrite" | "pwrite64" | "writev" | "pwritev" | "pwritev2" => "write",
        "sendfile" | "copy_file_range" => "copy",
        "fstat" | "lstat" | "newfstatat" | "statx" | "statfs" | "fstatfs" => "stat",
        "openat" | "openat2" | "creat" => "open",
        "faccessat" | "faccessat2" => "access",
        "unlinkat" => "unlink",
        "renameat" | "renameat2" => "rename",
        "mkdirat" => "mkdir",
        other => other,
    }
}

/// Whether a call waits until something is on the device.
pub fn is_sync_call(name: &str) -> bool {
    matches!(name, "fsync" | "fdatasync" | "sync" | "syncfs" | "msync" | "sync_file_range")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_compared_as_far_as_it_was_recorded() {
        assert!(is_as_recorded(RecordedEnd::Unknown, -5));
        assert!(is_as_recorded(RecordedEnd::Well, 7) && !is_as_recorded(RecordedEnd::Well, -2));
        assert!(
            is_as_recorded(RecordedEnd::With(4096), 4096)
                && !is_as_recorded(RecordedEnd::With(4096), 100)
        );
        assert!(is_as_recorded(RecordedEnd::Failed(Some(2)), -2));
        assert!(!is_as_recorded(RecordedEnd::Failed(Some(2)), -13));
        assert!(
            is_as_recorded(RecordedEnd::Failed(None), -13)
                && !is_as_recorded(RecordedEnd::Failed(None), 0)
        );
    }
}
