//! Memory that suits O_DIRECT.

/// Alignment of memory and lengths that suits O_DIRECT on any filesystem of 4 KiB blocks.
const ALIGNMENT_BYTES: usize = 4096;

/// Memory of a length whose address suits O_DIRECT.
pub struct AlignedBuffer {
    memory: Vec<u8>,
    skipped: usize,
    length: usize,
}

impl AlignedBuffer {
    /// Of zeros.
    pub fn new(length: usize) -> Self {
        let memory = vec![0; length + ALIGNMENT_BYTES];
        let skipped = memory.as_ptr().align_offset(ALIGNMENT_BYTES);
        Self { memory, skipped, length }
    }

    /// The memory, to read it.
    pub fn as_slice(&self) -> &[u8] {
        &self.memory[self.skipped..self.skipped + self.length]
    }

    /// The memory.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.skipped..self.skipped + self.length]
    }
}
