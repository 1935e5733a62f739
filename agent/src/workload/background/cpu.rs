//! A CPU hog: computes without a pause, and does no I/O at all.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::signals::Signals;

/// What it computes: hashes of a block; one takes some 10 us, between which it looks for the end.
const BLOCK_BYTES: usize = 4096;
/// Hashes between two looks.
const HASHES: u64 = 64;

/// Computes until told to stop; gives what it did.
///
/// # Errors
/// If it cannot tell that it has begun.
pub fn run() -> anyhow::Result<Value> {
    let signals = Signals::begin()?;
    let mut block = [0_u8; BLOCK_BYTES];
    let mut hashes = 0_u64;
    while !signals.shall_stop(0) {
        for _ in 0..HASHES {
            let digest = Sha256::digest(block);
            block[..digest.len()].copy_from_slice(&digest);
        }
        hashes += HASHES;
    }
    Ok(json!({ "hashes": hashes, "block_bytes": BLOCK_BYTES }))
}
