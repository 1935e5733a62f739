//! The commits of a replayed recording: gets the plan and when each of its steps was made; says of
//! every step what the finder of commits (agent/src/commits) has to know of a call. A plan has no
//! contents, so that what a header says follows from the calls around it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::plan::{
    Action, CallArgument, CallEffect, FileHandle, Name, PlannedStep, RecordedEnd, ReplayPlan,
};
use crate::commits::call::{Caller, Deed, FileCall};
use crate::commits::finder::find;
use crate::commits::unit_of_work::FoundTransactions;
use crate::system_calls::{self, CommitRole};
use crate::tracer::FileKey;
use crate::workload::ledger::Ledger;

/// The bytes that PERSIST zeroes: zeroJournalHdr() of pager.c. No other write of a journal is as
/// long and begins at 0.
const ZEROED_BYTES: u64 = 28;
const FRAME_HEADER_BYTES: u64 = 24;
/// The byte of a -shm file that a writer locks: WAL_WRITE_LOCK of wal.c, behind 120 bytes.
const WRITE_LOCK: u64 = 120;

/// F2FS_IOC_COMMIT_ATOMIC_WRITE (include/uapi/linux/f2fs.h).
const F2FS_COMMIT: u64 = 0xf502;

/// Finds the transactions of a plan whose lanes made their steps as `ledgers` say.
pub fn transactions_of(plan: &ReplayPlan, ledgers: &[Ledger]) -> FoundTransactions {
    let files = OpenedFiles::find(plan);
    let mut calls: Vec<FileCall> = Vec::new();
    for (lane, ledger) in plan.lanes.iter().zip(ledgers) {
        for (step, done) in lane.steps.iter().zip(&ledger.entries) {
            let is_made = step.call >= 0 && !matches!(step.ended, RecordedEnd::Failed(_));
            if let Some((file, deed)) = is_made.then(|| files.deed(plan, step)).flatten() {
                calls.push(FileCall {
                    pid: plan.facts.processes.get(step.thread as usize).copied().unwrap_or(0),
                    tid: ledger.tid as u32,
                    caller: Caller::default(),
                    begin_ns: done.begin_ns,
                    end_ns: done.return_ns,
                    file,
                    deed,
                });
            }
        }
    }
    calls.sort_by_key(|call| (call.end_ns, call.begin_ns));
    mark_commits(&mut calls, plan);
    if let Some(first) = calls.first().cloned() {
        let opens = plan.open_before.iter().map(|open| FileCall {
            file: Some(life(open.name)),
            deed: Deed::Open { path: path(plan, open.name), is_created: false },
            ..first.clone()
        });
        calls.splice(0..0, opens);
    }
    find(&calls)
}

/// A file is known by the path that it was opened by.
fn life(name: Name) -> FileKey {
    FileKey { inode: name.into(), ..FileKey::default() }
}

fn path(plan: &ReplayPlan, name: Name) -> String {
    format!("/{}", OsStr::from_bytes(&plan.names[name as usize]).to_string_lossy())
}

/// The path that each handle was opened by, and the flags.
struct OpenedFiles(BTreeMap<FileHandle, (Name, i32)>);

impl OpenedFiles {
    fn find(plan: &ReplayPlan) -> Self {
        let mut files: BTreeMap<FileHandle, (Name, i32)> =
            plan.open_before.iter().map(|open| (open.handle, (open.name, open.flags))).collect();
        // Of each handle that is a copy: of which.
        let mut copies: BTreeMap<FileHandle, FileHandle> = BTreeMap::new();
        for step in plan.lanes.iter().flat_map(|lane| &lane.steps) {
            match &step.action {
                Action::Call { arguments, effect: CallEffect::Opens(handle), .. } => {
                    match **arguments {
                        [_, CallArgument::Path(name), CallArgument::Number(flags), ..] => {
                            files.insert(*handle, (name, flags as i32));
                        }
                        [CallArgument::Handle(from), ..]
                        | [_, CallArgument::HandlePath(from), ..] => {
                            copies.insert(*handle, from);
                        }
                        _ => {}
                    }
                }
                Action::Inherit(pairs) => {
                    copies.extend(pairs.iter().map(|(from, to)| (*to, *from)))
                }
                _ => {}
            }
        }
        // A copy has a higher number than what it is of: handles are numbered as they are opened.
        for (handle, from) in copies {
            if let Some(file) = files.get(&from).copied() {
                files.insert(handle, file);
            }
        }
        Self(files)
    }

    /// Return the deed of a step and its file; None where it is nothing to the finder.
    fn deed(&self, plan: &ReplayPlan, step: &PlannedStep) -> Option<(Option<FileKey>, Deed)> {
        let Action::Call { number, arguments, effect } = &step.action else { return None };
        let handle = arguments.iter().find_map(|argument| match argument {
            CallArgument::Handle(handle) => Some(*handle),
            _ => None,
        });
        let name = arguments.iter().find_map(|argument| match argument {
            CallArgument::Path(name) => Some(*name),
            _ => None,
        });
        let opened = handle.and_then(|handle| self.0.get(&handle).copied());
        let file = opened.map(|(name, _)| life(name));
        let value = |place: usize| match arguments.get(place) {
            Some(CallArgument::Number(number)) => number.cast_unsigned(),
            _ => 0,
        };
        let row = system_calls::row(*number)?;
        let deed = match row.commits? {
            CommitRole::Open => {
                let CallEffect::Opens(_) = effect else { return None };
                let deed = Deed::Open { path: path(plan, name?), is_created: false };
                return Some((name.map(life), deed));
            }
            CommitRole::Read => Deed::Read,
            CommitRole::Write => {
                let RecordedEnd::With(bytes) = step.ended else { return None };
                let is_placed = row.name.starts_with('p');
                let (name, flags) = opened?;
                let offset_bytes = if is_placed { value(3) } else { u64::MAX };
                let length_bytes = bytes.max(0).cast_unsigned();
                let is_zeroed = offset_bytes == 0
                    && length_bytes == ZEROED_BYTES
                    && plan.names[name as usize].ends_with(b"-journal");
                Deed::Write {
                    offset_bytes,
                    length_bytes,
                    head: if is_zeroed { vec![0; ZEROED_BYTES as usize] } else { Vec::new() },
                    is_synced: flags & (libc::O_DSYNC | libc::O_SYNC) != 0,
                }
            }
            CommitRole::CommitAtomicWrite if value(1) == F2FS_COMMIT => Deed::CommitAtomicWrite,
            CommitRole::CommitAtomicWrite => return None,
            CommitRole::Lock => {
                let Some(CallArgument::Lock(lock)) = arguments.get(2) else { return None };
                let sets = [libc::F_SETLK, libc::F_SETLKW, libc::F_OFD_SETLK, libc::F_OFD_SETLKW];
                if !sets.contains(&(value(1) as i32)) {
                    return None;
                }
                let lock = plan.locks[*lock as usize];
                Deed::Lock {
                    is_unlock: i32::from(lock.kind) == libc::F_UNLCK,
                    offset_bytes: lock.start.max(0).cast_unsigned(),
                    length_bytes: lock.length.max(0).cast_unsigned(),
                }
            }
            CommitRole::Truncate => Deed::Truncate { size_bytes: value(1) },
            CommitRole::TruncatePath => {
                let deed = Deed::TruncatePath { path: path(plan, name?), size_bytes: value(1) };
                return Some((None, deed));
            }
            CommitRole::Unlink => return Some((None, Deed::Unlink { path: path(plan, name?) })),
            CommitRole::Sync if row.name == "msync" && value(2) & libc::MS_SYNC as u64 == 0 => {
                return None;
            }
            // A recorded sync is one of the filesystem of the replay.
            CommitRole::Sync if step.name == "sync" => {
                Deed::Sync { name: "sync", is_directory: false }
            }
            CommitRole::Sync => Deed::Sync { name: row.name, is_directory: false },
        };
        Some((file, deed))
    }
}

/// Mark the frames of a WAL that end a transaction. The header of a frame says so, but was not
/// recorded: the frame that ends one is the last one before the WAL is synced, or before the
/// writer's lock is given back.
fn mark_commits(calls: &mut [FileCall], plan: &ReplayPlan) {
    // By process and database: the header of the last frame that is not known to be a commit's.
    let mut frames: BTreeMap<(u32, &[u8]), usize> = BTreeMap::new();
    let mut commits: Vec<usize> = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        let Some(FileKey { inode: name, .. }) = call.file else { continue };
        let name = plan.names[name as usize].as_slice();
        if let Some(database) = name.strip_suffix(b"-wal") {
            match call.deed {
                Deed::Write { length_bytes: FRAME_HEADER_BYTES, .. } => {
                    frames.insert((call.pid, database), number);
                }
                Deed::Sync { .. } => commits.extend(frames.remove(&(call.pid, database))),
                _ => {}
            }
        } else if let Some(database) = name.strip_suffix(b"-shm")
            && let Deed::Lock { is_unlock: true, offset_bytes, length_bytes } = call.deed
            && offset_bytes <= WRITE_LOCK
            && (length_bytes == 0 || WRITE_LOCK < offset_bytes + length_bytes)
        {
            commits.extend(frames.remove(&(call.pid, database)));
        }
    }
    for number in commits {
        if let Deed::Write { head, .. } = &mut calls[number].deed {
            // The database's size after the commit, in pages: any but 0 (section 4.1).
            *head = [0, 0, 0, 1, 0, 0, 0, 1].to_vec();
        }
    }
}

#[cfg(test)]
mod tests {
    //! Commits are found from the steps of a plan, without the contents of what they write; the
    //! test of the guest and tests/live compare them with what programs commit.

    use super::*;
    use crate::system_calls;
    use crate::workload::ledger::LedgerEntry;
    use crate::workload::replay::plan::{Lane, PlanFacts, RecordLock};

    const NAMES: [&str; 5] = ["a.db", "a.db-journal", "a.db-wal", "a.db-shm", "note"];
    const PENDING: i64 = 0x4000_0000;

    /// Steps one after another, 10 ns each; every name is open, by the handle of its number.
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

        fn write(&mut self, handle: FileHandle, offset: i64, bytes: u32) -> &mut Self {
            let number = |it: i64| CallArgument::Number(it);
            let from = CallArgument::From(bytes);
            let arguments =
                vec![CallArgument::Handle(handle), from, number(bytes.into()), number(offset)];
            let ended = RecordedEnd::With(bytes.into());
            self.add("pwrite64", system_calls::SYS_pwrite64, arguments, CallEffect::Nothing, ended);
            self
        }

        fn sync(&mut self, handle: FileHandle) -> &mut Self {
            let arguments = vec![CallArgument::Handle(handle)];
            let ended = RecordedEnd::With(0);
            self.add(
                "fdatasync",
                system_calls::SYS_fdatasync,
                arguments,
                CallEffect::Nothing,
                ended,
            );
            self
        }

        fn lock(&mut self, handle: FileHandle, kind: i32, start: i64, length: i64) -> &mut Self {
            self.1.push(RecordLock { kind: kind as i16, whence: 0, start, length });
            let lock = CallArgument::Lock(self.1.len() as u32 - 1);
            let command = CallArgument::Number(libc::F_SETLK.into());
            let arguments = vec![CallArgument::Handle(handle), command, lock];
            let ended = RecordedEnd::With(0);
            self.add("fcntl", system_calls::SYS_fcntl, arguments, CallEffect::Nothing, ended);
            self
        }

        fn transactions(self) -> FoundTransactions {
            let done = |number: i64| LedgerEntry {
                return_ns: number * 10 + 9,
                ..LedgerEntry::begin("call", number * 10)
            };
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
}
