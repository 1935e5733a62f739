//! The values that strace prints: numbers, flags by their names, strings with escapes, descriptors
//! with the paths of -y.

use super::flag_words;

/// A string, and whether strace left its end out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    pub bytes: Vec<u8>,
    pub is_cut: bool,
}

/// A descriptor, and what -y says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    pub number: i64,
    pub path: Option<Vec<u8>>,
}

/// Of x86_64, from 1 (signal(7)).
const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// A whole number as strace prints it: decimal, hexadecimal with 0x, octal with 0.
pub fn number(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(without_comment(text)).ok()?;
    let (digits, sign) = text.strip_prefix('-').map_or((text, 1), |digits| (digits, -1));
    let parsed = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8).ok(),
        None if digits == "NULL" => Some(0),
        None if digits.starts_with('+') => None,
        None => digits.parse().ok(),
    };
    // What is larger than a signed number can hold was one to the kernel as well.
    parsed.map(|number| (number as i64).wrapping_mul(sign))
}

/// Flags, the sum of words and numbers between bars; none where a word is unknown.
pub fn flags(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(without_comment(text)).ok()?;
    text.split('|').try_fold(0, |sum, word| {
        let word = word.trim();
        Some(sum | number(word.as_bytes()).or_else(|| flag_words::value(word))?)
    })
}

/// The number of a signal's name, SIGKILL or SIGRT_1.
pub fn signal(text: &[u8]) -> Option<i64> {
    let name = std::str::from_utf8(text).ok()?;
    let named = (1..32).zip(SIGNALS).find(|(_, known)| name.strip_prefix("SIG") == Some(known));
    let of_real_time = || name.strip_prefix("SIGRT_")?.parse().ok().map(|it: i64| it + 32);
    named.map(|(number, _)| number).or_else(of_real_time).filter(|it| *it < 65)
}

/// A string between quotes. None where there is none, as of an address.
pub fn string(text: &[u8]) -> Option<Text> {
    let inner = text.strip_prefix(b"\"")?;
    let (bytes, rest) = unescaped(inner, b'"')?;
    Some(Text { bytes, is_cut: rest.starts_with(b"...") })
}

/// A descriptor, `3`, `3</a/b>` or AT_FDCWD.
pub fn descriptor(text: &[u8]) -> Option<Descriptor> {
    let end = text.iter().position(|letter| *letter == b'<').unwrap_or(text.len());
    let number = match &text[..end] {
        b"AT_FDCWD" => libc::AT_FDCWD.into(),
        digits => number(digits)?,
    };
    let path = text.get(end + 1..).and_then(|inner| unescaped(inner, b'>')).map(|(path, _)| path);
    // A deleted file has no path; strace says so behind the bracket since 5.17, before it earlier.
    let is_deleted = text.ends_with(b"(deleted)") || text.ends_with(b" (deleted)>");
    let path = path.filter(|path| path.starts_with(b"/") && !is_deleted);
    Some(Descriptor { number, path })
}

/// The bytes up to a letter that ends them, and what comes behind.
fn unescaped(text: &[u8], end: u8) -> Option<(Vec<u8>, &[u8])> {
    let mut bytes = Vec::with_capacity(text.len().min(64));
    let mut at = 0;
    loop {
        let letter = *text.get(at)?;
        at += 1;
        if letter == end {
            return Some((bytes, &text[at..]));
        }
        // -yy says more of a device behind its path: </dev/null<char 1:3>>.
        if letter == b'<' && end == b'>' {
            return Some((bytes, &[]));
        }
        if letter != b'\\' {
            bytes.push(letter);
            continue;
        }
        let letter = *text.get(at)?;
        at += 1;
        bytes.push(match letter {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 11,
            b'f' => 12,
            b'x' => {
                let digits = text.get(at..at + 2)?;
                at += 2;
                u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
            }
            b'0'..=b'7' => {
                let mut value = u32::from(letter - b'0');
                for _ in 0..2 {
                    let Some(digit @ b'0'..=b'7') = text.get(at) else { break };
                    value = value * 8 + u32::from(digit - b'0');
                    at += 1;
                }
                u8::try_from(value).ok()?
            }
            other => other,
        });
    }
}

/// Without what strace explains behind a value.
fn without_comment(text: &[u8]) -> &[u8] {
    let end = text.windows(2).position(|pair| pair == b"/*");
    text[..end.unwrap_or(text.len())].trim_ascii()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_and_flags_are_those_of_the_kernel() {
        assert_eq!(number(b"0x10 /* x */"), Some(16));
        assert_eq!(
            (number(b"0644"), number(b"-5"), number(b"0")),
            (Some(0o644), Some(-5), Some(0))
        );
        assert_eq!(number(b"18446744073709551615"), Some(-1));
        assert_eq!(
            (number(b"x"), number(b""), number(b"99999999999999999999")),
            (None, None, None)
        );
        assert_eq!(flags(b"O_RDWR|O_CREAT"), Some(0o102));
        assert_eq!(flags(b"S_IFREG|0644"), Some(0o100_644));
        assert_eq!(flags(b"0x1000 /* O_??? */"), Some(0x1000));
        assert_eq!(flags(b"O_RDWR|O_NEW"), None);
        assert_eq!((signal(b"SIGKILL"), signal(b"SIGSYS")), (Some(9), Some(31)));
        assert_eq!((signal(b"SIGRT_2"), signal(b"x")), (Some(34), None));
    }

    #[test]
    fn strings_and_descriptors_are_read_back() {
        let text = string(br#""a\"\n\7\377\x2f\\"..."#).unwrap();
        assert_eq!((text.bytes.as_slice(), text.is_cut), (&b"a\"\n\x07\xff/\\"[..], true));
        assert_eq!(string(b"0x7ffe"), None);
        assert_eq!(string(br#""\777""#), None);
        let found = descriptor(br"4</a/b\76>").unwrap();
        assert_eq!((found.number, found.path.unwrap()), (4, b"/a/b>".to_vec()));
        assert_eq!(descriptor(b"AT_FDCWD</a>").unwrap().number, -100);
        assert_eq!(descriptor(b"1</dev/null<char 1:3>>").unwrap().path.unwrap(), b"/dev/null");
        for gone in [&b"7</memfd:x>(deleted)"[..], b"7</a (deleted)>", b"7<pipe:[12]>", b"7"] {
            assert_eq!(descriptor(gone).unwrap().path, None);
        }
    }

    proptest! {
        #[test]
        fn hexadecimal_is_read_back(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let text: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
            prop_assert_eq!(string(format!("\"{text}\"").as_bytes()).unwrap().bytes, bytes);
        }
    }
}
