//! Memory that a call points to: numbers, structures, paths and buffers. Of a stopped thread it is
//! read from the process (process_vm_readv(2)).

/// PATH_MAX, with its zero.
const MOST_PATH: usize = 4096;
const PAGE: usize = 4096;
/// UIO_MAXIOV.
const MOST_VECTORS: usize = 1024;

/// Memory that calls point to.
pub trait ProgramMemory {
    /// Reads into `buffer` what is at `address`; returns how many bytes could be read.
    fn read(&self, address: u64, buffer: &mut [u8]) -> usize;
}

/// That of a process, as it is now.
pub struct ProcessMemory(pub i32);

impl ProgramMemory for ProcessMemory {
    fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let remote = libc::iovec { iov_base: address as *mut _, iov_len: buffer.len() };
        // SAFETY: the local buffer is ours; the kernel checks the other's addresses.
        let got =
            unsafe { libc::process_vm_readv(self.0, &raw const local, 1, &raw const remote, 1, 0) };
        usize::try_from(got).unwrap_or(0)
    }
}

/// Bytes at an address; none if they are not all there.
pub fn array<const N: usize>(
    memory: &(impl ProgramMemory + ?Sized),
    address: u64,
) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    (address != 0 && memory.read(address, &mut bytes) == N).then_some(bytes)
}

/// A 64-bit number at an address.
pub fn number(memory: &(impl ProgramMemory + ?Sized), address: u64) -> Option<i64> {
    array(memory, address).map(i64::from_ne_bytes)
}

/// The bytes up to the zero: a path. None if it cannot be read or is too long, which the kernel
/// refuses as well.
pub fn string(memory: &(impl ProgramMemory + ?Sized), address: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 256];
    while address != 0 && bytes.len() < MOST_PATH {
        let at = address + bytes.len() as u64;
        // Not beyond a page: the next one may be nobody's.
        let left = (PAGE - at as usize % PAGE).min(buffer.len());
        let got = memory.read(at, &mut buffer[..left]);
        if let Some(end) = buffer[..got].iter().position(|byte| *byte == 0) {
            bytes.extend_from_slice(&buffer[..end]);
            return Some(bytes);
        }
        if got < left {
            return None;
        }
        bytes.extend_from_slice(&buffer[..got]);
    }
    None
}

/// Address and length of each of `count` buffers.
pub fn vectors(
    memory: &(impl ProgramMemory + ?Sized),
    address: u64,
    count: u64,
) -> Option<Vec<(u64, u64)>> {
    let count = usize::try_from(count).ok().filter(|count| *count <= MOST_VECTORS)?;
    let mut bytes = vec![0; count * 16];
    if memory.read(address, &mut bytes) != bytes.len() {
        return None;
    }
    let half = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
    Some(bytes.chunks_exact(16).map(|it| (half(&it[..8]), half(&it[8..]))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> ProcessMemory {
        ProcessMemory(std::process::id() as i32)
    }

    #[test]
    fn memory_is_read_up_to_its_end() {
        let text = c"a path";
        assert_eq!(string(&own(), text.as_ptr() as u64).unwrap(), b"a path");
        assert_eq!(string(&own(), 0), None);
        assert_eq!(string(&own(), 8), None);
        let long = vec![b'x'; 5000];
        assert_eq!(string(&own(), long.as_ptr() as u64), None);
        let value = -7_i64;
        assert_eq!(number(&own(), &raw const value as u64), Some(-7));
        assert_eq!(number(&own(), 0), None);
        let buffers = [(1_u64, 2_u64), (3, 4)];
        assert_eq!(vectors(&own(), buffers.as_ptr() as u64, 2).unwrap(), buffers);
        assert_eq!(vectors(&own(), buffers.as_ptr() as u64, 1 << 40), None);
    }
}
