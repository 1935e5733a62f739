//! The effects of a call that has ended: its row, with what a trace does not have filled in; the
//! names that it made and removed; the descriptors that it made, copied and closed; the positions
//! of open files; and what its result tells of files and directories.

use super::book::{BegunCall, Book, Impossible};
use super::descriptors::{OpenFile, OpenId};
use super::files::{FileId, TracedFile, inode, plain};
use super::traced_call::TracedCall;
use crate::recorder::calls::{Does, Role, descriptor_of_path};
use crate::recorder::words;
use crate::system_calls;

/// A call has ended, or will not: adds its row to the book.
///
/// # Errors
/// If no program can do such a thing.
pub fn end_call(
    book: &mut Book,
    begun: BegunCall,
    mut call: TracedCall,
    end_ns: Option<i64>,
) -> Result<(), Impossible> {
    let row = &mut call.row;
    (row.call_id, row.thread_id) = (begun.call_id, begun.thread as i64);
    (row.begin_ns, row.end_ns) = (begun.begin_ns, end_ns);
    book.counts.missed.unread_arguments += call.unread;
    let exits = call.system_call.does == Does::Exits;
    book.counts.missed.unfinished_calls += u64::from(row.result.is_none() && !exits);
    if exits {
        (row.end_ns, row.result) = (None, None);
    }
    apply(book, begun, &mut call)?;
    if let Some(child) = call.child() {
        book.note_clone_return(begun, child, end_ns.unwrap_or(begun.begin_ns));
    }
    book.add(call.row)
}

fn apply(book: &mut Book, begun: BegunCall, call: &mut TracedCall) -> Result<(), Impossible> {
    let directory = call.directory_path.take();
    let directory2 = call.directory2_path.take();
    for (number, path) in [(call.row.directory, directory), (call.row.directory2, directory2)] {
        if let (Some(number), Some(path)) = (number, path) {
            learn_directory(book, begun, number, &path)?;
        }
    }
    let mut absolute = |directory, path: &Option<Vec<u8>>| {
        let path = path.as_deref().filter(|path| !path.is_empty())?;
        let found = book.absolute(begun.thread, directory, path);
        book.counts.missed.unresolved_paths += u64::from(found.is_none());
        found
    };
    let first = absolute(call.row.directory, &call.path);
    let second = absolute(call.row.directory2, &call.path2);
    call.row.path_id = first.as_ref().map(|path| book.names.id(path, begun.call_id));
    call.row.path2_id = second.as_ref().map(|path| book.names.id(path, begun.call_id));
    if call.success().is_some() {
        book.counts.missed.count(call.system_call, &call.row);
    }
    if let Some(path) = &first {
        learn_descriptor_path(book, begun, call, path);
    }
    apply_to_names(book, begun, call, first.as_deref(), second.as_deref())?;
    apply_to_descriptors(book, begun, call)?;
    apply_to_process(book, begun, call, first)
}

/// A path of /proc may lead to the file of a descriptor.
fn learn_descriptor_path(book: &mut Book, begun: BegunCall, call: &TracedCall, path: &[u8]) {
    let process = book.threads[begun.thread].pid;
    let number = call.row.path.as_deref().and_then(|path| descriptor_of_path(path, process));
    let table = book.thread_states[begun.thread].table;
    let open = number.and_then(|number| book.descriptors.at(table, number));
    if let Some(file) = open.and_then(|open| book.descriptors.opens[open].file) {
        book.names.set_file(path, begun.call_id, Some(file));
    }
}

/// Learn from -y the directory that a call is relative to.
fn learn_directory(
    book: &mut Book,
    begun: BegunCall,
    number: i64,
    path: &[u8],
) -> Result<(), Impossible> {
    if number != i64::from(libc::AT_FDCWD) {
        book.open_file(begun, number, Some(path), None)?;
        return Ok(());
    }
    let own = book.thread_states[begun.thread].directory;
    if book.directories[own].is_none() {
        book.threads[begun.thread].directory = words::text(path);
        book.directories[own] = Some(plain(path));
    }
    Ok(())
}

/// Calls about the process itself.
fn apply_to_process(
    book: &mut Book,
    begun: BegunCall,
    call: &TracedCall,
    path: Option<Vec<u8>>,
) -> Result<(), Impossible> {
    let thread = begun.thread;
    let own = book.thread_states[thread];
    match (call.system_call.number, call.success()) {
        (system_calls::SYS_chdir, Some(_)) => book.directories[own.directory] = path,
        (system_calls::SYS_fchdir, Some(_)) => {
            let open = book.descriptors.at(own.table, call.row.descriptor.unwrap_or(-1));
            let path = open.map(|open| book.descriptors.opens[open].path.clone());
            book.directories[own.directory] = path.filter(|path| !path.is_empty());
        }
        (system_calls::SYS_getcwd, Some(_)) => {
            if let (Some(path), None) = (&call.answer, &book.directories[own.directory]) {
                book.threads[thread].directory = words::text(path);
                book.directories[own.directory] = Some(plain(path));
            }
        }
        (system_calls::SYS_execve | system_calls::SYS_execveat, Some(_)) => {
            book.descriptors.execute(own.table)?;
            if let Some(path) = &path {
                book.threads[thread].executable = words::text(path);
            }
            if book.counts.command.is_empty() && thread == 0 {
                let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
                book.counts.command = call.command.iter().map(text).collect();
            }
        }
        _ => {}
    }
    Ok(())
}

/// Calls about paths.
pub fn apply_to_names(
    book: &mut Book,
    begun: BegunCall,
    call: &mut TracedCall,
    first: Option<&[u8]>,
    second: Option<&[u8]>,
) -> Result<(), Impossible> {
    let call_id = begun.call_id;
    let Some(path) = first else {
        // With AT_EMPTY_PATH the file of a descriptor gets a name.
        let table = book.thread_states[begun.thread].table;
        let number = call.row.directory.filter(|_| call.row.path.as_deref() == Some(""));
        if let (system_calls::SYS_linkat, Some(_), Some(second), Some(number)) =
            (call.system_call.number, call.success(), second, number)
        {
            let open = book.descriptors.at(table, number);
            let file = open.and_then(|open| book.descriptors.opens[open].file);
            let created = book.names.note_creation(second, call_id);
            book.names.set_file(second, call_id, Some(file.unwrap_or(created)));
        }
        return Ok(());
    };
    let makes = match call.system_call.number {
        system_calls::SYS_mkdir | system_calls::SYS_mkdirat => Some("directory"),
        system_calls::SYS_symlink | system_calls::SYS_symlinkat => Some("symlink"),
        system_calls::SYS_mknod | system_calls::SYS_mknodat => Some("other"),
        _ => None,
    };
    let is_link =
        matches!(call.system_call.number, system_calls::SYS_link | system_calls::SYS_linkat);
    let is_rename = matches!(
        call.system_call.number,
        system_calls::SYS_rename | system_calls::SYS_renameat | system_calls::SYS_renameat2
    );
    if let Some(error) = call.error() {
        match error {
            // Of a call with two paths, either may be the one.
            "ENOENT"
                if second.is_none() && makes.is_none() && call.system_call.does != Does::Opens =>
            {
                book.names.note_absent(path, call_id);
            }
            "ENOENT" if call.system_call.does == Does::Opens => {
                book.names.note_absent(path, call_id)
            }
            "ENOTDIR" if second.is_none() && makes.is_none() => {
                book.names.note_absent(path, call_id);
            }
            "EEXIST" if is_link || is_rename => {
                if let Some(second) = second {
                    book.names.note_present(second, call_id);
                }
            }
            "EEXIST" => {
                let file = book.names.note_present(path, call_id);
                if makes == Some("directory") {
                    book.names.files[file].set_kind("directory");
                }
            }
            "ENOTEMPTY" | "EISDIR" if second.is_none() => {
                let file = book.names.note_present(path, call_id);
                book.names.files[file].set_kind("directory");
            }
            _ => {}
        }
        return Ok(());
    }
    if call.success().is_none() || call.system_call.does == Does::Opens {
        return Ok(());
    }
    if let Some(kind) = makes {
        let file = book.names.note_creation(path, call_id);
        book.names.files[file].set_kind(kind);
        return Ok(());
    }
    if is_link {
        let file = book.names.note_present(path, call_id);
        if let Some(second) = second {
            book.names.note_creation(second, call_id);
            book.names.set_file(second, call_id, Some(file));
        }
        return Ok(());
    }
    if is_rename {
        let Some(second) = second else { return Ok(()) };
        let flags = call.row.flags.unwrap_or(0);
        if flags & i64::from(libc::RENAME_EXCHANGE) != 0 {
            let (one, other) =
                (book.names.note_present(path, call_id), book.names.note_present(second, call_id));
            book.names.set_file(path, call_id, Some(other));
            book.names.set_file(second, call_id, Some(one));
        } else if !book.names.note_rename(path, second, call_id) {
            return Err(Impossible::Renames);
        }
        return Ok(());
    }
    match call.system_call.number {
        system_calls::SYS_unlink | system_calls::SYS_rmdir | system_calls::SYS_unlinkat => {
            let file = book.names.note_present(path, call_id);
            let is_directory = call.system_call.number == system_calls::SYS_rmdir
                || call.row.flags.unwrap_or(0) & i64::from(libc::AT_REMOVEDIR) != 0;
            book.names.files[file].set_kind(if is_directory { "directory" } else { "file" });
            book.names.note_removal(path, call_id);
        }
        _ => note_path_call(book, begun, call, path),
    }
    Ok(())
}

/// A call about a path has succeeded, which makes no name and removes none.
fn note_path_call(book: &mut Book, begun: BegunCall, call: &TracedCall, path: &[u8]) {
    let id = book.names.note_present(path, begun.call_id);
    let file = &mut book.names.files[id];
    if let Some(stat) = call.stat {
        file.note_stat(stat);
    }
    match call.system_call.number {
        system_calls::SYS_readlink | system_calls::SYS_readlinkat => {
            if let Some(target) = &call.answer {
                file.set_link_target(target);
            }
        }
        system_calls::SYS_truncate => file.is_resized = true,
        system_calls::SYS_chmod | system_calls::SYS_fchmodat | system_calls::SYS_fchmodat2 => {
            file.is_mode_changed = true
        }
        system_calls::SYS_chdir | system_calls::SYS_chroot => file.set_kind("directory"),
        system_calls::SYS_execve => file.set_kind("file"),
        _ => {}
    }
}

/// An open has succeeded; which file it opened.
pub fn open_path(book: &mut Book, begun: BegunCall, call: &TracedCall, path: &[u8]) -> FileId {
    let flags = flags_of_open(call);
    let has = |flag: i32| flags & i64::from(flag) == i64::from(flag);
    let (call_id, real) = (begun.call_id, call.result_path.as_deref().map(plain));
    // What -y tells is where the name leads to, if there is a link in it.
    let real = real.filter(|real| real.as_slice() != path);
    let known = real.as_ref().and_then(|real| book.names.at(real));
    let id = match known {
        Some(file) if book.names.at(path).is_none() => {
            book.names.id(path, call_id);
            book.names.note_alias(path, file, call_id);
            file
        }
        _ if has(libc::O_TMPFILE) => book.names.add(TracedFile::new(true)),
        _ if has(libc::O_CREAT) && has(libc::O_EXCL) => book.names.note_creation(path, call_id),
        _ if has(libc::O_CREAT) => book.names.note_open_or_creation(path, call_id),
        _ => book.names.note_present(path, call_id),
    };
    if let Some(real) = real.filter(|_| known.is_none() && !has(libc::O_TMPFILE)) {
        book.names.note_same_file(path, &real, id, call_id);
    }
    let file = &mut book.names.files[id];
    if has(libc::O_TRUNC) {
        file.is_resized = true;
    }
    if has(libc::O_DIRECTORY) && !has(libc::O_TMPFILE) {
        file.set_kind("directory");
    } else if flags & i64::from(libc::O_ACCMODE) != i64::from(libc::O_RDONLY) {
        file.set_kind("file");
    }
    id
}

pub fn flags_of_open(call: &TracedCall) -> i64 {
    match call.system_call.number {
        system_calls::SYS_creat => (libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC).into(),
        _ => call.row.flags.unwrap_or(0),
    }
}

/// Requests of ioctl(2) that are fcntl(F_SETFD) (asm-generic/ioctls.h).
const FIONCLEX: i64 = 0x5450;
const FIOCLEX: i64 = 0x5451;

/// Calls that make, copy and close descriptors, and calls about their files.
pub fn apply_to_descriptors(
    book: &mut Book,
    begun: BegunCall,
    call: &mut TracedCall,
) -> Result<(), Impossible> {
    let table = book.thread_states[begun.thread].table;
    let number =
        call.row.descriptor.or(call.row.directory.filter(|_| call.row.path.as_deref() == Some("")));
    let (path, what_else) = (call.descriptor_path.take(), call.no_file.take());
    let is_bad = call.error() == Some("EBADF");
    let open = match number
        .filter(|_| !is_bad && call.system_call.number != system_calls::SYS_close_range)
    {
        Some(number) if call.row.result.is_some() && !makes_pair(call) => {
            book.open_file(begun, number, path.as_deref(), what_else.as_deref())?
        }
        _ => None,
    };
    if is_no_file(call)
        && let Some(file) = open.and_then(|open| book.descriptors.opens[open].file)
    {
        book.names.files[file].set_kind("other");
    }
    let Some(result) = call.success() else { return Ok(()) };
    let row = &call.row;
    let flags = row.flags.unwrap_or(0);
    let cloexec = flags & i64::from(libc::O_CLOEXEC) != 0;
    let no_file = || OpenFile::at_begin(None, begun.thread);
    match call.system_call.number {
        _ if call.system_call.does == Does::Opens => return open_call(book, begun, call, result),
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
            } else if command == "F_SETFL"
                && let Some(open) = open
            {
                let appends = flags & i64::from(libc::O_APPEND) != 0;
                book.descriptors.opens[open].appends = appends;
            } else if row.lock.is_some()
                && let Some(file) = open.and_then(|open| book.descriptors.opens[open].file)
            {
                book.names.files[file].note_lock(row.offset_bytes.unwrap_or(-1));
            }
        }
        system_calls::SYS_ioctl if [FIOCLEX, FIONCLEX].contains(&flags) => {
            let number = row.descriptor.unwrap_or(-1);
            book.descriptors.set_closes_on_exec(table, number, flags == FIOCLEX)?;
        }
        _ if makes_pair(call) => {
            for number in [row.descriptor, row.descriptor2].into_iter().flatten() {
                book.note_opened(begun.thread, number);
                book.descriptors.open(table, number, no_file(), cloexec)?;
            }
        }
        _ if call.system_call.does == Does::OpensOther => {
            book.note_opened(begun.thread, result);
            book.descriptors.open(table, result, no_file(), cloexec)?;
        }
        _ => {
            let open2 = row.descriptor2.filter(|_| {
                matches!(call.system_call.name, "sendfile" | "copy_file_range" | "splice")
            });
            let open2 = open2
                .map(|number| book.open_file(begun, number, None, None))
                .transpose()?
                .flatten();
            update_files(book, call, result, open, open2);
        }
    }
    Ok(())
}

fn open_call(
    book: &mut Book,
    begun: BegunCall,
    call: &mut TracedCall,
    result: i64,
) -> Result<(), Impossible> {
    let table = book.thread_states[begun.thread].table;
    let flags = flags_of_open(call);
    let path = call.row.path_id.and_then(|id| book.names.path(id));
    let file = match &path {
        Some(path) => open_path(book, begun, call, path),
        None => book.names.add(TracedFile::new(true)),
    };
    (call.row.device, call.row.inode) = (Some(0), Some(inode(file)));
    // A memfd's flags are others, and it is closed on exec by the first of them.
    let is_memfd = call.system_call.number == system_calls::SYS_memfd_create;
    let closes = if is_memfd { libc::MFD_CLOEXEC as i32 } else { libc::O_CLOEXEC };
    let open = OpenFile {
        path: path.unwrap_or_default(),
        appends: !is_memfd && flags & i64::from(libc::O_APPEND) != 0,
        ..OpenFile::at_begin(Some(file), begun.thread)
    };
    book.note_opened(begun.thread, result);
    book.descriptors.open(table, result, open, flags & i64::from(closes) != 0)?;
    Ok(())
}

/// Return whether the result of a call shows that its descriptor is of no file of a disk: of a
/// pipe, a socket or a terminal.
fn is_no_file(call: &TracedCall) -> bool {
    // TCGETS, TIOCGPGRP, TIOCGWINSZ (asm-generic/ioctls.h).
    let asks_terminal = [0x5401, 0x540f, 0x5413];
    let is = |number: i64| call.system_call.number == number;
    call.error() == Some("ESPIPE")
        || call.success().is_some()
            && (is(system_calls::SYS_accept)
                || is(system_calls::SYS_accept4)
                || is(system_calls::SYS_ioctl)
                    && call.row.flags.is_some_and(|request| asks_terminal.contains(&request)))
}

fn makes_pair(call: &TracedCall) -> bool {
    call.system_call.roles.contains(&Role::Pair)
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
fn update_files(
    book: &mut Book,
    call: &TracedCall,
    result: i64,
    open: Option<OpenId>,
    open2: Option<OpenId>,
) {
    let row = &call.row;
    // -1 is the position's own, of preadv2 and pwritev2.
    let offset = row.offset_bytes.filter(|it| *it >= 0);
    match call.system_call.number {
        system_calls::SYS_read
        | system_calls::SYS_readv
        | system_calls::SYS_pread64
        | system_calls::SYS_preadv
        | system_calls::SYS_preadv2 => apply_read(book, open, offset, row.length_bytes, result),
        system_calls::SYS_write
        | system_calls::SYS_writev
        | system_calls::SYS_pwrite64
        | system_calls::SYS_pwritev
        | system_calls::SYS_pwritev2 => {
            let appends = call.system_call.number == system_calls::SYS_pwritev2
                && row.flags.unwrap_or(0) & i64::from(libc::RWF_APPEND) != 0;
            apply_write(book, open, offset, result, appends);
        }
        system_calls::SYS_sendfile
        | system_calls::SYS_copy_file_range
        | system_calls::SYS_splice => {
            apply_read(book, open, offset, None, result);
            apply_write(book, open2, row.offset2_bytes, result, false);
        }
        system_calls::SYS_lseek => {
            let Some(open) = open else { return };
            let file = &mut book.descriptors.opens[open];
            (file.position, file.is_position_exact) = (result, true);
            if row.command.as_deref() == Some("SEEK_END")
                && let Some(file) = book.descriptors.opens[open].file
            {
                let size = result.saturating_sub(row.offset_bytes.unwrap_or(0));
                book.names.files[file].note_size(size);
            }
        }
        _ => {
            let Some(file) = open.and_then(|open| book.descriptors.opens[open].file) else {
                return;
            };
            let file = &mut book.names.files[file];
            match call.system_call.number {
                system_calls::SYS_ftruncate | system_calls::SYS_fallocate => file.is_resized = true,
                system_calls::SYS_fchmod => file.is_mode_changed = true,
                system_calls::SYS_getdents
                | system_calls::SYS_getdents64
                | system_calls::SYS_fchdir => {
                    file.set_kind("directory");
                }
                _ => {
                    if let Some(stat) = call.stat {
                        file.note_stat(stat);
                    }
                }
            }
        }
    }
}

/// Return the begin and the end of the bytes that a call read or wrote, from its offset or else
/// from the position, which moves then.
fn move_position(open: &mut OpenFile, offset: Option<i64>, result: i64) -> (i64, i64) {
    let begin = offset.unwrap_or(open.position);
    let end = begin.saturating_add(result.max(0));
    if offset.is_none() {
        open.position = end;
    }
    (begin, end)
}

fn apply_read(
    book: &mut Book,
    open: Option<OpenId>,
    offset: Option<i64>,
    asked: Option<i64>,
    result: i64,
) {
    let Some(open) = open else { return };
    let open = &mut book.descriptors.opens[open];
    let is_begin_exact = offset.is_some() || open.is_position_exact;
    let (begin, end) = move_position(open, offset, result);
    let Some(file) = open.file else { return };
    let file = &mut book.names.files[file];
    if matches!(file.kind, Some("other" | "directory")) {
        return;
    }
    // Of nothing, from behind the file's end, the end says nothing.
    if result > 0 {
        file.note_end(end);
    }
    // A short read ends at the file's end (read(2)); one of nothing ends there or behind.
    let is_short = is_begin_exact && asked.is_some_and(|asked| result < asked);
    if is_short && (result > 0 || begin == 0 || file.size_bytes() == Some(begin)) {
        file.note_size(end);
    }
}

fn apply_write(
    book: &mut Book,
    open: Option<OpenId>,
    offset: Option<i64>,
    result: i64,
    appends: bool,
) {
    let Some(open) = open else { return };
    let open = &mut book.descriptors.opens[open];
    if !appends && !open.appends {
        let (_, end) = move_position(open, offset, result);
        if let Some(file) = open.file {
            book.names.files[file].note_written_end(end);
        }
        return;
    }
    let bytes = result.max(0);
    if offset.is_none() {
        (open.position, open.is_position_exact) = (bytes, false);
    }
    if let Some(file) = open.file {
        book.names.files[file].note_appended(bytes);
    }
}
