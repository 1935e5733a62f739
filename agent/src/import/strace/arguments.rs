//! Cuts what strace prints of a call, `NAME(ARGUMENTS) = RESULT`, into its parts, without looking
//! into them: strings, structures and the paths of -y may have every letter.

use super::line::{Fault, is_of_name};

/// The parts of a call; those of the arguments stand in `Parts::arguments`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Parts<'a> {
    pub name: &'a str,
    pub arguments: Vec<&'a [u8]>,
    /// What stands behind `= `.
    pub result: &'a [u8],
}

/// What stands for the arguments of a call that was killed.
const UNFINISHED: &[u8] = b"<unfinished ...>";

/// Cuts a whole call.
///
/// # Errors
/// At the letter from which it is no call.
pub fn parts(text: &[u8]) -> Result<Parts<'_>, Fault> {
    let letters = text.iter().take_while(|letter| is_of_name(**letter)).count();
    let name = std::str::from_utf8(&text[..letters]).unwrap_or_default();
    if name.is_empty() || text.get(letters) != Some(&b'(') {
        return Err(Fault::new(letters, "no call: a name and ( are expected"));
    }
    let mut cut = ArgumentCutter { text, at: letters + 1, depth: 0 };
    let mut parts = Parts { name, ..Parts::default() };
    let mut begin = cut.at;
    let end = loop {
        match cut.next()? {
            Mark::Comma => {
                parts.arguments.push(text[begin..cut.at - 1].trim_ascii());
                begin = cut.at;
            }
            Mark::End => break cut.at,
        }
    };
    let last = text[begin..end - 1].trim_ascii();
    // Of a call that was cut off the last one may be missing.
    let last = last.strip_suffix(UNFINISHED).unwrap_or(last).trim_ascii();
    if !last.is_empty() {
        parts.arguments.push(last);
    }
    let rest = text[end..].trim_ascii();
    parts.result = match rest.strip_prefix(b"=") {
        Some(result) => result.trim_ascii(),
        None => return Err(Fault::new(end, "no result: = is expected behind the arguments")),
    };
    Ok(parts)
}

/// The elements of a list `[A, B]` or of a structure `{A, B}`; nothing if it is none.
pub fn elements(text: &[u8]) -> Vec<&[u8]> {
    let inner = match text {
        [b'[', inner @ .., b']'] | [b'{', inner @ .., b'}'] => inner,
        _ => return Vec::new(),
    };
    let mut cut = ArgumentCutter { text: inner, at: 0, depth: 0 };
    let (mut found, mut begin) = (Vec::new(), 0);
    while let Ok(Mark::Comma) = cut.next() {
        found.push(inner[begin..cut.at - 1].trim_ascii());
        begin = cut.at;
    }
    found.push(inner[begin..].trim_ascii());
    found
}

/// The field of a structure `{NAME=VALUE, ...}`.
pub fn field<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let value = |element: &'a [u8]| element.strip_prefix(name.as_bytes())?.strip_prefix(b"=");
    elements(text).into_iter().find_map(value)
}

enum Mark {
    Comma,
    End,
}

struct ArgumentCutter<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl ArgumentCutter<'_> {
    /// Goes behind the next comma that parts arguments, or the bracket behind the last one.
    fn next(&mut self) -> Result<Mark, Fault> {
        while let Some(letter) = self.text.get(self.at) {
            let at = self.at;
            self.at += 1;
            match letter {
                b'"' => self.string()?,
                b'<' if self.text[at..].starts_with(UNFINISHED) => self.at += UNFINISHED.len() - 1,
                b'<' if is_annotated(&self.text[..at]) => self.annotation()?,
                b'/' if self.text.get(self.at) == Some(&b'*') => self.comment()?,
                b'(' | b'[' | b'{' => self.depth += 1,
                b')' if self.depth == 0 => return Ok(Mark::End),
                b')' | b']' | b'}' => {
                    let depth = self.depth.checked_sub(1);
                    self.depth = depth.ok_or(Fault::new(at, "a bracket that none opens"))?;
                }
                b',' if self.depth == 0 => return Ok(Mark::Comma),
                _ => {}
            }
        }
        Err(Fault::new(self.at, "the line ends within the call"))
    }

    fn string(&mut self) -> Result<(), Fault> {
        let begin = self.at;
        while let Some(letter) = self.text.get(self.at) {
            self.at += 1;
            match letter {
                b'\\' => self.at += 1,
                b'"' => return Ok(()),
                _ => {}
            }
        }
        Err(Fault::new(begin - 1, "a string without end"))
    }

    /// What -y says of a descriptor: `3</a/b>`, with -yy `3<TCP:[A->B]>` and `3</dev/null<char>>`.
    fn annotation(&mut self) -> Result<(), Fault> {
        let (begin, mut depth, mut within) = (self.at, 1, 0_usize);
        while let Some(letter) = self.text.get(self.at) {
            self.at += 1;
            match letter {
                b'\\' => self.at += 1,
                b'[' => within += 1,
                b']' => within = within.saturating_sub(1),
                b'<' => depth += 1,
                b'>' if within > 0 && self.text[self.at - 2] == b'-' => {}
                b'>' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
        Err(Fault::new(begin - 1, "a path of -y without end"))
    }

    fn comment(&mut self) -> Result<(), Fault> {
        let rest = &self.text[self.at..];
        match rest.windows(2).position(|pair| pair == b"*/") {
            Some(end) => self.at += end + 2,
            None => return Err(Fault::new(self.at - 1, "a comment without end")),
        }
        Ok(())
    }
}

/// Whether a text ends with a descriptor: a number, AT_FDCWD, or a number with its word behind it.
fn is_annotated(text: &[u8]) -> bool {
    let is_descriptor = |letter: &u8| letter.is_ascii_hexdigit() || *letter == b'D';
    text.last().is_some_and(is_descriptor) || text.ends_with(b"*/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> (String, Vec<String>, String) {
        let parts = parts(text.as_bytes()).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (parts.name.into(), parts.arguments.into_iter().map(text).collect(), text(parts.result))
    }

    #[test]
    fn a_call_is_cut_at_its_own_commas_and_brackets() {
        let (name, arguments, result) =
            cut(r#"openat(AT_FDCWD</a,(b>, "x\", (", O_RDWR|O_CREAT, 0644)   = 3</a/x> <0.01>"#);
        assert_eq!(name, "openat");
        assert_eq!(arguments, ["AT_FDCWD</a,(b>", r#""x\", (""#, "O_RDWR|O_CREAT", "0644"]);
        assert_eq!(result, "3</a/x> <0.01>");
        assert_eq!(cut("sync() = 0").1.len(), 0);
        let (_, arguments, _) =
            cut("read(3<TCP:[1.1.1.1:5->2.2.2.2:6]>, 0x5 /* 4, ) */, 1 << 3) = ?");
        assert_eq!(arguments, ["3<TCP:[1.1.1.1:5->2.2.2.2:6]>", "0x5 /* 4, ) */", "1 << 3"]);
        assert_eq!(cut("close(3</dev/null<char 1:3>>) = 0").1, ["3</dev/null<char 1:3>>"]);
        let (_, arguments, _) = cut(r#"writev(4, [{iov_base="a", iov_len=1}, {"b", 2}], 2) = 3"#);
        let vectors = elements(arguments[1].as_bytes());
        assert_eq!(vectors.len(), 2);
        assert_eq!(field(vectors[0], "iov_len").unwrap(), b"1");
        assert_eq!(elements(vectors[1]), [b"\"b\"".as_slice(), b"2"]);
    }

    #[test]
    fn what_is_no_call_is_told_by_its_column() {
        let fault = |text: &str| parts(text.as_bytes()).unwrap_err();
        assert_eq!(fault("hello world").at, 5);
        assert_eq!(fault(r#"open("x"#).at, 5);
        assert_eq!(fault("open(3<x").at, 6);
        assert_eq!(fault("read(3, {a]}, 4)").what, "a bracket that none opens");
        assert_eq!(fault("close(3)").at, 8);
    }
}
