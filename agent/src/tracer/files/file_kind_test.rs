//! The built-in table, a table of the user's, and damaged ones.

use super::*;

fn kind(path: &str) -> &'static str {
    FileKinds::default().of(path, &BTreeSet::new())
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
    assert_eq!(kinds.of("/a/state", &paths), "db");
    assert_eq!(kinds.of("/a/log", &paths), "db");
    assert_eq!(kinds.of("/b/state", &paths), "other");
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
    assert_eq!(kinds.of("/a/1.eml", &none), "mail");
    assert_eq!(kinds.of("/a/INBOX.db-wal", &none), "mail");
    assert_eq!(kinds.of("/a/x.db", &none), "mail");
    assert_eq!(kinds.of("/a/inbox", &none), "other");
    assert_eq!(kinds.of("/a/x.sqlite", &none), "db");
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
