//! What commits carry, tested with hand-made changes.

use super::*;

const EXT4: u32 = 7;

fn file(inode: u64) -> Changed {
    Changed::File(FileKey { filesystem: EXT4, inode, generation: 0, subvolume: 0 })
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
    changes.add(EXT4, &Changed::Named("x".into()), UNLINKED, 10);
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
    assert_eq!(changes.dropped(), more);
    let mut reason = |time_ns| {
        let reason = changes.reason(EXT4, Scope::All, Some(time_ns), time_ns, true);
        text(&reason)
    };
    let all = reason(20);
    let others = CHANGES_LIMIT - FILES_NAMED;
    assert!(all.ends_with(&format!("{others} more files; {more} more changes")), "{all}");
    assert_eq!(reason(30), "unknown");
}
