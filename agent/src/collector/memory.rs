//! Keeps the process about as large as what it holds: glibc's allocator keeps what was freed, up to
//! 64 MiB of it once blocks of 32 MiB were (mallopt(3), M_MMAP_THRESHOLD), and has a heap for each
//! thread.

/// Larger blocks are the kernel's, and go back to it when they are freed: rows, pieces of the ring.
const MAPPED_BYTES: libc::c_int = 256 << 10;

/// More than that at the end of the heap goes back, too.
const FREE_BYTES: libc::c_int = 1 << 20;

/// From now on; before there is another thread.
pub fn keep_little() {
    for (what, value) in [
        (libc::M_ARENA_MAX, 1),
        (libc::M_MMAP_THRESHOLD, MAPPED_BYTES),
        (libc::M_TRIM_THRESHOLD, FREE_BYTES),
    ] {
        // SAFETY: sets a number of the allocator's. Where it refuses, it stays as it was.
        unsafe { libc::mallopt(what, value) };
    }
}

/// Gives back what was freed in the middle of the heap, as when a segment is closed.
pub fn give_back() {
    // SAFETY: touches free memory alone.
    unsafe { libc::malloc_trim(0) };
}
