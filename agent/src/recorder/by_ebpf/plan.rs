//! What the kernel's program is to read of each call, made of the calls' roles: struct call_plan of
//! kernel/recorder/recorded.h.

use super::super::calls::{Does, Role, SystemCall};

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
