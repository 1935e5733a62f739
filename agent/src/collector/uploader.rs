//! Keeps the uploader running: joj-uploader, a process of its own that sends what the spool has. It
//! ends when its standard input does, so that it never outlives the collector; a byte there says
//! that a segment is ready.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::errors::WrongUse;
use crate::messages::say;

const PROGRAM: &str = "joj-uploader";

/// The time from its end until it is started again, at first and at most.
const SOON: Duration = Duration::from_secs(1);
const LATE: Duration = Duration::from_secs(60);

/// The time that it may go on sending at the end; what is left stays in the spool.
const AT_END: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(20);

/// The server that segments are sent to.
#[derive(Debug, Clone)]
pub struct Server {
    pub url: String,
    pub token_file: PathBuf,
    /// Authorities that are trusted; those of the system where there is none.
    pub ca_file: Option<PathBuf>,
}

/// The process, or when there will be one again.
pub struct Uploader {
    program: PathBuf,
    server: Server,
    spool: PathBuf,
    child: Option<Child>,
    pause: Duration,
    next: Instant,
}

impl Uploader {
    /// Starts it.
    ///
    /// # Errors
    /// If the program does not lie beside this one.
    pub fn start(server: Server, spool: &Path) -> anyhow::Result<Self> {
        let own = std::env::current_exe().context("/proc/self/exe")?;
        let program = own.with_file_name(PROGRAM);
        if !program.exists() {
            let path = program.display();
            let what = format!("{path}: no uploader beside joj-agent; make collector builds both");
            return Err(WrongUse(what).into());
        }
        let (pause, next) = (SOON, Instant::now());
        let spool = spool.to_owned();
        let mut uploader = Uploader { program, server, spool, child: None, pause, next };
        uploader.keep();
        Ok(uploader)
    }

    /// Starts it again where it has ended; gives its process number.
    pub fn keep(&mut self) -> Option<u32> {
        if let Some(child) = &mut self.child {
            match child.try_wait() {
                Ok(None) => return Some(child.id()),
                Ok(Some(status)) => {
                    say(format_args!("joj-agent: the uploader ended ({status})"));
                    self.child = None;
                    self.next = Instant::now() + self.pause;
                    self.pause = (self.pause * 2).min(LATE);
                }
                Err(error) => say(format_args!("joj-agent: the uploader: {error}")),
            }
        }
        if self.child.is_none() && Instant::now() >= self.next {
            self.run();
        }
        self.child.as_ref().map(Child::id)
    }

    fn run(&mut self) {
        let mut command = Command::new(&self.program);
        command.arg("--server").arg(&self.server.url);
        command.arg("--token-file").arg(&self.server.token_file);
        command.arg("--spool").arg(&self.spool);
        command.args(
            self.server.ca_file.iter().flat_map(|path| ["--ca-file".as_ref(), path.as_os_str()]),
        );
        match command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn() {
            Ok(child) => self.child = Some(child),
            Err(error) => {
                say(format_args!("joj-agent: {}: {error}", self.program.display()));
                self.next = Instant::now() + LATE;
            }
        }
    }

    /// A segment is ready.
    pub fn wake(&mut self) {
        // One that has ended looks into the spool when it is started again.
        if let Some(input) = self.child.as_mut().and_then(|child| child.stdin.as_mut()) {
            let _ = input.write_all(b"\n");
            self.pause = SOON;
        }
    }

    /// Closes its standard input, and waits for it to end; kills it where its server keeps it.
    pub fn stop(mut self) {
        let Some(mut child) = self.child.take() else { return };
        drop(child.stdin.take());
        let begin = Instant::now();
        while begin.elapsed() < AT_END && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(LOOK);
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}
