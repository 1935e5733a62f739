//! The places of a program that sync: by system call, and by the file's name in its working
//! directory, in which numbers and random parts are `#`, so that files of one use are one site.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Written as `fsync records/#`; sync(2) names no file, and a folder ends in a slash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SyncSite {
    pub call: String,
    pub file: String,
}

/// The calls of a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncCount {
    #[serde(flatten)]
    pub site: SyncSite,
    pub calls: u64,
    /// Whether its syncs cannot be left out.
    pub is_fixed: bool,
}

/// Calls that sync in a way of which no single sync can be left out.
const FIXED: [&str; 5] = ["RWF_SYNC", "RWF_DSYNC", "openat2", "io_submit", "io_uring_setup"];

/// Stands for a number, and for letters that are drawn.
const DRAWN: &str = "#";
/// So many hexadecimal digits are a hash, or were drawn, where one of them is a decimal digit.
const LEAST_HASH: usize = 8;
/// The number of letters that mkstemp(3) draws.
const DRAWN_LETTERS: usize = 6;

impl SyncSite {
    /// The site of a call on a file of the working directory, whose own path is empty.
    pub fn on_file(call: &str, path: &Path, is_directory: bool) -> Self {
        let path = path.to_string_lossy();
        let count = path.split('/').count();
        let part = |(place, name): (usize, &str)| part_name(name, place + 1 < count);
        let name: Vec<String> = path.split('/').enumerate().map(part).collect();
        let name = name.join("/");
        let file = match (is_directory, name.is_empty()) {
            (true, true) => "./".to_owned(),
            (true, false) => name + "/",
            (false, _) => name,
        };
        Self { call: call.to_owned(), file }
    }

    /// Return whether its syncs cannot be left out.
    pub fn is_fixed(&self) -> bool {
        FIXED.contains(&self.call.as_str())
    }

    /// The site of a call that names no file.
    pub fn on_all(call: &str) -> Self {
        Self { call: call.to_owned(), file: String::new() }
    }
}

impl fmt::Display for SyncSite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, file } = self;
        if file.is_empty() { formatter.write_str(call) } else { write!(formatter, "{call} {file}") }
    }
}

/// A part of a path, without what another file of the same use has otherwise.
fn part_name(name: &str, is_folder: bool) -> String {
    let is_hexadecimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    // Folders that files are spread over by the first byte of a hash.
    if is_folder && name.len() == 2 && is_hexadecimal(name) {
        return DRAWN.to_owned();
    }
    let mut words: Vec<&str> = Vec::new();
    let is_letter = |text: &str| text.starts_with(|it: char| it.is_ascii_alphanumeric());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let of_word = first.is_ascii_alphanumeric();
        let end = rest.find(|it: char| it.is_ascii_alphanumeric() != of_word);
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        words.push(word);
        rest = after;
    }
    let last = words.len().saturating_sub(1);
    let shown = |(place, word): (usize, &&str)| {
        if !is_letter(word) { (*word).to_owned() } else { word_name(word, place == last) }
    };
    words.iter().enumerate().map(shown).collect()
}

fn word_name(word: &str, is_last: bool) -> String {
    let has = |kind: fn(&u8) -> bool| word.bytes().any(|byte| kind(&byte));
    let kinds = [u8::is_ascii_digit, u8::is_ascii_lowercase, u8::is_ascii_uppercase];
    if is_last && word.len() == DRAWN_LETTERS && kinds.into_iter().filter(|it| has(*it)).count() > 1
    {
        return DRAWN.to_owned();
    }
    let head = word.trim_end_matches(|it: char| it.is_ascii_hexdigit());
    let tail = &word[head.len()..];
    if tail.len() >= LEAST_HASH && tail.bytes().any(|byte| byte.is_ascii_digit()) {
        return without_numbers(head) + DRAWN;
    }
    without_numbers(word)
}

fn without_numbers(word: &str) -> String {
    let mut found = String::new();
    for letter in word.chars() {
        if !letter.is_ascii_digit() {
            found.push(letter);
        } else if !found.ends_with(DRAWN) {
            found.push_str(DRAWN);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_use_are_one_site() {
        for (path, name) in [
            ("records/000012", "records/#"),
            ("app.db-wal", "app.db-wal"),
            ("main.db-mj0A1B2C3D9", "main.db-mj#"),
            ("state-007.new", "state-#.new"),
            (".git/objects/3f/tmp_obj_q8Xk2Z", ".git/objects/#/tmp_obj_#"),
            (".git/objects/ab/0123456789abcdef0123456789abcdef012345", ".git/objects/#/#"),
            (".git/refs/heads/master.lock", ".git/refs/heads/master.lock"),
            ("db/MANIFEST-000004", "#/MANIFEST-#"),
            ("db", "db"),
            ("é1/x", "é#/x"),
        ] {
            assert_eq!(SyncSite::on_file("fsync", Path::new(path), false).file, name);
        }
    }

    #[test]
    fn a_write_that_syncs_itself_cannot_be_left_out() {
        let site = |call| SyncSite::on_file(call, Path::new("x"), false);
        assert!(site("RWF_DSYNC").is_fixed() && !site("O_DSYNC").is_fixed());
    }

    #[test]
    fn a_site_is_written_as_call_and_file() {
        let words = |path: &str| SyncSite::on_file("fsync", Path::new(path), true).to_string();
        assert_eq!([words(""), words("records")], ["fsync ./", "fsync records/"]);
        assert_eq!(SyncSite::on_all("sync").to_string(), "sync");
    }
}
