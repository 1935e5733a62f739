//! The state of sending, for a person who looks at a device: SPOOL/uploader.json. It is written
//! when that changes, and is not synced: what is lost is told again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// The state of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Going {
    /// The last segment was taken.
    Well,
    /// The last segment was none for this server: it is in SPOOL/refused.
    Refused,
    /// No network, or a server that is busy or down: it goes on by itself.
    Later,
    /// Somebody has to see to the token.
    WrongToken,
    /// Somebody has to see to the address.
    WrongServer,
}

#[derive(Serialize)]
struct Document<'a> {
    sending: Going,
    since_unix_s: u64,
    server: &'a str,
    reason: &'a str,
}

/// Tells how sending goes, on standard error and in the file; the same only once.
pub struct Status {
    path: PathBuf,
    server: String,
    last: Option<(Going, String)>,
}

impl Status {
    /// Nothing is told yet.
    pub fn new(spool: &Path, server: &str) -> Self {
        Status { path: spool.join("uploader.json"), server: server.to_owned(), last: None }
    }

    /// Note how it goes now; `reason` is empty where it goes well.
    pub fn tell(&mut self, going: Going, reason: String) {
        let now = (going, reason);
        if self.last.as_ref() == Some(&now) {
            return;
        }
        let (going, reason) = &now;
        match (going, &self.last) {
            (Going::Well, Some(_)) => eprintln!("joj-uploader: {} takes segments", self.server),
            (Going::Well, None) => {}
            _ => eprintln!("joj-uploader: {reason}"),
        }
        if let Err(error) = self.write(*going, reason) {
            eprintln!("joj-uploader: {}: {error}", self.path.display());
        }
        self.last = Some(now);
    }

    fn write(&self, going: Going, reason: &str) -> std::io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let document =
            Document { sending: going, since_unix_s: now.as_secs(), server: &self.server, reason };
        let part = self.path.with_extension("part");
        fs::write(&part, serde_json::to_string(&document)? + "\n")?;
        fs::rename(&part, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_the_status_are_in_its_file() {
        let spool = tempfile::tempdir().unwrap();
        let mut told = Status::new(spool.path(), "https://fleet.example");
        let file = || fs::read_to_string(spool.path().join("uploader.json")).unwrap();
        told.tell(Going::WrongServer, "answered \"404\"".into());
        assert!(file().starts_with(r#"{"sending":"wrong-server","since_unix_s":"#), "{}", file());
        assert!(file().contains(r#""reason":"answered \"404\"""#), "{}", file());
        fs::remove_file(spool.path().join("uploader.json")).unwrap();
        told.tell(Going::WrongServer, "answered \"404\"".into());
        assert!(!spool.path().join("uploader.json").exists());
        told.tell(Going::Well, String::new());
        assert!(file().contains(r#""sending":"well""#), "{}", file());
    }
}
