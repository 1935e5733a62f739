//! Writers that hand their writes and syncs to the kernel, and wait for them afterwards: by Linux
//! AIO (io_submit(2)) and by io_uring.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use anyhow::Context;
use rustix::io::ReadWriteFlags;

use super::log::{KnownFile, Log};
use super::side_writes::LeftOutReason;
use crate::workload::files::engine::{AlignedBuffer, Engine, Way};

const PAGE: usize = 4096;

/// Writes by Linux AIO.
pub fn linux_aio(directory: &Path, log: &mut Log) -> anyhow::Result<LeftOutReason> {
    let queue = match AioContext::new() {
        Ok(context) => Queue::Aio(context),
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            return Ok(Some(format!("io_setup: {error}")));
        }
        Err(error) => return Err(error).context("io_setup"),
    };
    write_all(queue, "aio", directory, log)
}

/// Writes by io_uring.
pub fn io_uring(directory: &Path, log: &mut Log) -> anyhow::Result<LeftOutReason> {
    match Way::new(Engine::IoUring) {
        Ok(way) => write_all(Queue::Ring(way), "ring", directory, log),
        Err(error) => Ok(Some(error.to_string())),
    }
}

fn write_all(
    mut queue: Queue,
    name: &str,
    directory: &Path,
    log: &mut Log,
) -> anyhow::Result<LeftOutReason> {
    let is_followed = tells_of_work();
    let flags = if log.left_out.contains_key("direct") { 0 } else { libc::O_DIRECT };
    let mut buffer = AlignedBuffer::new(16 * PAGE);
    let buffer = buffer.bytes();
    for (kind, flags) in [("direct", flags), ("buffered", 0)] {
        let number = log.known.len() as u32;
        let mut known = KnownFile::create(directory, &format!("{name}-{kind}"), number, flags)?;
        for (offset, length) in [(0, buffer.len()), (4 * PAGE, PAGE), (8 * PAGE, 3 * PAGE)] {
            let part = &mut buffer[..length];
            known.stamp(part, offset as u64);
            queue.write(known.file(), part, offset, ReadWriteFlags::empty())?;
        }
        // The kernel's workers make these syncs; Linux 5.10 does not tell for whom.
        for data_alone in [false, true] {
            match (&queue, is_followed) {
                (Queue::Aio(_), false) => {
                    queue.sync(known.file(), data_alone)?;
                    known.settle();
                }
                _ => known.sync_by(|file| queue.sync(file, data_alone))?,
            }
            let part = &mut buffer[..2 * PAGE];
            known.stamp(part, 2 * PAGE as u64);
            queue.write(known.file(), part, 2 * PAGE, ReadWriteFlags::empty())?;
        }
        if kind == "buffered" && is_followed {
            let part = &mut buffer[..PAGE];
            known.stamp(part, PAGE as u64);
            known.sync_by(|file| queue.write(file, part, PAGE, ReadWriteFlags::DSYNC))?;
        }
        known.sync()?;
        log.known.push(known);
    }
    if !is_followed {
        let reason = "Linux before 5.17 does not tell who asks for them";
        log.left_out.insert("askers of asynchronous syncs", reason.to_owned());
    }
    Ok(None)
}

/// Returns whether the kernel tells of the work that Linux AIO and io_uring leave to its workers
/// (docs/kernels.md).
fn tells_of_work() -> bool {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy().into_owned();
    let mut numbers = release.split(|sign: char| !sign.is_ascii_digit()).map(str::parse::<u32>);
    let mut number = || numbers.next().and_then(Result::ok).unwrap_or(0);
    (number(), number()) >= (5, 17)
}

enum Queue {
    Aio(AioContext),
    Ring(Way),
}

impl Queue {
    fn write(
        &mut self,
        file: &File,
        bytes: &[u8],
        offset: usize,
        flags: ReadWriteFlags,
    ) -> io::Result<()> {
        let written = match self {
            Self::Ring(way) => way.write(file, bytes, offset as u64, flags)?,
            Self::Aio(context) => context.perform(&AioRequest {
                flags: flags.bits(),
                opcode: IOCB_CMD_PWRITE,
                descriptor: file.as_raw_fd().cast_unsigned(),
                address: bytes.as_ptr() as u64,
                length: bytes.len() as u64,
                offset: offset as i64,
                ..AioRequest::default()
            })?,
        };
        if written == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    fn sync(&mut self, file: &File, data_alone: bool) -> io::Result<()> {
        match self {
            Self::Ring(way) => way.sync(file, data_alone),
            Self::Aio(context) => context
                .perform(&AioRequest {
                    opcode: if data_alone { IOCB_CMD_FDSYNC } else { IOCB_CMD_FSYNC },
                    descriptor: file.as_raw_fd().cast_unsigned(),
                    ..AioRequest::default()
                })
                .map(drop),
        }
    }
}

const IOCB_CMD_PWRITE: u16 = 1;
const IOCB_CMD_FSYNC: u16 = 2;
const IOCB_CMD_FDSYNC: u16 = 3;

/// struct iocb (include/uapi/linux/aio_abi.h).
#[repr(C)]
#[derive(Default)]
struct AioRequest {
    data: u64,
    key: u32,
    flags: u32,
    opcode: u16,
    priority: i16,
    descriptor: u32,
    address: u64,
    length: u64,
    offset: i64,
    reserved: u64,
    iocb_flags: u32,
    event_descriptor: u32,
}

/// struct io_event.
#[repr(C)]
#[derive(Default)]
struct AioEvent {
    data: u64,
    request: u64,
    result: i64,
    second_result: i64,
}

/// The context of io_setup(2), for one request at a time.
struct AioContext(libc::c_ulong);

impl AioContext {
    fn new() -> io::Result<Self> {
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes the context alone.
        match unsafe { libc::syscall(libc::SYS_io_setup, 1, &raw mut context) } {
            0 => Ok(Self(context)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Submits a request and waits until it is done; returns its result.
    fn perform(&self, request: &AioRequest) -> io::Result<usize> {
        let mut event = AioEvent::default();
        let requests = [std::ptr::from_ref(request)];
        let none = std::ptr::null::<libc::timespec>();
        // SAFETY: the request and its bytes outlive the calls below, which wait for its event.
        if unsafe { libc::syscall(libc::SYS_io_submit, self.0, 1, requests.as_ptr()) } != 1 {
            return Err(io::Error::last_os_error());
        }
        loop {
            // SAFETY: there is room for one event.
            let done = unsafe {
                libc::syscall(libc::SYS_io_getevents, self.0, 1, 1, &raw mut event, none)
            };
            let error = io::Error::last_os_error();
            match done {
                1 => break,
                // The end of a ring of io_uring interrupts the thread that had it.
                _ if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return Err(error),
            }
        }
        let failure = |_| io::Error::from_raw_os_error(-event.result as i32);
        usize::try_from(event.result).map_err(failure)
    }
}

impl Drop for AioContext {
    fn drop(&mut self) {
        // SAFETY: no request is under way.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}
