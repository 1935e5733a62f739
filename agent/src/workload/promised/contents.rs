//! The bytes that calls wrote: where each byte of one long stream went.

/// The period of what files are filled with before the first call.
const FILL_BYTES: usize = 1 << 20;

/// What bytes of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenBytes {
    /// The stream from a place on, which is at the given offset of the file.
    Stream {
        place: usize,
        offset_bytes: u64,
    },
    /// The beginning of the stream, over and over.
    Fill,
    Zeros,
    /// Any: nobody kept what was written.
    Unknown,
}

impl WrittenBytes {
    /// Whether a file may hold that at an offset.
    pub fn are(self, found: &[u8], at_bytes: u64, stream: &[u8]) -> bool {
        match self {
            Self::Unknown => true,
            Self::Zeros => found.iter().all(|byte| *byte == 0),
            Self::Stream { place, offset_bytes } => {
                let begin = place + (at_bytes - offset_bytes) as usize;
                stream.get(begin..begin + found.len()) == Some(found)
            }
            Self::Fill => {
                let begin = (at_bytes % FILL_BYTES as u64) as usize;
                let first = found.len().min(FILL_BYTES - begin);
                stream.get(begin..begin + first) == Some(&found[..first])
                    && stream.get(..found.len() - first) == Some(&found[first..])
            }
        }
    }
}
