//! Words for the numbers in a call: names of errors, and what fcntl, lseek and flock are told.

pub use crate::byte_text::text;
use crate::tables::rows::Word;

macro_rules! words {
    ($(#[$about:meta])* $name:ident: $($constant:ident)+) => {
        $(#[$about])*
        pub fn $name(number: i32) -> Word {
            match number {
                $(libc::$constant => Word::Borrowed(stringify!($constant)),)+
                other => Word::Owned(other.to_string()),
            }
        }
    };
}

words! {
    /// The name of a command of fcntl(2); the number as text where it has none here.
    command:
    F_DUPFD F_GETFD F_SETFD F_GETFL F_SETFL F_GETLK F_SETLK F_SETLKW F_SETOWN F_GETOWN
    F_OFD_GETLK F_OFD_SETLK F_OFD_SETLKW F_SETLEASE F_GETLEASE F_NOTIFY F_DUPFD_CLOEXEC
    F_SETPIPE_SZ F_GETPIPE_SZ F_ADD_SEALS F_GET_SEALS
}

words! {
    /// The name of what lseek(2) counts from.
    whence:
    SEEK_SET SEEK_CUR SEEK_END SEEK_DATA SEEK_HOLE
}

words! {
    /// The name of an operation of flock(2), without LOCK_NB.
    lock_operation:
    LOCK_SH LOCK_EX LOCK_UN
}

words! {
    /// The name of an error number, positive.
    errno:
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT
    ENOTBLK EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG
    ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY
    ELOOP ENODATA ETIME EPROTO EOVERFLOW EBADFD EILSEQ EUSERS ENOTSOCK EDESTADDRREQ EMSGSIZE
    EOPNOTSUPP EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL ENETDOWN ENETUNREACH ECONNABORTED ECONNRESET
    ENOBUFS EISCONN ENOTCONN ETIMEDOUT ECONNREFUSED EALREADY EINPROGRESS ESTALE EUCLEAN EDQUOT
    ENOMEDIUM EMEDIUMTYPE ECANCELED EOWNERDEAD ENOTRECOVERABLE
}

/// The number of an error's name, positive; none where the name is unknown.
pub fn error_number(name: &str) -> Option<i32> {
    // Names of one number.
    let name = match name {
        "EWOULDBLOCK" => "EAGAIN",
        "ENOTSUP" => "EOPNOTSUPP",
        "EDEADLOCK" => "EDEADLK",
        name => name,
    };
    (1..=516).find(|number| error(-i64::from(*number)).is_some_and(|it| it == name))
}

/// The name of the error of a negative result. The kernel's own, which restart a call that a signal
/// interrupted, are seen by a tracer only (include/linux/errno.h).
pub fn error(result: i64) -> Option<Word> {
    let number = i32::try_from(-result).ok().filter(|number| (1..4096).contains(number))?;
    Some(match number {
        512 => Word::Borrowed("ERESTARTSYS"),
        513 => Word::Borrowed("ERESTARTNOINTR"),
        514 => Word::Borrowed("ERESTARTNOHAND"),
        516 => Word::Borrowed("ERESTART_RESTARTBLOCK"),
        number => errno(number),
    })
}

/// The name of a lock of fcntl(2).
pub fn lock(kind: i16) -> Word {
    match i32::from(kind) {
        libc::F_RDLCK => Word::Borrowed("F_RDLCK"),
        libc::F_WRLCK => Word::Borrowed("F_WRLCK"),
        libc::F_UNLCK => Word::Borrowed("F_UNLCK"),
        other => Word::Owned(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_names_of_the_manual() {
        assert_eq!(error(-2).unwrap(), "ENOENT");
        assert_eq!(error(-512).unwrap(), "ERESTARTSYS");
        assert_eq!(error(-4095).unwrap(), "4095");
        assert_eq!(error(3), None);
        assert_eq!(error_number("ENOENT"), Some(2));
        assert_eq!(error_number("ERESTARTSYS"), Some(512));
        assert_eq!(error_number("ENEW"), None);
        assert_eq!(command(libc::F_SETLK), "F_SETLK");
        assert_eq!(whence(77), "77");
    }
}
