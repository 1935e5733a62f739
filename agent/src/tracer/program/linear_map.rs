//! Where arm64 has its pages: the kernel turns the address of a struct page into that of the page's
//! bytes by two constants (page_to_virt() of arch/arm64/include/asm/memory.h), which are variables
//! on x86_64. Reads the note VMCOREINFO in the head of /proc/kcore (Linux 4.19;
//! Documentation/admin-guide/kdump/vmcoreinfo.rst), which names them from Linux 6.0 on.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Programs' headers and notes are within it.
const HEAD_BYTES: usize = 1 << 20;
const PT_NOTE: u64 = 4;

/// The address of the first struct page, and that of the first page's bytes; none where the kernel
/// does not say, or root may not read it.
pub fn read() -> Option<(u64, u64)> {
    let file = File::open("/proc/kcore").ok()?;
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0).ok()?;
    let (table, count) = (word(&head, 32)?, u16::from_le_bytes([head[56], head[57]]));
    let mut entries = vec![0; usize::from(count) * 56];
    file.read_exact_at(&mut entries, table).ok()?;
    let note = entries.chunks_exact(56).find(|it| word(it, 0).is_some_and(is_note))?;
    let bytes = usize::try_from(word(note, 32)?).ok()?.min(HEAD_BYTES);
    let mut notes = vec![0; bytes];
    file.read_exact_at(&mut notes, word(note, 8)?).ok()?;
    of_notes(&notes)
}

/// p_type is the lower half of the first word.
fn is_note(word: u64) -> bool {
    word & 0xffff_ffff == PT_NOTE
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn of_notes(notes: &[u8]) -> Option<(u64, u64)> {
    let value = |name: &str| {
        let name = format!("\n{name}=");
        let at = notes.windows(name.len()).position(|it| it == name.as_bytes())? + name.len();
        let end = notes[at..].iter().position(|byte| *byte == b'\n')? + at;
        std::str::from_utf8(&notes[at..end]).ok()
    };
    let vmemmap = value("NUMBER(VMEMMAP_START)")?.trim_start_matches("0x");
    let bits: u32 = value("NUMBER(VA_BITS)")?.parse().ok().filter(|bits| *bits < 64)?;
    // PAGE_OFFSET is -(1 << VA_BITS) since Linux 5.4.
    Some((u64::from_str_radix(vmemmap, 16).ok()?, (1_u64 << bits).wrapping_neg()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_says_where_pages_are() {
        let note = b"\x0b\0\0\0VMCOREINFO\0\0OSRELEASE=6.1.0\nPAGESIZE=4096\n\
            NUMBER(VA_BITS)=48\nNUMBER(VMEMMAP_START)=0xfffffc0000000000\n\
            NUMBER(VMEMMAP_END)=0xfffffe0000000000\n";
        let found = of_notes(note);
        assert_eq!(found, Some((0xffff_fc00_0000_0000, 0xffff_0000_0000_0000)));
        assert_eq!(of_notes(b"\nNUMBER(VA_BITS)=48\n"), None);
        assert_eq!(of_notes(b""), None);
    }
}
