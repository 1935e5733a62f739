//! The values that strace prints: numbers, flags by their names, strings with escapes, descriptors
//! with the paths of -y.

use super::flag_words;
use crate::tables::rows::Word;

/// A string, and whether strace left its end out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    pub bytes: Vec<u8>,
    pub is_cut: bool,
}

/// A descriptor, and what -y says of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Descriptor {
    pub number: i64,
    pub path: Option<Vec<u8>>,
    /// What it is if it is of no file: `pipe:[12]`.
    pub no_file: Option<Vec<u8>>,
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

/// Flags, the sum of words and numbers between bars; none where a word is unknown. Of a number with
/// its words behind it (-X verbose) the words count, as another machine has other numbers.
pub fn flags(text: &[u8]) -> Option<i64> {
    let sum_of = |text: &str| {
        text.split('|').try_fold(0, |sum, word| {
            let word = word.trim();
            // Of a number with several meanings strace names all.
            let named = || word.split(" or ").find_map(flag_words::value);
            Some(sum | number(word.as_bytes()).or_else(|| flag_words::value(word)).or_else(named)?)
        })
    };
    let value = std::str::from_utf8(without_comment(text)).ok()?;
    if value.starts_with("_IOC(") {
        return request(value);
    }
    let words = comment(text).filter(|_| !value.contains('|'));
    words.and_then(sum_of).or_else(|| sum_of(value))
}

/// A request of ioctl(2) that has no name: `_IOC(_IOC_READ, TYPE, NUMBER, SIZE)`, by the bits of
/// asm-generic/ioctl.h.
fn request(text: &str) -> Option<i64> {
    let inner = text.strip_prefix("_IOC(")?.strip_suffix(')')?;
    let mut parts = inner.split(',').map(str::trim);
    let direction = parts.next()?.split('|').try_fold(0, |sum, word| match word.trim() {
        "_IOC_NONE" | "0" => Some(sum),
        "_IOC_WRITE" => Some(sum | 1),
        "_IOC_READ" => Some(sum | 2),
        _ => None,
    })?;
    let mut below = |end: i64| {
        parts.next().and_then(|it| number(it.as_bytes())).filter(|it| (0..end).contains(it))
    };
    let (kind, of_kind, size) = (below(1 << 8)?, below(1 << 8)?, below(1 << 14)?);
    Some(direction << 30 | size << 16 | kind << 8 | of_kind)
}

/// A word, such as a command: of a number with its word behind it (-X verbose) the word, and of one
/// without (-X raw) what it is called.
pub fn word(text: &[u8], named: impl Fn(i32) -> Word) -> Word {
    let explained = comment(text).filter(|it| it.bytes().all(super::line::is_of_name));
    let numbered = number(text).and_then(|it| i32::try_from(it).ok());
    match (numbered, explained) {
        (Some(_), Some(explained)) => Word::Owned(explained.to_owned()),
        (Some(number), None) => named(number),
        (None, _) => Word::Owned(String::from_utf8_lossy(without_comment(text)).into_owned()),
    }
}

/// The number of a thread that a call gave: that which strace's lines have, where the program lives
/// among other numbers (`7 /* 12 in strace's PID NS */`).
pub fn tid(text: &[u8]) -> Option<i64> {
    let outside = comment(text).and_then(|it| it.strip_suffix(" in strace's PID NS"));
    outside.map_or_else(|| number(text), |it| number(it.as_bytes()))
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

/// A descriptor, `3`, `3</a/b>` or AT_FDCWD; what --secontext says behind it is passed over.
pub fn descriptor(text: &[u8]) -> Option<Descriptor> {
    let end = text.iter().position(|letter| *letter == b'<').unwrap_or(text.len());
    let context = text[..end].windows(2).position(|pair| pair == b" [").unwrap_or(end);
    let number = match &text[..context] {
        b"AT_FDCWD" => libc::AT_FDCWD.into(),
        // The kernel takes 32 bits: 0xffffff9c is AT_FDCWD.
        digits => i64::from(number(digits)? as i32),
    };
    let rest = text.get(end + 1..).unwrap_or_default();
    let Some((found, behind)) = unescaped(rest, b'>') else {
        return Some(Descriptor { number, ..Descriptor::default() });
    };
    // A deleted file has no path; strace says so behind the bracket since 5.17, before it earlier.
    let is_deleted = behind.starts_with(b"(deleted)") || found.ends_with(b" (deleted)");
    let is_path = found.starts_with(b"/") && !found.starts_with(b"/memfd:");
    let (path, no_file) = match is_path {
        true => (Some(found).filter(|_| !is_deleted), None),
        false => (None, Some(found).filter(|found| !found.is_empty())),
    };
    Some(Descriptor { number, path, no_file })
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

/// What strace explains behind a value.
fn comment(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?;
    let (_, explained) = text.split_once("/*")?;
    explained.split_once("*/").map(|(explained, _)| explained.trim())
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
        assert_eq!(flags(b"0x8042 /* O_RDWR|O_CREAT|O_DIRECT */"), Some(0o40_102));
        assert_eq!(flags(b"_IOC(_IOC_READ, 0xf5, 0xc, 0x4)"), Some(0x8004_f50c));
        assert_eq!(flags(b"A_NEW or TIOCGWINSZ"), Some(0x5413));
        assert_eq!(flags(b"_IOC(_IOC_READ, 0xf5, 0xfff, 0x4)"), None);
        let lock = |text: &[u8]| word(text, |it| Word::Owned(format!("number {it}")));
        assert_eq!(lock(b"0x6 /* F_SETLK */"), "F_SETLK");
        assert_eq!((lock(b"0x6"), lock(b"F_SETLK")), ("number 6".into(), "F_SETLK".into()));
        assert_eq!((tid(b"7 /* 4202 in strace's PID NS */"), tid(b"7")), (Some(4202), Some(7)));
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
        for (text, number) in [
            (&b"0xffffff9c"[..], -100),
            (b"4294967196", -100),
            (b"-100 /* AT_FDCWD */</w>", -100),
            (b"3 [system_u:object_r:var_t:s0]", 3),
            (b"0xa</a/b> [var_t!!etc_t]", 10),
        ] {
            assert_eq!(descriptor(text).unwrap().number, number);
        }
        assert_eq!(descriptor(b"0xa</a/b> [var_t]").unwrap().path.unwrap(), b"/a/b");
        assert_eq!(descriptor(b"7<pipe:[12]>").unwrap().no_file.unwrap(), b"pipe:[12]");
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
