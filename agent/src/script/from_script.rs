//! From a script's calls, as resolved, to a plan: one lane for each of its threads. Calls on one
//! file are made in the script's order, whichever thread makes them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::call::{CallName, Script};
use super::order::ResourceOrder;
use super::plan::{
    Action, CallArgument, CallEffect, FileBefore, Lane, Name, PlanFacts, PlannedStep, RecordedEnd,
    ReplayPlan, Wait,
};
use super::resolve::Resolved;
use super::step::{ReplayFile, ReplayStep};
use crate::system_calls;

impl From<&Script> for ReplayPlan {
    fn from(script: &Script) -> Self {
        let resolved = Resolved::from(script);
        let mut names = PathNames::default();
        let before = names.before(&resolved.files);
        // The steps on each file, by their turns.
        let mut turns: HashMap<(usize, u32), Wait> = HashMap::new();
        for (lane, thread) in (0..).zip(&resolved.threads) {
            for (steps, step) in (1..).zip(&thread.steps) {
                turns.insert((step.file, step.turn), Wait { lane, steps });
            }
        }
        let mut order = ResourceOrder::default();
        let mut lanes = vec![Lane::default(); resolved.threads.len()];
        for (number, thread) in (0..).zip(&resolved.threads) {
            let index = script.threads.iter().position(|it| *it == thread.number).unwrap_or(0);
            for step in &thread.steps {
                let last = step.turn.checked_sub(1).and_then(|it| turns.get(&(step.file, it)));
                let wait = last.filter(|it| it.lane != number && order.is_new(number, **it));
                let waits: Vec<Wait> = wait.copied().into_iter().collect();
                lanes[number as usize].push(planned(step, index as u32), &waits);
            }
        }
        let of_files = |file: &&(usize, &ReplayFile)| !file.1.is_directory && !file.1.is_nowhere;
        let files: Vec<(usize, &ReplayFile)> = resolved.files.iter().enumerate().collect();
        let after = files.iter().filter(of_files).map(|it| (it.0 as Name, it.1.ends)).collect();
        let mut left_out: BTreeMap<(String, &'static str), u64> = BTreeMap::new();
        for (name, calls) in &script.unknown {
            left_out.insert((name.clone(), "such calls are not replayed"), *calls);
        }
        for ((name, why), calls) in &resolved.unopened {
            left_out.insert(((*name).into(), why.why()), *calls);
        }
        Self {
            facts: facts(script, &resolved),
            lanes,
            names: names.paths,
            slots: resolved.handles,
            // Of each handle no more than one descriptor is open.
            most_open: resolved.handles,
            before,
            after,
            left_out,
            ..Self::default()
        }
    }
}

/// The paths of a plan: those of the files first, then those of directories above them.
#[derive(Default)]
struct PathNames {
    paths: Vec<Vec<u8>>,
}

impl PathNames {
    fn before(&mut self, files: &[ReplayFile]) -> Vec<FileBefore> {
        self.paths = files.iter().map(bytes).collect();
        let (mut directories, mut contents) = (BTreeSet::new(), Vec::new());
        for (name, file) in (0..).zip(files) {
            let path = bytes(file);
            let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            if !file.is_nowhere {
                directories.extend(ends.map(|(end, _)| path[..end].to_vec()));
            }
            if file.is_directory {
                directories.insert(path);
            } else if let Some(bytes) = file.begins {
                contents.push(FileBefore::File { name, bytes, mode: 0o600 });
            }
        }
        let mut before = Vec::new();
        for path in directories.into_iter().filter(|path| !path.is_empty()) {
            before.push(FileBefore::Directory(self.paths.len() as Name));
            self.paths.push(path);
        }
        before.extend(contents);
        before
    }
}

fn bytes(file: &ReplayFile) -> Vec<u8> {
    file.path.as_os_str().as_encoded_bytes().to_vec()
}

fn planned(step: &ReplayStep, thread: u32) -> PlannedStep {
    let slot = step.handle.map(|handle| handle as u32);
    let path = CallArgument::Path(step.file as Name);
    let of_slot = CallArgument::Slot(slot.unwrap_or_default());
    // The parser allows no more than 64 MiB.
    let length = step.bytes as u32;
    let number = |value: i64| CallArgument::Number(value);
    let (into, from) = (CallArgument::Into(length), CallArgument::From(length));
    let (bytes, offset) = (number(length.into()), number(step.offset.cast_signed()));
    let answer = CallArgument::Into(512);
    let mut effect = CallEffect::Nothing;
    let (call, arguments) = match step.name {
        CallName::Open => {
            effect = slot.map_or(CallEffect::Tries, CallEffect::Opens);
            let flags = step.flags | libc::O_NOFOLLOW | libc::O_CLOEXEC;
            let (here, mode) = (number(libc::AT_FDCWD.into()), number(0o600));
            (system_calls::SYS_openat, vec![here, path, number(flags.into()), mode])
        }
        CallName::Close => {
            effect = CallEffect::Closes(slot.unwrap_or_default());
            (system_calls::SYS_close, vec![of_slot])
        }
        CallName::Read => (system_calls::SYS_read, vec![of_slot, into, bytes]),
        CallName::Pread => (system_calls::SYS_pread64, vec![of_slot, into, bytes, offset]),
        CallName::Write => (system_calls::SYS_write, vec![of_slot, from, bytes]),
        CallName::Pwrite => (system_calls::SYS_pwrite64, vec![of_slot, from, bytes, offset]),
        CallName::Fsync => (system_calls::SYS_fsync, vec![of_slot]),
        CallName::Fdatasync => (system_calls::SYS_fdatasync, vec![of_slot]),
        CallName::Fstat => (system_calls::SYS_fstat, vec![of_slot, answer]),
        CallName::Stat => (system_calls::SYS_stat, vec![path, answer]),
        CallName::Lstat => (system_calls::SYS_lstat, vec![path, answer]),
        // The script does not say what was asked; SQLite asks whether a journal is there.
        CallName::Access => (system_calls::SYS_access, vec![path, number(libc::F_OK.into())]),
        CallName::Unlink => (system_calls::SYS_unlink, vec![path]),
    };
    let moves =
        matches!(step.name, CallName::Read | CallName::Pread | CallName::Write | CallName::Pwrite);
    PlannedStep {
        call: step.line as i64,
        thread,
        due_ns: step.due_ns,
        name: step.name.word(),
        ended: match step.succeeded {
            None => RecordedEnd::Unknown,
            Some(false) => RecordedEnd::Failed(None),
            Some(true) if moves => RecordedEnd::With(length.into()),
            Some(true) => RecordedEnd::Well,
        },
        writes: None,
        waits: (0, 0),
        action: Action::Call { number: call, arguments: arguments.into_boxed_slice(), effect },
    }
}

fn facts(script: &Script, resolved: &Resolved) -> PlanFacts {
    let largest = |names: [CallName; 2]| {
        let those = script.calls.iter().filter(|call| names.contains(&call.name));
        those.map(|call| call.bytes).max().unwrap_or(0)
    };
    let last = script.calls.iter().map(|call| call.time_us).max().unwrap_or(0);
    let opens = script.calls.iter().filter(|call| call.name == CallName::Open).count();
    PlanFacts {
        calls: script.lines as u64,
        threads: script.threads.iter().copied().collect(),
        processes: Vec::new(),
        idle_threads: resolved.idle_threads.clone(),
        opens: opens as u64,
        largest_write_bytes: largest([CallName::Write, CallName::Pwrite]),
        largest_read_bytes: largest([CallName::Read, CallName::Pread]),
        recorded_ns: (last * 1000).cast_signed(),
        architecture: None,
        databases_before: Vec::new(),
        incomplete_reasons: Vec::new(),
    }
}
