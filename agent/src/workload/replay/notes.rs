//! The manifest's entry `replay`, and the hash of what was replayed. Each thread notes how long its
//! calls took, how late they began, and whether they ended as recorded. The hash of a lane is over
//! its steps: what is done to which file, when, and after what. Paths, texts and locks go in as
//! they are, not by their numbers in the plan: what differs has another hash.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::plan::{
    Action, CallArgument, CallEffect, Lane, PlanText, PlannedStep, RecordLock, RecordedEnd,
    ReplayPlan,
};

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

/// The notes of one thread of the replay.
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

/// Return whether a call ended as it was recorded.
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

/// Return the verb of a call in the transactions table.
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

/// The calls that wait until something is on the device.
pub const SYNC_CALLS: [&str; 6] =
    ["fsync", "fdatasync", "sync", "syncfs", "msync", "sync_file_range"];

/// Hashes a lane.
pub fn digest(lane: &Lane, plan: &ReplayPlan) -> Sha256 {
    let mut hasher = Sha256::new();
    for step in &lane.steps {
        hasher.update(step.due_ns.to_le_bytes());
        hasher.update(step.name);
        for wait in lane.waits_of(step) {
            hasher.update([wait.lane.to_le_bytes(), wait.steps.to_le_bytes()].concat());
        }
        match &step.action {
            Action::Call { number, arguments, effect } => {
                hasher.update(number.to_le_bytes());
                arguments.iter().for_each(|argument| add(&mut hasher, *argument, plan));
                add_effect(&mut hasher, *effect);
                if let Some(number) = step.writes {
                    add_bytes(&mut hasher, plan.kept[number as usize].hash.as_bytes());
                }
            }
            Action::Inherit(pairs) => {
                pairs.iter().for_each(|(from, to)| {
                    hasher.update([*from, *to].map(u32::to_le_bytes).concat())
                });
            }
            Action::Release(handles, mappings) => {
                hasher.update((handles.len() as u64).to_le_bytes());
                handles.iter().chain(mappings).for_each(|it| hasher.update(it.to_le_bytes()));
            }
        }
    }
    hasher
}

fn add(hasher: &mut Sha256, argument: CallArgument, plan: &ReplayPlan) {
    let (kind, number): (u8, i64) = match argument {
        CallArgument::Number(number) => (0, number),
        CallArgument::Handle(handle) => (1, handle.into()),
        CallArgument::HandlePath(handle) => (12, handle.into()),
        CallArgument::Root => (2, 0),
        CallArgument::Path(name) => {
            add_bytes(hasher, &plan.names[name as usize]);
            return;
        }
        CallArgument::Text(text) | CallArgument::Target(text) => match &plan.texts[text as usize] {
            PlanText::Plain(bytes) => (3, add_bytes(hasher, bytes)),
            PlanText::Inside(bytes) => (11, add_bytes(hasher, bytes)),
        },
        CallArgument::Into(bytes) => (4, bytes.into()),
        CallArgument::From(bytes) => (5, bytes.into()),
        CallArgument::VectorsInto { count, bytes } => {
            (6, i64::from(bytes) << 16 | i64::from(count))
        }
        CallArgument::VectorsFrom { count, bytes } => {
            (7, i64::from(bytes) << 16 | i64::from(count))
        }
        CallArgument::Offset(offset) => (8, offset),
        CallArgument::Lock(lock) => {
            let RecordLock { kind, whence, start, length } = plan.locks[lock as usize];
            hasher.update([kind, whence].map(i16::to_le_bytes).concat());
            hasher.update(start.to_le_bytes());
            (9, length)
        }
        CallArgument::Mapped(mapping, offset) => {
            hasher.update(offset.to_le_bytes());
            (10, mapping.into())
        }
    };
    hasher.update([kind]);
    hasher.update(number.to_le_bytes());
}

/// Adds bytes after their number, which it gives.
fn add_bytes(hasher: &mut Sha256, bytes: &[u8]) -> i64 {
    hasher.update((bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
    bytes.len() as i64
}

fn add_effect(hasher: &mut Sha256, effect: CallEffect) {
    let (kind, numbers): (u8, [u64; 3]) = match effect {
        CallEffect::Nothing => (0, [0; 3]),
        CallEffect::Opens(handle) => (1, [handle.into(), 0, 0]),
        CallEffect::Tries => (2, [0; 3]),
        CallEffect::Closes(handle) => (3, [handle.into(), 0, 0]),
        CallEffect::Maps(mapping, bytes) => (4, [mapping.into(), bytes, 0]),
        CallEffect::Unmaps(mapping) => (5, [mapping.into(), 0, 0]),
        CallEffect::Dirties(mapping, offset, bytes) => (6, [mapping.into(), offset, bytes]),
        CallEffect::Locks => (7, [0; 3]),
        CallEffect::Remaps(mapping, bytes) => (8, [mapping.into(), bytes, 0]),
        CallEffect::Cuts(mapping, bytes) => (9, [mapping.into(), bytes, 0]),
    };
    hasher.update([kind]);
    numbers.iter().for_each(|number| hasher.update(number.to_le_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::replay::plan::{PlannedStep, RecordedEnd};

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

    fn hash(arguments: &[CallArgument], effect: CallEffect, plan: &ReplayPlan) -> Vec<u8> {
        let mut lane = Lane::default();
        let arguments = arguments.into();
        lane.push(
            PlannedStep {
                call: 0,
                thread: 0,
                due_ns: 0,
                name: "symlinkat",
                ended: RecordedEnd::Well,
                writes: None,
                waits: (0, 0),
                action: Action::Call { number: 266, arguments, effect },
            },
            &[],
        );
        digest(&lane, plan).finalize().to_vec()
    }

    #[test]
    fn texts_locks_and_effects_go_in_as_they_are() {
        let lock = RecordLock { kind: 1, whence: 0, start: 0, length: 10 };
        let plan = ReplayPlan {
            names: vec![b"a".to_vec()],
            texts: vec![PlanText::Plain(b"a".to_vec())],
            locks: vec![lock],
            ..ReplayPlan::default()
        };
        let arguments = [CallArgument::Target(0), CallArgument::Lock(0)];
        let whole = |plan: &ReplayPlan| hash(&arguments, CallEffect::Nothing, plan);
        let others = [
            ReplayPlan { texts: vec![PlanText::Inside(b"a".to_vec())], ..plan.clone() },
            ReplayPlan { texts: vec![PlanText::Plain(b"b".to_vec())], ..plan.clone() },
            ReplayPlan { locks: vec![RecordLock { start: 1, ..lock }], ..plan.clone() },
            ReplayPlan { locks: vec![RecordLock { length: 9, ..lock }], ..plan.clone() },
        ];
        others.iter().for_each(|other| assert_ne!(whole(&plan), whole(other)));
        // The same text under another number is the same.
        let texts = vec![PlanText::Plain(Vec::new()), plan.texts[0].clone()];
        let moved = ReplayPlan { texts, ..plan.clone() };
        let other = [CallArgument::Target(1), CallArgument::Lock(0)];
        assert_eq!(whole(&plan), hash(&other, CallEffect::Nothing, &moved));
        assert_ne!(whole(&plan), hash(&arguments, CallEffect::Locks, &plan));
    }
}
