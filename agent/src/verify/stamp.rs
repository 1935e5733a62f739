//! The stamp of a sector: the file, the offset in it and the version that were written.

/// Sectors are stamped one by one: a filesystem may place each block of a file elsewhere.
pub const SECTOR: usize = 512;
const BYTES: usize = 32;
const MAGIC: u64 = 0x6a6f_6a6c_6162_2121;

/// The stamp of one sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub file: u32,
    pub version: u32,
    pub offset: u64,
}

impl Stamp {
    fn bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.file.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.version.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_le_bytes());
        bytes[24..].copy_from_slice(&(!self.offset ^ u64::from(self.file)).to_le_bytes());
        bytes
    }

    /// The stamp that fills a sector; None where it holds anything else.
    pub fn read(sector: &[u8]) -> Option<Self> {
        let number = |from: usize| u32::from_le_bytes(sector[from..from + 4].try_into().unwrap());
        let offset = u64::from_le_bytes(sector.get(16..24)?.try_into().ok()?);
        let stamp = Stamp { file: number(8), version: number(12), offset };
        let wanted = stamp.bytes();
        sector.chunks(BYTES).all(|chunk| chunk == &wanted[..chunk.len()]).then_some(stamp)
    }
}

/// Stamps the bytes that are to be written at `offset`, a multiple of a sector.
pub fn fill(buffer: &mut [u8], file: u32, version: u32, offset: u64) {
    for (index, sector) in buffer.chunks_mut(SECTOR).enumerate() {
        let stamp = Stamp { file, version, offset: offset + (index * SECTOR) as u64 }.bytes();
        sector.chunks_mut(BYTES).for_each(|chunk| chunk.copy_from_slice(&stamp[..chunk.len()]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_back_and_nothing_else_is_one() {
        let mut bytes = [0; 4 * SECTOR];
        fill(&mut bytes, 7, 2, 8192);
        let stamp = Stamp { file: 7, version: 2, offset: 8192 + 3 * 512 };
        assert_eq!(Stamp::read(&bytes[3 * SECTOR..]), Some(stamp));
        assert_eq!(Stamp::read(&[0; SECTOR]), None);
        bytes[SECTOR - 1] ^= 1;
        assert_eq!(Stamp::read(&bytes[..SECTOR]), None);
    }
}
