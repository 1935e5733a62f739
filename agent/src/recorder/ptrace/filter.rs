//! The seccomp filter of a recorded program: calls that are recorded stop for the tracer, all
//! others run at full speed (seccomp(2), SECCOMP_RET_TRACE; ptrace(2), PTRACE_EVENT_SECCOMP).

use libc::sock_filter;

use super::super::calls::SystemCall;
use crate::system_calls;

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

/// Whether a call is one of a 64-bit program's, whose numbers we know.
pub fn is_decoded(architecture: u32, number: u64) -> bool {
    architecture == ARCHITECTURE_64 && number & u64::from(X32_BIT) == 0
}

fn step(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

/// The program: what is recorded stops, and every call of a 32-bit or x32 program, which are
/// counted. Anonymous memory is no file's.
pub fn program() -> Vec<sock_filter> {
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
        let program = program();
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
