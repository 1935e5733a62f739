//! Patterns of file names: * matches any text, ? any one character, [0-9A-F] one of these. A
//! pattern without a capital letter ignores case.

/// Why a text is no pattern.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum GlobError {
    #[error("pattern {0:?} is empty")]
    Empty(String),
    #[error("pattern {0:?}: a [ needs characters and a ]")]
    Open(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// Any text, also none.
    Any,
    /// One character of these ranges.
    One(Vec<(char, char)>),
}

/// A pattern, ready to be compared with names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    tokens: Vec<Token>,
    any_case: bool,
}

impl Glob {
    /// Reads a pattern.
    ///
    /// # Errors
    /// If it is empty, or a [ is not closed.
    pub fn new(pattern: &str) -> Result<Self, GlobError> {
        if pattern.is_empty() {
            return Err(GlobError::Empty(pattern.to_owned()));
        }
        let mut tokens = Vec::new();
        let mut rest = pattern.chars();
        while let Some(character) = rest.next() {
            tokens.push(match character {
                '*' => Token::Any,
                '?' => Token::One(vec![('\0', char::MAX)]),
                '[' => {
                    let (inside, after) = rest
                        .as_str()
                        .split_once(']')
                        .filter(|(inside, _)| !inside.is_empty())
                        .ok_or_else(|| GlobError::Open(pattern.to_owned()))?;
                    rest = after.chars();
                    Token::One(ranges(inside))
                }
                plain => Token::One(vec![(plain, plain)]),
            });
        }
        Ok(Glob { tokens, any_case: !pattern.chars().any(|c| c.is_ascii_uppercase()) })
    }

    /// Whether a whole name fits.
    pub fn fits(&self, name: &str) -> bool {
        let fold = |c: char| if self.any_case { c.to_ascii_lowercase() } else { c };
        let name: Vec<char> = name.chars().map(fold).collect();
        let (mut token, mut place) = (0, 0);
        // Where the last * is, and how much of the name it has taken: it takes one more each time
        // the rest does not fit, so that the work is bounded by the product of the lengths.
        let mut star: Option<(usize, usize)> = None;
        while place < name.len() {
            match self.tokens.get(token) {
                Some(Token::Any) => {
                    star = Some((token, place));
                    token += 1;
                    continue;
                }
                Some(Token::One(ranges)) if holds(ranges, name[place]) => {
                    token += 1;
                    place += 1;
                    continue;
                }
                _ => {}
            }
            let Some((any, taken)) = &mut star else { return false };
            *taken += 1;
            (token, place) = (*any + 1, *taken);
        }
        self.tokens[token..].iter().all(|token| *token == Token::Any)
    }
}

/// "0-9A-F" as ranges; a single character is one too.
fn ranges(inside: &str) -> Vec<(char, char)> {
    let characters: Vec<char> = inside.chars().collect();
    let mut ranges = Vec::new();
    let mut rest = characters.as_slice();
    while let [first, after @ ..] = rest {
        match after {
            ['-', last, beyond @ ..] => {
                ranges.push((*first, *last));
                rest = beyond;
            }
            _ => {
                ranges.push((*first, *first));
                rest = after;
            }
        }
    }
    ranges
}

fn holds(ranges: &[(char, char)], character: char) -> bool {
    ranges.iter().any(|(first, last)| (*first..=*last).contains(&character))
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
    }

    #[test]
    fn a_capital_letter_makes_case_matter() {
        assert!(fits("*.jpg", "A.JPG"));
        assert!(fits("*.JPG", "A.JPG") && !fits("*.JPG", "A.jpg"));
    }

    #[test]
    fn damaged_patterns_are_told() {
        assert_eq!(Glob::new(""), Err(GlobError::Empty(String::new())));
        assert_eq!(Glob::new("a["), Err(GlobError::Open("a[".into())));
        assert_eq!(Glob::new("a[]"), Err(GlobError::Open("a[]".into())));
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
