//! Seeds the kernel's generator of random numbers, which finds no source of them in a guest: it
//! would collect the jitter of its own clock for a second of virtual time
//! (try_to_generate_entropy() in drivers/char/random.c), a fifth of the 5.2 thousand million
//! instructions of a boot, and a guest's numbers are to be the same in every boot anyway.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// _IOW('R', 0x03, int[2]), include/uapi/linux/random.h.
const RNDADDENTROPY: libc::Ioctl = 0x4008_5203;
const SEED: [u8; 32] = *b"jojlab: the seed of every guest.";

/// struct rand_pool_info of include/uapi/linux/random.h, with its buffer.
#[repr(C)]
struct Given {
    entropy_bits: libc::c_int,
    seed_bytes: libc::c_int,
    seed: [u8; SEED.len()],
}

/// Whoever asks for random numbers does not wait any more.
///
/// # Errors
/// If the kernel refuses the seed: only root may give one.
pub fn seed() -> io::Result<()> {
    let given = Given { entropy_bits: 256, seed_bytes: 32, seed: SEED };
    let file = File::open("/dev/urandom")?;
    // SAFETY: the call reads a rand_pool_info and as many bytes behind it as its length says.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), RNDADDENTROPY, &raw const given) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
