//! HD video recording: 1920x1080 at 30 frames a second. Each frame takes a share of the CPU, and
//! its bytes go to the end of a file with a plain write; recorders do not sync while they record.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

use super::signals::Signals;
use crate::tables::timeline::now_ns;

const FRAMES_PER_S: i64 = 30;
/// 17 Mbit/s: what Galaxy phones record in this format (darkskiesfilm.com/?p=53608, of the S7; of
/// a Note 3 of 2013 12 to 15 Mbit/s are told at 24 frames a second, thedailynote.net 2013/10).
const BITS_PER_S: i64 = 17_000_000;
const FRAME_BYTES: i64 = BITS_PER_S / 8 / FRAMES_PER_S;
const FRAME_NS: i64 = 1_000_000_000 / FRAMES_PER_S;
/// CPU time of one frame, a tenth of the frame's time. An assumption: the picture is encoded by
/// hardware, and what is left to the CPU (buffers, sound, the container) we found no number of.
const FRAME_CPU_NS: i64 = FRAME_NS / 10;
/// The file is written anew from its beginning when it is so long, so that no case fills a device.
const MOST_BYTES: u64 = 64 << 20;

/// Records until told to stop; gives what it did.
///
/// # Errors
/// If the file cannot be written.
pub fn run(directory: &Path) -> anyhow::Result<Value> {
    let path = directory.join("video.mp4");
    let name = || path.display().to_string();
    let file = OpenOptions::new().write(true).create_new(true).open(&path).with_context(name)?;
    let mut frame = vec![0_u8; usize::try_from(FRAME_BYTES)?];
    let (mut frames, mut late, mut offset) = (0_i64, 0_i64, 0_u64);
    let signals = Signals::begin()?;
    let begin_ns = now_ns();
    loop {
        let due_ns = begin_ns + frames * FRAME_NS;
        if signals.shall_stop(due_ns - now_ns()) {
            break;
        }
        let encoded_ns = now_ns() + FRAME_CPU_NS;
        while now_ns() < encoded_ns {
            // Each frame has bytes of its own.
            frame.iter_mut().step_by(512).for_each(|byte| *byte = byte.wrapping_add(1));
        }
        if offset + frame.len() as u64 > MOST_BYTES {
            offset = 0;
        }
        file.write_all_at(&frame, offset).with_context(name)?;
        offset += frame.len() as u64;
        frames += 1;
        // The next one comes while this one is still at work: a camera would drop it.
        late += i64::from(now_ns() > due_ns + FRAME_NS);
    }
    Ok(json!({
        "frames": frames,
        "frames_late": late,
        "bytes": frames * FRAME_BYTES,
        "bits_per_s": BITS_PER_S,
        "frame_cpu_ns": FRAME_CPU_NS,
    }))
}
