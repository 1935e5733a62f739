//! Patterns of file names: * matches any text, ? any one character, [0-9A-F] one of these, [!0-9]
//! one of no others. A pattern without a capital letter ignores case.

use glob::{MatchOptions, Pattern, PatternError};

/// Why a text is no pattern.
#[derive(Debug, thiserror::Error)]
pub enum GlobError {
    #[error("pattern {0:?} is empty")]
    Empty(String),
    #[error("pattern {0:?}: {1}")]
    Wrong(String, PatternError),
}

/// A pattern, ready to be compared with names.
#[derive(Debug, Clone)]
pub struct Glob {
    pattern: Pattern,
    options: MatchOptions,
}

impl Glob {
    /// Reads a pattern.
    ///
    /// # Errors
    /// If it is empty, a [ is not closed, or two * follow each other.
    pub fn new(text: &str) -> Result<Self, GlobError> {
        if text.is_empty() {
            return Err(GlobError::Empty(text.to_owned()));
        }
        let wrong = |error| GlobError::Wrong(text.to_owned(), error);
        let options = MatchOptions {
            case_sensitive: text.chars().any(|c| c.is_ascii_uppercase()),
            require_literal_separator: false,
            require_literal_leading_dot: false,
        };
        Ok(Glob { pattern: Pattern::new(text).map_err(wrong)?, options })
    }

    /// Whether a whole name fits.
    pub fn fits(&self, name: &str) -> bool {
        self.pattern.matches_with(name, self.options)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        Glob::new(pattern).unwrap().fits(name)
    }

    #[test]
    fn stars_marks_and_classes() {
        assert!(fits("*.so.[0-9]*", "libc.so.6"));
        assert!(!fits("*.so.[0-9]*", "libc.so.x"));
        assert!(fits("a*b*c", "aXbYbZc"));
        assert!(!fits("a*b*c", "aXbYbZ"));
        assert!(fits("?x", "éx") && !fits("?x", "x"));
        assert!(fits("*", "") && fits("a*", "a"));
        assert!(fits("[a-]", "-") && fits("[a-]", "a"));
        assert!(fits("[!a]x", "bx") && !fits("[!a]x", "ax"));
    }

    #[test]
    fn a_capital_letter_makes_case_matter() {
        assert!(fits("*.jpg", "A.JPG"));
        assert!(fits("*.JPG", "A.JPG") && !fits("*.JPG", "A.jpg"));
    }

    #[test]
    fn damaged_patterns_are_told() {
        for (pattern, why) in [("", "is empty"), ("a[", "range pattern"), ("a[]", "range pattern")]
        {
            let error = Glob::new(pattern).unwrap_err().to_string();
            assert!(error.contains(&format!("{pattern:?}")) && error.contains(why), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_name_fits_itself_with_any_part_replaced_by_a_star(
            name in "[a-z.]{1,12}", begin in 0usize..12, end in 0usize..12
        ) {
            let (begin, end) = (begin.min(name.len()), end.min(name.len()));
            let (begin, end) = (begin.min(end), begin.max(end));
            let pattern = format!("{}*{}", &name[..begin], &name[end..]);
            prop_assert!(fits(&pattern, &name), "{pattern} {name}");
        }

        #[test]
        fn nothing_panics(pattern in "\\PC{0,12}", name in "\\PC{0,12}") {
            if let Ok(glob) = Glob::new(&pattern) {
                glob.fits(&name);
            }
        }
    }
}
