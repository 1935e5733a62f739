//! Names that calls were given, matched with paths that the kernel reported.

use std::collections::BTreeSet;

use super::*;
use crate::device::mounts::parse;
use crate::tracer::records::kernel::MODE_REGULAR;
use crate::tracer::surroundings::{LinkTarget, Surroundings};

const FLASH: u32 = 259 << 20;
const OTHER: u32 = 259 << 20 | 1;
const OWN: Root = Root { namespace: 5, mount: 21, inode: 2, of_mount: true };

fn names() -> NameLookup {
    // "link" leads to "dir", wherever it is.
    let follow = |folder: &str| LinkTarget::To(folder.replace("link", "dir"));
    names_on(Surroundings { follow, ..Surroundings::nothing() })
}

fn names_on(machine: Surroundings) -> NameLookup {
    let read_mounts = || {
        parse(
            "21 1 0:20 / / rw - rootfs none rw
35 21 259:0 / /mnt/flash rw,noatime shared:1 - ext4 /dev/flash0 rw
36 21 259:1 /sub /mnt/with\\040space rw - btrfs /dev/flash1 rw
37 35 0:41 / /mnt/flash/over rw - tmpfs none rw",
        )
    };
    let surroundings = Surroundings { read_mounts, ..machine };
    let mut names = NameLookup::new(Mounts::new(surroundings, BTreeSet::from([FLASH, OTHER])), OWN);
    for (inode, path) in [(12, "/main.db-journal"), (14, "/dir/x")] {
        names.see_path(&PathRecord { mode: MODE_REGULAR, ..directory(inode, path) });
    }
    [(2, "/"), (13, "/dir")]
        .iter()
        .for_each(|(inode, path)| names.see_path(&directory(*inode, path)));
    names
}

fn directory(inode: u64, path: &str) -> PathRecord {
    let (mode, path) = (MODE_DIRECTORY, path.into());
    PathRecord { filesystem: FLASH, inode, mode, path, ..PathRecord::default() }
}

/// A name relative to a directory of the flash, or an absolute one; of a caller like this process.
fn passed_name(directory: u64, name: &str) -> Name {
    let filesystem = if directory > 0 { FLASH } else { 20 };
    Name { inode: directory, filesystem, name: name.into(), root: OWN, ..Name::default() }
}

fn place(names: &mut NameLookup, name: &Name) -> Option<FilesystemPath> {
    names.place(name, |_| false)
}

fn changed_file(names: &mut NameLookup, name: &Name) -> Option<(u32, ChangedSubject)> {
    let place = place(names, name)?;
    Some((place.0, names.find(&place)))
}

fn find(directory: u64, name: &str) -> Option<(u32, ChangedSubject)> {
    changed_file(&mut names(), &passed_name(directory, name))
}

fn key(inode: u64) -> FileKey {
    FileKey { filesystem: FLASH, inode, generation: 0, subvolume: 0 }
}

fn file(inode: u64) -> Option<(u32, ChangedSubject)> {
    Some((FLASH, ChangedSubject::File(key(inode))))
}

#[test]
fn an_absolute_path_is_found_by_its_mount() {
    assert_eq!(find(0, "/mnt/flash/main.db-journal"), file(12));
    assert_eq!(find(0, "/mnt/flash//dir/./y/../x"), file(14));
    let below = Some((OTHER, ChangedSubject::Named("z".into())));
    assert_eq!(find(0, "/mnt/with space/z"), below);
}

#[test]
fn names_on_no_traced_disk_are_left_out_and_not_counted() {
    let mut names = names();
    let elsewhere = ["/tmp/main.db-journal", "/mnt/flashy/x", "/mnt/flash/over/x"];
    for name in elsewhere {
        assert_eq!(changed_file(&mut names, &passed_name(0, name)), None, "{name}");
    }
    assert_eq!(changed_file(&mut names, &passed_name(2, "over/main.db-journal")), None);
    let bare = Name { filesystem: 41, elsewhere: true, ..passed_name(7, "x") };
    assert_eq!(changed_file(&mut names, &bare), None);
    assert_eq!(names.unmatched_names(), 0);
}

#[test]
fn a_relative_path_is_found_by_its_directory() {
    assert_eq!(find(2, "main.db-journal"), file(12));
    assert_eq!(find(13, "x"), file(14));
    assert_eq!(find(13, "../main.db-journal"), file(12));
    assert_eq!(find(13, "new"), Some((FLASH, ChangedSubject::Named("new".into()))));
    let mut names = names();
    assert_eq!(
        [99, 2].map(|folder| changed_file(&mut names, &passed_name(folder, ""))),
        [None, None]
    );
    assert_eq!(changed_file(&mut names, &passed_name(99, "x")), None);
    assert_eq!(names.unmatched_names(), 3);
}

#[test]
fn a_path_under_another_root_or_among_other_mounts_is_not_taken_for_one_here() {
    let mut names = names();
    let chroot = Root { inode: 77, of_mount: false, ..OWN };
    let elsewhere = Root { namespace: 6, mount: 99, ..OWN };
    for root in [chroot, elsewhere] {
        let caller = Name { root, inode: 77, filesystem: 20, ..Name::default() };
        let absolute = Name { name: "/mnt/flash/main.db-journal".into(), ..caller.clone() };
        assert_eq!(changed_file(&mut names, &absolute), None);
        let renamed = Name { second: true, name: "/mnt/flash/evil.txt".into(), ..caller };
        let places = [&absolute, &renamed].map(|name| place(&mut names, name));
        let [old, new] = places;
        assert_eq!(names.rename(&absolute, old), []);
        assert_eq!(names.rename(&renamed, new), []);
    }
    assert_eq!(names.unmatched_names(), 6);
    assert_eq!(changed_file(&mut names, &passed_name(0, "/mnt/flash/main.db-journal")), file(12));
    // What no mount and no root can change: a bare name in a directory that the kernel told of.
    let bare = Name { root: elsewhere, ..passed_name(13, "x") };
    assert_eq!(changed_file(&mut names, &bare), file(14));
    // A folder may be a mount there.
    assert_eq!(
        changed_file(&mut names, &Name { root: elsewhere, ..passed_name(2, "dir/x") }),
        None
    );
    assert_eq!(
        changed_file(&mut names, &Name { root: chroot, ..passed_name(2, "dir/x") }),
        file(14)
    );
    assert_eq!(names.unmatched_names(), 7);
}

#[test]
fn a_path_below_a_root_that_is_a_traced_directory_is_followed() {
    let mut names = names();
    let root = Root { namespace: 5, mount: 35, inode: 13, of_mount: false };
    let caller = |name: &str| Name { root, ..passed_name(13, name) };
    assert_eq!(changed_file(&mut names, &caller("/x")), file(14));
    // Whether "link" is one leads from a root that is not ours.
    assert_eq!(changed_file(&mut names, &caller("/link/y")), None);
    assert_eq!(names.unmatched_names(), 1);
}

/// Takes both names of a call.
fn both(names: &mut NameLookup, calls: [&Name; 2]) -> Vec<Effect> {
    let [first, second] = calls.map(|name| place(names, name));
    assert_eq!(names.rename(calls[0], first), []);
    names.rename(calls[1], second)
}

#[test]
fn a_rename_is_followed_by_its_two_names() {
    let mut names = names();
    let old = Name { tid: 1, ..passed_name(13, "x") };
    let other = Name { tid: 2, second: true, ..passed_name(2, "of another thread") };
    let new = Name { tid: 1, second: true, ..passed_name(2, "y") };
    let places = [&old, &other, &new].map(|name| place(&mut names, name));
    let [at_old, at_other, at_new] = places;
    assert_eq!(names.rename(&old, at_old), []);
    assert_eq!(names.rename(&other, at_other), []);
    assert_eq!(names.rename(&new, at_new), [Effect::Path(key(14), "/y".to_owned())]);
    assert_eq!(changed_file(&mut names, &passed_name(2, "y")), file(14));
    let nothing = Some((FLASH, ChangedSubject::Named("x".into())));
    assert_eq!(changed_file(&mut names, &passed_name(13, "x")), nothing);
    let never_seen = Name { second: true, ..passed_name(2, "z") };
    assert_eq!(both(&mut names, [&passed_name(2, "never seen"), &never_seen]), []);
}

#[test]
fn a_link_that_is_not_in_memory_is_read_from_a_traced_disk_alone() {
    let follow_on_filesystem = |point: &str, folder: &str| {
        LinkTarget::To(format!("{point}{}", folder.replace("link", "dir")))
    };
    let mut names = names_on(Surroundings { follow_on_filesystem, ..Surroundings::nothing() });
    assert_eq!(changed_file(&mut names, &passed_name(0, "/mnt/flash/link/x")), file(14));
    assert_eq!(changed_file(&mut names, &passed_name(0, "/mnt/flash/over/link/x")), None);
    assert_eq!(changed_file(&mut names, &passed_name(0, "/elsewhere/link/x")), None);
}

fn rename(names: &mut NameLookup, from: &str, to: &str, exchanges: bool) -> Vec<Effect> {
    let new = Name { second: true, exchanges, ..passed_name(2, to) };
    both(names, [&passed_name(2, from), &new])
}

fn at(inode: u64, path: &str) -> Effect {
    Effect::Path(key(inode), path.to_owned())
}

#[test]
fn files_below_a_renamed_directory_move_with_it() {
    let mut names = names();
    names.see_path(&directory(15, "/dirt"));
    let moved = [at(14, "/new/x"), at(13, "/new")];
    assert_eq!(rename(&mut names, "dir", "new", false), moved);
    assert_eq!(rename(&mut names, "new/x", "x", false), [at(14, "/x")]);
    assert_eq!(rename(&mut names, "dirt", "new/y", false), [at(15, "/new/y")]);
}

#[test]
fn an_exchange_gives_each_the_name_of_the_other_and_a_rename_over_takes_one_away() {
    let mut names = names();
    let swapped = [at(12, "/dir/x"), at(14, "/main.db-journal")];
    assert_eq!(rename(&mut names, "main.db-journal", "dir/x", true), swapped);
    let over = [at(12, "/main.db-journal"), Effect::Unlinked(key(14))];
    assert_eq!(rename(&mut names, "dir/x", "main.db-journal", false), over);
    assert_eq!(rename(&mut names, "main.db-journal", "z", false), [at(12, "/z")]);
}

#[test]
fn a_name_that_is_gone_is_nobody_s_and_one_more_is_the_same_file_s() {
    let mut names = names();
    let more = Name { second: true, ..passed_name(13, "more") };
    let [old, new] =
        [&passed_name(2, "main.db-journal"), &more].map(|name| place(&mut names, name));
    assert_eq!(names.link(&passed_name(2, "main.db-journal"), old), []);
    assert_eq!(names.link(&more, new), [Effect::Linked(key(12))]);
    for name in [passed_name(13, "more"), passed_name(2, "main.db-journal")] {
        let place = place(&mut names, &name).unwrap();
        assert_eq!(names.unlink(&place), [Effect::Unlinked(key(12))]);
        assert_eq!(names.unlink(&place), []);
    }
    // Another file of that name, which nobody told of, is not the one that is gone.
    assert_eq!(rename(&mut names, "main.db-journal", "z", false), []);
}

#[test]
fn a_name_behind_a_symbolic_link_is_found() {
    assert_eq!(find(2, "link/x"), file(14));
    assert_eq!(find(0, "/mnt/flash/link/x"), file(14));
}

#[test]
fn the_memory_has_a_bound() {
    let mut names = names();
    for inode in 0..3 * PATHS_LIMIT as u64 {
        names.see_path(&directory(inode, &format!("/{inode}")));
    }
    // Files are no directories that a name begins in.
    for inode in 0..PATHS_LIMIT as u64 {
        let mode = MODE_REGULAR;
        names.see_path(&PathRecord { mode, ..directory(inode, &format!("/file{inode}")) });
    }
    assert!(names.directories.is_empty());
    // One path whose directory is ever another.
    for inode in 0..3 * PATHS_LIMIT as u64 {
        names.see_path(&PathRecord { generation: 1, ..directory(inode, "/same") });
    }
    for tid in 0..2 * CALLS_LIMIT as u32 {
        names.rename(&Name { tid, ..passed_name(2, "x") }, Some((FLASH, "/x".into())));
    }
    assert!(names.paths.len() + names.older_paths.len() <= 2 * PATHS_LIMIT);
    assert!(names.directories.len() + names.older_directories.len() <= 2 * PATHS_LIMIT);
    assert!(names.first_places.len() <= CALLS_LIMIT);
}

fn ring_name(request: u64, second: bool, text: &str) -> Name {
    Name { request, second, name: text.to_owned(), time_ns: 1, ..Name::default() }
}

fn over(request: u64, outcome: UringOutcome) -> Name {
    Name { request, outcome: Some(outcome), time_ns: 9, ..Name::default() }
}

fn texts(names: &[Name]) -> Vec<(&str, u64)> {
    names.iter().map(|name| (name.name.as_str(), name.time_ns)).collect()
}

#[test]
fn names_wait_for_their_request_and_a_call_s_do_not() {
    let mut names = UringNames::default();
    assert_eq!(texts(&names.settle(ring_name(0, false, "called"))), [("called", 1)]);
    for (request, old, new) in [(1, "a", "b"), (2, "c", "d")] {
        assert!(names.settle(ring_name(request, false, old)).is_empty());
        assert!(names.settle(ring_name(request, true, new)).is_empty());
    }
    assert!(names.settle(over(1, UringOutcome::Failed)).is_empty());
    assert_eq!(texts(&names.settle(over(2, UringOutcome::Done))), [("c", 9), ("d", 9)]);
    assert!(names.settle(over(2, UringOutcome::Done)).is_empty());
    assert!(names.waiting.is_empty());
}

#[test]
fn an_address_used_again_begins_anew_and_the_memory_has_a_bound() {
    let mut names = UringNames::default();
    names.settle(ring_name(1, false, "lost"));
    names.settle(ring_name(1, false, "a"));
    assert_eq!(texts(&names.settle(over(1, UringOutcome::Done))), [("a", 9)]);
    for request in 1..=2 * URING_REQUESTS_LIMIT as u64 {
        names.settle(ring_name(request, false, "a"));
    }
    assert_eq!(names.waiting.len(), URING_REQUESTS_LIMIT);
}
