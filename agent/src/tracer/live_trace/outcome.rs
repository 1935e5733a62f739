//! What a live trace leaves beside its tables: how it ended, what it saw, and why it is incomplete.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::summary::Summary;
use super::totals;
use super::until::End;
use crate::tracer::assembly::Totals;
use crate::tracer::requests::gaps::Gaps;

/// All of it.
pub struct Outcome {
    pub end: End,
    pub summary: Summary,
    pub totals: Totals,
    pub lost_events: u64,
    pub gaps: Gaps,
    /// Why the tables are incomplete; none where they are complete.
    pub reasons: Vec<String>,
    /// Where they are, if they were asked for.
    pub folder: Option<PathBuf>,
}

impl Outcome {
    /// For programs.
    pub fn json(&self) -> Value {
        let mut json = self.summary.json(self.lost_events, &self.gaps);
        json["incomplete_reasons"] = json!(self.reasons);
        json["totals"] = json!(self.totals);
        json
    }

    /// For people: paragraphs of lines.
    pub fn text(&self) -> Vec<String> {
        let mut text = vec![self.summary.text(self.lost_events, &self.gaps).trim_end().to_owned()];
        text.extend(totals::text(&self.totals).map(|totals| totals.trim_end().to_owned()));
        text.extend(self.reasons.iter().map(|reason| format!("incomplete: {reason}")));
        text.extend(self.folder.iter().map(|folder| format!("tables in {}", folder.display())));
        text
    }
}
