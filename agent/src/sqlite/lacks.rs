//! What this machine may lack when SQLite fails for a reason that may be the machine's or the
//! file's. Tries it out: says whether the process has no descriptor, mapping or space of its own.

use std::env::temp_dir;
use std::fs::File;
use std::ptr;

use rustix::fs::statvfs;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// As SQLite maps of a WAL's index (sqlite.org/walformat.html, 2.1).
const MAPPING_BYTES: usize = 32 << 10;

/// What a call of SQLite needs of the machine, beside memory, of which SQLite itself tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    Descriptor,
    Mapping,
    /// Where temporary files go: in a guest, its own root, and not the disk whose power was cut.
    Space,
}

impl Lack {
    #[cfg(test)]
    pub const ALL: [Self; 3] = [Self::Descriptor, Self::Mapping, Self::Space];

    /// Whether the machine lacks it now.
    pub fn is_there(self) -> bool {
        match self {
            Self::Descriptor => File::open("/dev/null").is_err(),
            Self::Mapping => !can_map(),
            // ramfs and others have no limit, and say 0 of 0.
            Self::Space => {
                statvfs(temp_dir()).is_ok_and(|room| room.f_blocks > 0 && room.f_bavail == 0)
            }
        }
    }
}

fn can_map() -> bool {
    // SAFETY: new memory is mapped where the kernel chooses, and nothing refers to it.
    let mapped = unsafe {
        mmap_anonymous(ptr::null_mut(), MAPPING_BYTES, ProtFlags::READ, MapFlags::PRIVATE)
    };
    // SAFETY: it was mapped above, at this length, and is not used.
    mapped.is_ok_and(|at| unsafe { munmap(at, MAPPING_BYTES) }.is_ok())
}

#[cfg(test)]
mod tests {
    use std::io::Error;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use rustix::process::{Resource, Rlimit, setrlimit};

    use super::*;

    /// Whether it is there in a process that may have nothing of a resource.
    fn is_there_without(resource: Resource, lack: Lack) -> bool {
        let mut command = Command::new("/bin/true");
        let tried = move || {
            setrlimit(resource, Rlimit { current: Some(0), maximum: Some(0) })?;
            if lack.is_there() { Err(Error::from_raw_os_error(libc::EXDEV)) } else { Ok(()) }
        };
        // SAFETY: between fork and exec it makes system calls alone, and allocates nothing.
        let ended = unsafe { command.pre_exec(tried) }.status();
        ended.is_err_and(|error| error.raw_os_error() == Some(libc::EXDEV))
    }

    #[test]
    fn a_machine_in_order_lacks_nothing() {
        for lack in Lack::ALL {
            assert!(!lack.is_there(), "{lack:?}");
        }
    }

    #[test]
    fn what_a_process_may_not_have_it_lacks() {
        assert!(is_there_without(Resource::Nofile, Lack::Descriptor));
        assert!(is_there_without(Resource::As, Lack::Mapping));
        assert!(!is_there_without(Resource::Core, Lack::Descriptor));
        assert!(!is_there_without(Resource::Core, Lack::Mapping));
    }
}
