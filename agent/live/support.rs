//! The parts that tests of the tracer on the running kernel share: filesystems on loop devices, and
//! the tables of a tracing. Needs root, BTF, loop devices and mkfs; where there is no root, no BTF
//! or no such filesystem a test says so and passes.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

/// Filesystems made so far by this program.
static FILESYSTEM_COUNT: AtomicU32 = AtomicU32::new(0);

/// A new filesystem; None where this machine has no tracer or no such filesystem, with the reason
/// told. Whatever else goes wrong fails the test.
pub fn mount_disk(filesystem: &str, options: &str, max_sectors_kb: u32) -> Option<MountedDisk> {
    if let Some(reason) = lacking(filesystem) {
        note_skip(&reason);
        return None;
    }
    Some(MountedDisk::new(filesystem, options, max_sectors_kb).unwrap())
}

fn lacking(filesystem: &str) -> Option<String> {
    let root = run("id", &["-u"]).is_ok_and(|id| id.trim() == "0");
    if !root || !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Some("needs root and a kernel with BTF".to_owned());
    }
    // Where it is no module, it may be built in.
    let _ = run("modprobe", &["--quiet", filesystem]);
    let known = std::fs::read_to_string("/proc/filesystems").unwrap();
    let is_known = known.split_whitespace().any(|name| name == filesystem);
    (!is_known).then(|| format!("this kernel has no {filesystem}"))
}

/// Says that the tests of this program leave something out; fails where tests/skips.toml must list
/// that, and does not (CONTRIBUTING.md, "Skips").
pub fn note_skip(reason: &str) {
    let program = "agent/live";
    let is = |name: &str, values: &[&str]| {
        std::env::var(name).is_ok_and(|value| values.contains(&value.as_str()))
    };
    if is("JOJ_SKIPS", &["listed"]) || is("CI", &["true", "1"]) {
        let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/skips.toml");
        let list: toml::Table = std::fs::read_to_string(list).unwrap().parse().unwrap();
        let may = list["skip"].as_array().unwrap().iter().any(|each| {
            each["test"].as_str() == Some(program)
                && reason.contains(each["says"].as_str().unwrap())
        });
        assert!(may, "{reason}\ntests/skips.toml does not list that {program} may skip");
    }
    // The test harness keeps what eprintln! prints to itself.
    let mut stderr = std::io::stderr();
    writeln!(stderr, "skipped: {program}: {reason}").unwrap();
}

/// Check that nothing is counted as missing.
pub fn assert_complete(capture: &Value) {
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
}

/// A filesystem on a loop device, taken down when it is dropped.
pub struct MountedDisk {
    device: String,
    /// Settings of its queue that were changed: path and value before.
    settings: Vec<(String, String)>,
    image: PathBuf,
    pub mountpoint: PathBuf,
}

impl MountedDisk {
    /// Makes and mounts it, or says why not. `max_sectors_kb` cuts the bios of the device, if it
    /// is not 0.
    fn new(filesystem: &str, options: &str, max_sectors_kb: u32) -> Result<Self, String> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let number = FILESYSTEM_COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{filesystem}-{}-{number}", std::process::id());
        let (image, mountpoint) = (folder.join(format!("{name}.img")), folder.join(name));
        let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(600 << 20).map_err(|error| error.to_string())?;
        std::fs::create_dir_all(&mountpoint).map_err(|error| error.to_string())?;
        let mut mounted =
            MountedDisk { device: String::new(), settings: Vec::new(), image, mountpoint };
        let image = mounted.image.display().to_string();
        mounted.device = run("losetup", &["-f", "--show", &image])?.trim().to_owned();
        let force = if filesystem == "ext4" { "-F" } else { "-f" };
        run(&format!("mkfs.{filesystem}"), &["-q", force, &mounted.device])?;
        if max_sectors_kb > 0 {
            mounted.set_queue("max_sectors_kb", max_sectors_kb)?;
        }
        let place = mounted.mountpoint.display().to_string();
        run("mount", &["-t", filesystem, "-o", options, &mounted.device, &place])?;
        Ok(mounted)
    }

    /// Until it is taken down: who has the device next finds it as it was.
    fn set_queue(&mut self, setting: &str, value: u32) -> Result<(), String> {
        let path = self.device.replace("/dev/", "/sys/block/") + "/queue/" + setting;
        let before = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        std::fs::write(&path, value.to_string()).map_err(|error| error.to_string())?;
        self.settings.push((path, before));
        Ok(())
    }

    /// Traces a command in the filesystem, once what mkfs and mount left to write is written.
    pub fn trace(&self, command: &[&str]) -> Value {
        self.trace_to(0, command)
    }

    /// The same of a tracing that ends with an exit code.
    pub fn trace_to(&self, exit_code: i32, command: &[&str]) -> Value {
        run("sync", &["-f", &self.mountpoint.display().to_string()]).unwrap();
        let tables = tempfile::tempdir().unwrap();
        let folder = tables.path().display().to_string();
        let agent = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../release/joj-agent");
        assert!(agent.exists(), "{} is missing: make agent", agent.display());
        let output = Command::new(agent)
            .args(["trace", "--json", "--device", &self.device, "--output", &folder])
            .arg("--")
            .args(command)
            .current_dir(&self.mountpoint)
            .output()
            .unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        // What makes a tracing incomplete is in what it prints, not in its complaint.
        let printed = String::from_utf8_lossy(&output.stdout);
        let ended = output.status;
        assert_eq!(ended.code(), Some(exit_code), "{ended}: {complaint}{printed}");
        let mut capture: Value = serde_json::from_slice(&output.stdout).unwrap();
        for table in ["requests", "page_runs", "files"] {
            capture[table] = rows(tables.path(), table).into();
        }
        capture
    }
}

impl Drop for MountedDisk {
    fn drop(&mut self) {
        // What was not set up cannot be taken down; neither failure matters to the test.
        // io_uring may hold a file for a moment after its process has ended.
        let place = self.mountpoint.display().to_string();
        let _ = run("umount", &[&place]).or_else(|_| run("umount", &["--lazy", &place]));
        if !self.device.is_empty() {
            for (path, before) in &self.settings {
                let _ = std::fs::write(path, before);
            }
            let _ = run("losetup", &["-d", &self.device]);
        }
        let _ = std::fs::remove_file(&self.image);
        let _ = std::fs::remove_dir(&self.mountpoint);
    }
}

/// The rows of a table, of all its segments.
pub fn rows(folder: &Path, table: &str) -> Vec<Value> {
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

pub fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

pub fn file<'a>(capture: &'a Value, path: &str) -> &'a Value {
    let files = capture["files"].as_array().unwrap();
    files.iter().find(|file| file["path"] == path).unwrap_or_else(|| panic!("{path}: not seen"))
}

/// Bytes written of a file's data, and their sectors.
pub fn written_data(capture: &Value, path: &str) -> (i64, BTreeSet<i64>) {
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
