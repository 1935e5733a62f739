//! Tests of what calls have promised: calls are made on a real directory, and what is there must be
//! judged as kept after each of them, as long as nothing is lost. Then what each kind promises.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use proptest::prelude::*;

use super::super::memory::{Memory, stream_of};
use super::*;
use crate::workload::error::WorkloadError;
use crate::workload::power_cut::{CutFindings, CutOutcome};
use crate::workload::replay::durability::{ExpectedMoment, judge};
use crate::workload::replay::memory::KeptContents;
use crate::workload::replay::plan::Lane;
use crate::workload::replay::stage::ReplayStage;

const NAMES: [&[u8]; 6] = [b"a", b"b", b"d", b"d/a", b"d/b", b""];
const ROOT: Name = 5;
const SEED: u64 = 7;
/// Mappings that a case may make, all of so many bytes.
const MAPPINGS: u32 = 4;
const MAPPED_BYTES: u64 = 16384;

/// The call that a step is to be.
#[derive(Debug, Clone)]
struct CallPlan {
    number: i64,
    arguments: Vec<CallArgument>,
    effect: CallEffect,
}

fn call(number: i64, arguments: &[CallArgument]) -> CallPlan {
    CallPlan { number, arguments: arguments.to_vec(), effect: CallEffect::Nothing }
}

fn number(number: impl Into<i64>) -> CallArgument {
    CallArgument::Number(number.into())
}

fn open(name: Name, flags: i32, to: FileHandle) -> CallPlan {
    let here = number(libc::AT_FDCWD);
    let arguments = [here, CallArgument::Path(name), number(flags), number(0o700)];
    CallPlan { effect: CallEffect::Opens(to), ..call(system_calls::SYS_openat, &arguments) }
}

fn write(handle: FileHandle, bytes: u32) -> CallPlan {
    let arguments = [CallArgument::Handle(handle), CallArgument::From(bytes), number(bytes)];
    call(system_calls::SYS_write, &arguments)
}

fn handle_call(number: i64, handle: FileHandle) -> CallPlan {
    call(number, &[CallArgument::Handle(handle)])
}

fn fallocate(handle: FileHandle, mode: i32, offset: u32, bytes: u32) -> CallPlan {
    let arguments = [CallArgument::Handle(handle), number(mode), number(offset), number(bytes)];
    call(system_calls::SYS_fallocate, &arguments)
}

fn link_nameless(handle: FileHandle, to: Name) -> CallPlan {
    let here = number(libc::AT_FDCWD);
    let from = [CallArgument::Handle(handle), CallArgument::Text(0)];
    let arguments = [from[0], from[1], here, CallArgument::Path(to), number(libc::AT_EMPTY_PATH)];
    call(system_calls::SYS_linkat, &arguments)
}

/// A directory in which calls are made, one after the other; call n from 10 n to 10 n + 5.
struct CallSequence {
    folder: tempfile::TempDir,
    stage: ReplayStage,
    memory: Memory,
    plan: ReplayPlan,
    ledger: Ledger,
    stream: Vec<u8>,
}

impl CallSequence {
    fn new(asked: &[CallPlan]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &[u8]| {
            let path = folder.path().join(std::ffi::OsStr::from_bytes(name));
            CString::new(path.as_os_str().as_bytes()).unwrap()
        };
        let handles = asked.iter().filter_map(|it| match it.effect {
            CallEffect::Opens(handle) => Some(handle as usize + 1),
            _ => None,
        });
        let stage = ReplayStage {
            root: OwnedFd::from(std::fs::File::open(folder.path()).unwrap()),
            paths: NAMES.map(path).into(),
            texts: vec![CString::default()],
            locks: Vec::new(),
            kept: KeptContents::default(),
            handles: (0..handles.max().unwrap_or(0)).map(|_| Default::default()).collect(),
            mappings: (0..MAPPINGS).map(|_| Default::default()).collect(),
        };
        let mut lane = Lane::default();
        for (place, asked) in asked.iter().enumerate() {
            let CallPlan { number, arguments, effect } = asked.clone();
            let action = Action::Call { number, arguments: arguments.into(), effect };
            let step = PlannedStep {
                call: place as i64,
                thread: 0,
                due_ns: 0,
                name: "call",
                ended: RecordedEnd::Unknown,
                writes: None,
                waits: (0, 0),
                action,
            };
            lane.push(step, &[]);
        }
        let memory = Memory::new(&lane, SEED);
        let stream = stream_of(std::slice::from_ref(&lane), SEED);
        let names = NAMES.map(<[u8]>::to_vec).into();
        let plan = ReplayPlan { lanes: vec![lane], names, ..ReplayPlan::default() };
        Self { folder, stage, memory, plan, ledger: Ledger::default(), stream }
    }

    /// Makes the next call, which ended so when it was recorded; gives its result.
    fn go_on(&mut self) -> i64 {
        let place = self.ledger.entries.len();
        let step = &mut self.plan.lanes[0].steps[place];
        let result = self.stage.perform(step, &mut self.memory);
        step.ended = match i32::try_from(-result) {
            Ok(error @ 1..) => RecordedEnd::Failed(Some(error)),
            _ => RecordedEnd::With(result),
        };
        let begin_ns = 10 * place as i64;
        self.ledger
            .entries
            .push(LedgerEntry { return_ns: begin_ns + 5, ..LedgerEntry::begin("call", begin_ns) });
        result
    }

    fn tree(&self) -> NameTree {
        promises_of(&self.plan, std::slice::from_ref(&self.ledger), &[])
    }

    fn judge_files(
        &self,
        directory: &Path,
        expected: ExpectedMoment,
    ) -> Result<CutFindings, WorkloadError> {
        judge::judge_files(&self.tree(), directory, &self.stream, expected)
    }

    /// Return whether what is there is as it must be, now and at the end of it all.
    fn is_kept(&self) -> bool {
        let at_ns = self.ledger.entries.last().map_or(0, |done| done.return_ns);
        let tree = self.tree();
        [ExpectedMoment::AfterCut { at_ns }, ExpectedMoment::AtTheEnd].into_iter().all(|expected| {
            let found = judge::judge_files(&tree, self.folder.path(), &self.stream, expected);
            let is_kept = found.as_ref().is_ok_and(|found| found.outcome == CutOutcome::Kept);
            if !is_kept {
                eprintln!("{expected:?}: {found:?}");
            }
            is_kept
        })
    }
}

/// Makes calls of which none fails; nothing is lost, and that is what is judged.
fn run_calls(asked: &[CallPlan]) -> CallSequence {
    let mut made = CallSequence::new(asked);
    for asked in asked {
        let result = made.go_on();
        assert!(result >= 0, "{asked:?}: {result}");
        assert!(made.is_kept(), "{asked:?}");
    }
    made
}

#[test]
fn a_sync_of_a_nameless_file_promises_no_name_of_its_directory() {
    let made = run_calls(&[
        open(ROOT, libc::O_TMPFILE | libc::O_RDWR, 0),
        open(0, libc::O_CREAT | libc::O_WRONLY, 1),
        write(0, 4096),
        handle_call(system_calls::SYS_fsync, 0),
    ]);
    let empty = tempfile::tempdir().unwrap();
    let found = made.judge_files(empty.path(), ExpectedMoment::AfterCut { at_ns: 1000 }).unwrap();
    assert_eq!((found.outcome, found.lost), (CutOutcome::Kept, 0));
}

#[test]
fn a_nameless_file_that_was_given_a_name_is_promised_by_its_own_sync_and_its_directorys() {
    let made = run_calls(&[
        open(ROOT, libc::O_TMPFILE | libc::O_RDWR, 0),
        write(0, 4096),
        handle_call(system_calls::SYS_fsync, 0),
        link_nameless(0, 1),
        open(ROOT, libc::O_RDONLY | libc::O_DIRECTORY, 1),
        handle_call(system_calls::SYS_fsync, 1),
    ]);
    let other = tempfile::tempdir().unwrap();
    let judged = |at_ns| {
        let found = made.judge_files(other.path(), ExpectedMoment::AfterCut { at_ns });
        found.map(|it| (it.outcome, it.lost)).unwrap()
    };
    assert_eq!(judged(54), (CutOutcome::Kept, 0));
    assert_eq!(judged(55), (CutOutcome::Lost, 1));
    std::fs::write(other.path().join("b"), "").unwrap();
    assert_eq!(judged(45), (CutOutcome::Lost, 1));
    assert_eq!(made.tree().promise_times_ns(), [25, 55]);
}

#[test]
fn a_directory_changes_places_with_a_file() {
    let (here, a, b) = (number(libc::AT_FDCWD), CallArgument::Path(0), CallArgument::Path(1));
    let exchange = [here, a, here, b, number(libc::RENAME_EXCHANGE as i64)];
    run_calls(&[
        open(0, libc::O_CREAT | libc::O_RDWR, 0),
        call(system_calls::SYS_mkdir, &[b, number(0o700)]),
        call(system_calls::SYS_renameat2, &exchange),
    ]);
}

/// A file of 20,000 bytes, which was synced.
fn whole() -> Vec<CallPlan> {
    let sync = handle_call(system_calls::SYS_fsync, 0);
    vec![open(0, libc::O_CREAT | libc::O_RDWR, 0), write(0, 20_000), sync]
}

#[test]
fn each_mode_of_fallocate_leaves_size_and_contents_as_the_manual_says() {
    let keep = libc::FALLOC_FL_KEEP_SIZE;
    for (mode, offset, bytes, size) in [
        (0, 10_000, 20_000, 30_000),
        (0, 0, 20_000, 20_000),
        (keep, 10_000, 20_000, 20_000),
        (keep | libc::FALLOC_FL_PUNCH_HOLE, 1_000, 50_000, 20_000),
    ] {
        let more = [fallocate(0, mode, offset, bytes), handle_call(system_calls::SYS_fsync, 0)];
        let made = run_calls(&[whole(), more.to_vec()].concat());
        let path = made.folder.path().join("a");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), size, "{mode}");
        if mode & libc::FALLOC_FL_PUNCH_HOLE != 0 {
            // What was there before is not what was promised.
            std::fs::write(&path, &made.stream[4096..24_096]).unwrap();
            let found = made
                .judge_files(made.folder.path(), ExpectedMoment::AfterCut { at_ns: 45 })
                .unwrap();
            assert_eq!(found.outcome, CutOutcome::Lost);
        }
    }
    // Of those that few filesystems have, what is known of the file.
    for (mode, offset, bytes, size, unknown) in [
        (libc::FALLOC_FL_ZERO_RANGE, 16_384, 8_192, 24_576, 0),
        (keep | libc::FALLOC_FL_ZERO_RANGE, 16_384, 8_192, 20_000, 0),
        (libc::FALLOC_FL_COLLAPSE_RANGE, 4_096, 8_192, 11_808, 15_904),
        (libc::FALLOC_FL_INSERT_RANGE, 4_096, 8_192, 28_192, 24_096),
        (libc::FALLOC_FL_UNSHARE_RANGE, 16_384, 8_192, 24_576, 0),
    ] {
        let mut file = FileHistory::with_content(20_000);
        allocate(&mut file, mode, offset, bytes, CallTime { begin_ns: 1, end_ns: 2 });
        assert_eq!((file.size_bytes(), file.unknown_bytes), (size, unknown), "{mode}");
    }
}

/// As one call on an F2FS: the kernel here has none, so that what it does is played.
fn request(handle: FileHandle, request: i64) -> CallPlan {
    call(system_calls::SYS_ioctl, &[CallArgument::Handle(handle), number(request), number(0)])
}

/// Return the calls that `whole` makes, and others that are said to have succeeded, as they are
/// judged.
fn claim_calls(asked: &[CallPlan]) -> CallSequence {
    let all = [whole(), asked.to_vec()].concat();
    let mut made = CallSequence::new(&all);
    for _ in &all {
        made.go_on();
        let place = made.ledger.entries.len() - 1;
        made.plan.lanes[0].steps[place].ended = RecordedEnd::Well;
    }
    made
}

#[test]
fn the_request_that_commits_an_atomic_write_of_f2fs_promises_nothing() {
    const COMMIT: i64 = 0xf502;
    let made = claim_calls(&[request(0, F2FS_START), write(0, 4096), request(0, COMMIT)]);
    let path = made.folder.path().join("a");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 24_096);
    assert!(made.is_kept());
    std::fs::File::options().write(true).open(&path).unwrap().set_len(20_000).unwrap();
    let found =
        made.judge_files(made.folder.path(), ExpectedMoment::AfterCut { at_ns: 1000 }).unwrap();
    assert_eq!(found.outcome, CutOutcome::Kept);
    assert_eq!(made.tree().promise_times_ns(), [25]);
}

#[test]
fn an_atomic_write_of_f2fs_that_was_given_up_never_reached_the_file() {
    let made = claim_calls(&[request(0, F2FS_START), write(0, 4096), request(0, F2FS_ABORT)]);
    assert!(!made.is_kept());
    let path = made.folder.path().join("a");
    std::fs::File::options().write(true).open(&path).unwrap().set_len(20_000).unwrap();
    assert!(made.is_kept());
}

/// Numbers that a call is made of: which, on which descriptor and names, where, and how much.
type DrawnCall = (u32, u32, (Name, Name), u32, u32, u32);

fn drawn_calls() -> impl Strategy<Value = Vec<DrawnCall>> {
    let names = (0..NAMES.len() as Name, 0..NAMES.len() as Name);
    let one = (0..24_u32, any::<u32>(), names, 0..20_000_u32, 1..9_000_u32, any::<u32>());
    prop::collection::vec(one, 1..40)
}

/// The calls, of which many fail; each descriptor has a handle of its own.
fn calls_of(drawn: &[DrawnCall]) -> Vec<CallPlan> {
    let (mut opened, mut mapped) = (0, 0);
    let mut all = Vec::new();
    for &(kind, handle, (name, other), offset, bytes, flags) in drawn {
        let handle = handle % opened.max(1);
        let of = |number, arguments: &[CallArgument]| {
            call(number, &[&[CallArgument::Handle(handle)], arguments].concat())
        };
        let path = [CallArgument::Path(name), CallArgument::Path(other)];
        let from = [CallArgument::From(bytes), number(bytes)];
        let vectors =
            [CallArgument::VectorsFrom { count: 3, bytes }, number(3), number(offset), number(0)];
        let choice = |some: &[i32]| some[flags as usize % some.len()];
        let made = match kind {
            _ if opened == 0 || kind < 3 => {
                let kind = [
                    libc::O_CREAT | libc::O_RDWR,
                    libc::O_CREAT | libc::O_RDWR | libc::O_TRUNC,
                    libc::O_CREAT | libc::O_RDWR | libc::O_APPEND | libc::O_DSYNC,
                    libc::O_TMPFILE | libc::O_RDWR,
                    libc::O_RDONLY | libc::O_DIRECTORY,
                ];
                opened += 1;
                open(name, choice(&kind), opened - 1)
            }
            3 | 4 => write(handle, bytes),
            5 => of(system_calls::SYS_pwrite64, &[&from[..], &[number(offset)]].concat()),
            6 => {
                let flags = number(choice(&[0, libc::RWF_DSYNC, libc::RWF_APPEND]));
                of(system_calls::SYS_pwritev2, &[&vectors[..], &[flags]].concat())
            }
            7 => {
                let vectors = [vectors[0], vectors[1], number(AT_POSITION), number(0), number(0)];
                of(system_calls::SYS_pwritev2, &vectors)
            }
            8 => of(system_calls::SYS_read, &[CallArgument::Into(bytes), number(bytes)]),
            9 => {
                let whence = choice(&[libc::SEEK_SET, libc::SEEK_CUR, libc::SEEK_END]);
                of(system_calls::SYS_lseek, &[number(offset), number(whence)])
            }
            10 => of(system_calls::SYS_fsync, &[]),
            11 => of(system_calls::SYS_fdatasync, &[]),
            12 => of(system_calls::SYS_ftruncate, &[number(offset)]),
            13 => {
                let mode = choice(&[
                    0,
                    libc::FALLOC_FL_KEEP_SIZE,
                    libc::FALLOC_FL_KEEP_SIZE | libc::FALLOC_FL_PUNCH_HOLE,
                    libc::FALLOC_FL_ZERO_RANGE,
                    libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE,
                    libc::FALLOC_FL_COLLAPSE_RANGE,
                    libc::FALLOC_FL_INSERT_RANGE,
                ]);
                let page = |bytes: u32| bytes / 4096 * 4096;
                fallocate(handle, mode, page(offset), page(bytes) + 4096)
            }
            14 => call(system_calls::SYS_rename, &path),
            15 => call(system_calls::SYS_link, &path),
            16 => link_nameless(handle, name),
            17 => call(system_calls::SYS_unlink, &path[..1]),
            18 => call(system_calls::SYS_mkdir, &[path[0], number(0o700)]),
            19 => {
                let here = number(libc::AT_FDCWD);
                let flags = number(choice(&[0, 1, 2]));
                let arguments = [here, path[0], here, path[1], flags];
                call(system_calls::SYS_renameat2, &arguments)
            }
            20 => {
                let from = CallArgument::Handle(flags % opened);
                of(system_calls::SYS_sendfile, &[from, number(0), number(bytes)])
            }
            21 => {
                let offset = CallArgument::Offset(offset.into());
                let to = CallArgument::Handle(flags % opened);
                let arguments = [number(0), to, offset, number(bytes), number(0)];
                of(system_calls::SYS_copy_file_range, &arguments)
            }
            22 if mapped < MAPPINGS => {
                mapped += 1;
                let access = number(libc::PROT_READ | libc::PROT_WRITE);
                let at = CallArgument::Number((offset / 4096 * 4096).into());
                let length = CallArgument::Number(MAPPED_BYTES as i64);
                let shared = number(libc::MAP_SHARED);
                let arguments =
                    [number(0), length, access, shared, CallArgument::Handle(handle), at];
                let effect = CallEffect::Maps(mapped - 1, MAPPED_BYTES);
                CallPlan { effect, ..call(system_calls::SYS_mmap, &arguments) }
            }
            _ if mapped > 0 => {
                let mapping = flags % mapped;
                let arguments =
                    [CallArgument::Mapped(mapping, 0), number(bytes), number(libc::MS_SYNC)];
                let effect = CallEffect::Dirties(mapping, 0, bytes.into());
                CallPlan { effect, ..call(system_calls::SYS_msync, &arguments) }
            }
            _ => of(system_calls::SYS_fsync, &[]),
        };
        all.push(made);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn files_without_a_power_cut_keep_every_promise(drawn in drawn_calls()) {
        let asked = calls_of(&drawn);
        let mut made = CallSequence::new(&asked);
        for number in 0..asked.len() {
            made.go_on();
            prop_assert!(made.is_kept(), "{:?}", &asked[..=number]);
        }
    }
}
