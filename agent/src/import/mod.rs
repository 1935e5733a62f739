//! Makes recordings of traces that other programs wrote: strace, MobiGen. A trace tells less than
//! the recorder sees, so that files and what was there before are inferred from the calls;
//! docs/recording.md says how, and what an imported recording lacks.
//!
//! strace, mobigen -> traced_call -> effects -> book, descriptors, files -> recorder::output

mod book;
mod descriptors;
mod effects;
mod files;
mod lines;
mod mobigen;
mod strace;
mod traced_call;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use self::book::{Book, BookSummary};
use self::strace::MergedLines;
use crate::errors::WrongUse;
use crate::messages::{count_words, sentences};
use crate::recorder::output::{RecordingOutput, ending};
use crate::recorder::{VERSION, note_of, words};
use files::plain;
use lines::BadLines;

/// A trace to be imported.
pub enum Trace<'a> {
    Strace { files: &'a [PathBuf], is_strict: bool },
    Mobigen(&'a Path),
}

/// The outcome of an import.
#[derive(Debug, serde::Serialize)]
pub struct ImportCounts {
    pub lines: u64,
    pub calls: u64,
    pub threads: u64,
    /// Calls that a recording does not have, by name.
    pub left_out: BTreeMap<String, u64>,
    pub bad_lines: u64,
    /// The first of them.
    pub bad: Vec<String>,
    /// The reasons why it is incomplete; nothing if it is not.
    pub reasons: Vec<String>,
    pub notes: Vec<String>,
}

/// Writes a new recording of a trace. Relative paths are those of a directory, if one is given.
///
/// # Errors
/// If the trace cannot be read, or the folder not be written.
pub fn import(
    trace: &Trace,
    folder: &Path,
    directory: Option<&Path>,
) -> anyhow::Result<ImportCounts> {
    let directory = directory.map(absolute).transpose()?;
    let (recorder, sources) = match trace {
        Trace::Strace { files, .. } => ("strace", files.to_vec()),
        Trace::Mobigen(file) => ("mobigen", vec![file.to_path_buf()]),
    };
    let forms = match trace {
        Trace::Strace { files, .. } => strace::forms(files)?,
        Trace::Mobigen(_) => Vec::new(),
    };
    let creations = match trace {
        Trace::Strace { files, .. } => strace::creations(MergedLines::open(files, &forms)?)?,
        Trace::Mobigen(_) => HashMap::new(),
    };
    let named: Vec<_> = sources.iter().map(|it| it.display().to_string()).collect();
    let mut facts = vec![
        ("recording_version", json!(VERSION)),
        ("recorder", json!(recorder)),
        ("sources", json!(named)),
        ("pid", Value::Null),
        ("data", json!("none")),
    ];
    let output = RecordingOutput::create(folder, &facts)?;
    let mut book = Book::new(Box::new(|round| output.add(round)), creations, directory);
    if let [form] = forms.as_slice()
        && form.is_of_one_process
    {
        book.assume_one_process();
    }
    let mut bad = BadLines::default();
    let read = match trace {
        Trace::Strace { files, is_strict } => {
            bad.is_strict = *is_strict;
            MergedLines::open(files, &forms)
                .and_then(|merged| strace::read(merged, &mut book, &mut bad))
                .map(strace_facts)
        }
        Trace::Mobigen(file) => mobigen::read(file, &mut book).map(mobigen_facts),
    };
    let closed = book.finish();
    let read = match read {
        Ok(read) => read,
        Err(error) => {
            output.abandon();
            return Err(error);
        }
    };
    if closed.calls == 0 {
        output.abandon();
        let named = named.join(", ");
        let first = bad.messages.first().map(|it| format!(" ({it})")).unwrap_or_default();
        return Err(WrongUse(format!("{named}: no file system call of {recorder}{first}")).into());
    }
    let mut reasons = read.reasons();
    // A script has one table of descriptors for all processes.
    if let Trace::Strace { .. } = trace {
        reasons.extend(sentences(&[(
            closed.collisions,
            "descriptor{s} {was|were} opened under {a number|numbers} open before: threads of \
             which nothing tells \
             who made them may be of several processes (trace clone, fork, execve and close too)",
        )]));
    }
    let imported = summary(&closed, read.lines, read.left_out, bad, reasons, read.notes);
    facts.extend(read.facts);
    facts.extend([
        ("command", json!(closed.command)),
        ("calls", json!(closed.calls)),
        ("threads", json!(closed.threads)),
        ("missed", json!(closed.missed)),
        ("left_out", json!(imported.left_out)),
        ("bad_lines", json!(imported.bad_lines)),
        ("databases_before", json!(closed.databases)),
    ]);
    facts.extend(ending(&imported.reasons, &imported.notes));
    output.finish(&facts)?;
    Ok(imported)
}

/// The facts that a format tells of a trace.
struct FormatFacts {
    lines: u64,
    left_out: BTreeMap<String, u64>,
    doubtful_lines: u64,
    facts: Vec<(&'static str, Value)>,
    notes: Vec<String>,
}

impl FormatFacts {
    /// Return the reasons why what was read may not be all.
    fn reasons(&self) -> Vec<String> {
        let unnamed = |name: &&String| name.starts_with("syscall_");
        let unnamed = self.left_out.keys().filter(unnamed).map(|name| self.left_out[name]).sum();
        sentences(&[
            (unnamed, "call{s} that strace had no name for"),
            (self.doubtful_lines, "line{s} without a number, of one of several threads"),
        ])
    }
}

fn strace_facts(read: strace::ReadCounts) -> FormatFacts {
    let strace::ReadCounts { lines, left_out, times, began_ns, doubtful_lines } = read;
    let end = match (times.with_end, times.without_end) {
        (_, 0) => "told",
        (0, _) => "none",
        _ => "some",
    };
    let began_ns = began_ns.unwrap_or(0);
    let mut facts = times.facts(began_ns);
    facts.push(("times", json!({ "begin": times.begin_word(), "end": end })));
    let mut notes = sentences(&[
        (times.without_end, "call{s} without the time of {its|their} end: strace tells it with -T"),
        (
            times.unseen_ends,
            "call{s} without an end: a replay makes {it|them} and compares the result with \
             nothing",
        ),
    ]);
    notes.extend(times.note());
    FormatFacts { lines, left_out, doubtful_lines, facts, notes }
}

fn mobigen_facts(script: mobigen::Script) -> FormatFacts {
    let times = json!({ "begin": "told", "end": "none" });
    let mut notes = vec!["a script tells no ends of calls, and of few what they returned".into()];
    notes.extend(sentences(&[(
        script.opened_before,
        "file{s} {was|were} open before, and the script does not name {it|them}: \
         /_opened-before/N stands for each",
    )]));
    FormatFacts {
        lines: script.lines as u64,
        left_out: script.unknown,
        doubtful_lines: 0,
        facts: vec![("clock", json!("relative")), ("began_ns", json!(0)), ("times", times)],
        notes,
    }
}

fn summary(
    closed: &BookSummary,
    lines: u64,
    left_out: BTreeMap<String, u64>,
    bad: BadLines,
    of_format: Vec<String>,
    mut notes: Vec<String>,
) -> ImportCounts {
    let mut reasons = closed.missed.reasons(closed.calls);
    reasons.extend(of_format);
    if bad.count > 0 {
        reasons.push(count_words(bad.count, "line{s} could not be read"));
    }
    notes.extend(closed.missed.notes());
    notes.extend(note_of(&closed.databases));
    let nowhere = String::from_utf8_lossy(book::NOWHERE);
    let put = format!("relative path{{s}}, put into {nowhere}: name the directory by --directory");
    notes.extend(sentences(&[
        (closed.without_directory, &put),
        (closed.orphans, "thread{s} of which nothing tells who made them"),
        (closed.surprises, "file{s} {was|were} there although no call had made them"),
        (closed.open_before, "descriptor{s} {was|were} open before"),
        (
            closed.unknown_open,
            "of them {leads|lead} to nothing that is told: a replay leaves out the calls on them \
             (strace \
             tells it with -y)",
        ),
        (
            closed.unseen_opens,
            "descriptor{s} {was|were} opened by calls that the trace does not \
                               have",
        ),
    ]));
    ImportCounts {
        lines,
        calls: closed.calls,
        threads: closed.threads,
        left_out,
        bad_lines: bad.count,
        bad: bad.messages,
        reasons,
        notes,
    }
}

fn absolute(directory: &Path) -> Result<Vec<u8>, WrongUse> {
    let bytes = directory.as_os_str().as_encoded_bytes();
    if !bytes.starts_with(b"/") {
        let text = words::text(bytes);
        return Err(WrongUse(format!("--directory {text}: not absolute; begin it with /")));
    }
    Ok(plain(bytes))
}

#[cfg(test)]
#[path = "fuzz_test.rs"]
mod fuzz;
