//! Recordings of joj record (docs/recording.md) as plans of a replay: reads the tables, and finds
//! the files, descriptors and the order behind every call.
//!
//! order, names -> scene -> files_before, arguments -> special -> build

mod arguments;
mod build;
mod files_before;
#[cfg(test)]
mod fuzz_test;
mod names;
mod order;
mod scene;
mod special;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use build::{Builder, note_contents};
use names::{MOST_PATH_BYTES, ReplayNames, bytes_of, bytes_with_above};
use scene::DescriptorTarget;

use super::plan::{OpenBefore, PlanFacts, ReplayPlan};
use crate::system_calls;
use crate::tables::read::{ReadError, read};
use crate::tables::recording::{Content, OpenDescriptor, PathState, RecordedCall, RecordedThread};
use crate::tables::write::ManifestRow;

/// Calls take half a kilobyte of memory each while their plan is made.
const MOST_CALLS: usize = 4_000_000;
const MOST_PATHS: usize = 1_000_000;
const MOST_THREADS: usize = 1_000_000;
/// Each is a thread of the replay.
const MOST_LANES: usize = 1000;
/// 30 days: a replay waits for a call until its time, and so long a recording is a wrong number.
const MOST_TIME_NS: i64 = 30 * 24 * 3600 * 1_000_000_000;
/// The most bytes of paths, and of what calls wait for and copy: as much as the most calls take
/// themselves.
const MOST_BYTES: usize = 2 << 30;
const VERSION: &str = "1";

/// Reads a recording and plans the replay of its calls on what is below a recorded directory.
///
/// # Errors
/// If the folder is no recording, or is too large, and if it has nothing below that directory.
pub fn plan(folder: &Path, recorded_root: &Path) -> Result<ReplayPlan, ReadError> {
    let refuse = |table: &str, what: String| ReadError::new(&folder.join(table), what);
    let manifest: Vec<ManifestRow> = read(folder, MOST_THREADS)?;
    let fact = |key: &str| manifest.iter().find(|row| row.key == key).map(|row| &*row.value);
    match fact("recording_version") {
        Some(VERSION) => {}
        Some(other) => {
            let what = format!("recording_version is {other}, and {VERSION} is read");
            return Err(refuse("manifest.parquet", what));
        }
        None => return Err(ReadError::new(folder, "no recording; name a folder of joj record")),
    }
    let architecture = architecture_of(fact("architecture"));
    let architecture = architecture.map_err(|what| refuse("manifest.parquet", what))?;
    let reasons = fact("incomplete_reasons").map(serde_json::from_str::<Vec<String>>);
    let reasons = reasons.and_then(Result::ok).unwrap_or_default();
    let databases = databases_of(fact("databases_before"));
    let mut calls: Vec<RecordedCall> = read(folder, MOST_CALLS)?;
    calls.sort_by_key(|call| (call.begin_ns, call.call_id));
    let threads: Vec<RecordedThread> = read(folder, MOST_THREADS)?;
    let snapshot: Vec<PathState> = read(folder, MOST_PATHS)?;
    let descriptors: Vec<OpenDescriptor> = read(folder, MOST_PATHS)?;
    let contents: Vec<Content> = read(folder, MOST_CALLS)?;
    let known: BTreeSet<i64> = threads.iter().map(|thread| thread.thread_id).collect();
    if let Some(call) = calls.iter().find(|call| !known.contains(&call.thread_id)) {
        let (id, thread) = (call.call_id, call.thread_id);
        return Err(refuse("calls", format!("call_id {id}: no thread has thread_id {thread}")));
    }
    let too_large = |what| ReadError::new(folder, what);
    let root = recorded_root.as_os_str().as_bytes();
    let names = names_of(&snapshot, &descriptors, root, MOST_BYTES).map_err(too_large)?;
    if snapshot.is_empty() && descriptors.iter().all(|open| !open.target.starts_with('/')) {
        let what = "the recording names no file, so that nothing of it can be replayed; record \
                    the program from its start, or by strace with -y, which names what is open";
        return Err(ReadError::new(folder, what));
    }
    if !recorded_root.has_root() || !names.has_any() {
        let root = recorded_root.display();
        let what =
            format!("no path is below recorded_root = {root}; name a directory as in `path`");
        return Err(refuse("snapshot", what));
    }
    let mut plan = plan_rows(&calls, &threads, &snapshot, names, &descriptors, MOST_BYTES)
        .map_err(too_large)?;
    note_contents(&mut plan, &calls, &contents).map_err(too_large)?;
    plan.facts.architecture = Some(architecture);
    plan.facts.databases_before = databases;
    plan.facts.incomplete_reasons =
        reasons.iter().map(|it| format!("the recording: {it}")).collect();
    if plan.facts.recorded_ns > MOST_TIME_NS {
        let what = "its times span more than 30 days, and a replay would last as long";
        return Err(refuse("calls", what.into()));
    }
    Ok(plan)
}

fn too_large(what: &str, most_bytes: usize) -> String {
    format!("{what} take more than {most_bytes} bytes; record a shorter run")
}

/// The names of a snapshot, if all paths and the directories above them take `most_bytes` at most.
fn names_of(
    snapshot: &[PathState],
    descriptors: &[OpenDescriptor],
    recorded_root: &[u8],
    most_bytes: usize,
) -> Result<ReplayNames, String> {
    let paths = snapshot.iter().map(|row| &row.path).chain(descriptors.iter().map(|it| &it.target));
    if paths.map(|path| bytes_with_above(path)).sum::<usize>() > most_bytes {
        return Err(too_large("its paths, with the directories above them,", most_bytes));
    }
    Ok(ReplayNames::new(snapshot, recorded_root))
}

/// Plans the replay of calls, which are in the order of their begins. What may grow faster than the
/// rows takes `most_bytes` at most.
///
/// # Errors
/// If it would take more, or too many threads.
fn plan_rows(
    calls: &[RecordedCall],
    threads: &[RecordedThread],
    snapshot: &[PathState],
    names: ReplayNames,
    descriptors: &[OpenDescriptor],
    most_bytes: usize,
) -> Result<ReplayPlan, String> {
    let mut builder =
        Builder::new(calls, threads, names, MOST_LANES, most_bytes).ok_or_else(|| {
            format!("more than {MOST_LANES} threads live at the same time; record a shorter run")
        })?;
    let open_before = open_before(&mut builder, descriptors);
    if !builder.build() {
        return Err(too_large(
            "what its calls wait for, copies of descriptors and texts",
            most_bytes,
        ));
    }
    let Builder { mut plan, mut scene, .. } = builder;
    plan.before = files_before::files_before(snapshot, &mut scene.names, &mut scene.texts);
    // An open descriptor that nobody uses needs no file.
    let used: BTreeSet<u32> = plan.lanes.iter().flat_map(|lane| lane.handles()).collect();
    let mut names = BTreeSet::new();
    for (open, row) in open_before {
        if !used.contains(&open.handle) {
            continue;
        }
        if names.insert(open.name) {
            plan.before.extend(files_before::descriptor_file(&mut scene.names, open.name, row));
        }
        plan.open_before.push(open);
    }
    plan.names = scene.names.paths;
    plan.texts = scene.texts;
    plan.locks = scene.locks;
    plan.facts = facts(calls, threads, &plan);
    Ok(plan)
}

/// Descriptors of files that are open before the first call.
fn open_before<'a>(
    builder: &mut Builder,
    rows: &'a [OpenDescriptor],
) -> Vec<(OpenBefore, &'a OpenDescriptor)> {
    let mut found = Vec::new();
    for row in rows {
        if !builder.threads.has(row.thread_id) || row.target.len() > MOST_PATH_BYTES {
            continue;
        }
        builder.begin_thread(row.thread_id);
        // Nothing tells what it leads to: calls on it are left out.
        if row.target.is_empty() {
            continue;
        }
        let scene = &mut builder.scene;
        let target = bytes_of(&row.target);
        let path = scene.names.below_root(&target).filter(|_| target.first() == Some(&b'/'));
        let closes = row.flags & i64::from(libc::O_CLOEXEC) != 0;
        // Not a path: pipe:[1], socket:[2], anon_inode:[eventfd], no file.
        let opened = if let Some(path) = path {
            let handle = scene.new_handle(Some((row.device, row.inode)));
            scene.note_open();
            let name = scene.names.add(path);
            let kept = libc::O_ACCMODE | libc::O_APPEND | libc::O_DIRECTORY | libc::O_PATH;
            let (flags, position) =
                (system_calls::flags_to_kernel(row.flags) as i32 & kept, row.position_bytes.max(0));
            found.push((OpenBefore { handle, name, flags, position }, row));
            DescriptorTarget::File(handle)
        } else {
            DescriptorTarget::Elsewhere
        };
        scene.tables.set(row.thread_id, row.descriptor, opened, closes);
    }
    found
}

fn facts(calls: &[RecordedCall], threads: &[RecordedThread], plan: &ReplayPlan) -> PlanFacts {
    let largest = |word: &str| {
        let those = calls.iter().filter(|call| call.name.contains(word));
        those.filter_map(|call| call.result).max().unwrap_or(0).max(0).cast_unsigned()
    };
    let busy: BTreeSet<u32> =
        plan.lanes.iter().flat_map(|lane| &lane.steps).map(|step| step.thread).collect();
    let idle = |(index, _): &(usize, &RecordedThread)| !busy.contains(&(*index as u32));
    let steps = plan.lanes.iter().filter_map(|lane| lane.steps.last());
    PlanFacts {
        calls: calls.len() as u64,
        threads: threads.iter().map(|it| it.thread_id.cast_unsigned()).collect(),
        processes: threads.iter().map(|it| it.pid as u32).collect(),
        idle_threads: threads
            .iter()
            .enumerate()
            .filter(idle)
            .map(|it| it.1.thread_id.cast_unsigned())
            .collect(),
        opens: calls.iter().filter(|call| call.name.starts_with("open")).count() as u64,
        largest_write_bytes: largest("write"),
        largest_read_bytes: largest("read"),
        recorded_ns: steps.map(|step| step.due_ns).max().unwrap_or(0),
        architecture: None,
        databases_before: Vec::new(),
        incomplete_reasons: Vec::new(),
    }
}

/// The paths of the databases that were there before, by a manifest that tells of them.
fn databases_of(fact: Option<&str>) -> Vec<String> {
    let rows = fact.and_then(|fact| serde_json::from_str::<Vec<serde_json::Value>>(fact).ok());
    let path = |row: serde_json::Value| Some(row.get("path")?.as_str()?.to_owned());
    rows.unwrap_or_default().into_iter().filter_map(path).collect()
}

/// The architecture of a recording, by its manifest: of x86_64 where that tells none. Numbers of
/// calls and flags in its tables are x86_64's in any case (`system_calls`).
fn architecture_of(fact: Option<&str>) -> Result<String, String> {
    let found = fact.unwrap_or("\"x86_64\"");
    match serde_json::from_str::<String>(found) {
        Ok(known) if ["x86_64", "aarch64"].contains(&&*known) => Ok(known),
        _ => Err(format!("architecture is {found}; recordings of x86_64 and aarch64 are read")),
    }
}
