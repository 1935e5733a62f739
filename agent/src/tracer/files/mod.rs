//! Life stories of files. Reads path, run and sync records in order; produces one row, with all its
//! paths, per (s_dev, inode, generation, subvolume). The generation is needed because ext4 and F2FS
//! reuse an inode number at once, the subvolume because a snapshot of Btrfs repeats both.
//!
//! A file gets its number when block I/O or a sync call on a traced filesystem refers to it. To
//! bound memory, the files that were idle longest can be dropped. A dropped file that appears again
//! gets a new row.

pub mod file_kind;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::rc::Rc;

use serde::Serialize;

use crate::device::sysfs;
use crate::tables::rows;
use crate::tracer::records::kernel::{MODE_DIRECTORY, MODE_TYPE};
use crate::tracer::records::{PathRecord, Run, Sync};
use file_kind::FileKinds;

/// Distinguishes a file from every other that was ever on a mounted filesystem.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileKey {
    /// s_dev of the filesystem.
    pub filesystem: u32,
    pub inode: u64,
    pub generation: u32,
    /// Number of its tree in Btrfs (BTRFS_FS_TREE_OBJECTID, 5, is that of the whole); 0 elsewhere.
    pub subvolume: u64,
}

impl FileKey {
    /// The keys that a file of an inode number may have.
    fn all_of(filesystem: u32, inodes: RangeInclusive<u64>) -> RangeInclusive<FileKey> {
        let key =
            |inode, generation, subvolume| FileKey { filesystem, inode, generation, subvolume };
        key(*inodes.start(), 0, 0)..=key(*inodes.end(), u32::MAX, u64::MAX)
    }
}

/// A file of which only the inode number is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberedFile {
    pub filesystem: u32,
    pub inode: u64,
    pub is_directory: bool,
}

/// The effect of a call that changed names on a file that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// It has this path now.
    Path(FileKey, String),
    /// One name less.
    Unlinked(FileKey),
    /// One more.
    Linked(FileKey),
}

/// Rows of files with consecutive numbers, which are written together.
pub const PART_ROWS: i64 = 4096;

/// Names that are kept of a file: the first one and the last of the others.
const NAMES_LIMIT: usize = 64;

#[derive(Debug, Default)]
struct Story {
    /// file_id of the tables; none yet for a file that is known only by name.
    number: Option<i64>,
    /// A sync call named it.
    synced: bool,
    paths: Vec<PastName>,
    directory: bool,
    /// Its number of names: as the kernel last reported, plus the effects of calls since.
    links: u32,
    unlinked: bool,
    first_seen_ns: u64,
    last_seen_ns: u64,
    size_bytes: u64,
}

impl Story {
    fn set_links(&mut self, links: u32) {
        self.links = links;
        self.unlinked = links == 0;
    }
}

#[derive(Debug, Serialize)]
struct PastName {
    path: String,
    from_ns: u64,
    /// Names between the one before and this that are not kept.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// All known files; those in the tables are numbered in order of first sight.
#[derive(Debug, Default)]
pub struct Files {
    stories: BTreeMap<FileKey, Story>,
    /// Keys by number, of those that were not let go.
    keys: BTreeMap<i64, FileKey>,
    next_number: i64,
    /// Every path of a rollback journal or a WAL that was seen: it shows which file is a database.
    companions: BTreeSet<String>,
    kinds: Rc<FileKinds>,
    forgotten: u64,
    /// Numbers of the parts, of `PART_ROWS` each, that changed since `take_changed`.
    changed: BTreeSet<i64>,
    all_changed: bool,
}

impl Files {
    /// No file yet; `kinds` will give their kinds.
    pub fn with_kinds(kinds: Rc<FileKinds>) -> Self {
        Files { kinds, ..Self::default() }
    }

    /// The kernel reported the file's name, links and size.
    pub fn see_path(&mut self, path: &PathRecord) {
        let is_known = self.stories.get(&path_key(path)).is_some_and(|it| !it.paths.is_empty());
        self.forgotten += u64::from(path.first && is_known);
        let story = self.story(path_key(path), path.time_ns);
        story.directory = path.mode & MODE_TYPE == MODE_DIRECTORY;
        story.set_links(path.links);
        story.size_bytes = path.size_bytes;
        self.note_change(path_key(path));
        self.see_name(path_key(path), &path.path, path.time_ns);
    }

    /// A call changed a name of the file; ignored if the file is unknown.
    pub fn see_effect(&mut self, effect: &Effect, time_ns: u64) {
        let (Effect::Path(key, _) | Effect::Unlinked(key) | Effect::Linked(key)) = effect;
        self.note_change(*key);
        let Some(story) = self.stories.get_mut(key) else { return };
        story.last_seen_ns = story.last_seen_ns.max(time_ns);
        match effect {
            Effect::Path(key, path) => self.see_name(*key, path, time_ns),
            // A directory has one name, and one link more for each that is in it.
            Effect::Unlinked(_) if story.directory => story.set_links(0),
            Effect::Unlinked(_) => story.set_links(story.links.saturating_sub(1)),
            Effect::Linked(_) => story.set_links(story.links + 1),
        }
    }

    fn see_name(&mut self, key: FileKey, path: &str, from_ns: u64) {
        let Some(story) = self.stories.get_mut(&key) else { return };
        let known = story.paths.last().map(|named| named.path.as_str());
        if !path.is_empty() && known != Some(path) {
            if story.paths.is_empty() {
                // Most files have one name, and a vector's first room is four.
                story.paths.reserve_exact(1);
            }
            story.paths.push(PastName { path: path.to_owned(), from_ns, left_out: 0 });
            if story.paths.len() > NAMES_LIMIT {
                let left_out = story.paths.remove(1).left_out + 1;
                story.paths[1].left_out += left_out;
            }
            if self.kinds.is_companion(path) && self.companions.insert(path.to_owned()) {
                // It determines the kind of another file, wherever that is.
                self.all_changed = true;
            }
        }
    }

    /// A page run whose inode is a file's or a directory's: it is one of the tables.
    pub fn see_run(&mut self, run: &Run, time_ns: u64) {
        let story = self.story(run_key(run), time_ns);
        story.directory = run.mode & MODE_TYPE == MODE_DIRECTORY;
        story.set_links(run.links);
        story.size_bytes = run.size_bytes;
        match story.number {
            Some(number) => _ = self.changed.insert(number / PART_ROWS),
            None => self.number(run_key(run)),
        }
    }

    /// A sync call named the file: it is one of the tables if its filesystem is traced.
    pub fn see_sync(&mut self, sync: &Sync, traced: bool) {
        self.story(sync_key(sync), sync.time_ns).synced = true;
        if traced {
            self.number(sync_key(sync));
        }
        self.note_change(sync_key(sync));
    }

    /// The filesystem's own entries name a file that was read or written: it is one of the tables,
    /// and has this path where no call named it.
    pub fn see_numbered(&mut self, file: NumberedFile, path: &str, time_ns: u64) {
        let NumberedFile { filesystem, inode, is_directory } = file;
        let lives = FileKey::all_of(filesystem, inode..=inode);
        let known = self.stories.range(lives.clone()).next_back().map(|(key, _)| *key);
        let key = known.unwrap_or(*lives.start());
        let story = self.story(key, time_ns);
        let is_named = !story.paths.is_empty();
        if known.is_none() {
            (story.directory, story.links) = (is_directory, 1);
        }
        if !is_named {
            self.see_name(key, path, time_ns);
        }
        self.number(key);
        self.note_change(key);
    }

    /// A filesystem turned out to be on a traced disk: so are the files synced on it.
    pub fn see_filesystem(&mut self, filesystem: u32) {
        let all = FileKey::all_of(filesystem, 0..=u64::MAX);
        let synced = self.stories.range(all).filter(|(_, story)| story.synced);
        let keys: Vec<FileKey> = synced.map(|(key, _)| *key).collect();
        keys.into_iter().for_each(|key| self.number(key));
    }

    /// The file's number, as file_id in the tables; None for one that is in none.
    pub fn id(&self, key: FileKey) -> Option<i64> {
        self.stories.get(&key)?.number
    }

    /// The file that had an inode number at some time, where the generation is not known: the
    /// latest that was seen by then, or else the first one seen later.
    pub fn id_by_number(&self, filesystem: u32, inode: u64, time_ns: u64) -> Option<i64> {
        let lives = FileKey::all_of(filesystem, inode..=inode);
        let lives = self.stories.range(lives).map(|(_, story)| story);
        let lives = lives.filter(|story| story.number.is_some());
        let seen = |story: &&Story| story.first_seen_ns;
        let (before, after): (Vec<_>, Vec<_>) = lives.partition(|life| seen(life) <= time_ns);
        before.into_iter().max_by_key(seen).or(after.into_iter().min_by_key(seen))?.number
    }

    /// The kind of a file of the tables.
    pub fn kind(&self, number: i64) -> &'static str {
        let story = self.keys.get(&number).and_then(|key| self.stories.get(key));
        story.map_or(file_kind::NONE, |story| self.kind_of(story))
    }

    /// The path of a file of the tables, as last known.
    pub fn path(&self, number: i64) -> &str {
        self.keys.get(&number).and_then(|key| self.stories.get(key)).map_or("", last_path)
    }

    /// The file of the tables with this number, as long as it is kept.
    pub fn key(&self, number: i64) -> Option<FileKey> {
        self.keys.get(&number).copied()
    }

    /// The last known size of any known file.
    pub fn size_bytes(&self, key: FileKey) -> Option<u64> {
        self.stories.get(&key).map(|story| story.size_bytes)
    }

    /// Nobody will ask for the parts that changed so far.
    pub fn forget_changed(&mut self) {
        self.changed.clear();
        self.all_changed = false;
    }

    /// Kind and path of any known file, as of last sight.
    pub fn kind_and_path(&self, key: FileKey) -> (&'static str, &str) {
        let story = self.stories.get(&key);
        story.map_or((file_kind::OTHER, ""), |story| (self.kind_of(story), last_path(story)))
    }

    /// The path of any known file, as of last sight.
    pub fn path_of(&self, key: FileKey) -> &str {
        self.stories.get(&key).map_or("", last_path)
    }

    /// Files whose names the kernel's side reported as new although they were not.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Files that are kept, in the tables or not.
    pub fn count(&self) -> usize {
        self.stories.len()
    }

    /// The rows of the table files, in order of their numbers.
    pub fn rows(&self) -> Vec<rows::File> {
        let row = |(number, key)| row(number, key, &self.stories[key], self);
        self.keys.iter().map(row).collect()
    }

    /// The parts of the table, by number, in which a row is another than when this was asked last:
    /// all rows of each, which may be none any more.
    pub fn take_changed(&mut self) -> Vec<(i64, Vec<rows::File>)> {
        let mut changed = std::mem::take(&mut self.changed);
        if std::mem::take(&mut self.all_changed) {
            changed.extend(self.keys.keys().map(|number| number / PART_ROWS));
        }
        let part = |part: i64| {
            let numbers = part * PART_ROWS..(part + 1) * PART_ROWS;
            let row = |(number, key)| row(number, key, &self.stories[key], self);
            (part, self.keys.range(numbers).map(row).collect())
        };
        changed.into_iter().map(part).collect()
    }

    /// Drops the half that was idle longest; returns the rows of those in the tables.
    pub fn let_go(&mut self) -> Vec<rows::File> {
        let mut times: Vec<u64> = self.stories.values().map(|story| story.last_seen_ns).collect();
        let middle = times.len() / 2;
        if times.is_empty() {
            return Vec::new();
        }
        let limit_ns = *times.select_nth_unstable(middle).1;
        let old = |story: &Story| story.last_seen_ns < limit_ns;
        let gone: Vec<FileKey> =
            self.stories.iter().filter(|(_, story)| old(story)).map(|(key, _)| *key).collect();
        let mut rows = Vec::new();
        for key in gone {
            if let Some(number) = self.stories[&key].number {
                rows.push(row(&number, &key, &self.stories[&key], self));
                self.keys.remove(&number);
                self.changed.insert(number / PART_ROWS);
            }
            self.stories.remove(&key);
        }
        rows.sort_by_key(|row| row.file_id);
        let named: BTreeSet<&str> = self.stories.values().map(last_path).collect();
        self.companions.retain(|path| named.contains(path.as_str()));
        rows
    }

    fn kind_of(&self, story: &Story) -> &'static str {
        match story.directory {
            true => file_kind::DIRECTORY,
            false => self.kinds.kind(last_path(story), &self.companions),
        }
    }

    fn note_change(&mut self, key: FileKey) {
        let number = self.stories.get(&key).and_then(|story| story.number);
        self.changed.extend(number.map(|number| number / PART_ROWS));
    }

    fn number(&mut self, key: FileKey) {
        let Some(story) = self.stories.get_mut(&key) else { return };
        if story.number.is_none() {
            story.number = Some(self.next_number);
            self.keys.insert(self.next_number, key);
            self.changed.insert(self.next_number / PART_ROWS);
            self.next_number += 1;
        }
    }

    fn story(&mut self, key: FileKey, time_ns: u64) -> &mut Story {
        let fresh = || Story { first_seen_ns: time_ns, ..Story::default() };
        let story = self.stories.entry(key).or_insert_with(fresh);
        story.last_seen_ns = story.last_seen_ns.max(time_ns);
        story
    }
}

/// The key of the file that a path record names.
pub fn path_key(path: &PathRecord) -> FileKey {
    FileKey {
        filesystem: path.filesystem,
        inode: path.inode,
        generation: path.generation,
        subvolume: path.subvolume,
    }
}

/// The key of the file whose pages a run holds.
pub fn run_key(run: &Run) -> FileKey {
    FileKey {
        filesystem: run.filesystem,
        inode: run.inode,
        generation: run.generation,
        subvolume: run.subvolume,
    }
}

/// The key of the file that a sync call is about.
pub fn sync_key(sync: &Sync) -> FileKey {
    FileKey {
        filesystem: sync.filesystem,
        inode: sync.inode,
        generation: sync.generation,
        subvolume: sync.subvolume,
    }
}

fn last_path(story: &Story) -> &str {
    story.paths.last().map_or("", |named| &named.path)
}

fn row(number: &i64, key: &FileKey, story: &Story, files: &Files) -> rows::File {
    rows::File {
        file_id: *number,
        device: sysfs::number_text(key.filesystem),
        inode: key.inode as i64,
        generation: i64::from(key.generation),
        path: last_path(story).to_owned(),
        path_history: serde_json::to_string(&story.paths).expect("strings and numbers are JSON"),
        file_kind: files.kind_of(story).to_owned(),
        first_seen_ns: story.first_seen_ns as i64,
        last_seen_ns: story.last_seen_ns as i64,
        unlinked: story.unlinked,
        size_bytes: story.size_bytes as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of the tables, told by its path.
    fn see(files: &mut Files, path: &PathRecord) {
        files.see_path(path);
        files.number(path_key(path));
    }

    fn path(inode: u64, generation: u32, time_ns: u64, name: &str) -> PathRecord {
        let path = name.to_owned();
        let known = PathRecord { filesystem: 7, mode: 0o100644, links: 1, ..PathRecord::default() };
        PathRecord { inode, generation, time_ns, path, ..known }
    }

    #[test]
    fn a_file_and_its_copy_in_a_snapshot_are_two() {
        let mut files = Files::default();
        let original = PathRecord { subvolume: 256, ..path(257, 9, 100, "/a/f") };
        see(&mut files, &original);
        see(&mut files, &PathRecord { subvolume: 257, path: "/b/f".into(), ..original.clone() });
        see(&mut files, &original);
        let run =
            Run { filesystem: 7, inode: 257, generation: 9, subvolume: 257, ..Run::default() };
        files.see_run(&run, 300);
        let rows = files.rows();
        let paths: Vec<&str> = rows.iter().map(|row| row.path.as_str()).collect();
        assert_eq!(paths, ["/a/f", "/b/f"]);
        assert!(!rows[0].path_history.contains("/b/f"));
        assert_eq!(files.id(run_key(&run)), Some(1));
        let sync =
            Sync { filesystem: 7, inode: 257, generation: 9, subvolume: 256, ..Sync::default() };
        assert_eq!(files.id(sync_key(&sync)), Some(0));
    }

    #[test]
    fn an_inode_number_used_again_is_another_file() {
        let mut files = Files::default();
        see(&mut files, &path(20, 1, 100, "/a.db-journal"));
        see(&mut files, &path(20, 2, 200, "/newfile"));
        let rows = files.rows();
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (rows[0].path.as_str(), rows[0].file_kind.as_str()),
            ("/a.db-journal", "db-journal")
        );
        assert_eq!((rows[1].path.as_str(), rows[1].file_kind.as_str()), ("/newfile", "other"));
        assert_eq!(files.id_by_number(7, 20, 150), Some(0));
        assert_eq!(files.id_by_number(7, 20, 250), Some(1));
        assert_eq!(files.id_by_number(7, 20, 50), Some(0));
        assert_eq!(files.id_by_number(8, 20, 50), None);
    }

    #[test]
    fn a_rename_is_history_and_an_unlinked_file_keeps_its_name() {
        let mut files = Files::default();
        see(&mut files, &path(5, 0, 10, "/old"));
        see(&mut files, &path(5, 0, 20, "/new"));
        see(&mut files, &PathRecord { links: 0, ..path(5, 0, 30, "/new") });
        see(&mut files, &PathRecord { links: 0, ..path(5, 0, 40, "") });
        let row = &files.rows()[0];
        assert_eq!(row.path, "/new");
        assert!(row.unlinked);
        assert_eq!((row.first_seen_ns, row.last_seen_ns), (10, 40));
        let history = r#"[{"path":"/old","from_ns":10},{"path":"/new","from_ns":20}]"#;
        assert_eq!(row.path_history, history);
    }

    #[test]
    fn a_call_that_renames_is_history_too_but_makes_no_file() {
        let mut files = Files::default();
        see(&mut files, &path(5, 0, 10, "/a.dpkg-new"));
        let key = path_key(&path(5, 0, 10, ""));
        files.see_effect(&Effect::Path(key, "/a".into()), 20);
        files.see_effect(&Effect::Path(FileKey { inode: 6, ..key }, "/b".into()), 30);
        let rows = files.rows();
        assert_eq!((rows.len(), rows[0].path.as_str(), rows[0].last_seen_ns), (1, "/a", 20));
        assert!(rows[0].path_history.starts_with(r#"[{"path":"/a.dpkg-new","from_ns":10}"#));
    }

    #[test]
    fn a_file_is_unlinked_with_its_last_name_and_a_directory_with_its_only_one() {
        let mut files = Files::default();
        let directory = PathRecord { mode: 0o040755, links: 7, ..path(6, 0, 10, "/d") };
        for told in [path(5, 0, 10, "/a"), directory] {
            see(&mut files, &told);
        }
        let [file, directory] = [5, 6].map(|inode| path_key(&path(inode, 0, 0, "")));
        let steps = [
            (Effect::Linked(file), [false, false]),
            (Effect::Unlinked(file), [false, false]),
            (Effect::Unlinked(file), [true, false]),
            (Effect::Unlinked(directory), [true, true]),
        ];
        for (effect, unlinked) in steps {
            files.see_effect(&effect, 20);
            let rows = files.rows();
            assert_eq!([rows[0].unlinked, rows[1].unlinked], unlinked, "{effect:?}");
        }
    }

    #[test]
    fn a_file_is_in_no_table_until_its_filesystem_is_seen() {
        let mut files = Files::default();
        files.see_path(&path(5, 0, 10, "/a"));
        let sync = Sync { filesystem: 7, inode: 6, time_ns: 20, ..Sync::default() };
        files.see_sync(&sync, false);
        assert_eq!(files.rows(), []);
        files.see_filesystem(7);
        assert_eq!(files.rows().iter().map(|row| row.inode).collect::<Vec<_>>(), [6]);
    }

    #[test]
    fn the_files_heard_of_last_stay_and_the_others_become_rows() {
        let mut files = Files::default();
        (0..10).for_each(|inode| see(&mut files, &path(inode, 0, inode, "/x")));
        see(&mut files, &path(0, 0, 100, "/again"));
        let gone: Vec<i64> = files.let_go().iter().map(|row| row.inode).collect();
        assert_eq!(gone, [1, 2, 3, 4, 5]);
        assert_eq!(files.count(), 5);
        assert_eq!(files.path(0), "/again");
        see(&mut files, &path(1, 0, 101, "/back"));
        assert_eq!(files.rows().last().map(|row| row.file_id), Some(10));
        assert_eq!(Files::default().let_go(), []);
    }

    #[test]
    fn the_first_and_last_of_many_names_are_kept_and_the_others_counted() {
        let mut files = Files::default();
        (0..1000).for_each(|time| see(&mut files, &path(5, 0, time, &format!("/{time}"))));
        let row = &files.rows()[0];
        let names: serde_json::Value = serde_json::from_str(&row.path_history).unwrap();
        assert_eq!(names.as_array().unwrap().len(), NAMES_LIMIT);
        assert_eq!((&names[0]["path"], row.path.as_str()), (&"/0".into(), "/999"));
        let left_out = 1000 - NAMES_LIMIT;
        assert_eq!((&names[1]["path"], &names[1]["left_out"]), (&"/937".into(), &left_out.into()));
    }

    #[test]
    fn journals_that_are_let_go_tell_of_no_database_any_more() {
        let mut files = Files::default();
        (0..100).for_each(|inode| {
            see(&mut files, &path(inode, 0, inode, &format!("/{inode}-journal")))
        });
        files.let_go();
        assert_eq!((files.count(), files.companions.len()), (50, 50));
    }

    #[test]
    fn a_file_that_the_kernel_forgot_is_counted() {
        let mut files = Files::default();
        let first = |inode, time_ns| PathRecord { first: true, ..path(inode, 0, time_ns, "/a") };
        for told in [first(1, 10), first(2, 20), path(1, 0, 30, "/b"), first(1, 40)] {
            see(&mut files, &told);
        }
        assert_eq!(files.forgotten(), 1);
    }

    #[test]
    fn only_parts_of_the_table_that_changed_are_given() {
        let mut files = Files::default();
        let rows = |files: &mut Files| {
            let parts = files.take_changed();
            parts.into_iter().map(|(part, rows)| (part, rows.len())).collect::<Vec<_>>()
        };
        let whole = PART_ROWS as usize;
        (0..2 * PART_ROWS as u64 + 1)
            .for_each(|inode| see(&mut files, &path(inode, 0, inode, "/x")));
        assert_eq!(rows(&mut files), [(0, whole), (1, whole), (2, 1)]);
        assert_eq!(rows(&mut files), []);
        files.see_effect(&Effect::Path(path_key(&path(5000, 0, 0, "")), "/y".into()), 10);
        assert_eq!(rows(&mut files), [(1, whole)]);
        // A journal tells the kind of a file in any part.
        see(&mut files, &path(9, 1, 20_000, "/y-journal"));
        assert_eq!(rows(&mut files), [(0, whole), (1, whole), (2, 2)]);
        // Those that are let go are in no part any more.
        assert_eq!(files.let_go().len(), whole + 1);
        assert_eq!(rows(&mut files), [(0, 0), (1, whole - 1)]);
    }
}
