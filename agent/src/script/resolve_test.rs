//! Tests of resolving: order, descriptors, what files begin and end with, and that whatever the
//! script, nothing leads out of the directory.

use std::path::Component;

use proptest::prelude::*;

use super::super::mobigen;
use super::*;

fn resolved(text: &str) -> Resolved {
    Resolved::from(&mobigen::parse(text.as_bytes()).unwrap())
}

/// Begin and end of the file of a name.
fn sizes(resolved: &Resolved, name: &str) -> (Option<u64>, Option<u64>) {
    let file = resolved.files.iter().find(|file| file.path.as_os_str() == name).unwrap();
    (file.begins, file.ends)
}

#[test]
fn calls_are_in_order_of_time_and_of_their_thread() {
    let found = resolved(
        "1 30 fsync 5\n1 10 close 5\n2 0 open \"/a\" O_RDWR|O_CREAT 5\n2 20 write 5 10\n\
         2 40 fsync 5\n",
    );
    let steps = |thread: usize| -> Vec<_> {
        let steps = found.threads[thread].steps.iter();
        steps.map(|step| (step.line, step.due_ns, step.turn)).collect()
    };
    // The close stands after the fsync, so it is not made before.
    assert_eq!(steps(0), [(1, 30_000, 2), (2, 30_000, 3)]);
    assert_eq!(steps(1), [(3, 0, 0), (4, 20_000, 1)]);
    // By the last fsync the descriptor is closed.
    assert_eq!(found.unopened, BTreeMap::from([(("fsync", NotOpen::Closed), 1)]));
    assert_eq!(sizes(&found, "a"), (None, Some(10)));
}

#[test]
fn what_is_left_out_is_told_from_what_was_open_at_another_time() {
    let found = resolved(
        "1 0 write 5 10\n1 1 open \"/a\" O_RDWR|O_CREAT 5\n1 2 close 5\n1 3 fsync 5\n\
         1 4 read 7 1\n2 5 open \"/b\" O_RDONLY -1\n3 6 fsync -1\n4 7 ioctl 5\n2 8 close 5\n",
    );
    let wanted = [
        (("close", NotOpen::Closed), 1),
        (("fsync", NotOpen::Closed), 1),
        (("fsync", NotOpen::Never), 1),
        (("read", NotOpen::Never), 1),
        (("write", NotOpen::Later), 1),
    ];
    assert_eq!(found.unopened, BTreeMap::from(wanted));
    assert_eq!(found.threads.iter().map(|thread| thread.number).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(found.idle_threads, [3, 4]);
}

#[test]
fn a_descriptor_is_the_file_that_was_opened_last() {
    let found = resolved(
        "1 0 open \"/a\" O_RDONLY 5\n1 1 open \"/b\" O_RDONLY 5\n1 2 read 5 7\n1 3 close 5\n\
         1 4 read 5 7\n",
    );
    let handles: Vec<_> = found.threads[0].steps.iter().map(|step| step.handle).collect();
    assert_eq!(handles, [Some(0), Some(1), Some(1), Some(1)]);
    assert_eq!((sizes(&found, "a"), sizes(&found, "b")), ((Some(0), Some(0)), (Some(7), Some(7))));
    assert_eq!(found.unopened, BTreeMap::from([(("read", NotOpen::Closed), 1)]));
}

#[test]
fn files_begin_with_what_is_read_and_end_with_what_is_written() {
    let found = resolved(
        "1 0 access \"/d/wal\" -1\n1 1 stat \"/d/db\" 0\n1 2 open \"/d/db\" O_RDWR|O_CREAT 3\n\
         1 3 read 3 100\n1 4 pread 3 4096 4096\n1 5 pwrite 3 16384 10\n1 6 write 3 20\n\
         1 7 open \"/d/new\" O_WRONLY|O_CREAT|O_TRUNC 4\n1 8 write 4 5\n1 9 write 4 6\n\
         1 10 unlink \"/d/old\" 0\n1 11 open \"/d/log\" O_WRONLY|O_APPEND 6\n1 12 write 6 9\n",
    );
    assert_eq!(sizes(&found, "d/wal"), (None, None));
    assert_eq!(sizes(&found, "d/db"), (Some(8192), Some(16_394)));
    assert_eq!(sizes(&found, "d/new"), (None, Some(11)));
    assert_eq!(sizes(&found, "d/old"), (Some(0), None));
    assert_eq!(sizes(&found, "d/log"), (Some(0), Some(9)));
}

#[test]
fn a_file_opened_before_is_one_of_its_own() {
    let found = resolved(
        "1 0 open /data/data O_WRONLY|O_CREAT|O_TRUNC 36\n1 1 read 36 50\n\
         1 2 open /data/data O_RDONLY 37\n1 3 write 37 4\n1 4 open x\"/nil O_RDWR|O_CREAT -1\n",
    );
    assert_eq!(sizes(&found, "_opened-before/0"), (Some(50), Some(50)));
    assert_eq!(sizes(&found, "_opened-before/1"), (Some(0), Some(4)));
    assert_eq!(sizes(&found, "_nowhere/2"), (None, None));
    assert!(found.files[2].is_nowhere && found.threads[0].steps[4].handle.is_none());
    assert!(
        found.threads[0]
            .steps
            .iter()
            .all(|step| step.flags & libc::O_TRUNC == 0 || step.handle.is_none())
    );
}

#[test]
fn a_file_and_a_directory_of_one_path_are_two() {
    let found = resolved(
        "1 0 open \"/d\" O_RDWR|O_CREAT 3\n1 1 stat \"/d/f\" 0\n1 2 stat \"/d\" 0\n\
         1 3 unlink \"/d\" 0\n1 4 stat \"/d/..\" 0\n",
    );
    let files: Vec<_> = found
        .files
        .iter()
        .map(|file| (file.path.display().to_string(), file.is_directory))
        .collect();
    let wanted = [("d_file", false), ("d/f", false), ("d", true), ("", true)];
    assert_eq!(files, wanted.map(|(name, is_directory)| (name.to_owned(), is_directory)));
}

#[derive(Debug, Clone)]
struct Line(String);

fn any_line() -> impl Strategy<Value = Line> {
    let path = prop_oneof![
        "(/|\\.|\\.\\.|[ab~ ]|é){0,8}",
        Just("/a".to_owned()),
        Just("/a/b".to_owned()),
    ];
    let flags = prop::sample::select(vec![
        "O_RDONLY",
        "O_RDWR|O_CREAT",
        "O_WRONLY|O_CREAT|O_TRUNC",
        "O_RDWR|O_CREAT|O_EXCL",
        "O_RDWR|O_APPEND",
        "O_RDONLY|O_DIRECTORY",
    ]);
    let names = vec!["read", "write", "pread", "pwrite", "fsync", "close", "access", "unlink"];
    let call = (prop::sample::select(names), path.clone(), -1..4_i64, 0..9_u32, 0..9_u32).prop_map(
        |(name, path, descriptor, offset, bytes)| match name {
            "read" | "write" => format!("{name} {descriptor} {bytes}"),
            "pread" | "pwrite" => format!("{name} {descriptor} {offset} {bytes}"),
            "access" | "unlink" => format!("{name} \"{path}\" {}", descriptor.min(0)),
            _ => format!("{name} {descriptor} 0"),
        },
    );
    let open = (path, flags, -1..4_i64, any::<bool>()).prop_map(|(path, flags, number, quoted)| {
        if quoted {
            format!("open \"{path}\" {flags} {number}")
        } else {
            format!("open x {flags} {number}")
        }
    });
    let call = prop_oneof![call, open];
    (0..3_u32, 0..50_u32, call).prop_map(|(thread, us, call)| Line(format!("{thread} {us} {call}")))
}

proptest! {
    #[test]
    fn nothing_leads_out_and_nothing_is_lost(lines in prop::collection::vec(any_line(), 0..40)) {
        let text: Vec<String> = lines.into_iter().map(|line| line.0).collect();
        let found = resolved(&text.join("\n"));
        for file in &found.files {
            prop_assert!(file.path.components().all(|it| matches!(it, Component::Normal(_))));
        }
        let threads = found.threads.iter();
        let steps: Vec<&ReplayStep> = threads.flat_map(|thread| &thread.steps).collect();
        let left_out: u64 = found.unopened.values().sum();
        prop_assert_eq!(steps.len() as u64 + left_out, text.len() as u64);
        // Every turn of every file comes once; in a thread, turns and times never go back.
        let mut turns: Vec<_> = steps.iter().map(|step| (step.file, step.turn)).collect();
        turns.sort_unstable();
        for pair in turns.windows(2) {
            let follows = pair[1].0 > pair[0].0 && pair[1].1 == 0;
            prop_assert!(follows || pair[1] == (pair[0].0, pair[0].1 + 1));
        }
        for thread in &found.threads {
            prop_assert!(thread.steps.windows(2).all(|pair| pair[0].due_ns <= pair[1].due_ns));
        }
    }
}
