//! The contents that `joj record --data keep` kept: finds for each step of a plan what it wrote, so
//! that a replay writes the same.

use std::collections::HashMap;

use crate::script::plan::{Action, CallArgument, KeptPiece, ReplayPlan};
use crate::tables::recording::{Content, RecordedCall};

/// Notes for each step that writes which contents it wrote, where they were kept whole.
///
/// # Errors
/// If a row of the contents has no place in a file.
pub fn note_kept(
    plan: &mut ReplayPlan,
    calls: &[RecordedCall],
    contents: &[Content],
) -> Result<(), String> {
    if contents.is_empty() {
        return Ok(());
    }
    let rows: HashMap<&str, &Content> = contents.iter().map(|row| (&*row.data, row)).collect();
    let hashes = calls.iter().filter_map(|call| Some((call.call_id, call.data.as_deref()?)));
    let written: HashMap<i64, &str> = hashes.collect();
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    for step in plan.lanes.iter_mut().flat_map(|lane| &mut lane.steps) {
        let Action::Call { arguments, .. } = &step.action else { continue };
        let bytes = arguments.iter().find_map(|argument| match argument {
            CallArgument::From(bytes) | CallArgument::VectorsFrom { bytes, .. } => Some(*bytes),
            _ => None,
        });
        let row = written.get(&step.call).and_then(|hash| rows.get(hash));
        let (Some(bytes @ 1..), Some(row)) = (bytes, row) else { continue };
        let Ok(offset) = u64::try_from(row.offset_bytes) else {
            let (hash, offset) = (&row.data, row.offset_bytes);
            return Err(format!("contents: data {hash}: offset_bytes is {offset}, below 0"));
        };
        // The recorder could not read all that the call wrote.
        if row.length_bytes != i64::from(bytes) {
            continue;
        }
        step.writes = Some(*numbers.entry(&row.data).or_insert_with(|| {
            plan.kept.push(KeptPiece { hash: row.data.clone(), offset, bytes });
            (plan.kept.len() - 1) as u32
        }));
    }
    Ok(())
}
