//! A call has ended: its row, with what a trace does not have filled in, and what it did to names,
//! files, descriptors and directories.

use super::book::{BegunCall, Book, Impossible};
use super::descriptor_effects::by_descriptor;
use super::name_effects::by_name;
use super::names::plain;
use super::told::Told;
use crate::recorder::calls::Does;
use crate::recorder::words;
use crate::script::recorded::descriptor_of_path;
use crate::system_calls;

/// A call has ended, or will not: adds its row to the book.
///
/// # Errors
/// If no program can do such a thing.
pub fn end(
    book: &mut Book,
    begun: BegunCall,
    mut told: Told,
    end_ns: Option<i64>,
) -> Result<(), Impossible> {
    let row = &mut told.row;
    (row.call_id, row.thread_id) = (begun.call_id, begun.thread as i64);
    (row.begin_ns, row.end_ns) = (begun.begin_ns, end_ns);
    book.missed.unread_arguments += told.unread;
    let exits = told.call.does == Does::Exits;
    book.missed.unfinished_calls += u64::from(row.result.is_none() && !exits);
    if exits {
        (row.end_ns, row.result) = (None, None);
    }
    apply(book, begun, &mut told)?;
    if let Some(child) = told.child() {
        book.cloned(begun, child, end_ns.unwrap_or(begun.begin_ns));
    }
    book.add(told.row)
}

fn apply(book: &mut Book, begun: BegunCall, told: &mut Told) -> Result<(), Impossible> {
    let directory = told.directory_path.take();
    let directory2 = told.directory2_path.take();
    for (number, path) in [(told.row.directory, directory), (told.row.directory2, directory2)] {
        if let (Some(number), Some(path)) = (number, path) {
            learn_directory(book, begun, number, &path)?;
        }
    }
    let mut absolute = |directory, path: &Option<Vec<u8>>| {
        let path = path.as_deref().filter(|path| !path.is_empty())?;
        let found = book.absolute(begun.thread, directory, path);
        book.missed.unresolved_paths += u64::from(found.is_none());
        found
    };
    let first = absolute(told.row.directory, &told.path);
    let second = absolute(told.row.directory2, &told.path2);
    told.row.path_id = first.as_ref().map(|path| book.names.id(path, begun.call_id));
    told.row.path2_id = second.as_ref().map(|path| book.names.id(path, begun.call_id));
    if told.success().is_some() {
        book.missed.count(told.call, &told.row);
    }
    if let Some(path) = &first {
        learn_descriptor_path(book, begun, told, path);
    }
    by_name(book, begun, told, first.as_deref(), second.as_deref())?;
    by_descriptor(book, begun, told)?;
    of_process(book, begun, told, first)
}

/// A path of /proc may lead to the file of a descriptor.
fn learn_descriptor_path(book: &mut Book, begun: BegunCall, told: &Told, path: &[u8]) {
    let process = book.threads[begun.thread].pid;
    let number = told.row.path.as_deref().and_then(|path| descriptor_of_path(path, process));
    let table = book.own[begun.thread].table;
    let open = number.and_then(|number| book.descriptors.at(table, number));
    if let Some(file) = open.and_then(|open| book.descriptors.opens[open].file) {
        book.names.put(path, begun.call_id, Some(file));
    }
}

/// What -y says of the directory of a call.
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
    let own = book.own[begun.thread].directory;
    if book.directories[own].is_none() {
        book.threads[begun.thread].directory = words::text(path);
        book.directories[own] = Some(plain(path));
    }
    Ok(())
}

/// Calls about the process itself.
fn of_process(
    book: &mut Book,
    begun: BegunCall,
    told: &Told,
    path: Option<Vec<u8>>,
) -> Result<(), Impossible> {
    let thread = begun.thread;
    let own = book.own[thread];
    match (told.call.number, told.success()) {
        (system_calls::SYS_chdir, Some(_)) => book.directories[own.directory] = path,
        (system_calls::SYS_fchdir, Some(_)) => {
            let open = book.descriptors.at(own.table, told.row.descriptor.unwrap_or(-1));
            let path = open.map(|open| book.descriptors.opens[open].path.clone());
            book.directories[own.directory] = path.filter(|path| !path.is_empty());
        }
        (system_calls::SYS_getcwd, Some(_)) => {
            if let (Some(path), None) = (&told.answer, &book.directories[own.directory]) {
                book.threads[thread].directory = words::text(path);
                book.directories[own.directory] = Some(plain(path));
            }
        }
        (system_calls::SYS_execve | system_calls::SYS_execveat, Some(_)) => {
            book.descriptors.execute(own.table)?;
            if let Some(path) = &path {
                book.threads[thread].executable = words::text(path);
            }
            if book.command.is_empty() && thread == 0 {
                let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
                book.command = told.command.iter().map(text).collect();
            }
        }
        _ => {}
    }
    Ok(())
}
