//! What calls tell of a file as it was before the recording: its kind, and its size as far as what
//! was read, looked up and written lets one know it.

use super::told::FileStat;

/// How a fact of the snapshot is known (schema/recording/snapshot.toml, basis).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// Nothing tells; the commoner case is taken.
    Assumed,
    /// It follows from what other calls did or could do.
    Inferred,
    /// A call's result says so.
    Told,
}

impl Basis {
    pub fn word(self) -> &'static str {
        match self {
            Basis::Assumed => "assumed",
            Basis::Inferred => "inferred",
            Basis::Told => "told",
        }
    }
}

/// Where the locks of SQLite begin in a database.
const LOCKED_FROM: i64 = 1 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    Unknown,
    AtLeast(i64),
    Exactly(i64),
}

/// A file, directory or link that calls were about, under whatever name.
#[derive(Debug, Clone)]
pub struct TracedFile {
    /// Whether the recording made it.
    is_new: bool,
    /// Of one that an open may have made or found: whether something shows it was there.
    was_there: bool,
    kind: Option<&'static str>,
    basis: Basis,
    mode: Option<i64>,
    links: Option<i64>,
    link_target: Option<Vec<u8>>,
    size: Size,
    /// Its size was changed: nothing tells of the former one any more.
    is_resized: bool,
    is_mode_changed: bool,
    /// End of what was written by offset, and bytes that were appended.
    written_end: i64,
    appended: i64,
    /// Whether its locks are those of a database of SQLite.
    is_database: bool,
}

impl TracedFile {
    pub fn new(is_new: bool) -> Self {
        TracedFile {
            is_new,
            was_there: !is_new,
            kind: None,
            basis: Basis::Inferred,
            mode: None,
            links: None,
            link_target: None,
            size: Size::Unknown,
            is_resized: is_new,
            is_mode_changed: is_new,
            written_end: 0,
            appended: 0,
            is_database: false,
        }
    }

    /// Of an open with O_CREAT, which does not say whether it made the file.
    pub fn perhaps_new() -> Self {
        TracedFile { was_there: false, ..TracedFile::new(false) }
    }

    pub fn is_new(&self) -> bool {
        self.is_new
    }

    pub fn was_there(&self) -> bool {
        self.was_there
    }

    pub fn is_kind(&mut self, kind: &'static str) {
        if self.kind.is_none() {
            self.kind = Some(kind);
        }
    }

    pub fn leads_to(&mut self, target: &[u8]) {
        (self.kind, self.basis) = (Some("symlink"), Basis::Told);
        self.link_target.get_or_insert_with(|| target.to_vec());
    }

    /// A call was told what it is.
    pub fn saw(&mut self, stat: FileStat) {
        if let Some(mode) = stat.mode {
            let kind = match mode & i64::from(libc::S_IFMT) {
                it if it == i64::from(libc::S_IFREG) => "file",
                it if it == i64::from(libc::S_IFDIR) => "directory",
                it if it == i64::from(libc::S_IFLNK) => "symlink",
                _ => "other",
            };
            self.kind = Some(kind);
            if !self.is_mode_changed {
                self.basis = Basis::Told;
                self.mode.get_or_insert(mode & 0o7777);
            }
        }
        if !self.is_new {
            self.links = self.links.or(stat.links);
        }
        if let Some(size) = stat.size_bytes {
            self.saw_size(size);
        }
    }

    /// It has that size now.
    pub fn saw_size(&mut self, size: i64) {
        let before = size.saturating_sub(self.appended);
        if self.is_resized || before < 0 || matches!(self.size, Size::Exactly(_)) {
            return;
        }
        if before > self.written_end || self.written_end == 0 {
            self.size = Size::Exactly(before);
            self.was_there |= before > 0;
        }
    }

    /// It has contents up to there now.
    pub fn saw_end(&mut self, end: i64) {
        let end = end.saturating_sub(self.appended);
        let known = match self.size {
            Size::Unknown => 0,
            Size::AtLeast(bytes) => bytes,
            Size::Exactly(_) => return,
        };
        if !self.is_resized && end > self.written_end && end > known {
            self.size = Size::AtLeast(end);
            self.was_there = true;
        }
    }

    pub fn written_to(&mut self, end: i64) {
        self.written_end = self.written_end.max(end);
    }

    pub fn appended(&mut self, bytes: i64) {
        self.appended = self.appended.saturating_add(bytes);
    }

    pub fn resized(&mut self) {
        self.is_resized = true;
    }

    pub fn mode_changed(&mut self) {
        self.is_mode_changed = true;
    }

    /// A record lock was set that begins there. SQLite locks 512 bytes from 1 GiB on (PENDING_BYTE
    /// of os.h), and no other program is known to.
    pub fn locked_at(&mut self, offset: i64) {
        self.is_database |= (LOCKED_FROM..LOCKED_FROM + 512).contains(&offset);
    }

    pub fn is_database(&self) -> bool {
        self.is_database
    }

    pub fn kind(&self) -> Option<&'static str> {
        self.kind
    }

    pub fn basis(&self) -> Basis {
        self.basis
    }

    /// Mode, links and contents as a symbolic link.
    pub fn details(&self) -> (Option<i64>, Option<i64>, Option<&[u8]>) {
        (self.mode, self.links, self.link_target.as_deref())
    }

    /// Bytes before the recording; none where nothing tells.
    pub fn size_bytes(&self) -> Option<i64> {
        match self.size {
            Size::Unknown => None,
            Size::AtLeast(bytes) | Size::Exactly(bytes) => Some(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_is_told_from_what_was_written() {
        let mut file = TracedFile::perhaps_new();
        file.saw_size(0);
        file.written_to(4096);
        file.saw_end(4096);
        assert!(!file.was_there());
        let mut file = TracedFile::perhaps_new();
        file.written_to(100);
        file.saw_end(300);
        file.saw_end(200);
        assert_eq!((file.was_there(), file.size_bytes()), (true, Some(300)));
        let mut log = TracedFile::new(false);
        log.appended(50);
        log.saw_size(1050);
        assert_eq!(log.size_bytes(), Some(1000));
        let mut cut = TracedFile::new(false);
        cut.resized();
        cut.saw_size(7);
        assert_eq!(cut.size_bytes(), None);
        let mut there = TracedFile::new(false);
        there.saw(FileStat { mode: Some(0o100_600), size_bytes: Some(5), links: Some(2) });
        there.written_to(9);
        there.saw_size(9);
        assert_eq!((there.kind(), there.size_bytes()), (Some("file"), Some(5)));
        assert_eq!((there.details().0, there.basis()), (Some(0o600), Basis::Told));
    }
}
