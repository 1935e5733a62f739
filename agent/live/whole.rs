//! The tracer on the running kernel: known writes on real filesystems on loop devices, each byte
//! of which must be found again. Needs what support.rs says. The placement of one file is
//! checked against FIEMAP, which knows nothing of the tracer.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::{assert_complete, file, mount_disk, run, written_data};
use serde_json::Value;

/// Sizes are chosen so that the whole pages written can be counted by hand.
const WORKLOAD: &str = r#"
import mmap, os, sqlite3
database = sqlite3.connect("a.db")
database.execute("pragma synchronous = full")
database.execute("create table t(x)")
for _ in range(3):
    database.execute("insert into t values (?)", ("x" * 100,))
    database.commit()
database.close()

plain = os.open("plain", os.O_CREAT | os.O_RDWR)
os.write(plain, b"x" * 20000); os.fsync(plain)      # pages 0 to 4
os.rename("plain", "renamed")
os.write(plain, b"y" * 20000); os.fsync(plain)      # pages 4 to 9
os.unlink("renamed")
os.write(plain, b"z" * 20000); os.fsync(plain)      # pages 9 to 14
os.close(plain)

os.mkdir("before")
nested = os.open("before/nested", os.O_CREAT | os.O_RDWR)
os.write(nested, b"x" * 4096); os.fsync(nested)
os.rename("before", "after")
os.pwrite(nested, b"y" * 4096, 0); os.fdatasync(nested)
os.close(nested)

# The buffer is another file's page cache: its pages must not be taken for the owner.
source = os.open("source", os.O_CREAT | os.O_RDWR)
os.write(source, b"s" * (1 << 20))
direct = os.open("direct", os.O_CREAT | os.O_RDWR | os.O_DIRECT)
with mmap.mmap(source, 1 << 20) as buffer:
    os.pwrite(direct, buffer, 0)
    os.pwrite(direct, buffer, 1 << 20)
os.fsync(direct)
os.close(direct)
os.sync()
"#;

/// Sectors of a file by FIEMAP. Lines are "n: logical.. logical: physical.. physical: length:".
fn extents(path: &Path) -> BTreeSet<i64> {
    let table = run("filefrag", &["-v", "-b512", &path.display().to_string()]).unwrap();
    let mut sectors = BTreeSet::new();
    for line in table.lines() {
        let fields: Vec<&str> = line.split(':').map(str::trim).collect();
        if let [number, _, physical, ..] = fields.as_slice()
            && number.parse::<u32>().is_ok()
        {
            let (first, last) = physical.split_once("..").unwrap();
            sectors.extend(first.trim().parse::<i64>().unwrap()..=last.trim().parse().unwrap());
        }
    }
    sectors
}

fn check(capture: &Value) {
    assert_complete(capture);
    assert_eq!(written_data(capture, "/renamed").0, (5 + 6 + 6) * 4096);
    assert_eq!(written_data(capture, "/after/nested").0, 2 * 4096);
    assert_eq!(written_data(capture, "/source").0, 1 << 20);
    assert_eq!(written_data(capture, "/direct").0, 2 << 20);
    let renamed = file(capture, "/renamed");
    assert_eq!(renamed["unlinked"], true);
    assert!(renamed["path_history"].as_str().unwrap().contains(r#""path":"/plain""#));
    assert_eq!(file(capture, "/a.db")["file_kind"], "db");
    assert_eq!(file(capture, "/a.db-journal")["file_kind"], "db-journal");

    let mut asked = 0;
    for request in capture["requests"].as_array().unwrap() {
        let runs = capture["page_runs"].as_array().unwrap().iter();
        let runs = runs.filter(|run| run["request_id"] == request["request_id"]);
        let bytes: i64 = runs.map(|run| run["length_bytes"].as_i64().unwrap()).sum();
        assert_eq!(request["length_bytes"].as_i64(), Some(bytes), "{request}");
        assert!(request["queue_ns"].as_i64() <= request["issue_ns"].as_i64());
        if request["operation"] == "flush" {
            // On a slow machine the filesystem also commits by itself, every few seconds.
            let submitter = request["submitter_comm"].as_str().unwrap();
            let by_itself = ["jbd2/", "kworker/", "xfsaild/", "btrfs-transacti", "ext4lazyinit"];
            let is_asked = request["asker_call"].is_string();
            assert!(is_asked || by_itself.iter().any(|n| submitter.starts_with(n)), "{request}");
            asked += usize::from(is_asked);
        }
    }
    assert!(asked > 0, "SQLite's syncs flush the device");
}

fn live(filesystem: &str, placed_as_mapped: bool) {
    let Some(mounted) = mount_disk(filesystem, "defaults", 0) else { return };
    let capture = mounted.trace(&["python3", "-c", WORKLOAD]);
    check(&capture);
    if placed_as_mapped {
        let extents = extents(&mounted.mountpoint.join("direct"));
        assert_eq!(extents.len(), (2 << 20) / 512);
        assert_eq!(written_data(&capture, "/direct").1, extents);
    }
}

#[test]
fn ext4() {
    live("ext4", true);
}

#[test]
fn xfs() {
    live("xfs", true);
}

#[test]
fn btrfs() {
    // FIEMAP gives Btrfs' logical addresses, which need not be the device's.
    live("btrfs", false);
}

#[test]
fn f2fs() {
    live("f2fs", true);
}

#[test]
fn nilfs2() {
    live("nilfs2", false);
}
