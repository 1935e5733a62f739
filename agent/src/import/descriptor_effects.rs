//! What calls do to descriptors and to the positions of open files, and what they tell of the
//! sizes of files.

use super::book::{BegunCall, Book, Impossible};
use super::descriptors::{OpenFile, OpenId};
use super::files::TracedFile;
use super::name_effects::{flags_of_open, opened};
use super::names::inode;
use super::told::Told;
use crate::recorder::calls::Does;
use crate::system_calls;

/// Requests of ioctl(2) that are fcntl(F_SETFD) (asm-generic/ioctls.h).
const FIONCLEX: i64 = 0x5450;
const FIOCLEX: i64 = 0x5451;

/// Calls that make, copy and close descriptors, and calls about their files.
pub fn by_descriptor(book: &mut Book, begun: BegunCall, told: &mut Told) -> Result<(), Impossible> {
    let table = book.own[begun.thread].table;
    let number =
        told.row.descriptor.or(told.row.directory.filter(|_| told.row.path.as_deref() == Some("")));
    let (path, what_else) = (told.descriptor_path.take(), told.no_file.take());
    let is_bad = told.error() == Some("EBADF");
    let open = match number.filter(|_| !is_bad && told.call.number != system_calls::SYS_close_range)
    {
        Some(number) if told.row.result.is_some() && !makes_pair(told) => {
            book.open_file(begun, number, path.as_deref(), what_else.as_deref())?
        }
        _ => None,
    };
    if is_no_file(told)
        && let Some(file) = open.and_then(|open| book.descriptors.opens[open].file)
    {
        book.names.files[file].is_kind("other");
    }
    let Some(result) = told.success() else { return Ok(()) };
    let row = &told.row;
    let flags = row.flags.unwrap_or(0);
    let cloexec = flags & i64::from(libc::O_CLOEXEC) != 0;
    match told.call.number {
        _ if told.call.does == Does::Opens => return open_call(book, begun, told, result),
        system_calls::SYS_close => book.descriptors.close(table, row.descriptor.unwrap_or(-1))?,
        system_calls::SYS_close_range => {
            let (first, last) = (row.descriptor.unwrap_or(0), row.descriptor2.unwrap_or(-1));
            let last = if last < 0 { i64::MAX } else { last };
            let on_exec = flags & i64::from(libc::CLOSE_RANGE_CLOEXEC) != 0;
            book.descriptors.close_range(table, first, last, on_exec)?;
        }
        system_calls::SYS_dup | system_calls::SYS_dup2 | system_calls::SYS_dup3 => {
            copy(book, table, open, result, cloexec)?
        }
        system_calls::SYS_fcntl => {
            let command = row.command.as_deref().unwrap_or_default();
            if command.starts_with("F_DUPFD") {
                copy(book, table, open, result, command == "F_DUPFD_CLOEXEC")?;
            } else if command == "F_SETFD" {
                let number = row.descriptor.unwrap_or(-1);
                book.descriptors.set_closes_on_exec(table, number, flags & 1 != 0)?;
            } else if row.lock.is_some()
                && let Some(file) = open.and_then(|open| book.descriptors.opens[open].file)
            {
                book.names.files[file].locked_at(row.offset_bytes.unwrap_or(-1));
            }
        }
        system_calls::SYS_ioctl if [FIOCLEX, FIONCLEX].contains(&flags) => {
            let number = row.descriptor.unwrap_or(-1);
            book.descriptors.set_closes_on_exec(table, number, flags == FIOCLEX)?;
        }
        system_calls::SYS_pipe | system_calls::SYS_pipe2 | system_calls::SYS_socketpair => {
            for number in [row.descriptor, row.descriptor2].into_iter().flatten() {
                book.note_opened(begun.thread, number);
                book.descriptors.open(table, number, no_file(begun.thread), cloexec)?;
            }
        }
        system_calls::SYS_socket
        | system_calls::SYS_accept
        | system_calls::SYS_accept4
        | system_calls::SYS_eventfd
        | system_calls::SYS_eventfd2
        | system_calls::SYS_epoll_create
        | system_calls::SYS_epoll_create1
        | system_calls::SYS_signalfd
        | system_calls::SYS_signalfd4
        | system_calls::SYS_timerfd_create
        | system_calls::SYS_inotify_init
        | system_calls::SYS_inotify_init1
        | system_calls::SYS_fanotify_init
        | system_calls::SYS_pidfd_open
        | system_calls::SYS_pidfd_getfd
        | system_calls::SYS_io_uring_setup => {
            book.note_opened(begun.thread, result);
            book.descriptors.open(table, result, no_file(begun.thread), cloexec)?;
        }
        _ => {
            let open2 = row.descriptor2.filter(|_| moves_bytes(told));
            let open2 = open2
                .map(|number| book.open_file(begun, number, None, None))
                .transpose()?
                .flatten();
            about_files(book, told, result, open, open2);
        }
    }
    Ok(())
}

fn open_call(
    book: &mut Book,
    begun: BegunCall,
    told: &mut Told,
    result: i64,
) -> Result<(), Impossible> {
    let table = book.own[begun.thread].table;
    let flags = flags_of_open(told);
    let path = told.row.path_id.and_then(|id| book.names.path(id));
    let file = match &path {
        Some(path) => opened(book, begun, told, path),
        None => book.names.add(TracedFile::new(true)),
    };
    (told.row.device, told.row.inode) = (Some(0), Some(inode(file)));
    // A memfd's flags are others, and it is closed on exec by the first of them.
    let is_memfd = told.call.number == system_calls::SYS_memfd_create;
    let closes = if is_memfd { libc::MFD_CLOEXEC as i32 } else { libc::O_CLOEXEC };
    let open = OpenFile {
        file: Some(file),
        path: path.unwrap_or_default(),
        position: 0,
        appends: !is_memfd && flags & i64::from(libc::O_APPEND) != 0,
        opener: begun.thread,
    };
    book.note_opened(begun.thread, result);
    book.descriptors.open(table, result, open, flags & i64::from(closes) != 0)?;
    Ok(())
}

fn no_file(opener: usize) -> OpenFile {
    OpenFile { file: None, path: Vec::new(), position: 0, appends: false, opener }
}

/// Whether the result of a call shows that its descriptor is of no file of a disk: of a pipe, a
/// socket or a terminal.
fn is_no_file(told: &Told) -> bool {
    // TCGETS, TIOCGPGRP, TIOCGWINSZ (asm-generic/ioctls.h).
    let asks_terminal = [0x5401, 0x540f, 0x5413];
    let is = |number: i64| told.call.number == number;
    told.error() == Some("ESPIPE")
        || told.success().is_some()
            && (is(system_calls::SYS_accept)
                || is(system_calls::SYS_accept4)
                || is(system_calls::SYS_ioctl)
                    && told.row.flags.is_some_and(|request| asks_terminal.contains(&request)))
}

fn makes_pair(told: &Told) -> bool {
    matches!(
        told.call.number,
        system_calls::SYS_pipe | system_calls::SYS_pipe2 | system_calls::SYS_socketpair
    )
}

fn moves_bytes(told: &Told) -> bool {
    matches!(
        told.call.number,
        system_calls::SYS_sendfile | system_calls::SYS_copy_file_range | system_calls::SYS_splice
    )
}

fn copy(
    book: &mut Book,
    table: usize,
    open: Option<OpenId>,
    result: i64,
    closes: bool,
) -> Result<(), Impossible> {
    match open {
        Some(open) => Ok(book.descriptors.put(table, result, open, closes)?),
        None => Ok(book.descriptors.close(table, result)?),
    }
}

/// Positions move, and sizes become known.
fn about_files(
    book: &mut Book,
    told: &Told,
    result: i64,
    open: Option<OpenId>,
    open2: Option<OpenId>,
) {
    let row = &told.row;
    // -1 is the position's own, of preadv2 and pwritev2.
    let offset = row.offset_bytes.filter(|it| *it >= 0);
    match told.call.number {
        system_calls::SYS_read
        | system_calls::SYS_readv
        | system_calls::SYS_pread64
        | system_calls::SYS_preadv
        | system_calls::SYS_preadv2 => read(book, open, offset, row.length_bytes, result),
        system_calls::SYS_write
        | system_calls::SYS_writev
        | system_calls::SYS_pwrite64
        | system_calls::SYS_pwritev
        | system_calls::SYS_pwritev2 => written(book, open, offset, result),
        system_calls::SYS_sendfile
        | system_calls::SYS_copy_file_range
        | system_calls::SYS_splice => {
            read(book, open, offset, None, result);
            written(book, open2, row.offset2_bytes, result);
        }
        system_calls::SYS_lseek => {
            let Some(open) = open else { return };
            book.descriptors.opens[open].position = result;
            if row.command.as_deref() == Some("SEEK_END")
                && let Some(file) = book.descriptors.opens[open].file
            {
                let size = result.saturating_sub(row.offset_bytes.unwrap_or(0));
                book.names.files[file].saw_size(size);
            }
        }
        _ => {
            let Some(file) = open.and_then(|open| book.descriptors.opens[open].file) else {
                return;
            };
            let file = &mut book.names.files[file];
            match told.call.number {
                system_calls::SYS_ftruncate | system_calls::SYS_fallocate => file.resized(),
                system_calls::SYS_fchmod => file.mode_changed(),
                system_calls::SYS_getdents
                | system_calls::SYS_getdents64
                | system_calls::SYS_fchdir => {
                    file.is_kind("directory");
                }
                _ => {
                    if let Some(stat) = told.stat {
                        file.saw(stat);
                    }
                }
            }
        }
    }
}

/// Begin and end of the bytes that a call read or wrote, from its offset or else from the position,
/// which moves then.
fn moved(open: &mut OpenFile, offset: Option<i64>, result: i64) -> (i64, i64) {
    let begin = offset.unwrap_or(open.position);
    let end = begin.saturating_add(result.max(0));
    if offset.is_none() {
        open.position = end;
    }
    (begin, end)
}

fn read(
    book: &mut Book,
    open: Option<OpenId>,
    offset: Option<i64>,
    asked: Option<i64>,
    result: i64,
) {
    let Some(open) = open else { return };
    let open = &mut book.descriptors.opens[open];
    let (begin, end) = moved(open, offset, result);
    let Some(file) = open.file else { return };
    let file = &mut book.names.files[file];
    if matches!(file.kind(), Some("other" | "directory")) {
        return;
    }
    // Of nothing, from behind the file's end, the end says nothing.
    if result > 0 {
        file.saw_end(end);
    }
    // A short read ends at the file's end (read(2)); one of nothing ends there or behind.
    let is_short = asked.is_some_and(|asked| result < asked);
    if is_short && (result > 0 || begin == 0 || file.size_bytes() == Some(begin)) {
        file.saw_size(end);
    }
}

fn written(book: &mut Book, open: Option<OpenId>, offset: Option<i64>, result: i64) {
    let Some(open) = open else { return };
    let open = &mut book.descriptors.opens[open];
    let (_, end) = moved(open, offset, result);
    let Some(file) = open.file else { return };
    if open.appends {
        book.names.files[file].appended(result.max(0));
    } else {
        book.names.files[file].written_to(end);
    }
}
