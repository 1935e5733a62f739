//! The page of this kernel: the unit of its memory and of its page cache.

/// Its bytes: 4096 on x86_64; also 16384 or 65536 on arm64.
pub fn page_bytes() -> usize {
    // SAFETY: no memory is involved.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}
