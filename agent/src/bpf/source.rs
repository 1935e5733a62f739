//! What both kinds of rings do for their reader.

/// A ring that records come from.
pub trait RecordSource: Send {
    /// Bytes that wait to be read.
    fn waiting_bytes(&self) -> usize;

    /// Appends (length u32, record) of every record that is whole by now, in their order, up to
    /// about `limit_bytes` at a time.
    fn read(&mut self, into: &mut Vec<u8>, limit_bytes: usize);
}
