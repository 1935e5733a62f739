//! Derives a file's kind from its name. Reads the built-in table schema/file_kinds.toml and, with
//! precedence over it, a table of the user's; answers for one path at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern, PatternError};
use serde::Deserialize;

/// The kind where there is no file at all.
pub const NONE: &str = "none";
/// The kind of a directory, which cannot be derived from its name.
pub const DIRECTORY: &str = "directory";
pub const OTHER: &str = "other";
/// The kind of a request whose page runs differ.
const MIXED: &str = "mixed";

static TABLE: &str = include_str!("../../../../schema/file_kinds.toml");

/// The reason why a table of kinds is none.
#[derive(Debug, thiserror::Error)]
pub enum FileKindsError {
    #[error("{path}: {source}; name a readable file of kinds")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}: {message}; schema/file_kinds.toml shows how it is written")]
    Table { path: PathBuf, message: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KindTable {
    kind: Vec<KindEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KindEntry {
    name: String,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    beside: Vec<String>,
}

#[derive(Debug, Clone)]
struct Rule {
    /// Kept as long as the program runs: tables are read once.
    kind: &'static str,
    globs: Vec<Glob>,
    beside: Vec<String>,
}

/// The rules, in the order in which they are tried.
#[derive(Debug, Clone)]
pub struct FileKinds {
    rules: Vec<Rule>,
    /// The first rule that has each of the patterns "*.suffix", which most are.
    suffixes: BTreeMap<String, usize>,
}

impl Default for FileKinds {
    fn default() -> Self {
        Self::parse(&[TABLE]).expect("the table that is built in is tested")
    }
}

impl FileKinds {
    /// The kinds of the user's table, before those that are built in.
    ///
    /// # Errors
    /// With the file's name, if it cannot be read or is no table of kinds.
    pub fn read(path: &Path) -> Result<Self, FileKindsError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| FileKindsError::Read { path: path.into(), source })?;
        Self::parse(&[&text, TABLE])
            .map_err(|message| FileKindsError::Table { path: path.into(), message })
    }

    fn parse(tables: &[&str]) -> Result<Self, String> {
        let mut kinds = FileKinds { rules: Vec::new(), suffixes: BTreeMap::new() };
        for table in tables {
            let table: KindTable = toml::from_str(table).map_err(|error| error.to_string())?;
            for entry in table.kind {
                kinds.add(entry)?;
            }
        }
        Ok(kinds)
    }

    fn add(&mut self, entry: KindEntry) -> Result<(), String> {
        let KindEntry { name, names, beside } = entry;
        let spelled = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || !name.bytes().all(spelled) {
            return Err(format!("name = {name:?}: small letters, digits and - are needed"));
        }
        if [NONE, DIRECTORY, MIXED].contains(&name.as_str()) {
            return Err(format!("name = {name:?}: that word has a meaning of its own"));
        }
        if names.is_empty() && beside.is_empty() {
            return Err(format!("kind {name}: names or beside is needed"));
        }
        let mut globs = Vec::new();
        for pattern in names {
            match plain_suffix(&pattern) {
                Some(suffix) => {
                    let rule = self.rules.len();
                    self.suffixes.entry(suffix.to_owned()).or_insert(rule);
                }
                None => globs
                    .push(Glob::new(&pattern).map_err(|error| format!("kind {name}: {error}"))?),
            }
        }
        self.rules.push(Rule { kind: name.leak(), globs, beside });
        Ok(())
    }

    /// Return whether this file's existence determines the kind of another file.
    pub fn is_companion(&self, path: &str) -> bool {
        let endings = self.rules.iter().flat_map(|rule| &rule.beside);
        endings.into_iter().any(|ending| path.ends_with(ending))
    }

    /// The kind of a regular file. `companions` are all paths seen for which `is_companion` holds.
    pub fn kind(&self, path: &str, companions: &BTreeSet<String>) -> &'static str {
        let name = path.rsplit('/').next().unwrap_or(path);
        if name.is_empty() {
            return OTHER;
        }
        let suffix = name.rsplit_once('.').map(|(_, suffix)| suffix.to_ascii_lowercase());
        let by_suffix = suffix.and_then(|suffix| self.suffixes.get(&suffix).copied());
        let fits = |(place, rule): &(usize, &Rule)| {
            by_suffix == Some(*place)
                || rule.globs.iter().any(|glob| glob.fits(name))
                || rule.beside.iter().any(|end| companions.contains(&format!("{path}{end}")))
        };
        self.rules.iter().enumerate().find(fits).map_or(OTHER, |(_, rule)| rule.kind)
    }
}

/// "so" of "*.so"; None where there is more to a pattern.
fn plain_suffix(pattern: &str) -> Option<&str> {
    let suffix = pattern.strip_prefix("*.")?;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (!suffix.is_empty() && suffix.bytes().all(plain)).then_some(suffix)
}

/// The reason why a text is no pattern.
#[derive(Debug, thiserror::Error)]
enum GlobError {
    #[error("pattern {0:?} is empty")]
    Empty(String),
    #[error("pattern {0:?}: {1}")]
    Wrong(String, PatternError),
}

/// A pattern of file names: * matches any text, ? any one character, [0-9A-F] one of these, [!0-9]
/// one of no others. A pattern without a capital letter ignores case.
#[derive(Debug, Clone)]
struct Glob {
    pattern: Pattern,
    options: MatchOptions,
}

impl Glob {
    /// Reads a pattern.
    ///
    /// # Errors
    /// If it is empty, a [ is not closed, or two * follow each other.
    fn new(text: &str) -> Result<Self, GlobError> {
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

    /// Return whether a whole name fits.
    fn fits(&self, name: &str) -> bool {
        self.pattern.matches_with(name, self.options)
    }
}

#[cfg(test)]
mod tests {
    //! The built-in table, a table of the user's, and damaged ones.

    use proptest::prelude::*;

    use super::*;

    fn kind(path: &str) -> &'static str {
        FileKinds::default().kind(path, &BTreeSet::new())
    }

    #[test]
    fn sqlite_names_its_files_itself() {
        assert_eq!(kind("/a/contacts.db-journal"), "db-journal");
        assert_eq!(kind("/a/contacts.db-wal"), "wal");
        assert_eq!(kind("/a/contacts.db-shm"), "shm");
        assert_eq!(kind("/a/contacts.db-mj0A1B2C9FF"), "super-journal");
        assert_eq!(kind("/var/tmp/etilqs_1b2c"), "sqlite-temp");
    }

    #[test]
    fn a_name_that_only_resembles_a_super_journal_is_none() {
        assert_eq!(kind("/a/x-mj12345"), "other");
        assert_eq!(kind("/a/x-mj0a1b2c9ff"), "other");
        assert_eq!(kind("/a/x-mj0A1B2C8FF"), "other");
    }

    #[test]
    fn a_journal_beside_it_makes_any_file_a_database() {
        let kinds = FileKinds::default();
        let paths = BTreeSet::from(["/a/state-journal".to_owned(), "/a/log-wal".to_owned()]);
        assert!(paths.iter().all(|path| kinds.is_companion(path)));
        assert!(!kinds.is_companion("/a/state-shm"));
        assert_eq!(kinds.kind("/a/state", &paths), "db");
        assert_eq!(kinds.kind("/a/log", &paths), "db");
        assert_eq!(kinds.kind("/b/state", &paths), "other");
    }

    #[test]
    fn suffixes_tell_the_rest() {
        assert_eq!(kind("/a/mail.sqlite3"), "db");
        assert_eq!(kind("/a/PICTURE.JPG"), "multimedia");
        assert_eq!(kind("/a/base.apk"), "executable");
        assert_eq!(kind("/lib/libc.so.6"), "executable");
        assert_eq!(kind("/a/strings.xml"), "resource");
        assert_eq!(kind("/a/plain"), "other");
        assert_eq!(kind(""), "other");
    }

    fn read(table: &str) -> Result<FileKinds, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kinds.toml");
        std::fs::write(&path, table).unwrap();
        FileKinds::read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn a_table_of_the_user_goes_first() {
        let table = "[[kind]]\nname = \"mail\"\nnames = [\"*.eml\", \"INBOX*\", \"*.db\"]";
        let kinds = read(table).unwrap();
        let none = BTreeSet::new();
        assert_eq!(kinds.kind("/a/1.eml", &none), "mail");
        assert_eq!(kinds.kind("/a/INBOX.db-wal", &none), "mail");
        assert_eq!(kinds.kind("/a/x.db", &none), "mail");
        assert_eq!(kinds.kind("/a/inbox", &none), "other");
        assert_eq!(kinds.kind("/a/x.sqlite", &none), "db");
    }

    #[test]
    fn a_damaged_table_is_told_with_its_place() {
        let damaged = |table: &str, word: &str| {
            let error = read(table).unwrap_err();
            assert!(error.contains("kinds.toml") && error.contains(word), "{error}");
        };
        damaged("[[kind]]\nname = \"x\"\nname", "line 3");
        damaged("[[kind]]\nname = \"x\"\nnaems = []", "naems");
        damaged("[[kind]]\nname = \"x\"", "names or beside");
        damaged("[[kind]]\nname = \"Mail\"\nnames = [\"a\"]", "small letters");
        damaged("[[kind]]\nname = \"mixed\"\nnames = [\"a\"]", "meaning of its own");
        damaged("[[kind]]\nname = \"mail\"\nnames = [\"[a\"]", "range pattern");
        let missing = FileKinds::read(Path::new("/nowhere/kinds.toml")).unwrap_err();
        assert!(missing.to_string().contains("/nowhere/kinds.toml"));
    }

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
