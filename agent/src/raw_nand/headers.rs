//! UBI's two headers (drivers/mtd/ubi/ubi-media.h): the erase counter at the begin of every block,
//! and, once the block is in a volume, which logical block of which volume it is. Big-endian.

const ERASE_COUNTER_MAGIC: &[u8] = b"UBI#";
const VOLUME_MAGIC: &[u8] = b"UBI!";

/// UBI_LAYOUT_VOLUME_ID: the volume that holds the table of volumes.
pub const LAYOUT_VOLUME: u32 = 0x7fff_efff;

/// One of UBI's headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    EraseCounter { erases: u64, data_offset_bytes: u32 },
    Volume { volume: u32, logical_block: u32 },
}

/// The header that bytes begin with.
pub fn parse(bytes: &[u8]) -> Option<Header> {
    let word = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    match bytes.get(..4)? {
        ERASE_COUNTER_MAGIC => {
            let erases = u64::from_be_bytes(bytes.get(8..16)?.try_into().ok()?);
            Some(Header::EraseCounter { erases, data_offset_bytes: word(20)? })
        }
        VOLUME_MAGIC => Some(Header::Volume { volume: word(8)?, logical_block: word(12)? }),
        _ => None,
    }
}
