//! Sends the spool in time: all that waits, one after another; after a failure later and later. A
//! byte on standard input says that there is more, and its end is ours.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::queue::{Queue, Segment};
use crate::server::{Answer, Server};
use crate::state::{Going, Status};

/// Between two attempts, at first, and at most, as where the token or the address is wrong; and
/// what a server may ask for.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(600);
const LONGEST_ASKED_WAIT: Duration = Duration::from_secs(3600);

/// Without a word of the collector the spool is looked at so often.
const IDLE: Duration = Duration::from_secs(300);

/// The time that what waits is sent after standard input has ended.
const AT_END: Duration = Duration::from_secs(10);

/// A segment that arrives garbled is sent so often.
const GARBLED: u32 = 5;

/// Says what comes after an attempt.
enum Next {
    At(Duration),
    Empty,
}

/// One spool, and one server.
pub struct Uploading {
    server: Server,
    queue: Queue,
    pause: Duration,
    garbled: BTreeMap<String, u32>,
    told: Status,
}

impl Uploading {
    /// Nothing is sent yet.
    pub fn new(server: Server, queue: Queue, told: Status) -> Self {
        let garbled = BTreeMap::new();
        Uploading { server, queue, pause: FIRST, garbled, told }
    }

    /// Sends what there is; false where something is left after a failure.
    ///
    /// # Errors
    /// If the spool cannot be used.
    pub fn send_all(&mut self) -> io::Result<bool> {
        loop {
            match self.step()? {
                Next::Empty => return Ok(true),
                Next::At(Duration::ZERO) => {}
                Next::At(_) => return Ok(false),
            }
        }
    }

    /// Sends what comes, until standard input ends.
    ///
    /// # Errors
    /// If the spool cannot be used.
    pub fn until_the_end(&mut self) -> io::Result<()> {
        loop {
            let (pause, wakes) = match self.step()? {
                Next::At(pause) => (pause, false),
                Next::Empty => (IDLE, true),
            };
            if has_ended(pause, wakes)? {
                let begin = Instant::now();
                while begin.elapsed() < AT_END {
                    if !matches!(self.step()?, Next::At(Duration::ZERO)) {
                        break;
                    }
                }
                return Ok(());
            }
        }
    }

    /// Sends the oldest segment.
    fn step(&mut self) -> io::Result<Next> {
        let Some(segment) = self.queue.first()? else { return Ok(Next::Empty) };
        let answer = self.server.put(&segment);
        let Segment { name, .. } = &segment;
        let wait = match answer {
            Answer::Stored => {
                self.queue.remove(&segment)?;
                self.went_well(name);
                return Ok(Next::At(Duration::ZERO));
            }
            Answer::Refused(reason) => {
                self.queue.refuse(name, &reason)?;
                self.was_refused(name, reason);
                return Ok(Next::At(Duration::ZERO));
            }
            Answer::Garbled(reason) => {
                let count = self.garbled.entry(name.clone()).or_default();
                *count += 1;
                if *count >= GARBLED {
                    self.queue.refuse(name, &reason)?;
                    self.was_refused(name, reason);
                    return Ok(Next::At(Duration::ZERO));
                }
                self.told.tell(Going::Later, format!("{name}: {reason}"));
                None
            }
            Answer::Unknown(reason) => {
                self.told.tell(Going::WrongToken, reason);
                Some(LONGEST)
            }
            Answer::Elsewhere(reason) => {
                self.told.tell(Going::WrongServer, reason);
                Some(LONGEST)
            }
            Answer::Later(reason, wait) => {
                self.told.tell(Going::Later, reason);
                wait.map(|asked| asked.clamp(FIRST, LONGEST_ASKED_WAIT))
            }
        };
        let pause = wait.unwrap_or(self.pause);
        self.pause = (self.pause * 2).min(LONGEST);
        Ok(Next::At(with_jitter(pause)))
    }

    fn was_refused(&mut self, name: &str, reason: String) {
        self.garbled.remove(name);
        self.pause = FIRST;
        self.told.tell(Going::Refused, reason);
    }

    fn went_well(&mut self, name: &str) {
        self.garbled.remove(name);
        self.pause = FIRST;
        self.told.tell(Going::Well, String::new());
    }
}

/// Up to half as long again: a fleet shall not come back all at once.
fn with_jitter(pause: Duration) -> Duration {
    let mut bytes = [0; 1];
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    pause + pause * u32::from(bytes[0]) / 512
}

/// Waits for so long, or for a byte if that `wakes`; true where standard input has ended.
fn has_ended(pause: Duration, wakes: bool) -> io::Result<bool> {
    let begin = Instant::now();
    let stdin = io::stdin();
    loop {
        let left = pause.saturating_sub(begin.elapsed());
        let timeout =
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        if stdin.lock().read(&mut [0; 4096])? == 0 {
            return Ok(true);
        }
        if wakes {
            return Ok(false);
        }
    }
}
