//! Flushes that the block layer makes, on the running kernel: whom each is for. Needs what
//! support.rs says.

use crate::support::{assert_complete, mount_disk};

/// After two seconds an unknown bio is nobody's, and no longer from before the tracing.
const WORKLOAD: &str = r#"
import os, time
time.sleep(2.5)
for round in range(5):
    for number in range(3000):
        open(f"{round}-{number}", "w").close()
    file = os.open(f"{round}-0", os.O_RDWR)
    os.write(file, b"x" * 5000)
    os.fsync(file)
    os.close(file)
"#;

/// A log write of XFS asks for a flush before and after it (a loop device has no FUA). Larger than
/// the device takes at once, it is cut, and the parts are flushed for by themselves.
#[test]
fn flushes_for_parts_of_a_bio_are_of_the_whole() {
    let Some(mounted) = mount_disk("xfs", "logbsize=256k", 16) else { return };
    let capture = mounted.trace(&["python3", "-c", WORKLOAD]);
    assert_complete(&capture);
    let rows = capture["requests"].as_array().unwrap();
    let flushes: Vec<_> = rows.iter().filter(|row| row["operation"] == "flush").collect();
    let cut = rows.iter().filter(|row| row["block_type"] == "fs-journal").count();
    assert!(cut > 100, "the log writes were cut: {cut}");
    assert!(flushes.len() >= 15, "before, between the parts and after: {}", flushes.len());
    for flush in flushes {
        assert!(flush["submitter_comm"] != "", "{flush}");
    }
}
