//! The hash of a lane's steps: what is done to which file, when, and after what.

use sha2::{Digest, Sha256};

use crate::script::plan::{Action, CallArgument, Lane, ReplayPlan};

/// Hashes a lane.
pub fn digest(lane: &Lane, plan: &ReplayPlan) -> Sha256 {
    let mut hasher = Sha256::new();
    for step in &lane.steps {
        hasher.update(step.due_ns.to_le_bytes());
        hasher.update(step.name);
        for wait in lane.waits_of(step) {
            hasher.update([wait.lane.to_le_bytes(), wait.steps.to_le_bytes()].concat());
        }
        match &step.action {
            Action::Call { number, arguments, .. } => {
                hasher.update(number.to_le_bytes());
                arguments.iter().for_each(|argument| add(&mut hasher, *argument, plan));
            }
            Action::Inherit(pairs) => {
                pairs.iter().for_each(|(from, to)| {
                    hasher.update([*from, *to].map(u32::to_le_bytes).concat())
                });
            }
            Action::Release(slots, _) => {
                slots.iter().for_each(|slot| hasher.update(slot.to_le_bytes()));
            }
        }
    }
    hasher
}

fn add(hasher: &mut Sha256, argument: CallArgument, plan: &ReplayPlan) {
    let (kind, number): (u8, i64) = match argument {
        CallArgument::Number(number) => (0, number),
        CallArgument::Slot(slot) => (1, slot.into()),
        CallArgument::Root => (2, 0),
        CallArgument::Path(name) => {
            let path = &plan.names[name as usize];
            hasher.update((path.len() as u64).to_le_bytes());
            hasher.update(path);
            return;
        }
        CallArgument::Text(text) | CallArgument::Target(text) => (3, text.into()),
        CallArgument::Into(bytes) => (4, bytes.into()),
        CallArgument::From(bytes) => (5, bytes.into()),
        CallArgument::VectorsInto { count, bytes } => {
            (6, i64::from(bytes) << 16 | i64::from(count))
        }
        CallArgument::VectorsFrom { count, bytes } => {
            (7, i64::from(bytes) << 16 | i64::from(count))
        }
        CallArgument::Offset(offset) => (8, offset),
        CallArgument::Lock(lock) => (9, lock.into()),
        CallArgument::Mapped(mapping, offset) => {
            hasher.update(offset.to_le_bytes());
            (10, mapping.into())
        }
    };
    hasher.update([kind]);
    hasher.update(number.to_le_bytes());
}
