//! What calls about paths do to names, and what their success or failure tells of files.

use super::book::{BegunCall, Book, Impossible};
use super::files::TracedFile;
use super::names::{FileId, plain};
use super::told::Told;
use crate::recorder::calls::Does;
use crate::system_calls;

/// Calls about paths.
pub fn by_name(
    book: &mut Book,
    begun: BegunCall,
    told: &mut Told,
    first: Option<&[u8]>,
    second: Option<&[u8]>,
) -> Result<(), Impossible> {
    let call_id = begun.call_id;
    let Some(path) = first else {
        // With AT_EMPTY_PATH the file of a descriptor gets a name.
        let table = book.own[begun.thread].table;
        let number = told.row.directory.filter(|_| told.row.path.as_deref() == Some(""));
        if let (system_calls::SYS_linkat, Some(_), Some(second), Some(number)) =
            (told.call.number, told.success(), second, number)
        {
            let open = book.descriptors.at(table, number);
            let file = open.and_then(|open| book.descriptors.opens[open].file);
            let made = book.names.made(second, call_id);
            book.names.put(second, call_id, Some(file.unwrap_or(made)));
        }
        return Ok(());
    };
    let makes = match told.call.number {
        system_calls::SYS_mkdir | system_calls::SYS_mkdirat => Some("directory"),
        system_calls::SYS_symlink | system_calls::SYS_symlinkat => Some("symlink"),
        system_calls::SYS_mknod | system_calls::SYS_mknodat => Some("other"),
        _ => None,
    };
    let is_link = matches!(told.call.number, system_calls::SYS_link | system_calls::SYS_linkat);
    let is_rename = matches!(
        told.call.number,
        system_calls::SYS_rename | system_calls::SYS_renameat | system_calls::SYS_renameat2
    );
    if let Some(error) = told.error() {
        match error {
            // Of a call with two paths, either may be the one.
            "ENOENT" if second.is_none() && makes.is_none() && told.call.does != Does::Opens => {
                book.names.absent(path, call_id);
            }
            "ENOENT" if told.call.does == Does::Opens => book.names.absent(path, call_id),
            "ENOTDIR" if second.is_none() && makes.is_none() => {
                book.names.absent(path, call_id);
            }
            "EEXIST" if is_link || is_rename => {
                if let Some(second) = second {
                    book.names.there(second, call_id);
                }
            }
            "EEXIST" => {
                let file = book.names.there(path, call_id);
                if makes == Some("directory") {
                    book.names.files[file].is_kind("directory");
                }
            }
            "ENOTEMPTY" | "EISDIR" if second.is_none() => {
                let file = book.names.there(path, call_id);
                book.names.files[file].is_kind("directory");
            }
            _ => {}
        }
        return Ok(());
    }
    if told.success().is_none() || told.call.does == Does::Opens {
        return Ok(());
    }
    if let Some(kind) = makes {
        let file = book.names.made(path, call_id);
        book.names.files[file].is_kind(kind);
        return Ok(());
    }
    if is_link {
        let file = book.names.there(path, call_id);
        if let Some(second) = second {
            book.names.made(second, call_id);
            book.names.put(second, call_id, Some(file));
        }
        return Ok(());
    }
    if is_rename {
        let Some(second) = second else { return Ok(()) };
        let flags = told.row.flags.unwrap_or(0);
        if flags & i64::from(libc::RENAME_EXCHANGE) != 0 {
            let (one, other) = (book.names.there(path, call_id), book.names.there(second, call_id));
            book.names.put(path, call_id, Some(other));
            book.names.put(second, call_id, Some(one));
        } else if !book.names.renamed(path, second, call_id) {
            return Err(Impossible::Renames);
        }
        return Ok(());
    }
    match told.call.number {
        system_calls::SYS_unlink | system_calls::SYS_rmdir | system_calls::SYS_unlinkat => {
            let file = book.names.there(path, call_id);
            let is_directory = told.call.number == system_calls::SYS_rmdir
                || told.row.flags.unwrap_or(0) & i64::from(libc::AT_REMOVEDIR) != 0;
            book.names.files[file].is_kind(if is_directory { "directory" } else { "file" });
            book.names.removed(path, call_id);
        }
        _ => found(book, begun, told, path),
    }
    Ok(())
}

/// A call about a path has succeeded, which makes no name and removes none.
fn found(book: &mut Book, begun: BegunCall, told: &Told, path: &[u8]) {
    let id = book.names.there(path, begun.call_id);
    let file = &mut book.names.files[id];
    if let Some(stat) = told.stat {
        file.saw(stat);
    }
    match told.call.number {
        system_calls::SYS_readlink | system_calls::SYS_readlinkat => {
            if let Some(target) = &told.answer {
                file.leads_to(target);
            }
        }
        system_calls::SYS_truncate => file.resized(),
        system_calls::SYS_chmod | system_calls::SYS_fchmodat | system_calls::SYS_fchmodat2 => {
            file.mode_changed()
        }
        system_calls::SYS_chdir | system_calls::SYS_chroot => file.is_kind("directory"),
        system_calls::SYS_execve => file.is_kind("file"),
        _ => {}
    }
}

/// An open has succeeded; which file it opened.
pub fn opened(book: &mut Book, begun: BegunCall, told: &Told, path: &[u8]) -> FileId {
    let flags = flags_of_open(told);
    let has = |flag: i32| flags & i64::from(flag) == i64::from(flag);
    let (call_id, real) = (begun.call_id, told.result_path.as_deref().map(plain));
    // What -y tells is where the name leads to, if there is a link in it.
    let real = real.filter(|real| real.as_slice() != path);
    let known = real.as_ref().and_then(|real| book.names.at(real));
    let id = match known {
        Some(file) if book.names.at(path).is_none() => {
            book.names.id(path, call_id);
            book.names.leads_to_same(path, file, call_id);
            file
        }
        _ if has(libc::O_TMPFILE) => book.names.add(TracedFile::new(true)),
        _ if has(libc::O_CREAT) && has(libc::O_EXCL) => book.names.made(path, call_id),
        _ if has(libc::O_CREAT) => book.names.found_or_made(path, call_id),
        _ => book.names.there(path, call_id),
    };
    if let Some(real) = real.filter(|_| known.is_none() && !has(libc::O_TMPFILE)) {
        book.names.same(path, &real, id, call_id);
    }
    let file = &mut book.names.files[id];
    if has(libc::O_TRUNC) {
        file.resized();
    }
    if has(libc::O_DIRECTORY) && !has(libc::O_TMPFILE) {
        file.is_kind("directory");
    } else if flags & i64::from(libc::O_ACCMODE) != i64::from(libc::O_RDONLY) {
        file.is_kind("file");
    }
    id
}

pub fn flags_of_open(told: &Told) -> i64 {
    match told.call.number {
        system_calls::SYS_creat => (libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC).into(),
        _ => told.row.flags.unwrap_or(0),
    }
}
