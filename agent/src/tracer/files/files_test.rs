//! Life stories, tested with hand-made records.

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
    let run = Run { filesystem: 7, inode: 257, generation: 9, subvolume: 257, ..Run::default() };
    files.see_run(&run, 300);
    let rows = files.rows();
    let paths: Vec<&str> = rows.iter().map(|row| row.path.as_str()).collect();
    assert_eq!(paths, ["/a/f", "/b/f"]);
    assert!(!rows[0].path_history.contains("/b/f"));
    assert_eq!(files.id(run_key(&run)), Some(1));
    let sync = Sync { filesystem: 7, inode: 257, generation: 9, subvolume: 256, ..Sync::default() };
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
    (0..100)
        .for_each(|inode| see(&mut files, &path(inode, 0, inode, &format!("/{inode}-journal"))));
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
    (0..2 * PART_ROWS as u64 + 1).for_each(|inode| see(&mut files, &path(inode, 0, inode, "/x")));
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
