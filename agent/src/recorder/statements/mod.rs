//! Records the SQL that a program gives SQLite: runs it with a library loaded before SQLite's own,
//! waits for all its processes, and makes tables of the logs that they wrote.
//!
//! preload -> (the program) -> log -> rows

mod log;
mod preload;
mod rows;

use std::io;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use serde_json::{Value, json};

use self::log::{COUNTERS, ProcessLog};
use self::preload::Preload;
use self::rows::WrittenStatements;
use super::output::{ending, entries, facts_before_end};
use super::signals::{self, WaitResult};
use super::{facts_of_begin, start};
use crate::errors::WrongUse;
use crate::messages::sentences;
use crate::tables::write::{Segments, new_folder};
use preload::{Linking, ProgramFile};

/// The part of bound values that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Values {
    /// Themselves
    Keep,
    /// Their kinds and lengths
    Shape,
}

/// The outcome of a recording of statements.
pub struct StatementsOutcome {
    /// The command's wait status.
    pub status: Option<i32>,
    pub statements: u64,
    pub connections: u64,
    /// Processes that used SQLite.
    pub processes: u64,
    /// The reasons why it is incomplete; nothing if it is not.
    pub reasons: Vec<String>,
    pub notes: Vec<String>,
}

/// Runs a command to the end of all its processes, and records what SQL they ran.
///
/// # Errors
/// If the command cannot be run, no library can be loaded into it, or the folder not be written.
pub fn record_statements(
    command: &[String],
    folder: &Path,
    values: Values,
) -> anyhow::Result<StatementsOutcome> {
    let [name, arguments @ ..] = command else {
        return Err(WrongUse("name a command after --".into()).into());
    };
    check_program(name)?;
    let values = if values == Values::Keep { "keep" } else { "shape" };
    let mut facts = facts_of_begin("sqlite", json!(command));
    facts.push(("values", json!(values)));
    let folder = new_folder(folder)?;
    let mut segments = Segments::new(&folder);
    segments.replace(&entries(facts.iter().chain(&facts_before_end())))?;
    let preload = Preload::lay_down(&folder).with_context(|| folder.display().to_string())?;
    let mut child = Command::new(name);
    child.args(arguments);
    preload.arm(&mut child, values);
    let ended = match run(&mut child) {
        Ok(ended) => ended,
        Err(error) => {
            drop(preload);
            // It was empty when we got it.
            let _ = std::fs::remove_dir_all(&folder);
            return Err(WrongUse(format!("cannot run {name}: {error}")).into());
        }
    };
    let (logs, mut damaged) = open_logs(&preload)?;
    let processes = logs.len() as u64;
    let counted = logs.iter().fold(LibraryCounts::default(), |sum, log| sum.with(log));
    let written = rows::write(logs, &mut segments)?;
    damaged.extend(written.damaged.iter().map(ToString::to_string));
    let mut reasons = counted.reasons(&written);
    reasons.extend(damaged);
    if ended.is_abandoned {
        reasons.push("a signal ended the recording before all processes had ended".into());
    }
    let notes = counted.notes(&written);
    facts.extend([
        ("statements", json!(written.statements)),
        ("connections", json!(written.connections)),
        ("processes", json!(processes)),
        ("transactions", json!(written.transactions)),
        ("there_before", json!(written.there_before)),
        ("missed", counted.json(&written)),
    ]);
    facts.extend(ending(&reasons, &notes));
    segments.replace(&entries(facts.iter()))?;
    Ok(StatementsOutcome {
        status: ended.status,
        statements: written.statements,
        connections: written.connections,
        processes,
        reasons,
        notes,
    })
}

const INSTEAD: &str = "record its system calls instead (joj record without --sql), or run a build \
                       of it that is linked to libsqlite3.so";

/// Looks at the program's file, before it runs.
///
/// # Errors
/// If nothing can be loaded into it, or if its SQLite is its own, which is not called by name.
pub fn check_program(name: &str) -> anyhow::Result<()> {
    let file = start::find(name)?;
    let wrong = |what: String| WrongUse(format!("{name}: {what}; {INSTEAD}"));
    let program = ProgramFile::look(&file)
        .map_err(|error| WrongUse(format!("cannot run {name}: {error}")))?;
    match &program.linking {
        Linking::Dynamic if program.has_sqlite_built_in() => {
            let what = "has SQLite built in, and is not linked to libsqlite3: its statements \
                        cannot be seen";
            Err(wrong(format!("{} {what}", program.path.display())).into())
        }
        Linking::Dynamic => Ok(()),
        Linking::Static => {
            let what = "is statically linked: no library can be loaded before its SQLite";
            Err(wrong(format!("{} {what}", program.path.display())).into())
        }
        Linking::Foreign(why) => {
            let what = "no library of ours can be loaded into it";
            Err(wrong(format!("{what}: {why}")).into())
        }
    }
}

struct CommandEnd {
    status: Option<i32>,
    is_abandoned: bool,
}

/// Runs a command until it and all processes that it leaves behind have ended. A signal is passed
/// on to it; a second one kills it and ends the recording.
fn run(command: &mut Command) -> io::Result<CommandEnd> {
    // Processes whose parents have ended become our children.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    signals::catch()?;
    let pid = command.spawn()?.id() as i32;
    let (mut status, mut heeded) = (None, 0);
    loop {
        let caught = signals::caught();
        if caught.count > heeded {
            let is_first = heeded == 0;
            heeded = caught.count;
            let signal = if is_first { caught.first } else { libc::SIGKILL };
            if status.is_none() && !(is_first && caught.from_terminal) {
                // SAFETY: a child of ours that nobody has waited for.
                unsafe { libc::kill(pid, signal) };
            }
            if !is_first {
                return Ok(CommandEnd { status: status.or(Some(signal)), is_abandoned: true });
            }
        }
        match signals::wait(false)? {
            WaitResult::Changed { tid, status: changed } if tid == pid => status = Some(changed),
            WaitResult::Changed { .. } | WaitResult::Interrupted => {}
            WaitResult::NobodyLeft => return Ok(CommandEnd { status, is_abandoned: false }),
        }
    }
}

fn open_logs(preload: &Preload) -> anyhow::Result<(Vec<ProcessLog>, Vec<String>)> {
    let (mut logs, mut damaged) = (Vec::new(), Vec::new());
    for path in preload.logs()? {
        match ProcessLog::open(&path) {
            Ok(log) => logs.push(log),
            Err(error) => damaged.push(error.to_string()),
        }
    }
    Ok((logs, damaged))
}

/// Holds what the library saw and did not record, over all processes; agent/preload/preload.h has
/// the order.
#[derive(Default)]
struct LibraryCounts([u64; COUNTERS]);

impl LibraryCounts {
    const NAMES: [&str; COUNTERS] = [
        "lost_records",
        "lost_statements",
        "failed_prepares",
        "nested_statements",
        "blob_writes",
        "backup_steps",
        "checkpoint_calls",
        "deserialized",
        "loaded_unseen",
        "others_by_name",
        "built_in_unseen",
    ];

    fn with(mut self, log: &ProcessLog) -> Self {
        self.0.iter_mut().zip(log.counted).for_each(|(sum, count)| *sum += count);
        self
    }

    fn get(&self, name: &str) -> u64 {
        let number = Self::NAMES.iter().position(|it| *it == name);
        number.map_or(0, |number| self.0[number])
    }

    fn reasons(&self, written: &WrittenStatements) -> Vec<String> {
        let mut reasons = sentences(&[
            (self.get("lost_records"), "record{s} could not be written to the logs: disk full?"),
            (
                self.get("lost_statements"),
                "statement{s} or connection{s} {was|were} lost: no memory",
            ),
            (written.values_unseen, "statement{s} whose values were bound unseen"),
            (
                self.get("blob_writes"),
                "call{s} of sqlite3_blob_write, which {is|are} no statement{s}",
            ),
            (
                self.get("backup_steps"),
                "call{s} of sqlite3_backup_step, which {is|are} no statement{s}",
            ),
            (
                self.get("deserialized"),
                "call{s} of sqlite3_deserialize, which {is|are} no statement{s}",
            ),
            (
                self.get("loaded_unseen"),
                "process{|es} loaded libsqlite3 by {itself|themselves} (dlopen) and called its \
                 functions by \
                 addresses that were not seen",
            ),
            (
                self.get("others_by_name"),
                "function{s} of another SQLite beside the first {was|were} asked for by name: not \
                 all of \
                 the calls were seen",
            ),
            (
                self.get("built_in_unseen"),
                "process{|es} had a SQLite of {its|their} own built in: whether it ran statements \
                 is not \
                 known",
            ),
        ]);
        if written.statements == 0 {
            let why = if self.get("failed_prepares") > 0 {
                "SQLite could prepare none of the texts".into()
            } else {
                format!("no process called a dynamically linked SQLite; {INSTEAD}")
            };
            reasons.push(format!("no statement was seen: {why}"));
        }
        reasons
    }

    fn notes(&self, written: &WrittenStatements) -> Vec<String> {
        let mut notes = sentences(&[
            (written.failed, "statement{s} failed"),
            (self.get("failed_prepares"), "text{s} could not be prepared and never ran"),
            (
                self.get("nested_statements"),
                "statement{s} ran within others (CREATE, full-text index, functions): {it \
                 runs|they run} again \
                 with those",
            ),
            (
                self.get("checkpoint_calls"),
                "call{s} of sqlite3_wal_checkpoint {is|are} no statement{s}",
            ),
        ]);
        notes.extend(written.there_before.iter().map(|path| {
            format!("{path} was there before: what it held then is not in the recording")
        }));
        notes
    }

    fn json(&self, written: &WrittenStatements) -> Value {
        let counted = Self::NAMES.iter().zip(self.0).map(|(name, count)| ((*name).into(), count));
        let mut counted: serde_json::Map<String, Value> =
            counted.map(|(name, count): (String, u64)| (name, json!(count))).collect();
        counted.insert("values_unseen".into(), json!(written.values_unseen));
        counted.insert("failed_statements".into(), json!(written.failed));
        Value::Object(counted)
    }
}
