//! Makes an error of a panic in code that is not ours: the parquet crate panics on some damaged
//! files. The release profile aborts at a panic, which nothing catches; but the panic's hook comes
//! before (std::panic::set_hook). So the work runs in a thread of its own: its hook hands the
//! panic's words over, and never returns where that would abort. The thread sleeps on, with what it
//! holds. Builds that unwind, as tests do, end the thread: one that sleeps in a hook keeps the lock
//! of hooks, which the test runner takes when it ends.

use std::cell::RefCell;
use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::sync::Once;
use std::sync::mpsc::{Sender, channel};
use std::thread;

type Teller = Box<dyn FnOnce(String)>;

thread_local! {
    /// Where this thread's panic is told; only in threads of `as_error`.
    static TOLD: RefCell<Option<Teller>> = const { RefCell::new(None) };
}

/// Runs `work`; its panic is an error with the panic's words.
///
/// # Errors
/// That of `work`; if it panics; if there is no memory for a thread.
pub fn as_error<Value: Send + 'static>(
    work: impl FnOnce() -> Result<Value, String> + Send + 'static,
) -> Result<Value, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !tell(panic) {
                before(panic);
            }
        }));
    });
    let (sender, receiver) = channel();
    let run = move || {
        let on_panic: Sender<Result<Value, String>> = sender.clone();
        let tell = move |words| drop(on_panic.send(Err(words)));
        TOLD.set(Some(Box::new(tell)));
        let outcome = work();
        TOLD.set(None);
        let _ = sender.send(outcome);
    };
    thread::Builder::new().name("reader".to_owned()).spawn(run).map_err(|it| it.to_string())?;
    receiver.recv().expect("the thread sends what came out, or its panic")
}

/// In a thread of `as_error`: tells, and sleeps for ever where a panic aborts. In others: false.
fn tell(panic: &PanicHookInfo) -> bool {
    let Ok(Some(tell)) = TOLD.try_with(RefCell::take) else { return false };
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let words = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let words = words.unwrap_or("no words");
    tell(format!("damaged: its values cannot be decoded ({words}); make it again"));
    while cfg!(panic = "abort") {
        thread::park();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_all_else_stays() {
        assert_eq!(as_error(|| Ok(7)), Ok(7));
        assert_eq!(as_error::<u8>(|| Err("no".to_owned())), Err("no".to_owned()));
        let error = as_error::<u8>(|| panic!("index {}", 9)).unwrap_err();
        assert!(error.contains("damaged") && error.contains("index 9"), "{error}");
        assert_eq!(as_error(|| Ok(8)), Ok(8));
    }
}
