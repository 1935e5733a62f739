//! Names that are changed through io_uring, and files that are synced, on the running kernel and
//! real filesystems: what the tracer tells of the files afterwards. Needs what support.rs says.
//! The workload is this very program, run again for its ignored test.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use crate::support::{assert_complete, file, mount_disk, written_data};
use io_uring::{IoUring, opcode, squeue, types};
use serde_json::Value;

const HERE: types::Fd = types::Fd(libc::AT_FDCWD);

/// Has one request done; its result.
fn submit(ring: &mut IoUring, request: squeue::Entry) -> i32 {
    // SAFETY: the names that the request points to live until it is complete, which is waited for.
    unsafe { ring.submission().push(&request) }.unwrap();
    ring.submit_and_wait(1).unwrap();
    ring.completion().next().unwrap().result()
}

fn rename(ring: &mut IoUring, old: &CStr, new: &CStr, flags: u32) -> i32 {
    let request = opcode::RenameAt::new(HERE, old.as_ptr(), HERE, new.as_ptr()).flags(flags);
    submit(ring, request.build())
}

fn write(name: &str) -> File {
    let file = File::create(name).unwrap();
    file.write_all_at(&[1; 4096], 0).unwrap();
    file.sync_all().unwrap();
    file
}

/// Syncs this directory alone: a sync of all would end the transactions of tests beside this one.
fn sync_filesystem() {
    let here = File::open(".").unwrap();
    // SAFETY: the descriptor is open.
    assert_eq!(unsafe { libc::syncfs(here.as_raw_fd()) }, 0);
}

/// In a directory of its own, traced.
#[test]
#[ignore = "the workload of the others"]
fn workload() {
    let mut ring = IoUring::new(8).unwrap();
    let again = write("old");
    assert_eq!(rename(&mut ring, c"old", c"new", 0), 0);
    again.write_all_at(&[2; 4096], 0).unwrap();
    again.sync_all().unwrap();

    // Not met again after its new name; one by an absolute path.
    write("late");
    assert_eq!(rename(&mut ring, c"late", c"later", 0), 0);
    write("far");
    let here = std::env::current_dir().unwrap().display().to_string();
    let [from, to] = ["far", "farther"].map(|name| CString::new(format!("{here}/{name}")).unwrap());
    assert_eq!(rename(&mut ring, &from, &to, 0), 0);

    // Only the directory above it gets another name.
    fs::create_dir("before").unwrap();
    let nested = write("before/nested");
    assert_eq!(rename(&mut ring, c"before", c"after", 0), 0);
    nested.write_all_at(&[2; 4096], 0).unwrap();
    nested.sync_all().unwrap();

    write("one");
    write("other");
    assert_eq!(rename(&mut ring, c"one", c"other", libc::RENAME_EXCHANGE), 0);
    write("kept");
    assert_eq!(rename(&mut ring, c"kept", c"nowhere/kept", 0), -libc::ENOENT);

    // By no call: a worker of the ring does it.
    let synced = File::create("synced").unwrap();
    synced.write_all_at(&[1; 4096], 0).unwrap();
    let sync = opcode::Fsync::new(types::Fd(synced.as_raw_fd()));
    assert_eq!(submit(&mut ring, sync.flags(types::FsyncFlags::DATASYNC).build()), 0);

    // The ring knows it by a number, and not by a descriptor.
    let registered = File::create("registered").unwrap();
    registered.write_all_at(&[1; 4096], 0).unwrap();
    ring.submitter().register_files(&[synced.as_raw_fd(), registered.as_raw_fd()]).unwrap();
    assert_eq!(submit(&mut ring, opcode::Fsync::new(types::Fixed(1)).build()), 0);

    write("gone");
    // A reason names eight files: those of before are carried by this one.
    sync_filesystem();
    let names = [c"gone", c"made", c"kept", c"linked", c"pointing"].map(CStr::as_ptr);
    let [gone, made, kept, linked, pointing] = names;
    assert_eq!(submit(&mut ring, opcode::UnlinkAt::new(HERE, gone).build()), 0);
    assert_eq!(submit(&mut ring, opcode::MkDirAt::new(HERE, made).mode(0o755).build()), 0);
    assert_eq!(submit(&mut ring, opcode::LinkAt::new(HERE, kept, HERE, linked).build()), 0);
    assert_eq!(submit(&mut ring, opcode::SymlinkAt::new(HERE, kept, pointing).build()), 0);
    sync_filesystem();
}

fn check(capture: &Value) {
    assert_complete(capture);
    assert_eq!(written_data(capture, "/new").0, 2 * 4096);
    assert_eq!(written_data(capture, "/after/nested").0, 2 * 4096);
    for name in ["/later", "/farther", "/other", "/one"] {
        assert_eq!(written_data(capture, name).0, 4096, "{name}");
    }
    for (now, before) in [("/new", "/old"), ("/later", "/late"), ("/one", "/other")] {
        let history = file(capture, now)["path_history"].as_str().unwrap();
        assert!(history.contains(&format!(r#""path":"{before}""#)), "{now}: {history}");
    }
    // What was refused changed nothing; but it is linked.
    let kept = file(capture, "/kept")["path_history"].as_str().unwrap();
    assert!(!kept.contains("nowhere"), "{kept}");
    let requests = capture["requests"].as_array().unwrap();
    for (name, call) in [("/synced", "fdatasync"), ("/registered", "fsync")] {
        let synced = &file(capture, name)["file_id"];
        let asked: Vec<&Value> =
            requests.iter().filter(|row| row["asker_file_id"] == *synced).collect();
        assert!(asked.iter().any(|row| row["operation"] == "write"), "{asked:?}");
        assert!(asked.iter().all(|row| row["asker_call"] == call), "{asked:?}");
    }
    let reasons: Vec<&str> = requests.iter().filter_map(|row| row["reason"].as_str()).collect();
    for change in ["made: created", "linked: created", "pointing: created"] {
        assert!(reasons.iter().any(|reason| reason.contains(change)), "{change}: {reasons:?}");
    }
    let unlinked = |reason: &&str| reason.contains("gone: ") && reason.contains("unlinked");
    assert!(reasons.iter().any(unlinked), "{reasons:?}");
}

fn live(filesystem: &str) {
    let Some(mounted) = mount_disk(filesystem, "defaults", 0) else { return };
    let program = std::env::current_exe().unwrap().display().to_string();
    // What the tracer prints goes to the same standard output.
    let quietly = r#"exec "$0" --exact io_uring::workload --ignored >&2"#;
    check(&mounted.trace(&["sh", "-c", quietly, &program]));
}

#[test]
fn ext4() {
    live("ext4");
}

#[test]
fn xfs() {
    live("xfs");
}

#[test]
fn btrfs() {
    live("btrfs");
}
