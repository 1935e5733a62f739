//! What is wrong with a script, and where.

use std::fmt;

/// A place in a text; both numbers from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptPlace {
    pub line: usize,
    /// In characters.
    pub column: usize,
}

impl ScriptPlace {
    /// Of a byte of a text.
    pub fn of(text: &str, offset: usize) -> Self {
        Self { line: 1, column: 1 }.after(text, offset)
    }

    /// The place that many bytes of `text` after this one, where `text` begins.
    pub fn after(self, text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        match before.rfind('\n') {
            None => Self { line: self.line, column: self.column + before.chars().count() },
            Some(end) => Self {
                line: self.line + before.matches('\n').count(),
                column: 1 + before[end + 1..].chars().count(),
            },
        }
    }
}

impl fmt::Display for ScriptPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, column {}", self.line, self.column)
    }
}

/// A script that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct SqlScriptError {
    pub place: ScriptPlace,
    pub what: String,
}

impl SqlScriptError {
    pub fn new(place: ScriptPlace, what: impl Into<String>) -> Self {
        Self { place, what: what.into() }
    }
}
