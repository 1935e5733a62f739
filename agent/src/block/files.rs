//! Life stories of files. Reads path, run and sync records in order; produces one row per
//! (s_dev, inode, generation), because ext4 and F2FS use an inode number again at once, with every
//! path it had.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::file_kind;
use super::kernel::{MODE_DIRECTORY, MODE_TYPE};
use super::record::{Change, Path, Run, Sync};
use crate::device::number;
use crate::trace::rows;

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

/// All files seen, numbered in order of first sight.
#[derive(Debug, Default)]
pub struct Files {
    numbers: BTreeMap<Key, usize>,
    stories: Vec<(Key, Story)>,
}

impl Files {
    /// The kernel told the file's name, links and size.
    pub fn see_path(&mut self, path: &Path) {
        let story = self.story(path_key(path), path.time_ns);
        story.directory = path.mode & MODE_TYPE == MODE_DIRECTORY;
        story.unlinked = path.links == 0;
        story.size_bytes = path.size_bytes;
        let known = story.paths.last().map(|named| named.path.as_str());
        if !path.path.is_empty() && known != Some(&path.path) {
            story.paths.push(Named { path: path.path.clone(), from_ns: path.time_ns });
        }
    }

    /// A page run whose inode is a file's or a directory's.
    pub fn see_run(&mut self, run: &Run, time_ns: u64) {
        let story = self.story(run_key(run), time_ns);
        story.directory = run.mode & MODE_TYPE == MODE_DIRECTORY;
        story.unlinked = run.links == 0;
        story.size_bytes = run.size_bytes;
    }

    /// A sync call named the file.
    pub fn see_sync(&mut self, sync: &Sync) {
        self.story(sync_key(sync), sync.time_ns);
    }

    /// A file was changed.
    pub fn see_change(&mut self, change: &Change) {
        self.story(change_key(change), change.time_ns);
    }

    /// The last known path of a file; empty where none was told.
    pub fn path(&self, key: Key) -> &str {
        self.numbers.get(&key).map_or("", |&number| last_path(&self.stories[number].1))
    }

    /// The file's number, as file_id in the tables; None for one that was never seen.
    pub fn id(&self, key: Key) -> Option<i64> {
        self.numbers.get(&key).map(|&number| number as i64)
    }

    /// The file that had an inode number at some time, where the generation is not known: the
    /// latest that was seen by then, or else the first one seen later.
    pub fn id_by_number(&self, filesystem: u32, inode: u64, time_ns: u64) -> Option<i64> {
        let first = Key { filesystem, inode, generation: 0 };
        let last = Key { filesystem, inode, generation: u32::MAX };
        let lives = self.numbers.range(first..=last).map(|(_, &number)| number);
        let seen = |number: &usize| self.stories[*number].1.first_seen_ns;
        let (before, after): (Vec<_>, Vec<_>) = lives.partition(|life| seen(life) <= time_ns);
        let life = before.into_iter().max_by_key(seen).or(after.into_iter().min_by_key(seen));
        life.map(|number| number as i64)
    }

    /// The kind of every file, by number.
    pub fn kinds(&self) -> Vec<&'static str> {
        let paths: BTreeSet<String> = self
            .stories
            .iter()
            .flat_map(|(_, story)| story.paths.iter().map(|named| named.path.clone()))
            .collect();
        let kind = |story: &Story| match story.directory {
            true => file_kind::DIRECTORY,
            false => file_kind::file_kind(last_path(story), &paths),
        };
        self.stories.iter().map(|(_, story)| kind(story)).collect()
    }

    /// The rows of the table files, in order of their numbers.
    pub fn rows(&self) -> Vec<rows::File> {
        let kinds = self.kinds();
        let stories = self.stories.iter().zip(kinds).enumerate();
        stories.map(|(number, ((key, story), kind))| row(number, key, story, kind)).collect()
    }

    fn story(&mut self, key: Key, time_ns: u64) -> &mut Story {
        let number = *self.numbers.entry(key).or_insert_with(|| {
            self.stories.push((key, Story { first_seen_ns: time_ns, ..Story::default() }));
            self.stories.len() - 1
        });
        let story = &mut self.stories[number].1;
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

/// The key of the file that a change is about.
pub fn change_key(change: &Change) -> Key {
    Key { filesystem: change.filesystem, inode: change.inode, generation: change.generation }
}

fn last_path(story: &Story) -> &str {
    story.paths.last().map_or("", |named| &named.path)
}

fn row(number: usize, key: &Key, story: &Story, kind: &str) -> rows::File {
    rows::File {
        file_id: number as i64,
        device: number::text(key.filesystem),
        inode: key.inode as i64,
        generation: i64::from(key.generation),
        path: last_path(story).to_owned(),
        path_history: serde_json::to_string(&story.paths).expect("strings and numbers are JSON"),
        file_kind: kind.to_owned(),
        first_seen_ns: story.first_seen_ns as i64,
        last_seen_ns: story.last_seen_ns as i64,
        unlinked: story.unlinked,
        size_bytes: story.size_bytes as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(inode: u64, generation: u32, time_ns: u64, name: &str) -> Path {
        let path = name.to_owned();
        let known = Path { filesystem: 7, mode: 0o100644, links: 1, ..Path::default() };
        Path { inode, generation, time_ns, path, ..known }
    }

    #[test]
    fn an_inode_number_used_again_is_another_file() {
        let mut files = Files::default();
        files.see_path(&path(20, 1, 100, "/a.db-journal"));
        files.see_path(&path(20, 2, 200, "/newfile"));
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
        files.see_path(&path(5, 0, 10, "/old"));
        files.see_path(&path(5, 0, 20, "/new"));
        files.see_path(&Path { links: 0, ..path(5, 0, 30, "/new") });
        files.see_path(&Path { links: 0, ..path(5, 0, 40, "") });
        let row = &files.rows()[0];
        assert_eq!(row.path, "/new");
        assert!(row.unlinked);
        assert_eq!((row.first_seen_ns, row.last_seen_ns), (10, 40));
        let history = r#"[{"path":"/old","from_ns":10},{"path":"/new","from_ns":20}]"#;
        assert_eq!(row.path_history, history);
    }
}
