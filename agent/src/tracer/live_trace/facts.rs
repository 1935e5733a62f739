//! What the manifest says of a live trace from its first moment: what is traced, and since when.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::device::disks::Disks;
use crate::device::sysfs;
use crate::tables::capture::{Manifest, Origin};

/// The manifest as it begins; `own_pid` is the tracer's process.
pub fn manifest(command: &[String], disks: &Disks, own_pid: i64) -> Manifest {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let numbers: Vec<String> = disks.numbers.iter().map(|&disk| sysfs::number_text(disk)).collect();
    let made_of = disks.layers.iter().filter(|layer| layer.takes_bios());
    let made_of: BTreeMap<&str, Vec<String>> =
        made_of.map(|layer| (layer.name.as_str(), layer.below())).collect();
    let mut manifest = Manifest::new(Origin {
        case: json!({ "command": command }),
        seed: 0,
        clock: "wall",
        device: json!({ "disks": numbers, "made_of": made_of }),
        configuration: json!({ "mounts": disks.mounts }),
    });
    manifest.note("began_unix_ns", now.as_nanos() as u64);
    manifest.note("tracer_pid", own_pid);
    manifest
}
