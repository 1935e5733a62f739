//! The values that strace prints: numbers, flags by their names, strings with escapes, descriptors
//! with the paths of -y; and what stands behind `= ` of a call: a number, an error, why there is
//! none, and with -T how long the call took. The numbers of flags are those of x86_64, whatever
//! machine the trace is of, as a recording has no others.

use super::line::Fault;
use crate::recorder::words;
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
    /// The description of a descriptor that is of no file: `pipe:[12]`.
    pub no_file: Option<Vec<u8>>,
}

/// Names of x86_64's signals, from 1 on (signal(7)).
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
            let named = || word.split(" or ").find_map(value);
            Some(sum | number(word.as_bytes()).or_else(|| value(word)).or_else(named)?)
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

/// Return strace's comment behind a value.
fn comment(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?;
    let (_, explained) = text.split_once("/*")?;
    explained.split_once("*/").map(|(explained, _)| explained.trim())
}

/// The end of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallResult {
    /// None where it did not return; -errno where it failed.
    pub result: Option<i64>,
    pub error: Option<Word>,
    /// The path that -y tells, where the result is a descriptor.
    pub path: Option<Vec<u8>>,
    /// The thread that the call made, where strace's lines have another number of it.
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
        let Descriptor { number, path, .. } = descriptor(text).ok_or(wrong)?;
        (outcome.result, outcome.path) = (Some(number), path);
        return Ok(outcome);
    }
    let result = number(&text[..first]).ok_or(wrong)?;
    outcome.result = Some(result);
    outcome.tid = tid(text).filter(|tid| *tid != result);
    if result == -1 && error.starts_with('E') {
        (outcome.result, outcome.error) = failed(error);
    } else if let Some(text) = rest.strip_prefix(b"(errno ").filter(|_| result == -1) {
        let digits = text.iter().take_while(|letter| letter.is_ascii_digit()).count();
        let number = number(&text[..digits]).filter(|it| (1..4096).contains(it));
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

macro_rules! words {
    ($($name:ident)+ ; $($other:literal = $number:expr,)+) => {
        /// The number of a word; none where it is unknown.
        pub fn value(word: &str) -> Option<i64> {
            Some(match word {
                $(stringify!($name) => i64::from(libc::$name as u32),)+
                $($other => $number,)+
                _ => return None,
            })
        }
    };
}

words! {
    O_RDONLY O_WRONLY O_RDWR O_ACCMODE O_CREAT O_EXCL O_NOCTTY O_TRUNC O_APPEND O_NONBLOCK
    O_NDELAY O_DSYNC O_SYNC O_RSYNC O_ASYNC O_NOATIME O_CLOEXEC O_PATH
    S_IFREG S_IFDIR S_IFCHR S_IFBLK S_IFIFO S_IFLNK S_IFSOCK S_ISUID S_ISGID S_ISVTX
    F_OK R_OK W_OK X_OK FD_CLOEXEC
    AT_EMPTY_PATH AT_SYMLINK_NOFOLLOW AT_SYMLINK_FOLLOW AT_REMOVEDIR AT_EACCESS AT_NO_AUTOMOUNT
    AT_STATX_FORCE_SYNC AT_STATX_DONT_SYNC
    PROT_READ PROT_WRITE PROT_EXEC PROT_NONE PROT_GROWSDOWN PROT_GROWSUP
    MAP_SHARED MAP_PRIVATE MAP_SHARED_VALIDATE MAP_FIXED MAP_ANONYMOUS MAP_GROWSDOWN
    MAP_DENYWRITE MAP_EXECUTABLE MAP_LOCKED MAP_NORESERVE MAP_POPULATE MAP_NONBLOCK MAP_STACK
    MAP_HUGETLB MAP_SYNC MAP_FIXED_NOREPLACE
    MREMAP_MAYMOVE MREMAP_FIXED MREMAP_DONTUNMAP
    MS_ASYNC MS_SYNC MS_INVALIDATE
    FALLOC_FL_KEEP_SIZE FALLOC_FL_PUNCH_HOLE FALLOC_FL_COLLAPSE_RANGE FALLOC_FL_ZERO_RANGE
    FALLOC_FL_INSERT_RANGE FALLOC_FL_UNSHARE_RANGE
    RENAME_NOREPLACE RENAME_EXCHANGE RENAME_WHITEOUT
    RWF_HIPRI RWF_DSYNC RWF_SYNC RWF_NOWAIT RWF_APPEND
    SYNC_FILE_RANGE_WAIT_BEFORE SYNC_FILE_RANGE_WRITE SYNC_FILE_RANGE_WAIT_AFTER
    POSIX_FADV_NORMAL POSIX_FADV_RANDOM POSIX_FADV_SEQUENTIAL POSIX_FADV_WILLNEED
    POSIX_FADV_DONTNEED POSIX_FADV_NOREUSE
    SPLICE_F_MOVE SPLICE_F_NONBLOCK SPLICE_F_MORE SPLICE_F_GIFT
    XATTR_CREATE XATTR_REPLACE
    LOCK_SH LOCK_EX LOCK_UN LOCK_NB
    SEEK_SET SEEK_CUR SEEK_END SEEK_DATA SEEK_HOLE
    CLOSE_RANGE_UNSHARE CLOSE_RANGE_CLOEXEC
    CLONE_VM CLONE_FS CLONE_FILES CLONE_SIGHAND CLONE_PIDFD CLONE_PTRACE CLONE_VFORK
    CLONE_PARENT CLONE_THREAD CLONE_NEWNS CLONE_SYSVSEM CLONE_SETTLS CLONE_PARENT_SETTID
    CLONE_CHILD_CLEARTID CLONE_DETACHED CLONE_UNTRACED CLONE_CHILD_SETTID CLONE_NEWCGROUP
    CLONE_NEWUTS CLONE_NEWIPC CLONE_NEWUSER CLONE_NEWPID CLONE_NEWNET CLONE_IO
    SIGCHLD SIGUSR1 SIGUSR2
    MNT_FORCE MNT_DETACH MNT_EXPIRE UMOUNT_NOFOLLOW
    EFD_CLOEXEC EFD_NONBLOCK EFD_SEMAPHORE EPOLL_CLOEXEC SFD_CLOEXEC SFD_NONBLOCK
    TFD_CLOEXEC TFD_NONBLOCK IN_CLOEXEC IN_NONBLOCK SOCK_CLOEXEC SOCK_NONBLOCK
    MFD_CLOEXEC MFD_ALLOW_SEALING MFD_HUGETLB
    F_SEAL_SEAL F_SEAL_SHRINK F_SEAL_GROW F_SEAL_WRITE F_RDLCK F_WRLCK F_UNLCK
    TCGETS TCSETS TCSETSW TCSETSF TIOCGWINSZ TIOCGPGRP TIOCSPGRP FIONREAD FIONBIO FIOCLEX
    FIONCLEX FICLONE FICLONERANGE;
    // These libc has by other numbers on other machines.
    "O_DIRECT" = 0o40_000,
    "O_DIRECTORY" = 0o200_000,
    "O_NOFOLLOW" = 0o400_000,
    "O_TMPFILE" = 0o20_200_000,
    "MAP_32BIT" = 0x40,
    // glibc's is 0 where no other is known, the kernel's is not (asm-generic/fcntl.h).
    "O_LARGEFILE" = 0o100_000,
    "FASYNC" = 0o20_000,
    "MAP_FILE" = 0,
    "MAP_ANON" = 0x20,
    "AT_STATX_SYNC_AS_STAT" = 0,
    "CLONE_CLEAR_SIGHAND" = 1 << 32,
    "CLONE_INTO_CGROUP" = 1 << 33,
    "CLONE_NEWTIME" = 0x80,
    // Requests of ioctl(2) that file systems answer (linux/fs.h), as strace calls them.
    "BTRFS_IOC_CLONE or FICLONE" = 0x4004_9409,
    "BTRFS_IOC_CLONE_RANGE or FICLONERANGE" = 0x4020_940d,
    "BTRFS_IOC_FILE_EXTENT_SAME or FIDEDUPERANGE" = 0xc018_9436,
    "FS_IOC_GETFLAGS" = 0x8008_6601,
    "FS_IOC_SETFLAGS" = 0x4008_6602,
    "FS_IOC_FIEMAP" = 0xc020_660b,
    "FS_IOC_FSGETXATTR" = 0x801c_581f,
    "FS_IOC_FSSETXATTR" = 0x401c_5820,
    "SNDCTL_TMR_STOP or TCSETSW" = 0x5403,
    "SNDCTL_TMR_TIMEBASE or SNDRV_TIMER_IOCTL_NEXT_DEVICE or TCGETS" = 0x5401,
    "SNDCTL_TMR_TIMEBASE or TCGETS" = 0x5401,
    "TIOCINQ" = 0x541b,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    #[test]
    fn words_are_the_kernels_numbers() {
        assert_eq!(value("O_LARGEFILE"), Some(0x8000));
        assert_eq!(value("O_SYNC"), Some(0x0010_1000));
        assert_eq!(value("CLONE_IO"), Some(0x8000_0000));
        assert_eq!(value("FICLONE"), value("BTRFS_IOC_CLONE or FICLONE"));
        assert_eq!(value("O_NEW"), None);
    }
}
