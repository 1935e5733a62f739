//! Flags of open(2) as numbers. Tables have those of x86_64, whatever processor made them; four of
//! arm64's are others (arch/arm64/include/uapi/asm/fcntl.h). Those of this kernel are turned where
//! rows are made, and back where they are read.

/// Of x86_64 O_DIRECT and O_LARGEFILE; of arm64 O_DIRECTORY and O_NOFOLLOW. The other two of each
/// are two bits above.
const LOWER: i64 = 0o140_000;

/// The flags of x86_64 for those of this kernel.
pub fn from_kernel(flags: i64) -> i64 {
    if cfg!(target_arch = "aarch64") { turned(flags) } else { flags }
}

/// The flags of this kernel for those of x86_64.
pub fn to_kernel(flags: i64) -> i64 {
    from_kernel(flags)
}

/// From x86_64's to arm64's, and from arm64's to x86_64's: two pairs change places.
pub fn turned(flags: i64) -> i64 {
    let others = flags & !(LOWER | LOWER << 2);
    others | (flags & LOWER) << 2 | flags >> 2 & LOWER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_flags_of_arm64_have_other_numbers() {
        // O_DIRECT, O_DIRECTORY, O_NOFOLLOW, O_LARGEFILE; O_RDWR, O_CREAT and O_CLOEXEC are equal.
        for (x86_64, arm64) in [
            (0o040_000, 0o200_000),
            (0o200_000, 0o040_000),
            (0o400_000, 0o100_000),
            (0o100_000, 0o400_000),
            (0o2_000_102, 0o2_000_102),
        ] {
            assert_eq!((turned(x86_64), turned(arm64)), (arm64, x86_64), "{x86_64:o}");
        }
        assert_eq!(turned(-1), -1);
    }

    #[test]
    fn flags_of_this_machine_become_those_of_tables() {
        let flags = [libc::O_DIRECT, libc::O_DIRECTORY, libc::O_NOFOLLOW].map(i64::from);
        assert_eq!(flags.map(from_kernel), [0o040_000, 0o200_000, 0o400_000]);
        assert_eq!(flags.map(from_kernel).map(to_kernel), flags);
    }
}
