//! The order that recorded scripts keep among one another: which statements of other scripts end
//! before a transaction begins, as `after` says in them.

use std::collections::BTreeMap;

use super::folder::ScriptFile;
use crate::sql_script::script::SqlStep;
use crate::workload::error::WorkloadError;
use crate::workload::threads::turns::{Turns, Wait};

/// How far each script is, and what each waits for.
pub struct KeptOrder {
    /// Statements of each script that have ended.
    pub turns: Turns,
    /// By the number of a script, and the step that waits.
    waits: BTreeMap<(u32, usize), Vec<Wait>>,
}

impl KeptOrder {
    /// Of scripts that are played once. Those that go round and round have no order.
    ///
    /// # Errors
    /// If one names a file that is none of the others.
    pub fn new(files: &[ScriptFile], is_once: bool) -> Result<Self, WorkloadError> {
        let mut waits = BTreeMap::new();
        let names: Vec<String> = files.iter().map(ScriptFile::name).collect();
        for (lane, file) in (0..).zip(files) {
            for (number, step) in file.script.steps.iter().enumerate() {
                let SqlStep::Statement(statement) = step else { continue };
                for (name, steps) in &statement.after {
                    let other = (0..).zip(&names).find(|(other, it)| *it == name && *other != lane);
                    let Some((other, _)) = other else {
                        let (path, place) = (file.path.display(), statement.place);
                        let what = "is no other transaction script of the folder";
                        return Err(WorkloadError::refused(format!(
                            "{path}: {place}: after {name}: it {what}"
                        )));
                    };
                    if is_once {
                        let of_step: &mut Vec<Wait> = waits.entry((lane, number)).or_default();
                        of_step.push(Wait { lane: other, steps: *steps });
                    }
                }
            }
        }
        Ok(Self { turns: Turns::new(files.len()), waits })
    }

    /// Waits for what comes before a step of a script. False where `shall_stop` said so first.
    pub fn wait(&self, lane: u32, step: usize, shall_stop: &dyn Fn() -> bool) -> bool {
        let waits = self.waits.get(&(lane, step));
        waits.is_none_or(|waits| self.turns.wait(waits, shall_stop))
    }
}
