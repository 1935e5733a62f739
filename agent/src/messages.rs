//! What a person is told on standard error, and a program on standard output. Whoever read it may
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

/// How many there are, as 1 call or 2 calls.
pub fn plural(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
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

    struct Broken(ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_no_error_and_a_full_disk_is() {
        assert!(line(&mut Broken(ErrorKind::BrokenPipe), "x").is_ok());
        assert!(line(&mut Broken(ErrorKind::StorageFull), "x").is_err());
        let mut text = Vec::new();
        line(&mut text, "x").unwrap();
        assert_eq!(text, b"x\n");
    }
}
