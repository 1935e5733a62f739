//! ptrace(2), as far as the recorder uses it: begins, resumes, and asks what a stopped thread does.

use std::io;
use std::mem::MaybeUninit;

use libc::sock_filter;

use super::super::calls::SystemCall;
use super::super::contents::ProcessMemory;
use super::super::{contents, start};
use crate::errors::WrongUse;
use crate::recorder::signals;
use crate::system_calls;

/// Says what a stop of a thread is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A call begins: architecture, number, arguments.
    Entry { architecture: u32, number: u64, arguments: [u64; 6] },
    /// A call returns; negative where it failed.
    Exit { result: i64 },
    /// No call.
    Other,
}

/// Stops of every kind that the recorder needs.
const OPTIONS: libc::c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACESECCOMP;

fn call(request: u32, tid: i32, data: usize) -> io::Result<()> {
    // SAFETY: the requests that come here take numbers, and touch no memory of this process.
    let result = unsafe { libc::ptrace(request, tid, 0_usize, data) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Begins to trace a thread, which goes on. With `kills` it dies when this process does: its filter
/// makes calls fail that nobody looks at.
pub fn seize(tid: i32, kills: bool) -> io::Result<()> {
    let options = OPTIONS | if kills { libc::PTRACE_O_EXITKILL } else { 0 };
    call(libc::PTRACE_SEIZE, tid, options as usize)
}

/// Stops a thread that was seized.
pub fn interrupt(tid: i32) -> io::Result<()> {
    call(libc::PTRACE_INTERRUPT, tid, 0)
}

/// Lets a thread go on, with a signal or none; to the next begin or end of a call if `each_call`.
pub fn resume(tid: i32, each_call: bool, signal: i32) -> io::Result<()> {
    let request = if each_call { libc::PTRACE_SYSCALL } else { libc::PTRACE_CONT };
    call(request, tid, signal as usize)
}

/// Lets a thread stay stopped by a stopping signal, and be heard of when it is continued.
pub fn listen(tid: i32) -> io::Result<()> {
    call(libc::PTRACE_LISTEN, tid, 0)
}

/// Ends the tracing of a thread that stands still.
pub fn detach(tid: i32, signal: i32) -> io::Result<()> {
    call(libc::PTRACE_DETACH, tid, signal as usize)
}

/// A thread that stands at the begin of a clone shall make one that is traced too, though it asks
/// for another (CLONE_UNTRACED of clone(2)): that one would have the filter, and nobody to answer
/// its calls. `arguments` are the call's.
pub fn trace_what_it_makes(tid: i32, number: u64, arguments: &[u64; 6]) -> io::Result<()> {
    const UNTRACED: u64 = libc::CLONE_UNTRACED as u64;
    if number == libc::SYS_clone as u64 && arguments[0] & UNTRACED != 0 {
        return set_first_argument(tid, arguments[0] & !UNTRACED);
    }
    if number == libc::SYS_clone3 as u64 {
        // Its structure begins with the flags.
        let flags = contents::number(&ProcessMemory(tid), arguments[0]).unwrap_or(0) as u64;
        if flags & UNTRACED != 0 {
            return poke(tid, arguments[0], flags & !UNTRACED);
        }
    }
    Ok(())
}

/// Writes a word of a stopped thread's memory.
fn poke(tid: i32, address: u64, word: u64) -> io::Result<()> {
    // SAFETY: the kernel checks the other's address, and touches no memory of this process.
    let result = unsafe { libc::ptrace(libc::PTRACE_POKEDATA, tid, address, word) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The register in which a call has its first argument.
#[cfg(target_arch = "x86_64")]
fn first_register(registers: &mut libc::user_regs_struct) -> &mut u64 {
    &mut registers.rdi
}

#[cfg(target_arch = "aarch64")]
fn first_register(registers: &mut libc::user_regs_struct) -> &mut u64 {
    &mut registers.regs[0]
}

fn set_first_argument(tid: i32, value: u64) -> io::Result<()> {
    let mut registers = MaybeUninit::<libc::user_regs_struct>::zeroed();
    let mut place = libc::iovec {
        iov_base: registers.as_mut_ptr().cast(),
        iov_len: size_of::<libc::user_regs_struct>(),
    };
    let mut ask = |request: libc::c_uint| {
        // SAFETY: the kernel reads or writes at most the bytes of `place`, which are ours.
        let result = unsafe { libc::ptrace(request, tid, libc::NT_PRSTATUS, &raw mut place) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    ask(libc::PTRACE_GETREGSET)?;
    // SAFETY: zeroed, and of numbers only.
    *first_register(unsafe { registers.assume_init_mut() }) = value;
    ask(libc::PTRACE_SETREGSET)
}

/// The number that comes with an event: the new thread's, or the former one's after an execve.
pub fn event_message(tid: i32) -> io::Result<i32> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the kernel writes one unsigned long there.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, 0_usize, &raw mut message) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(message as i32) }
}

/// Return the call that a stopped thread begins or ends (Linux 5.3).
pub fn stop(tid: i32) -> io::Result<Stop> {
    let mut info = MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let size = size_of::<libc::ptrace_syscall_info>();
    // SAFETY: the kernel writes at most `size` bytes there.
    let result =
        unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, tid, size, info.as_mut_ptr()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed, and of numbers only.
    let info = unsafe { info.assume_init() };
    Ok(match info.op {
        libc::PTRACE_SYSCALL_INFO_ENTRY | libc::PTRACE_SYSCALL_INFO_SECCOMP => {
            // SAFETY: that of seccomp begins with the fields of entry.
            let entry = unsafe { info.u.entry };
            Stop::Entry { architecture: info.arch, number: entry.nr, arguments: entry.args }
        }
        libc::PTRACE_SYSCALL_INFO_EXIT => {
            // SAFETY: the operation says which of the union is meant.
            Stop::Exit { result: unsafe { info.u.exit }.sval }
        }
        _ => Stop::Other,
    })
}

// Begins to trace: a command that waits, or all threads of a process that is there.

/// Seizes a command that waits; it dies with this process.
///
/// # Errors
/// If the system refuses to trace; the command is gone then.
pub fn seize_command(pid: i32) -> anyhow::Result<()> {
    let Err(error) = seize(pid, true) else { return Ok(()) };
    // SAFETY: a process of ours that waits.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let _ = signals::wait(false);
    Err(anyhow::anyhow!("this system does not let processes be traced: {error}"))
}

/// Seizes all threads of a process, and asks each to stop; returns their numbers.
///
/// # Errors
/// If there is no such process, or it may not be traced.
pub fn seize_process(pid: i32) -> anyhow::Result<Vec<i32>> {
    if pid == std::process::id() as i32 {
        return Err(WrongUse(format!("--pid {pid}: the recorder's own process")).into());
    }
    let mut seized: Vec<i32> = Vec::new();
    loop {
        // Threads that began while others were seized show up in the next round.
        let threads = start::threads(pid)
            .map_err(|error| WrongUse(format!("--pid {pid}: no such process: {error}")))?;
        let new: Vec<i32> = threads.into_iter().filter(|tid| !seized.contains(tid)).collect();
        if new.is_empty() {
            break;
        }
        for tid in new {
            match seize(tid, false) {
                Ok(()) => seized.push(tid),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => {
                    let message = format!(
                        "--pid {pid}: may not be traced: {error}; it is another user's, or \
                         already traced, or ptrace_scope forbids it (ptrace(2))"
                    );
                    return Err(WrongUse(message).into());
                }
            }
        }
    }
    for tid in &seized {
        let _ = interrupt(*tid);
    }
    Ok(seized)
}

// The seccomp filter of a recorded program: calls that are recorded stop for the tracer, all
// others run at full speed (seccomp(2), SECCOMP_RET_TRACE; ptrace(2), PTRACE_EVENT_SECCOMP).

/// AUDIT_ARCH_AARCH64 or AUDIT_ARCH_X86_64 of linux/audit.h: of 64-bit programs of this machine.
const ARCHITECTURE_64: u32 = if cfg!(target_arch = "aarch64") { 0xC000_00B7 } else { 0xC000_003E };
/// Set in the numbers of x32 programs (asm/unistd.h of x86); no call of arm64 has such a number.
const X32_BIT: u32 = 0x4000_0000;

// Offsets in struct seccomp_data.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
/// The lower half of the fourth argument: the flags of mmap.
const FOURTH_ARGUMENT: u32 = 16 + 3 * 8;

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const IF_AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
const IF_SET: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// Return whether a call is one of a 64-bit program's, whose numbers we know.
pub fn is_decoded(architecture: u32, number: u64) -> bool {
    architecture == ARCHITECTURE_64 && number & u64::from(X32_BIT) == 0
}

fn step(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

/// The program: what is recorded stops, and every call of a 32-bit or x32 program, which are
/// counted. Anonymous memory is no file's.
pub fn seccomp_filter() -> Vec<sock_filter> {
    let others = SystemCall::in_kernel().filter(|(_, call)| call.number != system_calls::SYS_mmap);
    let numbers: Vec<u32> = others.map(|(number, _)| number as u32).collect();
    // Behind the list stand: allow, the two steps of mmap, and stop.
    let to_stop = |from: usize| {
        let stop = 5 + numbers.len() + 3;
        u8::try_from(stop - from - 1).expect("a jump is shorter than 256 steps")
    };
    let to_mmap = u8::try_from(numbers.len() + 1).expect("as above");
    let mut steps = vec![
        step(LOAD, 0, 0, ARCHITECTURE),
        step(IF_EQUAL, 0, to_stop(1), ARCHITECTURE_64),
        step(LOAD, 0, 0, NUMBER),
        step(IF_AT_LEAST, to_stop(3), 0, X32_BIT),
        step(IF_EQUAL, to_mmap, 0, libc::SYS_mmap as u32),
    ];
    for number in &numbers {
        steps.push(step(IF_EQUAL, to_stop(steps.len()), 0, *number));
    }
    steps.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    steps.push(step(LOAD, 0, 0, FOURTH_ARGUMENT));
    // Back to allowing there is no way: jumps go forward.
    steps.push(step(IF_SET, 1, 0, libc::MAP_ANONYMOUS as u32));
    steps.push(step(RETURN, 0, 0, libc::SECCOMP_RET_TRACE));
    steps.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Return what the program answers, run as the kernel runs it
    /// (Documentation/networking/filter.rst).
    fn answer(architecture: u32, number: u32, fourth: u32) -> u32 {
        let program = seccomp_filter();
        let (mut at, mut value) = (0, 0);
        loop {
            let it = &program[at];
            let jump = |holds: bool| usize::from(if holds { it.jt } else { it.jf });
            at += 1;
            match u32::from(it.code) {
                LOAD => {
                    value = match it.k {
                        NUMBER => number,
                        ARCHITECTURE => architecture,
                        _ => fourth,
                    }
                }
                IF_EQUAL => at += jump(value == it.k),
                IF_AT_LEAST => at += jump(value >= it.k),
                IF_SET => at += jump(value & it.k != 0),
                _ => return it.k,
            }
        }
    }

    #[test]
    fn only_calls_that_are_recorded_stop() {
        for number in 0..500_u32 {
            let wanted = SystemCall::find_in_kernel(number.into()).is_some();
            let stops = answer(ARCHITECTURE_64, number, 0) == libc::SECCOMP_RET_TRACE;
            assert_eq!(stops, wanted, "{number}");
        }
        let mmap = libc::SYS_mmap as u32;
        let anonymous = (libc::MAP_ANONYMOUS | libc::MAP_PRIVATE) as u32;
        assert_eq!(answer(ARCHITECTURE_64, mmap, anonymous), libc::SECCOMP_RET_ALLOW);
        assert_eq!(answer(0x4000_0003, 20, 0), libc::SECCOMP_RET_TRACE);
        assert_eq!(answer(ARCHITECTURE_64, X32_BIT | 39, 0), libc::SECCOMP_RET_TRACE);
    }
}
