//! From the arguments of a call that begins to a row of `calls`: reads what they point to.

use super::calls::{Role, SystemCall};
use super::contents::{self, ProgramMemory};
use super::words;
use crate::system_calls;
use crate::system_calls::{SYS_open, SYS_open_by_handle_at, SYS_openat, SYS_openat2, SYS_pipe2};
use crate::tables::recording::RecordedCall;

/// Calls whose flags are those of open(2).
const OPEN_CALLS: [i64; 5] = [SYS_open, SYS_openat, SYS_openat2, SYS_open_by_handle_at, SYS_pipe2];

/// A call that begins.
#[derive(Debug, Default)]
pub struct CallStart {
    pub row: RecordedCall,
    /// The bytes of its paths.
    pub path: Option<Vec<u8>>,
    pub path2: Option<Vec<u8>>,
    /// Address and length of what it writes, piece by piece.
    pub written: Vec<(u64, u64)>,
    /// Address of the two descriptors that it makes.
    pub pair: Option<u64>,
    /// Arguments that point to memory which cannot be read.
    pub unread: u64,
}

impl CallStart {
    /// Reads the arguments of a call from what they point to.
    pub fn read(memory: &dyn ProgramMemory, call: &SystemCall, arguments: &[u64; 6]) -> Self {
        let mut begun = CallStart::default();
        begun.row.name = call.name.into();
        for (index, role) in call.roles.iter().enumerate() {
            begun.argument(memory, *role, index, arguments);
        }
        let row = &mut begun.row;
        if OPEN_CALLS.contains(&call.number) || row.command.as_deref() == Some("F_SETFL") {
            row.flags = row.flags.map(system_calls::flags_from_kernel);
        }
        begun
    }

    fn argument(
        &mut self,
        from: &dyn ProgramMemory,
        role: Role,
        index: usize,
        arguments: &[u64; 6],
    ) {
        let value = arguments[index];
        let next = arguments.get(index + 1).copied().unwrap_or(0);
        let (whole, small, bits) = (value as i64, value as i32, i64::from(value as u32));
        let row = &mut self.row;
        match role {
            Role::Other | Role::Stat | Role::Statx => {}
            Role::Descriptor => row.descriptor = Some(small.into()),
            Role::Descriptor2 => row.descriptor2 = Some(small.into()),
            Role::Pair => self.pair = Some(value),
            Role::Directory => row.directory = Some(small.into()),
            Role::Directory2 => row.directory2 = Some(small.into()),
            Role::Path => {
                self.path = self.string(from, value);
                self.row.path = self.path.as_deref().map(words::text);
            }
            Role::Path2 => {
                self.path2 = self.string(from, value);
                self.row.path2 = self.path2.as_deref().map(words::text);
            }
            Role::Text => self.row.text = self.string(from, value).as_deref().map(words::text),
            Role::Offset => row.offset_bytes = Some(whole),
            Role::OffsetAt => row.offset_bytes = contents::number(from, value),
            Role::Offset2At => row.offset2_bytes = contents::number(from, value),
            Role::Length => row.length_bytes = Some(whole),
            Role::OldLength => row.offset2_bytes = Some(whole),
            Role::Bytes => self.written.push((value, next)),
            Role::Vectors | Role::VectorsOut => self.vectors(from, role, value, next),
            Role::Flags => row.flags = Some(bits),
            Role::Mode => row.mode = Some(bits),
            Role::Address => row.address = Some(whole),
            Role::Whence => row.command = Some(words::whence(small)),
            Role::LockOperation => {
                row.command = Some(words::lock_operation(small & !libc::LOCK_NB));
                row.flags = Some(bits);
            }
            Role::Command => self.command(from, small, next),
            Role::OpenHow => match contents::array::<24>(from, value) {
                // struct open_how: flags, mode, resolve.
                Some(how) => {
                    row.flags = Some(number(&how[0..8]));
                    row.mode = Some(number(&how[8..16]));
                }
                None => self.unread += 1,
            },
            Role::CloneArguments => match contents::number(from, value) {
                Some(flags) => row.flags = Some(flags),
                None => self.unread += 1,
            },
            // struct io_uring_params: sq_entries, cq_entries, flags.
            Role::RingParameters => match contents::array::<4>(from, value.wrapping_add(8)) {
                Some(flags) => row.flags = Some(u32::from_ne_bytes(flags).into()),
                None => self.unread += 1,
            },
        }
    }

    /// A null pointer is none, and no fault of ours: utimensat(2) takes one.
    fn string(&mut self, from: &dyn ProgramMemory, address: u64) -> Option<Vec<u8>> {
        let found = contents::string(from, address);
        self.unread += u64::from(found.is_none() && address != 0);
        found
    }

    fn vectors(&mut self, from: &dyn ProgramMemory, role: Role, address: u64, count: u64) {
        self.row.vectors = Some(count as i64);
        match contents::vectors(from, address, count) {
            Some(vectors) => {
                let length = vectors.iter().fold(0_u64, |sum, it| sum.saturating_add(it.1));
                self.row.length_bytes = Some(length as i64);
                if role == Role::VectorsOut {
                    self.written = vectors;
                }
            }
            None => self.unread += 1,
        }
    }

    fn command(&mut self, from: &dyn ProgramMemory, command: i32, argument: u64) {
        self.row.command = Some(words::command(command));
        let locks = [
            libc::F_GETLK,
            libc::F_SETLK,
            libc::F_SETLKW,
            libc::F_OFD_GETLK,
            libc::F_OFD_SETLK,
            libc::F_OFD_SETLKW,
        ];
        if !locks.contains(&command) {
            self.row.flags = Some(argument as i64);
            return;
        }
        // struct flock: l_type, l_whence, four bytes between, l_start, l_len, l_pid.
        let Some(lock) = contents::array::<32>(from, argument) else {
            self.unread += 1;
            return;
        };
        self.row.lock = Some(words::lock(i16::from_ne_bytes([lock[0], lock[1]])));
        self.row.flags = Some(i16::from_ne_bytes([lock[2], lock[3]]).into());
        self.row.offset_bytes = Some(number(&lock[8..16]));
        self.row.length_bytes = Some(number(&lock[16..24]));
    }
}

fn number(bytes: &[u8]) -> i64 {
    i64::from_ne_bytes(bytes.try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::contents::ProcessMemory;

    fn start_of(name: &str, arguments: [u64; 6]) -> CallStart {
        CallStart::read(
            &ProcessMemory(std::process::id() as i32),
            SystemCall::find_name(name).unwrap(),
            &arguments,
        )
    }

    #[test]
    fn arguments_find_their_columns() {
        let path = c"a/b";
        let at_cwd = libc::AT_FDCWD as u32;
        let open = start_of("openat", [at_cwd.into(), path.as_ptr() as u64, 0o102, 0o644, 0, 0]);
        assert_eq!(open.row.directory, Some(-100));
        assert_eq!(open.row.path.as_deref(), Some("a/b"));
        assert_eq!((open.row.flags, open.row.mode), (Some(0o102), Some(0o644)));
        let write = start_of("pwrite64", [3, 77, 4096, 8192, 0, 0]);
        assert_eq!(write.row.descriptor, Some(3));
        assert_eq!(write.row.length_bytes, Some(4096));
        assert_eq!(write.row.offset_bytes, Some(8192));
        assert_eq!(write.written, [(77, 4096)]);
        let seek = start_of("lseek", [3, (-5_i64) as u64, 2, 0, 0, 0]);
        assert_eq!(seek.row.offset_bytes, Some(-5));
        assert_eq!(seek.row.command.unwrap(), "SEEK_END");
    }

    #[test]
    fn the_memory_that_arguments_point_to_is_read() {
        let lock = libc::flock {
            l_type: libc::F_WRLCK as i16,
            l_whence: 0,
            l_start: 1 << 30,
            l_len: 510,
            l_pid: 0,
        };
        let set = start_of("fcntl", [4, libc::F_SETLK as u64, &raw const lock as u64, 0, 0, 0]);
        assert_eq!(set.row.command.unwrap(), "F_SETLK");
        assert_eq!(set.row.lock.unwrap(), "F_WRLCK");
        assert_eq!((set.row.offset_bytes, set.row.length_bytes), (Some(1 << 30), Some(510)));
        let vectors = [(1_u64, 10_u64), (2, 20)];
        let writev = start_of("writev", [4, vectors.as_ptr() as u64, 2, 0, 0, 0]);
        assert_eq!((writev.row.vectors, writev.row.length_bytes), (Some(2), Some(30)));
        assert_eq!(writev.written, vectors);
        let copy = start_of("copy_file_range", [4, 0, 5, &raw const vectors as u64, 7, 0]);
        assert_eq!((copy.row.offset_bytes, copy.row.offset2_bytes), (None, Some(1)));
        assert_eq!(start_of("stat", [8, 0, 0, 0, 0, 0]).unread, 1);
    }
}
