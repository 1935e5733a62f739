//! Made programs: their file calls, drawn from a number, with what these do to files, and what
//! strace says of them.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::fuzz::Random;

/// A trace is of so many calls.
const CALLS: usize = 60;
const MOST_THREADS: usize = 5;
pub const FIRST_TID: i64 = 4100;

/// One moment of strace's output.
pub enum Moment {
    /// Name and arguments, without the bracket that ends them, and the result.
    Call(String, String),
    /// The first part of a call, and the last: its name, what is left, the result.
    Begin(String),
    End(&'static str, String, String),
    /// The thread of a number is followed from now on.
    Attached(i64),
    Ended,
}

struct OpenModel {
    file: usize,
    position: i64,
    appends: bool,
}

#[derive(Clone, Copy)]
struct Entry {
    /// None of a pipe.
    open: Option<usize>,
    closes: bool,
}

struct ThreadModel {
    tid: i64,
    pid: i64,
    table: usize,
}

/// The form in which constants are printed (-X).
#[derive(Clone, Copy, PartialEq)]
enum Words {
    Abbreviated,
    Verbose,
    Raw,
}

/// A program: what its calls do to files, and what strace says of them.
pub struct ProgramModel {
    random: Random,
    words: Words,
    pub sizes: Vec<i64>,
    pub names: BTreeMap<String, usize>,
    opens: Vec<OpenModel>,
    tables: Vec<BTreeMap<i64, Entry>>,
    threads: Vec<ThreadModel>,
    next_tid: i64,
    mappings: Vec<(i64, i64, i64)>,
    next_address: i64,
    pub moments: Vec<(i64, Moment)>,
    pub written_bytes: i64,
    pub syncs: u64,
}

impl ProgramModel {
    pub fn draw(input: u64) -> Self {
        let mut random = Random::from_seed(input);
        let words = [Words::Abbreviated, Words::Abbreviated, Words::Verbose, Words::Raw];
        let words = words[random.below(4)];
        let thread = ThreadModel { tid: FIRST_TID, pid: FIRST_TID, table: 0 };
        let mut program = Self {
            random,
            words,
            sizes: vec![5000],
            names: BTreeMap::from([("/old".into(), 0)]),
            opens: Vec::new(),
            tables: vec![BTreeMap::new()],
            threads: vec![thread],
            next_tid: FIRST_TID + 1,
            mappings: Vec::new(),
            next_address: 0x7f00_0000_0000,
            moments: Vec::new(),
            written_bytes: 0,
            syncs: 0,
        };
        let seen = "stat(\"/old\", {st_mode=S_IFREG|0644, st_size=5000, ...}";
        program.say(FIRST_TID, seen.into(), 0);
        for _ in 0..CALLS {
            let thread = program.random.below(program.threads.len());
            program.step(thread);
        }
        program
    }

    fn say(&mut self, tid: i64, call: String, result: i64) {
        self.moments.push((tid, Moment::Call(call, result.to_string())));
    }

    fn word(&self, number: i64, words: &str) -> String {
        match self.words {
            Words::Abbreviated => words.into(),
            Words::Verbose => format!("{number:#x} /* {words} */"),
            Words::Raw => format!("{number:#x}"),
        }
    }

    fn here(&self) -> String {
        match self.words {
            Words::Abbreviated => "AT_FDCWD".into(),
            Words::Verbose => "-100 /* AT_FDCWD */".into(),
            Words::Raw => "0xffffff9c".into(),
        }
    }

    fn name(&mut self) -> String {
        format!("/n{}", self.random.below(8))
    }

    fn table(&mut self, thread: usize) -> &mut BTreeMap<i64, Entry> {
        let table = self.threads[thread].table;
        &mut self.tables[table]
    }

    fn free(&mut self, thread: usize, from: i64) -> i64 {
        let table = self.table(thread);
        (from..).find(|number| !table.contains_key(number)).expect("there is one")
    }

    /// A descriptor of a file.
    fn some(&mut self, thread: usize) -> Option<(i64, usize)> {
        let files = self.table(thread).iter().filter_map(|(number, it)| Some((*number, it.open?)));
        let files: Vec<(i64, usize)> = files.collect();
        let at = self.random.below(files.len());
        files.get(at).copied()
    }

    fn put(&mut self, thread: usize, number: i64, open: Option<usize>, closes: bool) {
        self.table(thread).insert(number, Entry { open, closes });
    }

    fn open_file(&mut self, file: usize, appends: bool) -> usize {
        self.opens.push(OpenModel { file, position: 0, appends });
        self.opens.len() - 1
    }

    fn step(&mut self, thread: usize) {
        let tid = self.threads[thread].tid;
        match self.random.below(24) {
            0..=3 => self.open(thread),
            4 => self.open_nameless(thread),
            5..=9 => self.write(thread),
            10 => self.read(thread),
            11 | 12 => self.sync(thread),
            13 => self.copy(thread),
            14 => self.mark(thread),
            15 => self.make_thread(thread),
            16 => self.leave(thread),
            17 | 18 => self.rename(thread),
            19 => self.seek(thread),
            20 => self.map(thread),
            21 => self.resize(thread),
            22 => {
                if let Some((number, _)) = self.some(thread) {
                    self.table(thread).remove(&number);
                    self.say(tid, format!("close({number}"), 0);
                }
            }
            _ => {
                let (first, second) = (self.free(thread, 3), self.free(thread, 3) + 1);
                if self.table(thread).contains_key(&second) {
                    return self.say(tid, "getpid(".into(), FIRST_TID);
                }
                self.put(thread, first, None, false);
                self.put(thread, second, None, false);
                self.say(tid, format!("pipe2([{first}, {second}], 0"), 0);
                self.say(tid, format!("write({second}, \"x\", 1"), 1);
            }
        }
    }

    fn open(&mut self, thread: usize) {
        let tid = self.threads[thread].tid;
        let name = if self.random.below(8) == 0 { "/old".into() } else { self.name() };
        let bits = self.random.below(16);
        let (mut flags, mut words) = (2, String::from("O_RDWR"));
        let all = [(0o100, "O_CREAT"), (0o1000, "O_TRUNC"), (0o2000, "O_APPEND")];
        let all = all.into_iter().chain([(0o2_000_000, "O_CLOEXEC")]);
        for (bit, (number, word)) in all.enumerate() {
            if bits >> bit & 1 == 1 {
                flags |= number;
                let _ = write!(words, "|{word}");
            }
        }
        let (here, words) = (self.here(), self.word(flags, &words));
        let mode = if flags & 0o100 != 0 { ", 0644" } else { "" };
        let call = format!("openat({here}, \"{name}\", {words}{mode}");
        let file = match self.names.get(&name) {
            Some(file) => *file,
            None if flags & 0o100 == 0 => {
                let failed = "-1 ENOENT (No such file or directory)".into();
                return self.moments.push((tid, Moment::Call(call, failed)));
            }
            None => {
                self.sizes.push(0);
                self.names.insert(name, self.sizes.len() - 1);
                self.sizes.len() - 1
            }
        };
        if flags & 0o1000 != 0 {
            self.sizes[file] = 0;
        }
        let (number, open) = (self.free(thread, 3), self.open_file(file, flags & 0o2000 != 0));
        self.put(thread, number, Some(open), flags & 0o2_000_000 != 0);
        self.say(tid, call, number);
    }

    /// O_TMPFILE, and a name by the descriptor.
    fn open_nameless(&mut self, thread: usize) {
        let (tid, number, name) = (self.threads[thread].tid, self.free(thread, 3), self.name());
        self.sizes.push(0);
        let file = self.sizes.len() - 1;
        let open = self.open_file(file, false);
        self.put(thread, number, Some(open), false);
        let (here, words) = (self.here(), self.word(0o20_200_002, "O_RDWR|O_TMPFILE"));
        self.say(tid, format!("openat({here}, \"/\", {words}, 0600"), number);
        self.write_to(tid, number, open);
        if !self.names.contains_key(&name) {
            let follow = self.word(0x400, "AT_SYMLINK_FOLLOW");
            let call = format!("linkat({here}, \"/proc/self/fd/{number}\", {here}, \"{name}\", ");
            self.say(tid, call + &follow, 0);
            self.names.insert(name, file);
        }
    }

    fn write(&mut self, thread: usize) {
        let tid = self.threads[thread].tid;
        if let Some((number, open)) = self.some(thread) {
            self.write_to(tid, number, open);
        }
    }

    fn write_to(&mut self, tid: i64, number: i64, open: usize) {
        let (bytes, offset) =
            (1 + self.random.below(5000) as i64, self.random.below(20_000) as i64);
        let OpenModel { file, position, appends } = self.opens[open];
        let is_placed = self.random.below(2) == 0;
        let at = if appends {
            self.sizes[file]
        } else if is_placed {
            offset
        } else {
            position
        };
        self.sizes[file] = self.sizes[file].max(at + bytes);
        self.written_bytes += bytes;
        if !is_placed {
            self.opens[open].position = at + bytes;
        }
        let vector = format!("[{{iov_base=\"ab\"..., iov_len={bytes}}}], 1");
        let call = match (is_placed, self.random.below(3)) {
            (false, 0) => format!("writev({number}, {vector}"),
            (false, _) => format!("write({number}, \"a\\\"), (\"..., {bytes}"),
            (true, 0) => format!("pwritev({number}, {vector}, {offset}"),
            (true, 1) => format!("pwrite64#64({number}, \"a\"..., {bytes}, {offset}"),
            (true, _) => format!("pwrite64({number}, \"strace: Process 1\"..., {bytes}, {offset}"),
        };
        self.say(tid, call, bytes);
    }

    fn read(&mut self, thread: usize) {
        let (tid, asked) = (self.threads[thread].tid, 1 + self.random.below(5000) as i64);
        let Some((number, open)) = self.some(thread) else { return };
        let OpenModel { file, position, .. } = self.opens[open];
        let bytes = asked.min(self.sizes[file] - position).max(0);
        self.opens[open].position += bytes;
        self.say(tid, format!("read({number}, \"\"..., {asked}"), bytes);
    }

    /// Other threads may make calls before it has ended.
    fn sync(&mut self, thread: usize) {
        let tid = self.threads[thread].tid;
        let Some((number, _)) = self.some(thread) else { return };
        self.syncs += 1;
        let name = ["fsync", "fdatasync", "syncfs", "sync_file_range"][self.random.below(4)];
        if name == "sync_file_range" {
            let write = self.word(2, "SYNC_FILE_RANGE_WRITE");
            return self.say(tid, format!("sync_file_range({number}, 0, 4096, {write}"), 0);
        }
        if self.random.below(2) == 0 {
            return self.say(tid, format!("{name}({number}"), 0);
        }
        self.moments.push((tid, Moment::Begin(format!("{name}({number}"))));
        let other = self.random.below(self.threads.len());
        if other != thread {
            self.write(other);
        }
        self.moments.push((tid, Moment::End(name, String::new(), "0".into())));
    }

    fn copy(&mut self, thread: usize) {
        let tid = self.threads[thread].tid;
        let Some((number, open)) = self.some(thread) else { return };
        match self.random.below(3) {
            0 => {
                let to = self.free(thread, 3);
                self.put(thread, to, Some(open), false);
                self.say(tid, format!("dup({number}"), to);
            }
            1 => {
                let to = 3 + self.random.below(10) as i64;
                if to != number {
                    self.put(thread, to, Some(open), false);
                }
                self.say(tid, format!("dup2({number}, {to}"), to);
            }
            _ => {
                let (to, command) = (self.free(thread, 10), self.word(1030, "F_DUPFD_CLOEXEC"));
                self.put(thread, to, Some(open), true);
                self.say(tid, format!("fcntl({number}, {command}, 10"), to);
            }
        }
    }

    fn mark(&mut self, thread: usize) {
        let (tid, closes) = (self.threads[thread].tid, self.random.below(2) == 0);
        let Some((number, open)) = self.some(thread) else { return };
        self.put(thread, number, Some(open), closes);
        let call = match (self.random.below(2), closes) {
            (0, true) => format!("ioctl({number}, {}", self.word(0x5451, "FIOCLEX")),
            (0, false) => format!("ioctl({number}, {}", self.word(0x5450, "FIONCLEX")),
            (_, true) => format!(
                "fcntl({number}, {}, {}",
                self.word(2, "F_SETFD"),
                self.word(1, "FD_CLOEXEC")
            ),
            (_, false) => format!("fcntl({number}, {}, 0", self.word(2, "F_SETFD")),
        };
        self.say(tid, call, 0);
    }

    fn make_thread(&mut self, thread: usize) {
        if self.threads.len() >= MOST_THREADS {
            return;
        }
        let ThreadModel { tid, pid, table } = self.threads[thread];
        let child = self.next_tid;
        self.next_tid += 1;
        let is_thread = self.random.below(2) == 0;
        let flags = if is_thread {
            self.threads.push(ThreadModel { tid: child, pid, table });
            self.word(0x10f00, "CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD")
        } else {
            self.tables.push(self.tables[table].clone());
            let table = self.tables.len() - 1;
            self.threads.push(ThreadModel { tid: child, pid: child, table });
            self.word(0x0120_0011, "CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD")
        };
        let result = match self.random.below(3) {
            0 => format!("7 /* {child} in strace's PID NS */"),
            _ => child.to_string(),
        };
        let call = format!("clone(child_stack=NULL, flags={flags}, child_tidptr=0x7f");
        if self.random.below(2) == 0 {
            self.moments.push((tid, Moment::Call(call, result)));
            self.moments.push((tid, Moment::Attached(child)));
        } else {
            self.moments.push((tid, Moment::Begin(call)));
            self.moments.push((tid, Moment::Attached(child)));
            self.write(self.threads.len() - 1);
            self.moments.push((tid, Moment::End("clone", String::new(), result)));
        }
    }

    /// A thread or a process ends, or becomes another program.
    fn leave(&mut self, thread: usize) {
        let ThreadModel { tid, pid, table } = self.threads[thread];
        let others = self.threads.iter().filter(|it| it.pid == pid).count() - 1;
        self.mappings.retain(|(owner, ..)| others > 0 || *owner != pid);
        if others == 0 && (self.threads.len() == 1 || self.random.below(2) == 0) {
            self.tables[table].retain(|_, entry| !entry.closes);
            return self.say(tid, "execve(\"/bin/x\", [\"x\"], 0x7ffc /* 38 vars */".into(), 0);
        }
        let name = if others == 0 { "exit_group" } else { "exit" };
        self.moments.push((tid, Moment::Call(format!("{name}(0"), "?".into())));
        self.moments.push((tid, Moment::Ended));
        self.threads.remove(thread);
    }

    fn rename(&mut self, thread: usize) {
        let (tid, from, to) = (self.threads[thread].tid, self.name(), self.name());
        let Some(file) = self.names.get(&from).copied() else { return };
        match self.random.below(3) {
            // Of two names of one file rename(2) leaves both.
            0 if self.names.get(&to) != Some(&file) => {
                self.names.remove(&from);
                self.names.insert(to.clone(), file);
                self.say(tid, format!("rename(\"{from}\", \"{to}\""), 0);
            }
            1 if !self.names.contains_key(&to) => {
                self.names.insert(to.clone(), file);
                self.say(tid, format!("link(\"{from}\", \"{to}\""), 0);
            }
            _ => {
                self.names.remove(&from);
                self.say(tid, format!("unlink(\"{from}\""), 0);
            }
        }
    }

    fn seek(&mut self, thread: usize) {
        let (tid, offset) = (self.threads[thread].tid, self.random.below(9000) as i64);
        let Some((number, open)) = self.some(thread) else { return };
        let OpenModel { file, position, .. } = self.opens[open];
        let (begin, whence) = match self.random.below(3) {
            0 => (0, self.word(0, "SEEK_SET")),
            1 => (position, self.word(1, "SEEK_CUR")),
            _ => (self.sizes[file], self.word(2, "SEEK_END")),
        };
        self.opens[open].position = begin + offset;
        if self.random.below(2) == 0 {
            self.say(tid, format!("lseek({number}, {offset}, {whence}"), begin + offset);
        } else {
            let at = begin + offset;
            self.say(tid, format!("_llseek({number}, {offset}, [{at}], {whence}"), 0);
        }
    }

    fn resize(&mut self, thread: usize) {
        let (tid, bytes) = (self.threads[thread].tid, self.random.below(20_000) as i64);
        let Some((number, open)) = self.some(thread) else { return };
        self.sizes[self.opens[open].file] = bytes;
        self.say(tid, format!("ftruncate64({number}, {bytes}"), 0);
    }

    fn map(&mut self, thread: usize) {
        let ThreadModel { tid, pid, .. } = self.threads[thread];
        let own = self.mappings.iter().position(|(owner, ..)| *owner == pid);
        match (own, self.random.below(3)) {
            (Some(at), 0) => {
                let (_, address, bytes) = self.mappings.remove(at);
                self.say(tid, format!("munmap({address:#x}, {bytes}"), 0);
            }
            (Some(at), _) => {
                let (_, address, old) = self.mappings[at];
                let (new, to) = (4096 * (1 + self.random.below(9) as i64), self.next_address);
                self.next_address += 1 << 20;
                self.mappings[at] = (pid, to, new);
                let flags = self.word(1, "MREMAP_MAYMOVE");
                let call = format!("mremap({address:#x}, {old}, {new}, {flags}");
                self.moments.push((tid, Moment::Call(call, format!("{to:#x}"))));
            }
            (None, _) => {
                let Some((number, _)) = self.some(thread) else { return };
                let (bytes, to) = (4096 * (1 + self.random.below(9) as i64), self.next_address);
                self.next_address += 1 << 20;
                self.mappings.push((pid, to, bytes));
                let (read, shared) = (self.word(1, "PROT_READ"), self.word(1, "MAP_SHARED"));
                let call = format!("mmap(NULL, {bytes}, {read}, {shared}, {number}, 0");
                self.moments.push((tid, Moment::Call(call, format!("{to:#x}"))));
            }
        }
    }
}
