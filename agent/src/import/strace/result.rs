//! What stands behind `= ` of a call: a number, an error, why there is none, and with -T how long
//! the call took.

use super::line::Fault;
use super::values::{self, Descriptor};
use crate::recorder::words;
use crate::tables::rows::Word;

/// How a call ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallResult {
    /// None where it did not return; -errno where it failed.
    pub result: Option<i64>,
    pub error: Option<Word>,
    /// Of -y, where the result is a descriptor.
    pub path: Option<Vec<u8>>,
    /// Of a thread that the call made, where strace's lines have another number of it.
    pub tid: Option<i64>,
    pub duration_ns: Option<i64>,
}

/// Reads a result.
///
/// # Errors
/// If it is none.
pub fn read(text: &[u8]) -> Result<CallResult, Fault> {
    let (text, duration_ns) = without_duration(text);
    let first = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    let rest = text[first..].trim_ascii_start();
    let letters = rest.iter().take_while(|letter| {
        letter.is_ascii_uppercase() || letter.is_ascii_digit() || **letter == b'_'
    });
    let error = std::str::from_utf8(&rest[..letters.count()]).unwrap_or_default();
    let mut outcome = CallResult { duration_ns, ..CallResult::default() };
    if &text[..first] == b"?" {
        // A call that a signal interrupted; the others never return.
        if !error.is_empty() {
            (outcome.result, outcome.error) = failed(error);
        }
        return Ok(outcome);
    }
    let wrong = Fault::new(0, "a result that is no number");
    if text[..first].contains(&b'<') {
        let Descriptor { number, path, .. } = values::descriptor(text).ok_or(wrong)?;
        (outcome.result, outcome.path) = (Some(number), path);
        return Ok(outcome);
    }
    let number = values::number(&text[..first]).ok_or(wrong)?;
    outcome.result = Some(number);
    outcome.tid = values::tid(text).filter(|tid| *tid != number);
    if number == -1 && error.starts_with('E') {
        (outcome.result, outcome.error) = failed(error);
    } else if let Some(text) = rest.strip_prefix(b"(errno ").filter(|_| number == -1) {
        let digits = text.iter().take_while(|letter| letter.is_ascii_digit()).count();
        let number = values::number(&text[..digits]).filter(|it| (1..4096).contains(it));
        outcome.result = Some(-number.ok_or(wrong)?);
        outcome.error = words::error(outcome.result.unwrap_or(-1));
    }
    Ok(outcome)
}

fn failed(error: &str) -> (Option<i64>, Option<Word>) {
    match words::error_number(error) {
        Some(number) => (Some(-i64::from(number)), words::error(-i64::from(number))),
        None => (Some(-1), Some(Word::Owned(error.to_owned()))),
    }
}

/// Without the `<0.000012>` of -T.
fn without_duration(text: &[u8]) -> (&[u8], Option<i64>) {
    let whole = || {
        let inner = text.strip_suffix(b">")?;
        let begin = inner.iter().rposition(|letter| *letter == b'<')?;
        let inner = std::str::from_utf8(&inner[begin + 1..]).ok()?;
        let (seconds, fraction) = inner.split_once('.')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        if !is_number(seconds) || !is_number(fraction) || fraction.len() > 9 {
            return None;
        }
        let seconds: i64 = seconds.parse().ok()?;
        let ns = fraction.parse::<i64>().ok()? * 10_i64.pow(9 - fraction.len() as u32);
        let ns = seconds.checked_mul(1_000_000_000)?.checked_add(ns)?;
        Some((text[..begin].trim_ascii_end(), ns))
    };
    whole().map_or((text, None), |(rest, ns)| (rest, Some(ns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(text: &str) -> (Option<i64>, Option<String>, Option<i64>) {
        let it = read(text.as_bytes()).unwrap();
        (it.result, it.error.map(Word::into_owned), it.duration_ns)
    }

    #[test]
    fn every_form_of_a_result_is_read() {
        let failed = |result, error: &str| (Some(result), Some(error.to_owned()), None);
        assert_eq!(outcome("3"), (Some(3), None, None));
        assert_eq!(outcome("0x7f00 <0.000012>"), (Some(0x7f00), None, Some(12_000)));
        assert_eq!(outcome("-1 ENOENT (No such file or directory)"), failed(-2, "ENOENT"));
        assert_eq!(outcome("-1 EAGAIN (x) (INJECTED)"), failed(-11, "EAGAIN"));
        assert_eq!(outcome("-1 EWOULDBLOCK (x)"), failed(-11, "EAGAIN"));
        assert_eq!(outcome("-1 (errno 2)"), failed(-2, "ENOENT"));
        assert_eq!(outcome("-1 ENEW (x)"), failed(-1, "ENEW"));
        assert_eq!(outcome("? ERESTARTSYS (To be restarted)"), failed(-512, "ERESTARTSYS"));
        assert_eq!(outcome("?"), (None, None, None));
        assert_eq!(outcome("? <unavailable>"), (None, None, None));
        assert_eq!(outcome("022"), (Some(0o22), None, None));
        assert_eq!(outcome("0x8000 (flags O_RDONLY|O_LARGEFILE)"), (Some(0x8000), None, None));
        let opened = read(br"3</a b\76> <1.5>").unwrap();
        assert_eq!((opened.result, opened.path.unwrap()), (Some(3), b"/a b>".to_vec()));
        assert_eq!(opened.duration_ns, Some(1_500_000_000));
        assert_eq!(read(b"7</memfd:x>(deleted)").unwrap().path, None);
        let made = read(b"7 /* 4202 in strace's PID NS */ <0.5>").unwrap();
        assert_eq!((made.result, made.tid), (Some(7), Some(4202)));
        assert_eq!(read(b"3 [var_t] <0.5>").unwrap().result, Some(3));
        assert!(read(b"").is_err());
        assert!(read(b"yes").is_err());
        assert!(read(b"-1 (errno 99999)").is_err());
    }
}
