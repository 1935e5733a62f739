//! What a script's files are at any moment: plays its calls through without any file; finds what
//! each must hold before the first call for the calls to go as recorded, and what is left of it
//! after the last.

use super::call::CallName;
use super::step::ReplayStep;

/// A file's contents, as long as anybody has it open or a name leads to it.
#[derive(Debug, Clone, Copy, Default)]
struct Inode {
    size: u64,
    /// The file whose contents these are since before the first call, unless it was cut off.
    original_of: Option<usize>,
}

/// An open file.
#[derive(Debug, Clone, Copy)]
struct Open {
    inode: usize,
    position: u64,
    flags: i32,
}

/// What is known of a file's beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Beginning {
    /// Bytes that it has before the first call; none where it is not there.
    pub size: Option<u64>,
    /// Whether a call has shown that it is there or not.
    decided: bool,
}

impl Beginning {
    /// Of a file that is there, with as many bytes as will be read.
    pub fn there() -> Self {
        Self { size: Some(0), decided: true }
    }
}

/// The files of a script while its calls are played.
pub struct Contents {
    beginnings: Vec<Beginning>,
    /// Whether the beginnings are still looked for.
    learns: bool,
    inodes: Vec<Inode>,
    /// By file; none where no name leads to one.
    named: Vec<Option<usize>>,
    handles: Vec<Option<Open>>,
}

impl Contents {
    /// Finds each file's beginning from what is known of some.
    pub fn beginnings(
        known: Vec<Beginning>,
        handles: usize,
        steps: &[&ReplayStep],
    ) -> Vec<Beginning> {
        let mut state = Self::new(known, handles, true);
        steps.iter().for_each(|step| state.play(step));
        state.beginnings
    }

    /// Finds each file's size after the last call; none where it is not there any more.
    pub fn ends(
        beginnings: &[Beginning],
        handles: usize,
        steps: &[&ReplayStep],
    ) -> Vec<Option<u64>> {
        let mut state = Self::new(beginnings.to_vec(), handles, false);
        steps.iter().for_each(|step| state.play(step));
        let Contents { named, inodes, .. } = state;
        named.into_iter().map(|inode| inode.map(|inode| inodes[inode].size)).collect()
    }

    fn new(beginnings: Vec<Beginning>, handles: usize, learns: bool) -> Self {
        let named = vec![None; beginnings.len()];
        let (inodes, handles) = (Vec::new(), vec![None; handles]);
        let mut state = Self { beginnings, learns, inodes, named, handles };
        for file in 0..state.named.len() {
            if let Some(size) = state.beginnings[file].size {
                state.named[file] = Some(state.inode(size, Some(file)));
            }
        }
        state
    }

    fn inode(&mut self, size: u64, original_of: Option<usize>) -> usize {
        self.inodes.push(Inode { size, original_of });
        self.inodes.len() - 1
    }

    /// A call shows whether a file is there; the first one to do so tells of its beginning.
    fn show(&mut self, file: usize, there: bool) {
        if self.learns && !self.beginnings[file].decided {
            self.beginnings[file] = Beginning { size: there.then_some(0), decided: true };
            if there {
                self.named[file] = Some(self.inode(0, Some(file)));
            }
        }
    }

    fn play(&mut self, step: &ReplayStep) {
        match step.name {
            CallName::Access | CallName::Stat | CallName::Lstat => {
                if let Some(there) = step.succeeded {
                    self.show(step.file, there);
                }
            }
            CallName::Unlink => {
                self.show(step.file, step.succeeded.unwrap_or(true));
                self.named[step.file] = None;
            }
            CallName::Open => self.open(step),
            CallName::Close => {
                if let Some(handle) = step.handle {
                    self.handles[handle] = None;
                }
            }
            CallName::Read | CallName::Pread => self.read(step),
            CallName::Write | CallName::Pwrite => self.write(step),
            CallName::Fsync | CallName::Fdatasync | CallName::Fstat => {}
        }
    }

    fn open(&mut self, step: &ReplayStep) {
        let (file, has) = (step.file, |flag| step.flags & flag != 0);
        let Some(handle) = step.handle else {
            self.show(file, false);
            return;
        };
        let creates = has(libc::O_CREAT);
        if !creates {
            self.show(file, true);
        } else if has(libc::O_EXCL) {
            self.show(file, false);
        } else if self.learns && !self.beginnings[file].decided {
            // It may have been there or not: what is read of it tells.
            self.beginnings[file].decided = true;
            self.named[file] = Some(self.inode(0, Some(file)));
        }
        let inode = match self.named[file] {
            Some(_) if creates && has(libc::O_EXCL) => return,
            Some(inode) => inode,
            None if creates => self.inode(0, None),
            None => return,
        };
        self.named[file] = Some(inode);
        if has(libc::O_TRUNC) {
            self.inodes[inode] = Inode::default();
        }
        self.handles[handle] = Some(Open { inode, position: 0, flags: step.flags });
    }

    fn read(&mut self, step: &ReplayStep) {
        let Some(Some(open)) = step.handle.map(|handle| self.handles[handle]) else { return };
        if open.flags & libc::O_ACCMODE == libc::O_WRONLY {
            return;
        }
        let begin = if step.name == CallName::Pread { step.offset } else { open.position };
        let end = begin + step.bytes as u64;
        let inode = &mut self.inodes[open.inode];
        if let Some(file) = inode.original_of
            && self.learns
            && end > inode.size
            && step.bytes > 0
        {
            inode.size = end;
            let size = &mut self.beginnings[file].size;
            *size = Some(size.unwrap_or(0).max(end));
        }
        let end = end.min(inode.size).max(begin);
        self.advance(step, end);
    }

    fn write(&mut self, step: &ReplayStep) {
        let Some(Some(open)) = step.handle.map(|handle| self.handles[handle]) else { return };
        if open.flags & libc::O_ACCMODE == libc::O_RDONLY {
            return;
        }
        let inode = &mut self.inodes[open.inode];
        // Of a file open for appending pwrite(2) appends as well, on Linux (its BUGS).
        let begin = match step.name {
            _ if open.flags & libc::O_APPEND != 0 => inode.size,
            CallName::Pwrite => step.offset,
            _ => open.position,
        };
        let end = begin + step.bytes as u64;
        if step.bytes > 0 {
            inode.size = inode.size.max(end);
        }
        self.advance(step, end);
    }

    fn advance(&mut self, step: &ReplayStep, end: u64) {
        let moves = matches!(step.name, CallName::Read | CallName::Write);
        if let Some(Some(open)) = step.handle.map(|handle| &mut self.handles[handle])
            && moves
        {
            open.position = end;
        }
    }
}
