//! Copies a disk's contents into a file in Android's sparse image format (libsparse,
//! sparse_format.h), which leaves out what was never written: so that tools which are not in a
//! guest can look at its filesystem.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;

use crate::workload::files::engine::AlignedBuffer;

const MAGIC: u32 = 0xed26_ff3a;
const BLOCK_BYTES: usize = 4096;
const HEADER_BYTES: u16 = 28;
const CHUNK_HEADER_BYTES: u16 = 12;
const RAW: u16 = 0xcac1;
const DO_NOT_CARE: u16 = 0xcac3;
const READ_BLOCKS: usize = 256;

/// The bytes that a medium reads as where nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blank {
    Zeroes,
    /// Erased NAND.
    Ones,
}

/// Reads the disk or the NAND at `node`, and writes the image to a new file.
///
/// # Errors
/// If the disk cannot be read, or is not of whole blocks; or the file cannot be written.
pub fn write(node: &Path, path: &Path, blank: Blank) -> anyhow::Result<()> {
    // Past the page cache, which NAND has not: in a guest, whose processor is emulated, each copy
    // of a whole disk takes seconds.
    let flags = if blank == Blank::Zeroes { libc::O_DIRECT } else { 0 };
    let disk = OpenOptions::new().read(true).custom_flags(flags).open(node);
    let disk = disk.with_context(|| node.display().to_string())?;
    let image = File::create_new(path).with_context(|| path.display().to_string())?;
    sparse(disk, image, blank).with_context(|| format!("{} to {}", node.display(), path.display()))
}

fn sparse(mut disk: impl Read, mut image: impl Write + Seek, blank: Blank) -> io::Result<()> {
    image.write_all(&[0; HEADER_BYTES as usize])?;
    let mut buffer = AlignedBuffer::new(READ_BLOCKS * BLOCK_BYTES);
    let buffer = buffer.bytes();
    let (mut blocks, mut chunks, mut hole) = (0, 0, 0);
    loop {
        let length = fill(&mut disk, buffer)?;
        if !length.is_multiple_of(BLOCK_BYTES) {
            return Err(io::Error::other("its length is no multiple of 4096 bytes"));
        }
        let found: Vec<(bool, &[u8])> =
            buffer[..length].chunks(BLOCK_BYTES).map(|it| (is_blank(it, blank), it)).collect();
        for run in found.chunk_by(|one, other| one.0 == other.0) {
            blocks += run.len() as u32;
            if run[0].0 {
                hole += run.len() as u32;
                continue;
            }
            let content: Vec<&[u8]> = run.iter().map(|&(_, block)| block).collect();
            chunks += chunk(&mut image, DO_NOT_CARE, std::mem::take(&mut hole), &[])?;
            chunks += chunk(&mut image, RAW, run.len() as u32, &content)?;
        }
        if length < READ_BLOCKS * BLOCK_BYTES {
            break;
        }
    }
    chunks += chunk(&mut image, DO_NOT_CARE, hole, &[])?;
    image.seek(SeekFrom::Start(0))?;
    image.write_all(&header(blocks, chunks))
}

/// As much as there is, up to the whole buffer.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match from.read(&mut buffer[length..])? {
            0 => break,
            more => length += more,
        }
    }
    Ok(length)
}

/// Eight words at a time: by bytes, this took three quarters of a self-test in a guest, whose
/// processor is emulated (`time joj verify attribution --filesystem ext4` on an empty cache).
fn is_blank(block: &[u8], blank: Blank) -> bool {
    let blank = if blank == Blank::Zeroes { 0 } else { u64::MAX };
    let (words, rest) = block.as_chunks::<8>();
    let (eights, others) = words.as_chunks::<8>();
    let other = |word: &[u8; 8]| u64::from_ne_bytes(*word) ^ blank;
    let any = |words: &[[u8; 8]]| words.iter().fold(0, |all, word| all | other(word));
    rest.iter().all(|byte| *byte == blank as u8)
        && eights.iter().all(|words| any(words) == 0)
        && any(others) == 0
}

/// Writes one chunk, unless it is empty; gives how many were written.
fn chunk(image: &mut impl Write, kind: u16, blocks: u32, content: &[&[u8]]) -> io::Result<u32> {
    if blocks == 0 {
        return Ok(0);
    }
    let bytes = u32::from(CHUNK_HEADER_BYTES) + (content.len() * BLOCK_BYTES) as u32;
    image.write_all(&kind.to_le_bytes())?;
    image.write_all(&0_u16.to_le_bytes())?;
    image.write_all(&blocks.to_le_bytes())?;
    image.write_all(&bytes.to_le_bytes())?;
    content.iter().try_for_each(|block| image.write_all(block))?;
    Ok(1)
}

fn header(blocks: u32, chunks: u32) -> Vec<u8> {
    let mut header = MAGIC.to_le_bytes().to_vec();
    for half in [1, 0, HEADER_BYTES, CHUNK_HEADER_BYTES] {
        header.extend(half.to_le_bytes());
    }
    for word in [BLOCK_BYTES as u32, blocks, chunks, 0] {
        header.extend(word.to_le_bytes());
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_left_out_and_blocks_are_whole() {
        let mut disk = vec![0; 600 * BLOCK_BYTES];
        disk[5 * BLOCK_BYTES + 7] = 1;
        disk[6 * BLOCK_BYTES] = 2;
        let mut image = io::Cursor::new(Vec::new());
        sparse(&disk[..], &mut image, Blank::Zeroes).unwrap();
        let image = image.into_inner();
        let word = |at: usize| u32::from_le_bytes(image[at..at + 4].try_into().unwrap());
        assert_eq!(image.len(), 28 + 3 * 12 + 2 * BLOCK_BYTES);
        assert_eq!((word(0), word(12), word(16), word(20)), (MAGIC, 4096, 600, 3));
        assert_eq!((word(28) as u16, word(32), word(36)), (DO_NOT_CARE, 5, 12));
        assert_eq!((word(40) as u16, word(44)), (RAW, 2));
        assert_eq!(image[52 + 7], 1);
        let end = 52 + 2 * BLOCK_BYTES;
        assert_eq!((word(end) as u16, word(end + 4)), (DO_NOT_CARE, 593));
        assert!(sparse(&disk[..5000], io::Cursor::new(Vec::new()), Blank::Zeroes).is_err());
    }
}
