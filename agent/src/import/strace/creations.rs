//! Who made which thread, from the whole trace: a child's first line often comes before the line
//! that says what the call that made it returned.

use std::collections::{HashMap, VecDeque};

use super::decode::{self, Decoded};
use super::line::{self, Said};
use super::merge::Merged;
use crate::import::bad::Bad;
use crate::import::book::ThreadCreation;

/// The threads that were made, by their number; of numbers that came again, in order.
///
/// # Errors
/// If a file cannot be read.
pub fn creations(mut merged: Merged) -> anyhow::Result<HashMap<i64, VecDeque<ThreadCreation>>> {
    let mut found: HashMap<i64, VecDeque<ThreadCreation>> = HashMap::new();
    let mut begun: HashMap<i64, Vec<u8>> = HashMap::new();
    // What is wrong with lines is told when they are read for good.
    let mut unheeded = Bad::default();
    while let Some(next) = merged.next(&mut unheeded)? {
        let text = &next.text[next.prefix..];
        if !makes_thread(text) {
            continue;
        }
        let whole = match line::read(&next.text) {
            Ok(Some(line)) => match line.said {
                Said::Call(text) => text.to_vec(),
                Said::Unfinished(text) => {
                    begun.insert(next.tid, text.to_vec());
                    continue;
                }
                Said::Resumed(_, rest) => match begun.remove(&next.tid) {
                    Some(text) => [&text, rest].concat(),
                    None => continue,
                },
                _ => continue,
            },
            _ => continue,
        };
        if let Ok(Decoded::Recorded(told, _)) = decode::decode(&whole)
            && let Some(child) = told.child()
        {
            let flags = told.row.flags.unwrap_or(0);
            found.entry(child).or_default().push_back(ThreadCreation { creator: next.tid, flags });
        }
    }
    Ok(found)
}

fn makes_thread(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"<... ").unwrap_or(text);
    [&b"clone"[..], b"fork", b"vfork"].iter().any(|name| text.starts_with(name))
}
