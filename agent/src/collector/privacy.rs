//! Names that leave the device: themselves, keyed hashes, or nothing. A hash is the same for the
//! same name on this device, and another on any other; what tells the kind of a file stays.

use std::fmt::Write;

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Says what is done to names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PrivacyLevel {
    /// As they are
    Names,
    /// Keyed hashes, by a salt that stays on the device
    Hashed,
    /// None
    Kinds,
}

/// A level, with the salt of the device.
pub struct Privacy {
    pub level: PrivacyLevel,
    pub salt: [u8; 32],
}

/// The longest string of a segment, and the longest list of databases.
const MOST_BYTES: usize = 4096;

/// Endings by which SQLite's files are known (schema/file_kinds.toml).
const SQLITE_SUFFIXES: [&str; 3] = ["-journal", "-wal", "-shm"];
const DATABASES: [&str; 4] = [".db", ".db3", ".sqlite", ".sqlite3"];
/// -mj and nine digits of a super-journal.
const SUPER_BYTES: usize = 12;

impl Privacy {
    /// The level, as the table `segments` has it.
    pub fn word(&self) -> &'static str {
        match self.level {
            PrivacyLevel::Names => "names",
            PrivacyLevel::Hashed => "hashed",
            PrivacyLevel::Kinds => "kinds",
        }
    }

    /// Return the name of a process as it may leave.
    pub fn process(&self, name: &str) -> String {
        match self.level {
            PrivacyLevel::Names => name.to_owned(),
            PrivacyLevel::Hashed if name.is_empty() => String::new(),
            PrivacyLevel::Hashed => self.hash(name),
            PrivacyLevel::Kinds => String::new(),
        }
    }

    /// Return the path of a file as it may leave; None where no name may.
    pub fn path(&self, path: &str) -> Option<String> {
        match self.level {
            PrivacyLevel::Names => Some(end_of(path, MOST_BYTES).to_owned()),
            PrivacyLevel::Hashed => {
                let parts = path.split('/').map(|part| self.part(part));
                Some(end_of(&parts.collect::<Vec<_>>().join("/"), MOST_BYTES).to_owned())
            }
            PrivacyLevel::Kinds => None,
        }
    }

    /// Return the name of a super-journal; its number always stays, so that it can be counted.
    pub fn super_journal(&self, path: &str) -> String {
        self.path(path).unwrap_or_else(|| end_of(path, SUPER_BYTES).to_owned())
    }

    fn part(&self, part: &str) -> String {
        let (part, beside) = split(part);
        if part.is_empty() {
            return beside.to_owned();
        }
        let database = DATABASES.iter().find(|ending| part.ends_with(*ending)).copied();
        let (name, ending) = part.split_at(part.len() - database.map_or(0, str::len));
        format!("{}{ending}{beside}", self.hash(name))
    }

    fn hash(&self, name: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.salt).expect("a key of any length");
        mac.update(name.as_bytes());
        let mut text = String::new();
        for byte in &mac.finalize().into_bytes()[..8] {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

/// Return what lies beside a database: its name, and the ending.
fn split(part: &str) -> (&str, &str) {
    if let Some(ending) = SQLITE_SUFFIXES.iter().find(|ending| part.ends_with(*ending)) {
        return part.split_at(part.len() - ending.len());
    }
    match part.rfind("-mj") {
        Some(place) if part.len() - place == SUPER_BYTES => part.split_at(place),
        _ => (part, ""),
    }
}

/// Return the end of a text that is too long: the name is there.
fn end_of(text: &str, most_bytes: usize) -> &str {
    let mut begin = text.len().saturating_sub(most_bytes);
    while !text.is_char_boundary(begin) {
        begin += 1;
    }
    &text[begin..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn privacy(level: PrivacyLevel) -> Privacy {
        Privacy { level, salt: [7; 32] }
    }

    #[test]
    fn hashed_names_can_be_compared_and_not_read() {
        let hashed = privacy(PrivacyLevel::Hashed);
        let path = |text| hashed.path(text).unwrap();
        let database = path("/data/mail/a.db");
        assert!(database.ends_with(".db") && !database.contains("mail"), "{database}");
        assert_eq!(path("/data/mail/a.db-journal"), format!("{database}-journal"));
        assert_eq!(path("/data/mail/a.db-mj0123459AB"), format!("{database}-mj0123459AB"));
        assert_ne!(path("/data/mail/b.db"), database);
        assert_ne!(
            Privacy { salt: [8; 32], ..privacy(PrivacyLevel::Hashed) }.path("a"),
            hashed.path("a")
        );
        assert_eq!(hashed.process("mail").len(), 16);
    }

    #[test]
    fn kinds_leave_the_number_of_a_super_journal_alone() {
        let kinds = privacy(PrivacyLevel::Kinds);
        assert_eq!((kinds.path("/a"), kinds.process("p")), (None, String::new()));
        assert_eq!(kinds.super_journal("/data/a.db-mj0123459AB"), "-mj0123459AB");
    }

    #[test]
    fn a_path_that_is_too_long_keeps_its_end() {
        let long = format!("/{}/name.db", "é".repeat(4000));
        let path = privacy(PrivacyLevel::Names).path(&long).unwrap();
        assert!(path.len() <= MOST_BYTES && path.ends_with("/name.db"));
    }
}
