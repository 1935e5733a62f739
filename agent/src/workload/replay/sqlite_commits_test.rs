//! Commits are found from the steps of a plan, without the contents of what they write; the test of
//! the guest and tests/live compare them with what programs commit.

use super::*;
use crate::system_calls;
use crate::workload::ledger::Done;
use crate::workload::replay::plan::{Lane, PlanFacts, RecordLock};

const NAMES: [&str; 5] = ["a.db", "a.db-journal", "a.db-wal", "a.db-shm", "note"];
const PENDING: i64 = 0x4000_0000;

/// Steps one after another, 10 ns each; every name is open, by the slot of its number.
struct Steps(Vec<PlannedStep>, Vec<RecordLock>);

impl Steps {
    fn new() -> Self {
        let mut steps = Self(Vec::new(), Vec::new());
        for name in 0..NAMES.len() as u32 {
            let at = CallArgument::Number(libc::AT_FDCWD.into());
            let arguments = vec![at, CallArgument::Path(name), CallArgument::Number(0)];
            let effect = CallEffect::Opens(name);
            steps.add("openat", system_calls::SYS_openat, arguments, effect, RecordedEnd::Well);
        }
        steps
    }

    fn add(
        &mut self,
        name: &'static str,
        number: i64,
        arguments: Vec<CallArgument>,
        effect: CallEffect,
        ended: RecordedEnd,
    ) {
        let arguments = arguments.into_boxed_slice();
        self.0.push(PlannedStep {
            call: self.0.len() as i64,
            thread: 0,
            due_ns: 0,
            name,
            ended,
            writes: None,
            waits: (0, 0),
            action: Action::Call { number, arguments, effect },
        });
    }

    fn write(&mut self, slot: Slot, offset: i64, bytes: u32) -> &mut Self {
        let number = |it: i64| CallArgument::Number(it);
        let from = CallArgument::From(bytes);
        let arguments = vec![CallArgument::Slot(slot), from, number(bytes.into()), number(offset)];
        let ended = RecordedEnd::With(bytes.into());
        self.add("pwrite64", system_calls::SYS_pwrite64, arguments, CallEffect::Nothing, ended);
        self
    }

    fn sync(&mut self, slot: Slot) -> &mut Self {
        let arguments = vec![CallArgument::Slot(slot)];
        let ended = RecordedEnd::With(0);
        self.add("fdatasync", system_calls::SYS_fdatasync, arguments, CallEffect::Nothing, ended);
        self
    }

    fn lock(&mut self, slot: Slot, kind: i32, start: i64, length: i64) -> &mut Self {
        self.1.push(RecordLock { kind: kind as i16, whence: 0, start, length });
        let lock = CallArgument::Lock(self.1.len() as u32 - 1);
        let command = CallArgument::Number(libc::F_SETLK.into());
        let arguments = vec![CallArgument::Slot(slot), command, lock];
        let ended = RecordedEnd::With(0);
        self.add("fcntl", system_calls::SYS_fcntl, arguments, CallEffect::Nothing, ended);
        self
    }

    fn transactions(self) -> FoundTransactions {
        let done =
            |number: i64| Done { return_ns: number * 10 + 9, ..Done::begun("call", number * 10) };
        let entries = (0..self.0.len() as i64).map(done).collect();
        let ledger = Ledger { tid: 8, entries, warmup: 0 };
        let plan = ReplayPlan {
            lanes: vec![Lane { steps: self.0, waits: Vec::new() }],
            names: NAMES.map(|name| name.as_bytes().to_vec()).to_vec(),
            locks: self.1,
            facts: PlanFacts { processes: vec![7], ..PlanFacts::default() },
            ..ReplayPlan::default()
        };
        transactions_of(&plan, &[ledger])
    }
}

#[test]
fn the_zeroed_header_of_a_journal_is_a_commit() {
    let mut steps = Steps::new();
    steps.lock(0, libc::F_WRLCK, PENDING, 1).write(1, 0, 512).write(1, 512, 4096).sync(1);
    steps.write(0, 0, 4096).sync(0).write(1, 0, 28).sync(1).lock(0, libc::F_UNLCK, 0, 0);
    let found = steps.transactions();
    assert_eq!((found.databases, found.commits, found.syncs), (1, 1, 0));
    let [row] = found.rows.as_slice() else { panic!("{found:?}") };
    assert_eq!((row.kind.as_str(), row.tid, row.sync_calls), ("commit", 8, 3));
    // From the lock, which is the sixth step, to the unlock, which is the last.
    assert_eq!((row.begin_ns, row.return_ns), (50, 139));
}

#[test]
fn the_last_frame_before_the_wal_is_synced_or_unlocked_is_a_commit() {
    let frame = |steps: &mut Steps, number: i64| {
        let offset = 32 + (number - 1) * (4096 + 24);
        steps.write(2, offset, 24).write(2, offset + 24, 4096);
    };
    let mut steps = Steps::new();
    steps.lock(0, libc::F_RDLCK, PENDING, 1).write(2, 0, 32);
    for (number, is_synced) in [(1, true), (3, false)] {
        steps.lock(3, libc::F_WRLCK, 120, 1);
        frame(&mut steps, number);
        frame(&mut steps, number + 1);
        if is_synced {
            steps.sync(2);
        }
        steps.lock(3, libc::F_UNLCK, 120, 1);
    }
    let found = steps.transactions();
    assert_eq!((found.commits, found.checkpoints, found.syncs), (2, 0, 0), "{found:?}");
    let frames: Vec<i64> = found.rows.iter().map(|row| row.wal_frames).collect();
    assert_eq!(frames, [2, 4]);
}

#[test]
fn a_call_that_failed_when_it_was_recorded_commits_nothing() {
    let mut steps = Steps::new();
    steps.write(4, 0, 100).sync(4).sync(4);
    steps.0.last_mut().unwrap().ended = RecordedEnd::Failed(Some(libc::EIO));
    let found = steps.transactions();
    assert_eq!((found.syncs, found.rows.len(), found.writes_after), (1, 1, 0));
}
