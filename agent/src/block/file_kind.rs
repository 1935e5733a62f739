//! What kind of file a name tells of: SQLite's own naming rules first, then suffixes.

use std::collections::BTreeSet;

/// The kind where there is no file at all; all kinds are listed in schema/requests.toml.
pub const NONE: &str = "none";
/// The kind of a directory, which its name does not tell.
pub const DIRECTORY: &str = "directory";
const OTHER: &str = "other";

const DATABASE: &[&str] = &["db", "db3", "sqlite", "sqlite3"];
const EXECUTABLE: &[&str] =
    &["apk", "art", "dex", "elf", "exe", "jar", "ko", "oat", "odex", "so", "vdex"];
const RESOURCE: &[&str] =
    &["arsc", "css", "html", "js", "json", "otf", "pak", "properties", "toml", "ttf", "xml"];
const MULTIMEDIA: &[&str] = &[
    "3gp", "aac", "avi", "flac", "gif", "heic", "jpeg", "jpg", "m4a", "mkv", "mp3", "mp4", "ogg",
    "opus", "png", "wav", "webm", "webp",
];

/// The kind of a regular file. `paths` are all paths seen, since a file that has (or had) a
/// journal or a WAL beside it is a database whatever its name.
pub fn file_kind(path: &str, paths: &BTreeSet<String>) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or(path);
    if name.is_empty() {
        return OTHER;
    }
    if let Some(kind) = of_sqlite(name) {
        return kind;
    }
    if ["-journal", "-wal"].iter().any(|suffix| paths.contains(&format!("{path}{suffix}"))) {
        return "db";
    }
    let Some((_, suffix)) = name.rsplit_once('.') else {
        return OTHER;
    };
    let suffix = suffix.to_ascii_lowercase();
    let kinds = [
        (DATABASE, "db"),
        (EXECUTABLE, "executable"),
        (RESOURCE, "resource"),
        (MULTIMEDIA, "multimedia"),
    ];
    kinds
        .iter()
        .find(|(suffixes, _)| suffixes.contains(&suffix.as_str()))
        .map_or(OTHER, |(_, kind)| kind)
}

/// Names that SQLite makes itself (src/pager.c, src/os_unix.c, src/vdbeaux.c).
fn of_sqlite(name: &str) -> Option<&'static str> {
    if name.ends_with("-journal") {
        return Some("db-journal");
    }
    if name.ends_with("-wal") {
        return Some("wal");
    }
    if name.ends_with("-shm") {
        return Some("shm");
    }
    // SQLITE_TEMP_FILE_PREFIX.
    if name.starts_with("etilqs_") {
        return Some("sqlite-temp");
    }
    // vdbeCommit(): "%s-mj%06X9%02X".
    let (_, digits) = name.rsplit_once("-mj")?;
    let hexadecimal = digits.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    (digits.len() == 9 && hexadecimal && digits.as_bytes()[6] == b'9').then_some("super-journal")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(path: &str) -> &'static str {
        file_kind(path, &BTreeSet::new())
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
        let paths = BTreeSet::from(["/a/state-journal".to_owned(), "/a/log-wal".to_owned()]);
        assert_eq!(file_kind("/a/state", &paths), "db");
        assert_eq!(file_kind("/a/log", &paths), "db");
        assert_eq!(file_kind("/b/state", &paths), "other");
    }

    #[test]
    fn suffixes_tell_the_rest() {
        assert_eq!(kind("/a/mail.sqlite3"), "db");
        assert_eq!(kind("/a/PICTURE.JPG"), "multimedia");
        assert_eq!(kind("/a/base.apk"), "executable");
        assert_eq!(kind("/a/strings.xml"), "resource");
        assert_eq!(kind("/a/plain"), "other");
        assert_eq!(kind(""), "other");
    }
}
