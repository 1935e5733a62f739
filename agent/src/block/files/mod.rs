//! Life stories of files. Reads path, run and sync records in order; produces one row per
//! (s_dev, inode, generation), because ext4 and F2FS use an inode number again at once, with every
//! path it had.
//!
//! A file gets its number when block I/O or a sync call on a traced filesystem is about it. The
//! files that were not heard of for longest can be let go, so that the memory has a bound; one that
//! comes back after that is a new row.

pub mod file_kind;
mod glob;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde::Serialize;

use crate::block::records::kernel::{MODE_DIRECTORY, MODE_TYPE};
use crate::block::records::{Path, Run, Sync};
use crate::device::number;
use crate::trace::rows;
use file_kind::FileKinds;

/// What tells one file from every other that was ever on a mounted filesystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// s_dev of the filesystem.
    pub filesystem: u32,
    pub inode: u64,
    pub generation: u32,
}

#[derive(Debug, Default)]
struct Story {
    /// file_id of the tables; none yet for a file that is only heard of.
    number: Option<i64>,
    /// A sync call named it.
    synced: bool,
    paths: Vec<Named>,
    directory: bool,
    unlinked: bool,
    first_seen_ns: u64,
    last_seen_ns: u64,
    size_bytes: u64,
}

#[derive(Debug, Serialize)]
struct Named {
    path: String,
    from_ns: u64,
}

/// All files heard of; those of the tables are numbered in order of first sight.
#[derive(Debug, Default)]
pub struct Files {
    stories: BTreeMap<Key, Story>,
    /// Keys by number, of those that were not let go.
    keys: BTreeMap<i64, Key>,
    next_number: i64,
    /// Every path seen of a rollback journal or a WAL, which tells that another is a database.
    companions: BTreeSet<String>,
    kinds: Rc<FileKinds>,
}

impl Files {
    /// No file yet; their kinds will be told by `kinds`.
    pub fn with_kinds(kinds: Rc<FileKinds>) -> Self {
        Files { kinds, ..Self::default() }
    }

    /// The kernel told the file's name, links and size.
    pub fn see_path(&mut self, path: &Path) {
        let story = self.story(path_key(path), path.time_ns);
        story.directory = path.mode & MODE_TYPE == MODE_DIRECTORY;
        story.unlinked = path.links == 0;
        story.size_bytes = path.size_bytes;
        self.see_name(path_key(path), &path.path, path.time_ns);
    }

    /// A call gave the file, if it was heard of, this path.
    pub fn see_rename(&mut self, key: Key, path: &str, time_ns: u64) {
        if let Some(story) = self.stories.get_mut(&key) {
            story.last_seen_ns = story.last_seen_ns.max(time_ns);
            self.see_name(key, path, time_ns);
        }
    }

    fn see_name(&mut self, key: Key, path: &str, from_ns: u64) {
        let Some(story) = self.stories.get_mut(&key) else { return };
        let known = story.paths.last().map(|named| named.path.as_str());
        if !path.is_empty() && known != Some(path) {
            story.paths.push(Named { path: path.to_owned(), from_ns });
            if self.kinds.is_companion(path) {
                self.companions.insert(path.to_owned());
            }
        }
    }

    /// A page run whose inode is a file's or a directory's: it is one of the tables.
    pub fn see_run(&mut self, run: &Run, time_ns: u64) {
        let story = self.story(run_key(run), time_ns);
        story.directory = run.mode & MODE_TYPE == MODE_DIRECTORY;
        story.unlinked = run.links == 0;
        story.size_bytes = run.size_bytes;
        self.number(run_key(run));
    }

    /// A sync call named the file: it is one of the tables if its filesystem is traced.
    pub fn see_sync(&mut self, sync: &Sync, traced: bool) {
        self.story(sync_key(sync), sync.time_ns).synced = true;
        if traced {
            self.number(sync_key(sync));
        }
    }

    /// A filesystem turned out to be on a traced disk: so are the files synced on it.
    pub fn see_filesystem(&mut self, filesystem: u32) {
        let first = Key { filesystem, inode: 0, generation: 0 };
        let last = Key { filesystem, inode: u64::MAX, generation: u32::MAX };
        let synced = self.stories.range(first..=last).filter(|(_, story)| story.synced);
        let keys: Vec<Key> = synced.map(|(key, _)| *key).collect();
        keys.into_iter().for_each(|key| self.number(key));
    }

    /// The file's number, as file_id in the tables; None for one that is in none.
    pub fn id(&self, key: Key) -> Option<i64> {
        self.stories.get(&key)?.number
    }

    /// The file that had an inode number at some time, where the generation is not known: the
    /// latest that was seen by then, or else the first one seen later.
    pub fn id_by_number(&self, filesystem: u32, inode: u64, time_ns: u64) -> Option<i64> {
        let first = Key { filesystem, inode, generation: 0 };
        let last = Key { filesystem, inode, generation: u32::MAX };
        let lives = self.stories.range(first..=last).map(|(_, story)| story);
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

    /// The path of any file heard of, as last known.
    pub fn path_of(&self, key: Key) -> &str {
        self.stories.get(&key).map_or("", last_path)
    }

    /// Files that are kept, in the tables or not.
    pub fn kept(&self) -> usize {
        self.stories.len()
    }

    /// The rows of the table files, in order of their numbers.
    pub fn rows(&self) -> Vec<rows::File> {
        let row = |(number, key)| row(number, key, &self.stories[key], self);
        self.keys.iter().map(row).collect()
    }

    /// Forgets the half that was not heard of for longest; gives the rows of those in the tables.
    pub fn let_go(&mut self) -> Vec<rows::File> {
        let mut times: Vec<u64> = self.stories.values().map(|story| story.last_seen_ns).collect();
        let middle = times.len() / 2;
        if times.is_empty() {
            return Vec::new();
        }
        let limit_ns = *times.select_nth_unstable(middle).1;
        let old = |story: &Story| story.last_seen_ns < limit_ns;
        let gone: Vec<Key> =
            self.stories.iter().filter(|(_, story)| old(story)).map(|(key, _)| *key).collect();
        let mut rows = Vec::new();
        for key in gone {
            if let Some(number) = self.stories[&key].number {
                rows.push(row(&number, &key, &self.stories[&key], self));
                self.keys.remove(&number);
            }
            self.stories.remove(&key);
        }
        rows.sort_by_key(|row| row.file_id);
        let named = |path: &String| self.stories.values().any(|story| last_path(story) == path);
        if self.companions.len() > self.stories.len() {
            self.companions = self.companions.iter().filter(|path| named(path)).cloned().collect();
        }
        rows
    }

    fn kind_of(&self, story: &Story) -> &'static str {
        match story.directory {
            true => file_kind::DIRECTORY,
            false => self.kinds.of(last_path(story), &self.companions),
        }
    }

    fn number(&mut self, key: Key) {
        let Some(story) = self.stories.get_mut(&key) else { return };
        if story.number.is_none() {
            story.number = Some(self.next_number);
            self.keys.insert(self.next_number, key);
            self.next_number += 1;
        }
    }

    fn story(&mut self, key: Key, time_ns: u64) -> &mut Story {
        let fresh = || Story { first_seen_ns: time_ns, ..Story::default() };
        let story = self.stories.entry(key).or_insert_with(fresh);
        story.last_seen_ns = story.last_seen_ns.max(time_ns);
        story
    }
}

/// The key of the file that a path record names.
pub fn path_key(path: &Path) -> Key {
    Key { filesystem: path.filesystem, inode: path.inode, generation: path.generation }
}

/// The key of the file whose pages a run holds.
pub fn run_key(run: &Run) -> Key {
    Key { filesystem: run.filesystem, inode: run.inode, generation: run.generation }
}

/// The key of the file that a sync call is about.
pub fn sync_key(sync: &Sync) -> Key {
    Key { filesystem: sync.filesystem, inode: sync.inode, generation: sync.generation }
}

fn last_path(story: &Story) -> &str {
    story.paths.last().map_or("", |named| &named.path)
}

fn row(number: &i64, key: &Key, story: &Story, files: &Files) -> rows::File {
    rows::File {
        file_id: *number,
        device: number::text(key.filesystem),
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
    fn see(files: &mut Files, path: &Path) {
        files.see_path(path);
        files.number(path_key(path));
    }

    fn path(inode: u64, generation: u32, time_ns: u64, name: &str) -> Path {
        let path = name.to_owned();
        let known = Path { filesystem: 7, mode: 0o100644, links: 1, ..Path::default() };
        Path { inode, generation, time_ns, path, ..known }
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
        see(&mut files, &Path { links: 0, ..path(5, 0, 30, "/new") });
        see(&mut files, &Path { links: 0, ..path(5, 0, 40, "") });
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
        files.see_rename(key, "/a", 20);
        files.see_rename(Key { inode: 6, ..key }, "/b", 30);
        let rows = files.rows();
        assert_eq!((rows.len(), rows[0].path.as_str(), rows[0].last_seen_ns), (1, "/a", 20));
        assert!(rows[0].path_history.starts_with(r#"[{"path":"/a.dpkg-new","from_ns":10}"#));
    }

    #[test]
    fn what_is_only_heard_of_is_in_no_table_until_its_filesystem_is() {
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
        assert_eq!(files.kept(), 5);
        assert_eq!(files.path(0), "/again");
        see(&mut files, &path(1, 0, 101, "/back"));
        assert_eq!(files.rows().last().map(|row| row.file_id), Some(10));
        assert_eq!(Files::default().let_go(), []);
    }
}
