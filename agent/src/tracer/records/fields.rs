//! The fields of a record in the bytes that the kernel sent.

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
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut field = [0; N];
        field.copy_from_slice(&self.bytes[self.position..self.position + N]);
        self.position += N;
        field
    }

    /// The next field.
    pub fn take_field<F: RecordField>(&mut self) -> F {
        F::take_field(self)
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

    /// Return the bytes behind the fields taken.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }
}

/// Decodes a field, or several that follow each other.
pub trait RecordField {
    fn take_field(fields: &mut Fields) -> Self;
}

macro_rules! number_field {
    ($($type:ty),+) => {$(
        impl RecordField for $type {
            fn take_field(fields: &mut Fields) -> Self {
                Self::from_le_bytes(fields.bytes())
            }
        }
    )+};
}
number_field!(u8, u32, u64);

impl RecordField for bool {
    fn take_field(fields: &mut Fields) -> Self {
        u8::take_field(fields) != 0
    }
}

/// A command name.
impl RecordField for String {
    fn take_field(fields: &mut Fields) -> Self {
        fields.text(16)
    }
}
