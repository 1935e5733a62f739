//! The tracer on the running kernel: known writes on real filesystems on loop devices, each byte
//! of which must be found again. Needs root, BTF, loop devices and mkfs; says so and passes where
//! they are missing. The placement of one file is checked against FIEMAP, which knows nothing of
//! the tracer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
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

struct Mounted {
    device: String,
    image: PathBuf,
    mountpoint: PathBuf,
}

impl Mounted {
    fn new(filesystem: &str) -> Result<Self, String> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let name = format!("{filesystem}-{}", std::process::id());
        let (image, mountpoint) = (folder.join(format!("{name}.img")), folder.join(name));
        let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(600 << 20).map_err(|error| error.to_string())?;
        std::fs::create_dir_all(&mountpoint).map_err(|error| error.to_string())?;
        let mut mounted = Mounted { device: String::new(), image, mountpoint };
        let image = mounted.image.display().to_string();
        mounted.device = run("losetup", &["-f", "--show", &image])?.trim().to_owned();
        let force = if filesystem == "ext4" { "-F" } else { "-f" };
        run(&format!("mkfs.{filesystem}"), &["-q", force, &mounted.device])?;
        let place = mounted.mountpoint.display().to_string();
        run("mount", &["-t", filesystem, &mounted.device, &place])?;
        Ok(mounted)
    }

    /// Traces the workload, once what mkfs and mount left to write is written.
    fn trace(&self) -> Value {
        run("sync", &[]).unwrap();
        let tables = tempfile::tempdir().unwrap();
        let folder = tables.path().display().to_string();
        let output = Command::new(env!("CARGO_BIN_EXE_joj-agent"))
            .args(["trace", "--json", "--device", &self.device, "--output", &folder])
            .args(["--", "python3", "-c", WORKLOAD])
            .current_dir(&self.mountpoint)
            .output()
            .unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{complaint}");
        let mut capture: Value = serde_json::from_slice(&output.stdout).unwrap();
        for table in ["requests", "page_runs", "files"] {
            capture[table] = rows(tables.path(), table).into();
        }
        capture
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // What was not set up cannot be taken down; neither failure matters to the test.
        let _ = run("umount", &[&self.mountpoint.display().to_string()]);
        if !self.device.is_empty() {
            let _ = run("losetup", &["-d", &self.device]);
        }
        let _ = std::fs::remove_file(&self.image);
        let _ = std::fs::remove_dir(&self.mountpoint);
    }
}

/// The rows of a table, of all its segments.
fn rows(folder: &Path, table: &str) -> Vec<Value> {
    let segments = std::fs::read_dir(folder.join(table)).into_iter().flatten();
    let mut paths: Vec<PathBuf> = segments.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.push(folder.join(format!("{table}.parquet")));
    let mut rows = Vec::new();
    for path in paths {
        let file = std::fs::File::open(path).unwrap();
        for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
            let batch = batch.unwrap();
            rows.extend((0..batch.num_rows()).map(|row| {
                let schema = batch.schema();
                let names = schema.fields().iter().map(|field| field.name().clone());
                names.zip(batch.columns().iter().map(|column| value(column, row))).collect()
            }));
        }
    }
    rows
}

fn value(column: &ArrayRef, row: usize) -> Value {
    match column.data_type() {
        _ if column.is_null(row) => Value::Null,
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        DataType::Boolean => column.as_boolean().value(row).into(),
        _ => column.as_string::<i32>().value(row).into(),
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn file<'a>(capture: &'a Value, path: &str) -> &'a Value {
    let files = capture["files"].as_array().unwrap();
    files.iter().find(|file| file["path"] == path).unwrap_or_else(|| panic!("{path}: not seen"))
}

/// Bytes written of a file's data, and their sectors.
fn written(capture: &Value, path: &str) -> (i64, BTreeSet<i64>) {
    let id = &file(capture, path)["file_id"];
    let (mut bytes, mut sectors) = (0, BTreeSet::new());
    for run in capture["page_runs"].as_array().unwrap() {
        let request = &capture["requests"][run["request_id"].as_u64().unwrap() as usize];
        if run["file_id"] == *id && run["block_type"] == "data" && request["operation"] == "write" {
            let length = run["length_bytes"].as_i64().unwrap();
            let sector = run["sector"].as_i64().unwrap();
            bytes += length;
            sectors.extend(sector..sector + length / 512);
        }
    }
    (bytes, sectors)
}

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
    for gap in [
        "lost_events",
        "unattributed_bytes",
        "unattributed_flushes",
        "unissued_bios",
        "incomplete_requests",
        "failed_requests",
    ] {
        assert_eq!(capture[gap], 0, "{gap}");
    }
    assert_eq!(written(capture, "/renamed").0, (5 + 6 + 6) * 4096);
    assert_eq!(written(capture, "/after/nested").0, 2 * 4096);
    assert_eq!(written(capture, "/source").0, 1 << 20);
    assert_eq!(written(capture, "/direct").0, 2 << 20);
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
            let by_itself = ["jbd2/", "kworker/", "xfsaild/", "btrfs-transacti"];
            let is_asked = request["asker_call"].is_string();
            assert!(is_asked || by_itself.iter().any(|n| submitter.starts_with(n)), "{request}");
            asked += usize::from(is_asked);
        }
    }
    assert!(asked > 0, "SQLite's syncs flush the device");
}

fn live(filesystem: &str, placed_as_mapped: bool) {
    let root = run("id", &["-u"]).is_ok_and(|id| id.trim() == "0");
    if !root || !Path::new("/sys/kernel/btf/vmlinux").exists() {
        eprintln!("skipped: needs root and a kernel with BTF");
        return;
    }
    let mounted = match Mounted::new(filesystem) {
        Ok(mounted) => mounted,
        Err(reason) => {
            eprintln!("skipped: no {filesystem} on a loop device here: {reason}");
            return;
        }
    };
    let capture = mounted.trace();
    check(&capture);
    if placed_as_mapped {
        let extents = extents(&mounted.mountpoint.join("direct"));
        assert_eq!(extents.len(), (2 << 20) / 512);
        assert_eq!(written(&capture, "/direct").1, extents);
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
