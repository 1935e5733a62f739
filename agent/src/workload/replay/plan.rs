//! The plan of a replay, whatever it was read from: lanes of steps, of which each says which steps
//! of other lanes come before it; the files that are there before the first; and what is left out.

use std::collections::BTreeMap;

use crate::workload::threads::turns::Wait;

/// An open file of the replay: one descriptor of one recorded process.
pub type FileHandle = u32;

/// One of the paths of the replay, relative to its directory.
pub type Name = u32;

/// One argument of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallArgument {
    Number(i64),
    Handle(FileHandle),
    /// Address of the path by which /proc has the file of a handle.
    HandlePath(FileHandle),
    /// Descriptor of the directory of the replay.
    Root,
    /// Address of a path in the directory of the replay.
    Path(Name),
    /// Address of a text of the plan, such as the name of an attribute.
    Text(u32),
    /// Address of what a symbolic link shall lead to, of the plan's texts.
    Target(u32),
    /// Address of memory of so many bytes for the kernel to write to.
    Into(u32),
    /// Address of so many bytes of contents: what the step writes.
    From(u32),
    /// Address of so many buffers of so many bytes together, to read into or to write from.
    VectorsInto {
        count: u16,
        bytes: u32,
    },
    VectorsFrom {
        count: u16,
        bytes: u32,
    },
    /// Address of an offset.
    Offset(i64),
    /// Address of one of the plan's record locks.
    Lock(u32),
    /// Address in a mapping, so many bytes from its beginning.
    Mapped(u32, u64),
}

/// The work of the replay for a call beside making it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEffect {
    Nothing,
    /// Its result is a descriptor: the handle's from then on.
    Opens(FileHandle),
    /// It failed when it was recorded: should it give a descriptor, nobody will use it.
    Tries,
    /// It closes the handle.
    Closes(FileHandle),
    /// It makes a mapping of so many bytes.
    Maps(u32, u64),
    /// It takes a mapping away.
    Unmaps(u32),
    /// Its result is where a mapping is from then on, with so many bytes.
    Remaps(u32, u64),
    /// It leaves a mapping so many bytes.
    Cuts(u32, u64),
    /// The mapping's bytes that it is about, and so many, are to be written to before.
    Dirties(u32, u64, u64),
    /// It waits for a lock of flock(2) that another open file may hold.
    Locks,
}

/// The action of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A system call, by its number.
    Call { number: i64, arguments: Box<[CallArgument]>, effect: CallEffect },
    /// A new process begins with copies of descriptors: from, to.
    Inherit(Box<[(FileHandle, FileHandle)]>),
    /// A process ends, or begins another program: it closes these, and takes its mappings away.
    Release(Box<[FileHandle]>, Box<[u32]>),
}

/// The end of a call when it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedEnd {
    /// That was not recorded, or cannot be the same: a step of the replay's own.
    Unknown,
    /// With a result that need not be the same, such as a descriptor.
    Well,
    With(i64),
    /// With an error, none where its number was not recorded.
    Failed(Option<i32>),
}

/// One step of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// Number of the call in the recording, or of its line in a script.
    pub call: i64,
    /// The number of the recorded thread that made it.
    pub thread: u32,
    /// After the first step's; never less than of the lane's step before.
    pub due_ns: i64,
    /// Name of the call; of a step that is none, what it stands for.
    pub name: &'static str,
    pub ended: RecordedEnd,
    /// The number of the plan's kept contents that it writes; made from the seed where they were
    /// not kept.
    pub writes: Option<u32>,
    /// Part of the lane's waits.
    pub waits: (u32, u32),
    pub action: Action,
}

/// Steps that one thread of the replay makes, one after the other: those of a recorded thread, or
/// of several that did not live at the same time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lane {
    pub steps: Vec<PlannedStep>,
    pub waits: Vec<Wait>,
}

impl Lane {
    /// Return the steps that come before a step.
    pub fn waits_of(&self, step: &PlannedStep) -> &[Wait] {
        &self.waits[step.waits.0 as usize..step.waits.1 as usize]
    }

    /// The handles of its steps, some of them several times.
    pub fn handles(&self) -> impl Iterator<Item = FileHandle> {
        let of = |step: &PlannedStep| -> Vec<FileHandle> {
            match &step.action {
                Action::Call { arguments, .. } => {
                    let handle = |argument: &CallArgument| match argument {
                        CallArgument::Handle(handle) | CallArgument::HandlePath(handle) => {
                            Some(*handle)
                        }
                        _ => None,
                    };
                    arguments.iter().filter_map(handle).collect()
                }
                Action::Inherit(pairs) => pairs.iter().map(|(from, _)| *from).collect(),
                Action::Release(..) => Vec::new(),
            }
        };
        self.steps.iter().flat_map(of)
    }

    /// Adds a step, which waits for others.
    pub fn push(&mut self, mut step: PlannedStep, waits: &[Wait]) {
        let begin = self.waits.len() as u32;
        self.waits.extend_from_slice(waits);
        step.waits = (begin, self.waits.len() as u32);
        if let Some(last) = self.steps.last() {
            step.due_ns = step.due_ns.max(last.due_ns);
        }
        self.steps.push(step);
    }
}

/// A path, and what is there before the first step. Directories come before what is in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileBefore {
    Directory(Name),
    File {
        name: Name,
        bytes: u64,
        mode: u32,
    },
    /// Another name of a file.
    Link {
        name: Name,
        of: Name,
    },
    /// A symbolic link, to a text of the plan.
    Symlink {
        name: Name,
        target: u32,
    },
}

/// A descriptor that is open before the first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenBefore {
    pub handle: FileHandle,
    pub name: Name,
    pub flags: i32,
    pub position: i64,
}

/// A record lock of fcntl(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordLock {
    pub kind: i16,
    pub whence: i16,
    pub start: i64,
    pub length: i64,
}

/// Contents that a recording kept (--data keep).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPiece {
    /// First 16 bytes of its SHA-256, in hexadecimal.
    pub hash: String,
    /// The place in contents.bin.
    pub offset: u64,
    pub bytes: u32,
}

/// A text of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanText {
    /// As it was recorded.
    Plain(Vec<u8>),
    /// A path in the directory of the replay.
    Inside(Vec<u8>),
}

/// The facts that the recording tells of itself, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanFacts {
    /// The number of recorded calls, or of lines of a script.
    pub calls: u64,
    /// Recorded threads, as the recording numbers them.
    pub threads: Vec<u64>,
    /// The process of each of them; empty where it was not recorded.
    pub processes: Vec<u32>,
    /// Those of which no call is replayed.
    pub idle_threads: Vec<u64>,
    pub opens: u64,
    pub largest_write_bytes: u64,
    pub largest_read_bytes: u64,
    pub recorded_ns: i64,
    /// The processor of the machine that was recorded on; a script tells none.
    pub architecture: Option<String>,
    /// Paths of databases that were there before the first call.
    pub databases_before: Vec<String>,
    /// The reasons why the recording is not whole.
    pub incomplete_reasons: Vec<String>,
}

/// A replay, ready to be made in a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayPlan {
    pub lanes: Vec<Lane>,
    /// Paths relative to the directory, without `.` and `..`.
    pub names: Vec<Vec<u8>>,
    pub texts: Vec<PlanText>,
    pub locks: Vec<RecordLock>,
    /// Those that a step writes.
    pub kept: Vec<KeptPiece>,
    pub handles: usize,
    pub mappings: usize,
    /// Most bytes of memory that mappings are filled with at a time (MAP_POPULATE).
    pub most_populated_bytes: u64,
    /// Most descriptors that are open at a time.
    pub most_open: usize,
    pub before: Vec<FileBefore>,
    pub open_before: Vec<OpenBefore>,
    /// Calls about no file of a disk, by name: pipes, sockets, terminals, /proc.
    pub elsewhere: BTreeMap<String, u64>,
    /// Calls whose effect is in other steps, by name: fork, execve, chdir ...
    pub carried: BTreeMap<String, u64>,
    /// Calls that are left out, by name and why.
    pub left_out: BTreeMap<(String, &'static str), u64>,
    pub facts: PlanFacts,
}
