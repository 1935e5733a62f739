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
    for (pattern, why) in [("", "is empty"), ("a[", "range pattern"), ("a[]", "range pattern")] {
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
