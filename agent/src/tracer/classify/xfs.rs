//! XFS: what a metadata block is, by the name of its buffer's operations; or by its first bytes,
//! where the kernel does not show what its buffers are (modules have no BTF before Linux 5.11). The
//! magic numbers are those of xfs_format.h and xfs_da_format.h in fs/xfs/libxfs of Linux 5.10; the
//! names are those of the kernel's buffer operations, without "xfs_".

use super::class::{BlockType, Class};
use crate::tracer::records::Bio;

/// A metadata block, which has a buffer.
pub fn buffer(bio: &Bio) -> Class {
    if let Some(first) = bio.buffer_contents {
        return Class::new(BlockType::FsMetadata, block_name(first));
    }
    let name = bio.buffer_type.strip_prefix("xfs_").unwrap_or(&bio.buffer_type);
    Class::new(BlockType::FsMetadata, name.to_owned())
}

/// The byte at which blocks of directories and attributes have theirs (struct xfs_da_blkinfo).
const SHORT_MAGIC_OFFSET: usize = 8;

/// The name; empty for a block that has no magic number, as one of a symbolic link of version 4.
fn block_name(first: [u8; 16]) -> &'static str {
    let long = match &first[..4] {
        b"XFSB" => "sb",
        b"XAGF" => "agf",
        b"XAGI" => "agi",
        b"XAFL" => "agfl",
        b"ABTB" | b"AB3B" => "bnobt",
        b"ABTC" | b"AB3C" => "cntbt",
        b"IABT" | b"IAB3" => "inobt",
        b"FIBT" | b"FIB3" => "finobt",
        b"RMB3" => "rmapbt",
        b"R3FC" => "refcountbt",
        b"BMAP" | b"BMA3" => "bmbt",
        b"XD2B" | b"XDB3" => "dir3_block",
        b"XD2D" | b"XDD3" => "dir3_data",
        b"XD2F" | b"XDF3" => "dir3_free",
        b"XARM" => "attr3_rmt",
        b"XSLM" => "symlink",
        [b'I', b'N', ..] => "inode",
        [b'D', b'Q', ..] => "dquot",
        _ => "",
    };
    if !long.is_empty() {
        return long;
    }
    match [first[SHORT_MAGIC_OFFSET], first[SHORT_MAGIC_OFFSET + 1]] {
        [0xd2 | 0x3d, 0xf1] => "dir3_leaf1",
        [0xd2 | 0x3d, 0xff] => "dir3_leafn",
        [0xfe | 0x3e, 0xbe] => "da3_node",
        [0xfb | 0x3b, 0xee] => "attr3_leaf",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(offset: usize, magic: &[u8]) -> [u8; 16] {
        let mut first = [0; 16];
        first[offset..offset + magic.len()].copy_from_slice(magic);
        first
    }

    #[test]
    fn blocks_are_known_by_their_magic_numbers() {
        assert_eq!(block_name(block(0, b"XAGF")), "agf");
        assert_eq!(block_name(block(0, b"AB3C")), "cntbt");
        assert_eq!(block_name(block(0, b"IN\x81\xa4")), "inode");
        assert_eq!(block_name(block(0, b"XDB3")), "dir3_block");
        assert_eq!(block_name(block(8, &[0x3d, 0xff])), "dir3_leafn");
        assert_eq!(block_name(block(8, &[0xfb, 0xee])), "attr3_leaf");
    }

    #[test]
    fn other_blocks_have_no_name() {
        for first in [[0; 16], [0xff; 16], block(4, b"XAGF"), block(8, &[0x3d, 0xbe])] {
            assert_eq!(block_name(first), "");
        }
    }
}
