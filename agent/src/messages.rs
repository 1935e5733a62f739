//! Messages to a person on standard error, and to a program on standard output. Whoever read it may
//! be gone: a closed pipe ends nothing here, where println! panics.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

/// A line on standard error. There is nobody to tell that it could not be written.
pub fn say(text: impl Display) {
    let _ = line(&mut io::stderr().lock(), text);
}

/// A line on standard output.
///
/// # Errors
/// If it cannot be written, and somebody would read it.
pub fn print(text: impl Display) -> io::Result<()> {
    line(&mut io::stdout().lock(), text)
}

/// Returns a count with its noun: 1 call, 2 calls.
pub fn plural(count: u64, one: &str) -> String {
    count_words(count, &format!("{one}{{s}}"))
}

/// Returns a count with words that agree with it: `{s}` stands for the letter of a plural, and
/// `{was|were}` for the first word of one, and for the second of several.
pub fn count_words(count: u64, words: &str) -> String {
    let mut text = count.to_string() + " ";
    for (index, part) in words.split(['{', '}']).enumerate() {
        let is_choice = index % 2 == 1;
        let (one, several) = part.split_once('|').unwrap_or(("", part));
        text += match (is_choice, count) {
            (false, _) => part,
            (true, 1) => one,
            (true, _) => several,
        };
    }
    text
}

/// Returns a sentence for each of the counts that is not 0, as `counted` words it.
pub fn sentences(counts: &[(u64, &str)]) -> Vec<String> {
    let some = counts.iter().filter(|(count, _)| *count > 0);
    some.map(|(count, words)| count_words(*count, words)).collect()
}

fn line(output: &mut impl Write, text: impl Display) -> io::Result<()> {
    match writeln!(output, "{text}").and_then(|()| output.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct FailingWriter(ErrorKind);

    impl Write for FailingWriter {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn words_agree_with_their_count() {
        assert_eq!((plural(1, "event"), plural(2, "event")), ("1 event".into(), "2 events".into()));
        let words = "file{s} {was|were} there";
        assert_eq!(count_words(1, words), "1 file was there");
        assert_eq!(count_words(2, words), "2 files were there");
        assert_eq!(sentences(&[(0, "call{s}"), (1, "call{s}")]), ["1 call"]);
    }

    #[test]
    fn a_closed_pipe_is_no_error_and_a_full_disk_is() {
        assert!(line(&mut FailingWriter(ErrorKind::BrokenPipe), "x").is_ok());
        assert!(line(&mut FailingWriter(ErrorKind::StorageFull), "x").is_err());
        let mut text = Vec::new();
        line(&mut text, "x").unwrap();
        assert_eq!(text, b"x\n");
    }
}
