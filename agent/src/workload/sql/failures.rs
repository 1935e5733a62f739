//! Statements that failed: counts them by SQLite's words, with the first of each.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::messages::plural;
use crate::tables::timeline::now_ns;

/// Errors that are told apart; all others are counted together.
const MOST_ERRORS: usize = 100;

/// What SQLite says of things that an app adds to it; all else may fail because these do.
const OF_THE_APP: [&str; 4] =
    ["no such collation sequence", "no such function", "no such module", "no such tokenizer"];

#[derive(Debug, Clone)]
struct FailedStatements {
    statements: u64,
    /// Those of them that no script allows to.
    unexpected: u64,
    first: String,
    /// When the first of them failed.
    first_ns: i64,
}

/// Of one connection, or of all.
#[derive(Debug, Clone, Default)]
pub struct Failures {
    by_error: BTreeMap<String, FailedStatements>,
}

impl Failures {
    /// One more, now; `place` is the file and line.
    pub fn note(&mut self, error: &str, place: impl FnOnce() -> String, is_expected: bool) {
        let is_new = !self.by_error.contains_key(error);
        let error =
            if is_new && self.by_error.len() >= MOST_ERRORS { "other errors" } else { error };
        let unexpected = u64::from(!is_expected);
        let (first, first_ns) = (String::new(), now_ns());
        self.add(error, &FailedStatements { statements: 1, unexpected, first, first_ns });
        if let Some(failed) = self.by_error.get_mut(error).filter(|it| it.first.is_empty()) {
            failed.first = place();
        }
    }

    fn add(&mut self, error: &str, more: &FailedStatements) {
        match self.by_error.get_mut(error) {
            Some(failed) => {
                failed.statements += more.statements;
                failed.unexpected += more.unexpected;
                if more.first_ns < failed.first_ns {
                    (failed.first_ns, failed.first) = (more.first_ns, more.first.clone());
                }
            }
            None => drop(self.by_error.insert(error.into(), more.clone())),
        }
    }

    /// Those of another connection too.
    pub fn merge(&mut self, other: &Self) {
        for (error, failed) in &other.by_error {
            self.add(error, failed);
        }
    }

    /// As the manifest has them.
    pub fn manifest(&self) -> Value {
        let one = |(error, failed): (&String, &FailedStatements)| {
            let FailedStatements { statements, unexpected, first, .. } = failed;
            let value = json!({
                "statements": statements, "unexpected": unexpected, "first": first
            });
            (error.clone(), value)
        };
        Value::Object(self.by_error.iter().map(one).collect())
    }

    /// Why the run is not whole, what failed first before what it may be the cause of; empty where
    /// every failure was expected.
    pub fn reasons(&self) -> Vec<String> {
        let unexpected = self.by_error.iter().filter(|(_, failed)| failed.unexpected > 0);
        let mut unexpected: Vec<_> = unexpected.collect();
        unexpected.sort_by_key(|(_, failed)| failed.first_ns);
        let reason = |(error, failed): (&String, &FailedStatements)| {
            let own = if OF_THE_APP.iter().any(|words| error.starts_with(words)) {
                ", which the app has of its own, and no script has"
            } else {
                ""
            };
            let statements = plural(failed.unexpected, "statement");
            format!("{statements} failed: {error}{own} (first: {})", failed.first)
        };
        unexpected.into_iter().map(reason).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_by_their_words() {
        let (mut one, mut other) = (Failures::default(), Failures::default());
        one.note("UNIQUE", || "a, line 1".into(), false);
        one.note("UNIQUE", || "a, line 2".into(), true);
        other.note("UNIQUE", || "b, line 1".into(), false);
        other.note("no table", || "b, line 7".into(), true);
        one.merge(&other);
        assert_eq!(one.reasons(), ["2 statements failed: UNIQUE (first: a, line 1)"]);
        assert_eq!(one.manifest()["no table"]["statements"], 1);
        one.note("no such function: f", || "c, line 1".into(), false);
        one.note("A follows", || "c, line 2".into(), false);
        let reasons = one.reasons();
        assert!(reasons[1].starts_with("1 statement failed: no such function: f, which the app"));
        assert_eq!(reasons[2], "1 statement failed: A follows (first: c, line 2)");
        for number in 0..2 * MOST_ERRORS {
            one.note(&number.to_string(), || "x".into(), false);
        }
        assert_eq!(one.manifest().as_object().unwrap().len(), MOST_ERRORS + 1);
    }
}
