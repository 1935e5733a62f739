//! Says what in an object file no kernel of 5.10 would take: tests ask it of the objects for
//! kernels before 5.17, which no test of this tier can load. Reads the instructions of an ELF file
//! (elf(5), Documentation/bpf/standardization/instruction-set.rst of Linux).

/// bpf_redirect_peer, the last of Linux 5.10 (include/uapi/linux/bpf.h).
const LAST_HELPER: i32 = 155;

const EXECUTABLE: u64 = 4; // SHF_EXECINSTR
const CALL: u8 = 0x85;
const LOAD_64_BITS: u8 = 0x18;
const ATOMIC: [u8; 2] = [0xc3, 0xdb];
const ATOMIC_ADD: i32 = 0;
/// In the upper half of the registers' byte: whom a call is to, and what is loaded.
const TO_HELPER: u8 = 0;
const A_FUNCTION: u8 = 4; // BPF_PSEUDO_FUNC

/// The faults, each in words; and how many instructions were looked at.
pub fn faults(object: &[u8]) -> (Vec<String>, usize) {
    let (mut faults, mut seen) = (Vec::new(), 0);
    let u64_at = |at: usize| u64::from_le_bytes(object[at..at + 8].try_into().unwrap());
    let u16_at = |at: usize| usize::from(u16::from_le_bytes([object[at], object[at + 1]]));
    let (table, size, count) = (u64_at(0x28) as usize, u16_at(0x3a), u16_at(0x3c));
    for section in (0..count).map(|number| table + number * size) {
        if u64_at(section + 8) & EXECUTABLE == 0 {
            continue;
        }
        let (begin, bytes) = (u64_at(section + 0x18) as usize, u64_at(section + 0x20) as usize);
        for (number, words) in object[begin..begin + bytes].chunks_exact(8).enumerate() {
            seen += 1;
            let (code, kind) = (words[0], words[1] >> 4);
            let value = i32::from_le_bytes(words[4..8].try_into().unwrap());
            let fault = match code {
                CALL if kind == TO_HELPER && value > LAST_HELPER => "calls a younger helper",
                LOAD_64_BITS if kind == A_FUNCTION => "has a callback",
                _ if ATOMIC.contains(&code) && value != ATOMIC_ADD => "has an atomic operation",
                _ => continue,
            };
            faults.push(format!("instruction {number} at {begin:#x} {fault}: {value:#x}"));
        }
    }
    (faults, seen)
}
