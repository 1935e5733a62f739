//! Finds the changes that a filesystem's commit carries. Reads file changes as the kernel reports
//! them, keeps those that no commit has carried yet, and finds, for a bio of a filesystem's journal
//! or metadata, the changes that made it necessary.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::tracer::files::FileKey;

/// enum change of kernel/block/event.h, and behind it what calls on names do.
pub const CREATED: u32 = 1;
pub const SHRANK: u32 = 4;
const LINKS: u32 = 16;
const TIMES: u32 = 64;
pub const UNLINKED: u32 = 1 << 8;
pub const RENAMED: u32 = 1 << 9;
pub const LINKED: u32 = 1 << 10;
pub const REPLACED: u32 = 1 << 11;

/// The words for them, in the order of their bits (schema/requests.toml, reason).
const WORDS: [(u32, &str); 11] = [
    (CREATED, "created"),
    (2, "grew"),
    (SHRANK, "shrank"),
    (8, "allocated"),
    (LINKS, "links"),
    (32, "mode"),
    (TIMES, "times"),
    (UNLINKED, "unlinked"),
    (RENAMED, "renamed"),
    (LINKED, "linked"),
    (REPLACED, "replaced"),
];

/// More changed files than these are only counted.
const FILES_NAMED: usize = 8;

/// Changes that are kept of a filesystem until a commit takes them. One without a journal has none
/// that would.
const CHANGES_LIMIT: usize = 16_384;

/// The subject of a change: a file, or of one that was never seen its last name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangedSubject {
    File(FileKey),
    Named(String),
}

impl ChangedSubject {
    fn place(&self, bit: u32) -> Place {
        let inode = if let Self::File(key) = self { key.inode } else { u64::MAX };
        (inode, self.clone(), bit)
    }
}

/// The reason why a commit was needed: the changes that it carries. Empty: it is not known.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reason {
    /// Bits of the changes, by file.
    files: BTreeMap<ChangedSubject, u32>,
    /// Files beyond those.
    others: usize,
    /// Changes that were not kept.
    dropped: u64,
}

impl Reason {
    /// One more file, or more changes of one that is named; whether it is named.
    fn add(&mut self, changed: &ChangedSubject, bits: u32) -> bool {
        if let Some(known) = self.files.get_mut(changed) {
            *known |= bits;
        } else if self.files.len() < FILES_NAMED {
            self.files.insert(changed.clone(), bits);
        } else {
            return false;
        }
        true
    }

    /// Return what the bios of one request carry together; None if none of them carries anything.
    pub fn text_of_all<'a>(
        reasons: &[Rc<Reason>],
        name: impl Fn(FileKey) -> &'a str,
    ) -> Option<String> {
        let (first, rest) = reasons.split_first()?;
        if rest.iter().all(|reason| reason == first) {
            return Some(first.text(name));
        }
        let mut all = Reason::default();
        let mut unnamed = BTreeSet::new();
        for reason in reasons {
            unnamed.extend(reason.files.iter().filter_map(|(changed, bits)| {
                let is_named = all.add(changed, *bits);
                (!is_named).then_some(changed)
            }));
            all.others = all.others.max(reason.others);
            all.dropped = all.dropped.max(reason.dropped);
        }
        all.others += unnamed.len();
        Some(all.text(name))
    }

    /// As the tables have it: "a.db-journal: created, grew; a.db: times". `name` gives the path
    /// of a file.
    pub fn text<'a>(&self, name: impl Fn(FileKey) -> &'a str) -> String {
        let one = |(changed, bits): (&ChangedSubject, &u32)| {
            let path = match changed {
                ChangedSubject::File(key) => name(*key),
                ChangedSubject::Named(name) => name,
            };
            let last = path.rsplit('/').find(|part| !part.is_empty());
            let last = last.unwrap_or(if path.is_empty() { "a file" } else { "/" });
            format!("{last}: {}", words(*bits))
        };
        // Sorted by name: inode numbers, by which they are kept, differ from commit to commit.
        let mut parts: Vec<String> = self.files.iter().map(one).collect();
        parts.sort();
        if self.others > 0 {
            parts.push(format!("{} more files", self.others));
        }
        if self.dropped > 0 {
            parts.push(format!("{} more changes", self.dropped));
        }
        match parts.is_empty() {
            true => "unknown".to_owned(),
            false => parts.join("; "),
        }
    }
}

/// Return the words for changes. What goes without saying is not said: a file that is made or
/// unlinked changes its links, and whatever is done to it its times.
fn words(bits: u32) -> String {
    let makes = CREATED | UNLINKED | LINKED | REPLACED;
    let implied = if bits & makes != 0 { LINKS } else { 0 };
    let implied = if bits & !(TIMES | LINKS) != 0 { implied | TIMES } else { implied };
    let words = WORDS.iter().filter(|(bit, _)| bits & !implied & bit != 0);
    words.map(|(_, word)| *word).collect::<Vec<_>>().join(", ")
}

/// The changes that a bio may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// All of the filesystem's.
    All,
    /// Those of the file with this inode number.
    Inode(u64),
}

impl Scope {
    fn holds(self, changed: &ChangedSubject) -> bool {
        match (self, changed) {
            (Self::All, _) => true,
            (Self::Inode(inode), ChangedSubject::File(key)) => key.inode == inode,
            (Self::Inode(_), ChangedSubject::Named(_)) => false,
        }
    }
}

/// The bios of one commit: those for one call, or those for which no call waits.
#[derive(Debug)]
struct Group {
    opened_ns: u64,
    latest_ns: u64,
    /// The reasons of its bios, by what they may carry: looked for once, as jbd2 sends a bio for
    /// each block of a commit, and there may be as many changes. None: it must be looked for anew.
    reasons: BTreeMap<Scope, Option<Rc<Reason>>>,
}

/// A change's place among those of its filesystem: the inode's number first, so that those of one
/// file lie together. Of a file that was never seen it is the greatest number.
type Place = (u64, ChangedSubject, u32);

/// One filesystem's changes that no finished commit has taken.
#[derive(Debug, Default)]
struct Pending {
    /// The time when each change was first reported, by file and bit.
    changes: BTreeMap<Place, u64>,
    /// The number of those that came when there was no room for more, and the time of the last.
    dropped: u64,
    dropped_ns: u64,
    newest_ns: u64,
    /// The commits under way, by the number of the call that each is for.
    groups: BTreeMap<Option<u64>, Group>,
    /// The changes that the last finished commit carried for which no call waited.
    last: Rc<Reason>,
}

/// The changes of all filesystems, by s_dev.
#[derive(Debug, Default)]
pub struct Changes {
    filesystems: BTreeMap<u32, Pending>,
    dropped: u64,
}

impl Changes {
    /// A file of a filesystem was changed.
    pub fn add(&mut self, filesystem: u32, changed: &ChangedSubject, bits: u32, time_ns: u64) {
        let pending = self.filesystems.entry(filesystem).or_default();
        pending.newest_ns = time_ns;
        // One that is told late may be in what a commit carries.
        let open = pending.groups.values_mut().filter(|group| time_ns <= group.opened_ns);
        open.flat_map(|group| group.reasons.values_mut()).for_each(|reason| *reason = None);
        for bit in (0..32).map(|place| 1 << place).filter(|bit| bits & bit != 0) {
            let is_full = pending.changes.len() >= CHANGES_LIMIT;
            match pending.changes.entry(changed.place(bit)) {
                Entry::Vacant(_) if is_full => {
                    pending.dropped += 1;
                    pending.dropped_ns = time_ns;
                    self.dropped += 1;
                }
                entry => _ = entry.or_insert(time_ns),
            }
        }
    }

    /// Changes that came when too many waited for a commit: the reasons of commits since then give
    /// their number, not their files.
    pub fn dropped_changes(&self) -> u64 {
        self.dropped
    }

    /// Return why a bio of the filesystem's journal or metadata is written, for the call of that
    /// number. `is_last`: it ends the commit (the commit block of jbd2).
    pub fn reason(
        &mut self,
        filesystem: u32,
        scope: Scope,
        call: Option<u64>,
        time_ns: u64,
        is_last: bool,
    ) -> Rc<Reason> {
        let pending = self.filesystems.entry(filesystem).or_default();
        // A commit that no call waits for has no visible end: it ends at the next change.
        let stale = |group: &Group| call.is_none() && pending.newest_ns > group.latest_ns;
        if pending.groups.get(&call).is_some_and(stale) {
            pending.close(call);
        }
        let fresh = || Group { opened_ns: time_ns, latest_ns: 0, reasons: BTreeMap::new() };
        let group = pending.groups.entry(call).or_insert_with(fresh);
        group.latest_ns = time_ns;
        let opened_ns = group.opened_ns;
        let mut reason = match group.reasons.get(&scope) {
            Some(Some(known)) => known.clone(),
            _ => {
                let reason = Rc::new(pending.select(scope, opened_ns));
                let group = pending.groups.get_mut(&call).expect("it is open");
                group.reasons.insert(scope, Some(reason.clone()));
                reason
            }
        };
        if call.is_none() && reason.files.is_empty() {
            // A second write of the same log, after a sync took the newer changes.
            reason = pending.last.clone();
        }
        if is_last {
            pending.close(call);
        }
        reason
    }

    /// The call of that number is over, and with it the commit that was for it.
    pub fn end_call(&mut self, call: u64) {
        self.filesystems.values_mut().for_each(|pending| pending.close(Some(call)));
    }
}

impl Pending {
    /// Those that a scope holds, each with its time.
    fn in_scope(&self, scope: Scope) -> impl Iterator<Item = (&Place, &u64)> {
        let (first, last) = match scope {
            Scope::All => (0, u64::MAX),
            Scope::Inode(inode) => (inode, inode),
        };
        // Before all of its inode.
        let begin = (first, ChangedSubject::File(FileKey::default()), 0);
        self.changes.range(begin..).take_while(move |((inode, _, _), _)| *inode <= last)
    }

    fn select(&self, scope: Scope, until_ns: u64) -> Reason {
        let mut reason = Reason::default();
        let mut unnamed = None;
        for ((_, changed, bit), time_ns) in self.in_scope(scope) {
            let is_in = *time_ns <= until_ns && scope.holds(changed);
            // Changes of one file lie together.
            if is_in && !reason.add(changed, *bit) && unnamed != Some(changed) {
                unnamed = Some(changed);
                reason.others += 1;
            }
        }
        if scope == Scope::All {
            reason.dropped = self.dropped;
        }
        reason
    }

    /// A commit is finished: what it carried is not pending any more.
    fn close(&mut self, call: Option<u64>) {
        let Some(group) = self.groups.remove(&call) else { return };
        let has_all = group.reasons.contains_key(&Scope::All);
        if call.is_none() {
            let reason = group.reasons.get(&Scope::All).cloned().flatten();
            let select = || Rc::new(self.select(Scope::All, group.opened_ns));
            self.last = reason.unwrap_or_else(select);
        }
        let is_old = |time_ns: &u64| *time_ns <= group.opened_ns;
        if has_all {
            self.changes.retain(|_, time_ns| !is_old(time_ns));
        }
        for scope in group.reasons.keys().filter(|_| !has_all) {
            let held = self.in_scope(*scope).filter(|((_, changed, _), _)| scope.holds(changed));
            let old = held.filter(|(_, time_ns)| is_old(time_ns));
            let taken: Vec<Place> = old.map(|(place, _)| place.clone()).collect();
            for place in &taken {
                self.changes.remove(place);
            }
        }
        if has_all && self.dropped_ns <= group.opened_ns {
            self.dropped = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    //! Tests of what commits carry, with hand-made changes.

    use super::*;

    const EXT4: u32 = 7;

    fn file(inode: u64) -> ChangedSubject {
        ChangedSubject::File(FileKey { filesystem: EXT4, inode, generation: 0, subvolume: 0 })
    }

    fn text(reason: &Reason) -> String {
        let names = ["/", "/a.db", "/dir/a.db-journal"];
        reason.text(|key| names.get(key.inode as usize).copied().unwrap_or_default())
    }

    #[test]
    fn a_commit_carries_what_came_before_it_and_takes_it_away() {
        let mut changes = Changes::default();
        changes.add(EXT4, &file(2), CREATED | 2 | LINKS, 10);
        changes.add(EXT4, &file(1), 64, 20);
        let reason = |changes: &mut Changes, call, time_ns, is_last| {
            text(&changes.reason(EXT4, Scope::All, Some(call), time_ns, is_last))
        };
        let both = "a.db-journal: created, grew; a.db: times";
        assert_eq!(reason(&mut changes, 1, 30, false), both);
        // What comes while the commit is being written is the next one's.
        changes.add(EXT4, &file(2), 4, 35);
        assert_eq!(reason(&mut changes, 1, 40, true), both);
        assert_eq!(reason(&mut changes, 2, 50, true), "a.db-journal: shrank");
        assert_eq!(reason(&mut changes, 3, 60, true), "unknown");
    }

    #[test]
    fn a_commit_for_a_call_ends_with_it_and_another_call_sees_the_same_until_then() {
        let mut changes = Changes::default();
        changes.add(EXT4, &file(1), 2, 10);
        for call in [1, 2, 1] {
            let reason = changes.reason(EXT4, Scope::Inode(1), Some(call), 20, false);
            assert_eq!(text(&reason), "a.db: grew");
        }
        changes.end_call(1);
        let after = changes.reason(EXT4, Scope::Inode(1), Some(3), 30, false);
        assert_eq!(text(&after), "unknown");
    }

    #[test]
    fn one_file_s_node_takes_that_file_s_changes_only() {
        let mut changes = Changes::default();
        changes.add(EXT4, &file(1), 2, 10);
        changes.add(EXT4, &file(2), 2, 10);
        changes.add(EXT4, &ChangedSubject::Named("x".into()), UNLINKED, 10);
        changes.reason(EXT4, Scope::Inode(1), Some(1), 20, true);
        let rest = changes.reason(EXT4, Scope::All, Some(2), 30, true);
        assert_eq!(text(&rest), "a.db-journal: grew; x: unlinked");
    }

    #[test]
    fn a_log_written_for_nobody_goes_on_until_something_is_new() {
        let mut changes = Changes::default();
        let log = |changes: &mut Changes, time_ns| {
            text(&changes.reason(EXT4, Scope::All, None, time_ns, false))
        };
        changes.add(EXT4, &file(1), 2, 10);
        assert_eq!(log(&mut changes, 20), "a.db: grew");
        assert_eq!(log(&mut changes, 30), "a.db: grew");
        changes.add(EXT4, &file(2), 4, 40);
        assert_eq!(log(&mut changes, 50), "a.db-journal: shrank");
    }

    #[test]
    fn many_files_are_counted() {
        let mut changes = Changes::default();
        (0..12).for_each(|inode| changes.add(EXT4, &file(inode), 64, 10));
        let all = changes.reason(EXT4, Scope::All, None, 20, false);
        assert!(text(&all).starts_with("/: times; a file: times; "), "{}", text(&all));
        assert!(text(&all).ends_with("a.db-journal: times; a.db: times; 4 more files"));
    }

    #[test]
    fn a_file_of_many_changes_that_is_not_named_is_one() {
        let mut changes = Changes::default();
        (0..12).for_each(|inode| changes.add(EXT4, &file(inode), CREATED | 2 | LINKS | TIMES, 10));
        let all = changes.reason(EXT4, Scope::All, None, 20, false);
        assert!(text(&all).ends_with("; 4 more files"), "{}", text(&all));
        // So it is where the bios of one request carry different files.
        let of_inode = |inode| changes.filesystems[&EXT4].select(Scope::Inode(inode), 20);
        let reasons: Vec<Rc<Reason>> = (0..12).map(|inode| Rc::new(of_inode(inode))).collect();
        let text = Reason::text_of_all(&reasons, |_| "/a").unwrap();
        assert!(text.ends_with("; 4 more files"), "{text}");
    }

    /// jbd2 sends a bio for each block of a commit, F2FS one for each inode.
    #[test]
    fn many_blocks_of_one_commit_and_many_commits_of_one_file_each_look_at_each_change_once() {
        let mut changes = Changes::default();
        (0..CHANGES_LIMIT as u64).for_each(|inode| changes.add(EXT4, &file(inode), 64, 10));
        let first = changes.reason(EXT4, Scope::All, Some(1), 20, false);
        for _ in 0..4096 {
            assert!(Rc::ptr_eq(&first, &changes.reason(EXT4, Scope::All, Some(1), 30, false)));
        }
        for inode in 0..CHANGES_LIMIT as u64 {
            let scope = Scope::Inode(inode);
            assert_eq!(changes.filesystems[&EXT4].in_scope(scope).count(), 1);
            changes.reason(EXT4, scope, Some(2 + inode), 40, true);
        }
        assert!(changes.filesystems[&EXT4].changes.is_empty());
        // The first commit still carries what it did.
        assert!(Rc::ptr_eq(&first, &changes.reason(EXT4, Scope::All, Some(1), 50, true)));
    }

    #[test]
    fn a_change_that_is_told_late_is_in_the_commit_that_carries_it() {
        let mut changes = Changes::default();
        let reason = |changes: &mut Changes, time_ns| {
            text(&changes.reason(EXT4, Scope::All, Some(1), time_ns, false))
        };
        changes.add(EXT4, &file(1), 2, 10);
        assert_eq!(reason(&mut changes, 20), "a.db: grew");
        changes.add(EXT4, &file(2), 2, 15);
        assert_eq!(reason(&mut changes, 30), "a.db-journal: grew; a.db: grew");
        changes.end_call(1);
        assert!(changes.filesystems[&EXT4].changes.is_empty());
    }

    #[test]
    fn the_memory_has_a_bound_and_what_does_not_fit_is_counted_once() {
        let mut changes = Changes::default();
        let more = 1000;
        (0..CHANGES_LIMIT as u64 + more).for_each(|inode| changes.add(EXT4, &file(inode), 64, 10));
        // One that is waiting already needs no more room.
        changes.add(EXT4, &file(1), 64, 11);
        assert_eq!(changes.filesystems[&EXT4].changes.len(), CHANGES_LIMIT);
        assert_eq!(changes.dropped_changes(), more);
        let mut reason = |time_ns| {
            let reason = changes.reason(EXT4, Scope::All, Some(time_ns), time_ns, true);
            text(&reason)
        };
        let all = reason(20);
        let others = CHANGES_LIMIT - FILES_NAMED;
        assert!(all.ends_with(&format!("{others} more files; {more} more changes")), "{all}");
        assert_eq!(reason(30), "unknown");
    }
}
