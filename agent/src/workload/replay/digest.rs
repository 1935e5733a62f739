//! The hash of a lane's steps: what is done to which file, when, and after what. Paths, texts and
//! locks go in as they are, not by their numbers in the plan: what differs has another hash.

use sha2::{Digest, Sha256};

use crate::script::plan::{
    Action, CallArgument, CallEffect, Lane, PlanText, RecordLock, ReplayPlan,
};

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
            Action::Call { number, arguments, effect } => {
                hasher.update(number.to_le_bytes());
                arguments.iter().for_each(|argument| add(&mut hasher, *argument, plan));
                add_effect(&mut hasher, *effect);
                if let Some(number) = step.writes {
                    add_bytes(&mut hasher, plan.kept[number as usize].hash.as_bytes());
                }
            }
            Action::Inherit(pairs) => {
                pairs.iter().for_each(|(from, to)| {
                    hasher.update([*from, *to].map(u32::to_le_bytes).concat())
                });
            }
            Action::Release(slots, mappings) => {
                hasher.update((slots.len() as u64).to_le_bytes());
                slots.iter().chain(mappings).for_each(|it| hasher.update(it.to_le_bytes()));
            }
        }
    }
    hasher
}

fn add(hasher: &mut Sha256, argument: CallArgument, plan: &ReplayPlan) {
    let (kind, number): (u8, i64) = match argument {
        CallArgument::Number(number) => (0, number),
        CallArgument::Slot(slot) => (1, slot.into()),
        CallArgument::SlotPath(slot) => (12, slot.into()),
        CallArgument::Root => (2, 0),
        CallArgument::Path(name) => {
            add_bytes(hasher, &plan.names[name as usize]);
            return;
        }
        CallArgument::Text(text) | CallArgument::Target(text) => match &plan.texts[text as usize] {
            PlanText::Plain(bytes) => (3, add_bytes(hasher, bytes)),
            PlanText::Inside(bytes) => (11, add_bytes(hasher, bytes)),
        },
        CallArgument::Into(bytes) => (4, bytes.into()),
        CallArgument::From(bytes) => (5, bytes.into()),
        CallArgument::VectorsInto { count, bytes } => {
            (6, i64::from(bytes) << 16 | i64::from(count))
        }
        CallArgument::VectorsFrom { count, bytes } => {
            (7, i64::from(bytes) << 16 | i64::from(count))
        }
        CallArgument::Offset(offset) => (8, offset),
        CallArgument::Lock(lock) => {
            let RecordLock { kind, whence, start, length } = plan.locks[lock as usize];
            hasher.update([kind, whence].map(i16::to_le_bytes).concat());
            hasher.update(start.to_le_bytes());
            (9, length)
        }
        CallArgument::Mapped(mapping, offset) => {
            hasher.update(offset.to_le_bytes());
            (10, mapping.into())
        }
    };
    hasher.update([kind]);
    hasher.update(number.to_le_bytes());
}

/// Adds bytes after their number, which it gives.
fn add_bytes(hasher: &mut Sha256, bytes: &[u8]) -> i64 {
    hasher.update((bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
    bytes.len() as i64
}

fn add_effect(hasher: &mut Sha256, effect: CallEffect) {
    let (kind, numbers): (u8, [u64; 3]) = match effect {
        CallEffect::Nothing => (0, [0; 3]),
        CallEffect::Opens(slot) => (1, [slot.into(), 0, 0]),
        CallEffect::Tries => (2, [0; 3]),
        CallEffect::Closes(slot) => (3, [slot.into(), 0, 0]),
        CallEffect::Maps(mapping, bytes) => (4, [mapping.into(), bytes, 0]),
        CallEffect::Unmaps(mapping) => (5, [mapping.into(), 0, 0]),
        CallEffect::Dirties(mapping, offset, bytes) => (6, [mapping.into(), offset, bytes]),
        CallEffect::Locks => (7, [0; 3]),
        CallEffect::Remaps(mapping, bytes) => (8, [mapping.into(), bytes, 0]),
        CallEffect::Cuts(mapping, bytes) => (9, [mapping.into(), bytes, 0]),
    };
    hasher.update([kind]);
    numbers.iter().for_each(|number| hasher.update(number.to_le_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::plan::{PlannedStep, RecordedEnd};

    fn hash(arguments: &[CallArgument], effect: CallEffect, plan: &ReplayPlan) -> Vec<u8> {
        let mut lane = Lane::default();
        let arguments = arguments.into();
        lane.push(
            PlannedStep {
                call: 0,
                thread: 0,
                due_ns: 0,
                name: "symlinkat",
                ended: RecordedEnd::Well,
                writes: None,
                waits: (0, 0),
                action: Action::Call { number: 266, arguments, effect },
            },
            &[],
        );
        digest(&lane, plan).finalize().to_vec()
    }

    #[test]
    fn texts_locks_and_effects_go_in_as_they_are() {
        let lock = RecordLock { kind: 1, whence: 0, start: 0, length: 10 };
        let plan = ReplayPlan {
            names: vec![b"a".to_vec()],
            texts: vec![PlanText::Plain(b"a".to_vec())],
            locks: vec![lock],
            ..ReplayPlan::default()
        };
        let arguments = [CallArgument::Target(0), CallArgument::Lock(0)];
        let whole = |plan: &ReplayPlan| hash(&arguments, CallEffect::Nothing, plan);
        let others = [
            ReplayPlan { texts: vec![PlanText::Inside(b"a".to_vec())], ..plan.clone() },
            ReplayPlan { texts: vec![PlanText::Plain(b"b".to_vec())], ..plan.clone() },
            ReplayPlan { locks: vec![RecordLock { start: 1, ..lock }], ..plan.clone() },
            ReplayPlan { locks: vec![RecordLock { length: 9, ..lock }], ..plan.clone() },
        ];
        others.iter().for_each(|other| assert_ne!(whole(&plan), whole(other)));
        // The same text under another number is the same.
        let texts = vec![PlanText::Plain(Vec::new()), plan.texts[0].clone()];
        let moved = ReplayPlan { texts, ..plan.clone() };
        let other = [CallArgument::Target(1), CallArgument::Lock(0)];
        assert_eq!(whole(&plan), hash(&other, CallEffect::Nothing, &moved));
        assert_ne!(whole(&plan), hash(&arguments, CallEffect::Locks, &plan));
    }
}
