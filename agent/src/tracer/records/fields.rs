//! A cursor over the bytes of a record: returns its fields in order, in the kernel's little-endian
//! layout. The caller must have checked the length: a field that is cut off panics.

use crate::byte_text;

/// Takes little-endian fields off the front of a record whose length was checked.
pub struct Fields<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Fields<'a> {
    /// At the beginning of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Fields { bytes, position: 0 }
    }

    /// The next bytes.
    pub fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut field = [0; N];
        field.copy_from_slice(&self.bytes[self.position..self.position + N]);
        self.position += N;
        field
    }

    /// The next u8.
    pub fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.take())
    }

    /// The next u32.
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    /// The next u64.
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    /// Leaves bytes out.
    pub fn skip(&mut self, count: usize) {
        self.position += count;
    }

    /// A string in a field of `size` bytes, up to its NUL if it has one.
    pub fn text(&mut self, size: usize) -> String {
        let field = &self.bytes[self.position..self.position + size];
        self.position += size;
        byte_text::comm(field)
    }

    /// What is behind the fields taken.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }
}
