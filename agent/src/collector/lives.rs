//! Files that were created and deleted, counted by how long they lived and how large they were. A
//! deletion is known by the path that the call was given: of files beside a database that was seen,
//! and of those whose creation by that path was seen. Its memory has a bound, whatever the load:
//! creations that are forgotten for newer ones are counted.

use std::collections::{BTreeMap, BTreeSet};

use super::privacy::Privacy;
use crate::byte_text;
use crate::commits::call::{Caller, Deed, FileCall, PathRoot};
use crate::commits::finder::CommitFinder;
use crate::commits::recent_map::RecentMap;
use crate::tables::fleet::FileLives as Row;
use crate::tracer::{FileKey, FileKinds, Files};

/// Files whose creation is kept: so many recent ones, and as many others; and rows of a segment.
const LIVES_LIMIT: usize = 16_384;
const ROWS_LIMIT: usize = 20_000;

const MILLISECOND_NS: i64 = 1_000_000;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct LifeKey {
    event: &'static str,
    process: String,
    file_kind: &'static str,
    lived_below_ms: Option<i64>,
    size_below_bytes: Option<i64>,
}

/// Lives of files in one segment, and the creations before it.
#[derive(Default)]
pub struct LifeCounts {
    kinds: FileKinds,
    created: RecentMap<(String, PathRoot), (FileKey, i64), LIVES_LIMIT>,
    counts: BTreeMap<LifeKey, i64>,
}

impl LifeCounts {
    /// A call, after those before it; `finder` has seen it, and `files` are the tracer's.
    pub fn see(&mut self, call: &FileCall, finder: &CommitFinder, files: Option<&Files>) {
        match (&call.deed, call.file) {
            (Deed::Open { path, is_created: true }, Some(file)) => {
                self.count(process_name(&call.caller), "created", path, None, None);
                let place = (path.clone(), call.caller.root);
                let forgotten = self.created.insert(place, (file, call.end_ns));
                for (path, _) in forgotten.keys() {
                    self.count(String::new(), "forgotten", path, None, None);
                }
            }
            (Deed::Unlink { path }, _) => {
                let created = self.created.remove(&(path.clone(), call.caller.root));
                let role = finder.files.role_of_path(path, call.caller.root);
                if created.is_none() && role.is_none() {
                    return; // it may be on another disk
                }
                let lived = created.map(|(_, born_ns)| (call.end_ns - born_ns) / MILLISECOND_NS);
                let size = created.and_then(|(file, _)| files?.size_bytes(file));
                let size = size.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
                let process = process_name(&call.caller);
                self.count(process, "deleted", path, lived.map(above), size.map(above));
            }
            _ => {}
        }
    }

    fn count(
        &mut self,
        process: String,
        event: &'static str,
        path: &str,
        lived_below_ms: Option<i64>,
        size_below_bytes: Option<i64>,
    ) {
        let file_kind = self.kinds.kind(path, &BTreeSet::new());
        let mut key = LifeKey { event, process, file_kind, lived_below_ms, size_below_bytes };
        if self.counts.len() >= ROWS_LIMIT && !self.counts.contains_key(&key) {
            key.process = OTHERS.to_owned();
        }
        *self.counts.entry(key).or_default() += 1;
    }

    /// The rows; begins anew.
    pub fn finish(&mut self, privacy: &Privacy) -> Vec<Row> {
        let row = |(key, files): (LifeKey, i64)| Row {
            event: key.event.into(),
            process: privacy.process(&key.process),
            file_kind: key.file_kind.into(),
            lived_below_ms: key.lived_below_ms,
            size_below_bytes: key.size_below_bytes,
            files,
        };
        std::mem::take(&mut self.counts).into_iter().map(row).collect()
    }
}

/// The power of two that is next above.
fn above(value: i64) -> i64 {
    1_i64.checked_shl(64 - value.max(0).leading_zeros()).filter(|it| *it > 0).unwrap_or(i64::MAX)
}

// Which process opened a file last to write it, or synced it: kernel threads write most of what
// processes wrote. Its memory has a bound.

/// Files that are kept: so many recent ones, and as many others.
const WRITERS_LIMIT: usize = 16_384;

/// The name of all processes and files beyond those that a segment has rows for.
pub const OTHERS: &str = "(others)";

/// The last writer of each file.
#[derive(Debug, Default)]
pub struct Writers(RecentMap<FileKey, Caller, WRITERS_LIMIT>);

impl Writers {
    /// A call that opened a file to write it, wrote or synced it.
    pub fn see(&mut self, call: &FileCall) {
        let Some(file) = call.file else { return };
        if !matches!(call.deed, Deed::Open { .. } | Deed::Write { .. } | Deed::Sync { .. }) {
            return;
        }
        self.0.insert(file, call.caller);
    }

    /// The process that is known of a file.
    pub fn last_writer(&self, file: FileKey) -> Option<String> {
        self.0.peek(&file).map(process_name)
    }
}

/// The command name of a process.
pub fn process_name(caller: &Caller) -> String {
    byte_text::comm(&caller.process)
}

#[cfg(test)]
mod tests {
    use super::super::privacy::PrivacyLevel;
    use super::*;
    use crate::commits::call::Caller;

    fn call(end_ns: i64, deed: Deed) -> FileCall {
        let mut process = [0; 16];
        process[..3].copy_from_slice(b"app");
        let caller = Caller { process, ..Caller::default() };
        let file = Some(FileKey { filesystem: 1, inode: 2, generation: 3, subvolume: 0 });
        FileCall { pid: 1, tid: 1, caller, begin_ns: end_ns, end_ns, file, deed }
    }

    #[test]
    fn a_file_lives_from_its_creation_to_its_unlink() {
        let (mut lives, mut finder) = (LifeCounts::default(), CommitFinder::default());
        let open = |path: &str| Deed::Open { path: path.into(), is_created: true };
        let unlink = |path: &str| Deed::Unlink { path: path.into() };
        for (end_ns, deed) in [
            (0, open("/a.db-journal")),
            (5_000_000, unlink("/a.db-journal")),
            (6_000_000, open("/a.db-journal")),
            (12_000_000, unlink("/a.db-journal")),
            // Of a database that was not seen, which may be on another disk.
            (13_000_000, unlink("/a.db-journal")),
            (14_000_000, unlink("/else/b.db-journal")),
            (15_000_000, Deed::Open { path: "/a.db".into(), is_created: false }),
            (16_000_000, Deed::Lock { is_unlock: false, offset_bytes: 1 << 30, length_bytes: 1 }),
            (17_000_000, unlink("/a.db-journal")),
        ] {
            let call = call(end_ns, deed);
            finder.see(&call);
            lives.see(&call, &finder, None);
        }
        let rows = lives.finish(&Privacy { level: PrivacyLevel::Names, salt: [0; 32] });
        let summaries: Vec<_> =
            rows.iter().map(|row| (&*row.event, row.lived_below_ms, row.files)).collect();
        assert_eq!(
            summaries,
            [("created", None, 2), ("deleted", None, 1), ("deleted", Some(8), 2)]
        );
        assert_eq!((&*rows[0].file_kind, &*rows[0].process), ("db-journal", "app"));
    }

    #[test]
    fn powers_of_two_are_above() {
        assert_eq!([0, 1, 2, 4095, 4096].map(above), [1, 2, 4, 4096, 8192]);
        assert_eq!([i64::MAX, i64::MAX / 2].map(above), [i64::MAX, 1 << 62]);
    }

    #[test]
    fn a_million_files_cost_no_more_memory_than_some() {
        let mut lives = LifeCounts::default();
        for number in 0..200_000_i64 {
            let path = format!("/tmp/{number}");
            let call = call(number, Deed::Open { path, is_created: true });
            lives.see(&call, &CommitFinder::default(), None);
        }
        let created_count = lives.created.values().count();
        assert!(created_count <= 2 * WRITERS_LIMIT);
        let rows = lives.finish(&Privacy { level: PrivacyLevel::Names, salt: [0; 32] });
        let summaries: Vec<_> = rows.iter().map(|row| (&*row.event, row.files)).collect();
        assert_eq!(
            summaries,
            [("created", 200_000), ("forgotten", 200_000 - created_count as i64)]
        );
    }
}
