//! The sums of a live trace in one table: requests and bytes by operation, block type and file.
//! Reads finished rows as they come; keeps only sums.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::trace_end::End;
use crate::messages::plural;
use crate::tracer::{Files, FinishedRows, Gaps, Totals};

/// Lines that are kept; the rest is one line.
const LINES_LIMIT: usize = 20_000;
/// Lines that are printed.
const LINES_PRINTED: usize = 40;
const FURTHER: &str = "(further files)";

/// The subject of a line, as the tables spell it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    operation: String,
    block_type: String,
    subtype: String,
    file_kind: String,
    path: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct LineSum {
    runs: u64,
    bytes: u64,
}

impl LineSum {
    fn add(&mut self, bytes: u64) {
        self.runs += 1;
        self.bytes += bytes;
    }
}

/// The sums so far.
#[derive(Debug, Default)]
pub struct Summary {
    lines: BTreeMap<Line, LineSum>,
    pub requests: u64,
    /// Requests that the tracer itself submitted or waited for, and their bytes.
    pub own_requests: u64,
    pub own_bytes: u64,
}

impl Summary {
    /// Adds rows; `own_pid` is the tracer's process.
    pub fn add(&mut self, finished: &FinishedRows, files: &Files, own_pid: i64) {
        self.requests += finished.requests.len() as u64;
        // Few lines for many rows: words are compared before any is copied.
        let mut lines = BTreeMap::<[&str; 5], LineSum>::new();
        // Runs come in the order of their requests.
        let mut runs = finished.page_runs.iter().peekable();
        for request in &finished.requests {
            let is_own = request.submitter_pid == own_pid || request.asker_pid == Some(own_pid);
            if is_own {
                self.own_requests += 1;
                self.own_bytes += request.length_bytes as u64;
            }
            if request.block_type == "flush" {
                lines.entry(["flush", "flush", "", "none", ""]).or_default().add(0);
            }
            while let Some(run) = runs.next_if(|run| run.request_id == request.request_id) {
                let path = match run.file_id {
                    _ if is_own => "(the tracer's own)",
                    Some(id) => files.path(id),
                    None => "",
                };
                let words = [
                    &*request.operation,
                    &run.block_type,
                    &run.block_subtype,
                    &run.file_kind,
                    path,
                ];
                lines.entry(words).or_default().add(run.length_bytes as u64);
            }
        }
        lines.into_iter().for_each(|(words, sum)| self.line(words, sum));
    }

    fn line(&mut self, words: [&str; 5], more: LineSum) {
        let [operation, block_type, subtype, file_kind, path] = words.map(str::to_owned);
        let mut line = Line { operation, block_type, subtype, file_kind, path };
        if self.lines.len() >= LINES_LIMIT && !self.lines.contains_key(&line) {
            line.path = FURTHER.to_owned();
        }
        let sum = self.lines.entry(line).or_default();
        sum.runs += more.runs;
        sum.bytes += more.bytes;
    }

    /// Lines by bytes, the largest first.
    fn sorted_lines(&self) -> Vec<(&Line, LineSum)> {
        let mut lines: Vec<(&Line, LineSum)> =
            self.lines.iter().map(|(line, sum)| (line, *sum)).collect();
        lines.sort_by_key(|(line, sum)| (std::cmp::Reverse(sum.bytes), *line));
        lines
    }

    /// The table as it is printed.
    fn table(&self) -> String {
        let mut text = String::new();
        let mut put = |line: String| writeln!(text, "{}", line.trim_end()).expect("to memory");
        put("operation type         subtype           kind         runs        bytes  file".into());
        let lines = self.sorted_lines();
        for (line, sum) in lines.iter().take(LINES_PRINTED) {
            let Line { operation, block_type, subtype, file_kind, path } = line;
            let (LineSum { runs, bytes }, path) = (sum, printable(path));
            put(format!(
                "{operation:9} {block_type:12} {subtype:17} {file_kind:10} {runs:6} {bytes:12}  \
                 {path}"
            ));
        }
        if let Some(further) = lines.get(LINES_PRINTED..).filter(|further| !further.is_empty()) {
            let bytes: u64 = further.iter().map(|(_, sum)| sum.bytes).sum();
            put(format!("... {} more lines, {bytes} bytes", further.len()));
        }
        text
    }

    /// Return lines that tell how many requests there were, and what is missing.
    fn losses(&self, lost_events: u64, gaps: &Gaps) -> Vec<String> {
        let counts = [
            (gaps.skipped_runs, "runs of a program skipped by the kernel"),
            (gaps.unattributed_flushes, "flushes unattributed"),
            (gaps.unissued_bios, "bios unissued"),
            (gaps.incomplete_requests, "requests incomplete"),
            (gaps.failed_requests, "failed"),
        ];
        let further: String = counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!(", {count} {what}"))
            .collect();
        let mut lines = vec![
            format!(
                "{}; the tracer's own: {} of them, {}",
                plural(self.requests, "request"),
                self.own_requests,
                plural(self.own_bytes, "byte")
            ),
            format!(
                "{lost_events} events lost, {} bytes unattributed{further}",
                gaps.unattributed_bytes
            ),
        ];
        lines
            .extend(gaps.untimed_words().map(|untimed| format!("{untimed}: complete_ns is empty")));
        lines.extend(gaps.unended_words());
        if gaps.edge_requests > 0 {
            let count = gaps.edge_requests;
            lines.push(format!(
                "{}, queued before the begin or after the end: left out",
                plural(count, "request")
            ));
        }
        lines.extend(gaps.notes());
        lines
    }

    /// The same for programs, every line of it.
    pub fn json(&self, lost_events: u64, gaps: &Gaps) -> Value {
        let row = |(line, sum): (&Line, LineSum)| {
            json!({
                "operation": line.operation,
                "block_type": line.block_type,
                "block_subtype": line.subtype,
                "file_kind": line.file_kind,
                "file": line.path,
                "runs": sum.runs,
                "bytes": sum.bytes,
            })
        };
        let mut summary = json!(gaps);
        summary["rows"] = self.sorted_lines().into_iter().map(row).collect();
        summary["requests"] = self.requests.into();
        summary["own_requests"] = self.own_requests.into();
        summary["own_bytes"] = self.own_bytes.into();
        summary["lost_events"] = lost_events.into();
        summary
    }
}

/// A path that is safe for a terminal: a file's name may hold terminal commands
/// (as jojlab/foundation/printable.py).
pub fn printable(path: &str) -> String {
    let shown = |c: char| match u32::from(c) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}'),
        0x7f..0xa0 => '\u{fffd}',
        _ => c,
    };
    path.chars().map(shown).collect()
}

/// Bytes by operation and type of all bios, and whose those were that have no rows; none where
/// every bio has.
fn totals_lines(totals: &Totals) -> Vec<String> {
    let mut lines = Vec::new();
    let Totals { exact, bios_without_rows, sums, without_rows } = totals;
    if *bios_without_rows == 0 {
        return lines;
    }
    let mut put = |line: String| lines.push(line.trim_end().to_owned());
    put(format!(
        "{bios_without_rows} bios have no rows in requests and page_runs: their bytes were added \
         up in the kernel"
    ));
    put("without rows: operation type         kind         runs        bytes  file".into());
    for line in without_rows.iter().take(LINES_PRINTED) {
        put(format!(
            "              {:9} {:12} {:10} {:6} {:12}  {}",
            line.operation,
            line.block_type,
            line.file_kind,
            line.runs,
            line.bytes,
            printable(&line.file)
        ));
    }
    if without_rows.len() > LINES_PRINTED {
        put(format!("              ... {} more lines", without_rows.len() - LINES_PRINTED));
    }
    let known = if *exact { "exact" } else { "at least" };
    put(format!("totals, {known}: device   operation type                bytes  without rows"));
    for sum in sums {
        put(format!(
            "               {:9} {:9} {:12} {:12}  {:12}",
            sum.device, sum.operation, sum.block_type, sum.bytes, sum.bytes_without_rows
        ));
    }
    lines
}

/// The facts that a live trace leaves beside its tables: how it ended, what it saw, and why it is
/// incomplete.
pub struct Outcome {
    pub end: End,
    pub summary: Summary,
    pub totals: Totals,
    pub lost_events: u64,
    pub gaps: Gaps,
    /// The reasons why the tables are incomplete; none where they are complete.
    pub reasons: Vec<String>,
    /// The folder of the tables, if they were asked for.
    pub folder: Option<PathBuf>,
}

impl Outcome {
    /// For programs; `details` are for people, who read an answer first.
    pub fn json(&self) -> Value {
        let mut json = self.summary.json(self.lost_events, &self.gaps);
        json["incomplete_reasons"] = json!(self.reasons);
        json["totals"] = json!(self.totals);
        json["details"] = json!(self.details());
        json
    }

    /// Lines that say how much was traced and what is missing.
    fn details(&self) -> Vec<String> {
        let mut lines = self.summary.losses(self.lost_events, &self.gaps);
        lines.extend(totals_lines(&self.totals));
        lines.extend(self.reasons.iter().map(|reason| format!("incomplete: {reason}")));
        lines
    }

    /// For people: the table, and lines.
    pub fn text(&self) -> Vec<String> {
        let mut text = vec![self.summary.table().trim_end().to_owned()];
        text.extend(self.details());
        text.extend(self.folder.iter().map(|folder| format!("tables in {}", folder.display())));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::rows::{PageRun, Request};
    use crate::tracer::Total;

    fn finished_rows(count: i64) -> FinishedRows {
        let mut finished = FinishedRows::default();
        for request_id in 0..count {
            let pid = if request_id == 0 { 77 } else { 5 };
            finished.requests.push(Request {
                request_id,
                operation: "write".into(),
                block_type: "data".into(),
                submitter_pid: pid,
                length_bytes: 4096,
                ..Request::default()
            });
            finished.page_runs.push(PageRun {
                request_id,
                length_bytes: 4096,
                block_type: "data".into(),
                block_subtype: format!("s{request_id}").into(),
                ..PageRun::default()
            });
        }
        finished
    }

    #[test]
    fn the_tracers_own_is_counted_apart() {
        let mut summary = Summary::default();
        summary.add(&finished_rows(2), &Files::default(), 77);
        assert_eq!((summary.requests, summary.own_requests, summary.own_bytes), (2, 1, 4096));
        let (table, losses) = (summary.table(), summary.losses(3, &Gaps::default()));
        assert!(table.contains("(the tracer's own)"), "{table}");
        assert_eq!(losses[1], "3 events lost, 0 bytes unattributed");
    }

    #[test]
    fn the_name_of_a_file_commands_no_terminal() {
        let mut summary = Summary::default();
        summary.line(["write", "data", "", "other", "/a\x1b]0;x\x07\n\u{9b}é"], LineSum::default());
        let text = summary.table();
        assert!(text.contains("/a␛]0;x␇␊\u{fffd}é"), "{text}");
    }

    #[test]
    fn memory_and_page_have_a_bound_and_bytes_are_kept() {
        let mut summary = Summary::default();
        summary.add(&finished_rows(50), &Files::default(), 1);
        assert!(summary.table().contains("... 10 more lines, 40960 bytes"));
        let bytes = |value: &Value| value["bytes"].as_u64().unwrap();
        let json = summary.json(0, &Gaps::default());
        assert_eq!(json["rows"].as_array().unwrap().iter().map(bytes).sum::<u64>(), 50 * 4096);
    }

    #[test]
    fn sums_are_printed_where_rows_are_missing_alone() {
        let total = Total {
            device: "sda".into(),
            operation: "write",
            block_type: "data",
            bytes: 8192,
            bytes_without_rows: 4096,
        };
        let mut totals = Totals { exact: true, sums: vec![total], ..Totals::default() };
        assert_eq!(totals_lines(&totals), Vec::<String>::new());
        totals.bios_without_rows = 1;
        let found = totals_lines(&totals).join("\n");
        assert!(
            found.contains("1 bios have no rows") && found.contains("totals, exact"),
            "{found}"
        );
        assert!(found.contains("8192") && found.contains("4096"), "{found}");
        totals.exact = false;
        assert!(totals_lines(&totals).join("\n").contains("totals, at least"));
    }
}
