//! SQLite's random numbers, of a seed. It names super-journals by them, and salts journals and
//! WALs; from /dev/urandom these would differ from one boot to the next, and tables with them.

use std::ffi::c_int;

use rusqlite::ffi;

/// Largest seed that SQLite takes: a C int, of which 0 means /dev/urandom.
const SEEDS: u64 = i32::MAX as u64;

/// Starts SQLite's generator anew from `seed`; it is one for the whole process.
///
/// # Panics
/// If SQLite was built without test controls: our build never is.
pub fn seed(seed: u64) {
    let seed = c_int::try_from(seed % SEEDS + 1).unwrap_or(1);
    let no_handle = std::ptr::null_mut::<ffi::sqlite3>();
    // SAFETY: the arguments that SQLITE_TESTCTRL_PRNG_SEED takes (src/main.c): an int, and a handle
    // whose schema would overrule it, or null.
    let result =
        unsafe { ffi::sqlite3_test_control(ffi::SQLITE_TESTCTRL_PRNG_SEED, seed, no_handle) };
    assert_eq!(result, ffi::SQLITE_OK, "SQLite takes a seed");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_again() {
        // Other tests draw from the one generator meanwhile; between seed and draw few fit in.
        let drawn = |number: u64| {
            seed(number);
            let mut bytes = [0_u8; 8];
            // SAFETY: the length is the buffer's.
            unsafe { ffi::sqlite3_randomness(8, bytes.as_mut_ptr().cast()) };
            bytes
        };
        assert!((0..100).any(|_| drawn(7) == drawn(7)));
        assert!((0..100).any(|_| drawn(7) != drawn(8)));
    }
}
