//! What a connection does when another has the database locked: waits a little and tries again, as
//! SQLite's busy handler (sqlite.org/c3ref/busy_handler.html), and counts how often.

use std::cell::Cell;
use std::time::Duration;

/// Waits between tries in ms, the last one for all that follow: those of SQLite's own handler
/// (sqliteDefaultBusyCallback() in src/main.c), so that contention costs what it costs an app.
const WAITS_MS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];
/// Tries before a transaction fails: more than a minute.
const MOST_TRIES: usize = 700;

thread_local! {
    static RETRIES: Cell<u32> = const { Cell::new(0) };
}

/// Times this thread has waited for a lock so far.
pub fn retries() -> u32 {
    RETRIES.get()
}

/// The handler; `tries` is how often it was called for this lock. False gives up.
pub fn wait(tries: i32) -> bool {
    let tries = usize::try_from(tries).unwrap_or_default();
    if tries >= MOST_TRIES {
        return false;
    }
    RETRIES.set(RETRIES.get() + 1);
    std::thread::sleep(Duration::from_millis(WAITS_MS[tries.min(WAITS_MS.len() - 1)]));
    true
}
