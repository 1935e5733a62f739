//! Loads the kernel's program of the recorder, and gives it what it is to read of each call, made
//! of the calls' roles (struct call_plan of kernel/recorder/recorded.h).

use std::collections::BTreeMap;
use std::fs;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::calls::{Does, Role, SystemCall};
use super::super::start::is_alive;
use crate::bpf::{BpfError, LoadPlan, Objects, Program, Symbols};

/// Bytes of the ring for each processor, kept for forks and ends of threads, without which nothing
/// can be put in its place.
const KEPT_BYTES_EACH: u64 = 64 << 10;

/// Read from the ring and not yet made rows of: more waits in the ring.
const WAITING_LIMIT_BYTES: usize = 256 << 20;

/// PROC_PID_INIT_INO of include/linux/proc_ns.h: the first namespace of process numbers, whose
/// numbers the kernel's program tells.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Bits of capability.h.
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// struct watch of recorded.h.
#[repr(C)]
struct RecorderMemory {
    live_threads: AtomicU64,
    begun_before: AtomicU64,
    lost_threads: AtomicU64,
    lost_calls: [AtomicU64; CALLS_LIMIT],
}

const _: () = assert!(size_of::<RecorderMemory>() == 24 + 8 * CALLS_LIMIT);

/// Words of struct thread of recorded.h.
const THREAD_WORDS: usize = 2;

/// A thread that was there: its call under way is not told (`has_joined`).
const JOINED: [u64; THREAD_WORDS] = [0, 1];

/// Return why the kernel's program cannot be used here; nothing if it can be tried.
pub fn obstacle() -> Option<&'static str> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities =
        field.and_then(|it| u64::from_str_radix(it.trim(), 16).ok()).unwrap_or_default();
    let has = |bit: u32| capabilities & 1 << bit != 0;
    if !(has(CAP_SYS_ADMIN) || has(CAP_BPF) && has(CAP_PERFMON)) {
        return Some("it needs root, or CAP_BPF and CAP_PERFMON");
    }
    // A kernel without such namespaces (CONFIG_PID_NS) has no such file.
    let namespace = fs::read_link("/proc/self/ns/pid");
    if namespace.is_ok_and(|it| it.as_os_str() != FIRST_PID_NAMESPACE) {
        return Some("this container has process numbers of its own");
    }
    None
}

/// The calls and threads that were lost, as the ring was full.
pub struct RecorderLosses {
    /// The calls that were missed, by name; `other` is calls of 32-bit programs.
    pub calls: BTreeMap<&'static str, u64>,
    /// Forks, execs and ends of threads.
    pub threads: u64,
}

/// The program, loaded.
pub struct KernelRecorder {
    // Valid as long as the program, which has it mapped.
    watch: NonNull<RecorderMemory>,
    program: Program,
}

impl KernelRecorder {
    /// Loads and attaches the program, and begins to read what it will tell.
    ///
    /// # Errors
    /// If the kernel refuses a step.
    pub fn load(ring_bytes: u32) -> Result<Self, BpfError> {
        // Where addresses are hidden, it does without the cast.
        let symbols = Symbols::read(&[crate::bpf::RDONLY_CAST]).unwrap_or_default();
        let plan = LoadPlan {
            objects: &Objects::RECORDER,
            ring_bytes,
            kept_bytes_each: KEPT_BYTES_EACH,
            optional: &[],
            unused: &[],
        };
        let mut program = Program::load(&plan, &symbols)?;
        let place: NonNull<[CallPlan; CALLS_LIMIT]> = program.section(c".data.plans")?;
        // SAFETY: mapped as long as the program lives; no thread is told of yet.
        unsafe { place.write(plans()) };
        let watch = program.section(c".data.watch")?;
        program.collect_by_itself(WAITING_LIMIT_BYTES)?;
        Ok(KernelRecorder { watch, program })
    }

    fn watch(&self) -> &RecorderMemory {
        // SAFETY: mapped as long as the program lives; of atomic numbers only.
        unsafe { self.watch.as_ref() }
    }

    /// Tells of a thread from now on; false if it does already, or the thread has ended.
    ///
    /// # Errors
    /// If the kernel does not take it.
    pub fn join(&self, tid: i32) -> Result<bool, BpfError> {
        let threads = self.program.map::<4, THREAD_WORDS>(c"threads")?;
        let key = tid.to_ne_bytes();
        if !threads.add(&key, &JOINED)? {
            return Ok(false);
        }
        self.watch().live_threads.fetch_add(1, Ordering::SeqCst);
        // Of one that had ended before, the kernel would tell no end.
        if !is_alive(tid) && threads.remove(&key) {
            self.watch().live_threads.fetch_sub(1, Ordering::SeqCst);
            return Ok(false);
        }
        Ok(true)
    }

    /// Tells of nobody any more.
    ///
    /// # Errors
    /// If the kernel keeps one.
    pub fn leave(&self) -> Result<(), BpfError> {
        self.program.map::<4, THREAD_WORDS>(c"threads")?.clear()
    }

    /// The threads that are there of which it tells.
    ///
    /// # Errors
    /// If the program has no such map.
    pub fn threads(&self) -> Result<Vec<i32>, BpfError> {
        let keys = self.program.map::<4, THREAD_WORDS>(c"threads")?.keys();
        Ok(keys.into_iter().map(i32::from_ne_bytes).collect())
    }

    /// Return whether any thread is there of which it tells.
    pub fn has_threads(&self) -> bool {
        self.watch().live_threads.load(Ordering::SeqCst) > 0
    }

    /// Moves all that waits to where `take` finds it.
    pub fn collect(&mut self) {
        self.program.collect();
    }

    /// Records that were told, the oldest; none where nothing is left.
    pub fn take_records(&mut self) -> Option<Vec<u8>> {
        self.program.take_piece()
    }

    /// Calls that were under way when their threads were joined.
    pub fn begun_before(&self) -> u64 {
        self.watch().begun_before.load(Ordering::SeqCst)
    }

    /// Return what was lost so far.
    pub fn losses(&self) -> RecorderLosses {
        let mut calls = BTreeMap::new();
        for (number, lost) in self.watch().lost_calls.iter().enumerate() {
            let lost = lost.load(Ordering::SeqCst);
            if lost > 0 {
                let name =
                    SystemCall::find_in_kernel(number as u64).map_or("other", |call| call.name);
                *calls.entry(name).or_default() += lost;
            }
        }
        // Runs that the kernel skipped are of a thread that began or ended. Where it does not say
        // how many, some may be missing.
        let skipped = self.program.skipped_runs(|_| true).unwrap_or(1);
        RecorderLosses {
            calls,
            threads: self.watch().lost_threads.load(Ordering::SeqCst) + skipped,
        }
    }
}

/// CALLS_LIMIT of recorded.h.
pub const CALLS_LIMIT: usize = 512;

/// struct call_plan.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallPlan {
    is_recorded: u8,
    opens: u8,
    arguments: [u8; 6],
}

const _: () = assert!(size_of::<CallPlan>() == 8);

/// The plan of every number that this kernel has.
pub fn plans() -> [CallPlan; CALLS_LIMIT] {
    let mut plans = [CallPlan::default(); CALLS_LIMIT];
    for (number, call) in SystemCall::in_kernel() {
        let plan = &mut plans[number as usize];
        plan.is_recorded = 1;
        plan.opens = u8::from(call.does == Does::Opens);
        for (place, role) in call.roles.iter().enumerate() {
            plan.arguments[place] = kind(*role);
        }
    }
    plans
}

/// enum argument_kind.
fn kind(role: Role) -> u8 {
    match role {
        Role::Text => 1,
        Role::Path => 2,
        Role::Path2 => 3,
        Role::Directory => 4,
        Role::Directory2 => 5,
        Role::RingParameters => 6,
        Role::OffsetAt | Role::Offset2At | Role::CloneArguments => 7,
        Role::OpenHow => 8,
        Role::Vectors | Role::VectorsOut => 9,
        Role::Command => 10,
        Role::Pair => 11,
        Role::Stat => 12,
        Role::Statx => 13,
        Role::Other
        | Role::Descriptor
        | Role::Descriptor2
        | Role::Offset
        | Role::Length
        | Role::OldLength
        | Role::Bytes
        | Role::Flags
        | Role::Mode
        | Role::Address
        | Role::Whence
        | Role::LockOperation => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_says_what_is_read_for_each_argument() {
        let plans = plans();
        let openat = plans[libc::SYS_openat as usize];
        assert_eq!(openat, CallPlan { is_recorded: 1, opens: 1, arguments: [4, 2, 0, 0, 0, 0] });
        let renameat = plans[libc::SYS_renameat as usize];
        assert_eq!(renameat.arguments, [4, 2, 5, 3, 0, 0]);
        assert_eq!(plans[libc::SYS_getpid as usize], CallPlan::default());
    }
}
