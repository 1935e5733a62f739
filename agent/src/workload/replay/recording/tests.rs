//! Tests of plans of recordings: descriptors of several processes, order, confinement, and that
//! whatever the rows, nothing is lost and no step waits for ever.

use proptest::prelude::*;

use super::*;
use crate::process::page_bytes;
use crate::workload::replay::plan::{Action, CallArgument, CallEffect, PlanText};

fn thread(thread_id: i64, created_by: Option<i64>, shares_descriptors: bool) -> RecordedThread {
    RecordedThread {
        thread_id,
        pid: if shares_descriptors { 0 } else { thread_id },
        creator_id: created_by.map(|_| 0),
        created_by_call_id: created_by,
        shares_descriptors,
        ..RecordedThread::default()
    }
}

/// A call that takes half of the time until the next.
fn call(call_id: i64, thread_id: i64, name: &'static str, result: i64) -> RecordedCall {
    RecordedCall {
        call_id,
        thread_id,
        name: name.into(),
        begin_ns: call_id * 10,
        end_ns: Some(call_id * 10 + 5),
        result: Some(result),
        ..RecordedCall::default()
    }
}

fn open(call_id: i64, thread_id: i64, path_id: i64, descriptor: i64) -> RecordedCall {
    let (device, inode) = (Some(1), Some(path_id + 100));
    let opened = call(call_id, thread_id, "openat", descriptor);
    let path = Some("f".into());
    RecordedCall { path_id: Some(path_id), path, device, inode, ..opened }
}

fn about(descriptor: i64, call: RecordedCall) -> RecordedCall {
    RecordedCall { descriptor: Some(descriptor), length_bytes: Some(10), ..call }
}

fn path(path_id: i64, path: &str, kind: &'static str) -> PathState {
    PathState { path_id, path: path.into(), kind: kind.into(), ..PathState::default() }
}

fn show(plan: &ReplayPlan) -> Vec<Vec<String>> {
    let lane = |lane: &super::super::plan::Lane| {
        let steps = lane.steps.iter().map(|step| {
            let handles: Vec<u32> = match &step.action {
                Action::Call { arguments, effect, .. } => {
                    let handles = arguments.iter().filter_map(|argument| match argument {
                        CallArgument::Handle(handle) => Some(*handle),
                        _ => None,
                    });
                    let opened = match effect {
                        CallEffect::Opens(handle) => Some(*handle),
                        _ => None,
                    };
                    handles.chain(opened).collect()
                }
                Action::Inherit(pairs) => pairs.iter().flat_map(|(a, b)| [*a, *b]).collect(),
                Action::Release(handles, _) => handles.to_vec(),
            };
            let waits: Vec<String> = lane
                .waits_of(step)
                .iter()
                .map(|wait| format!(" after {} of {}", wait.steps, wait.lane))
                .collect();
            format!("{} {handles:?}{}", step.name, waits.concat())
        });
        steps.collect()
    };
    plan.lanes.iter().map(lane).collect()
}

#[test]
fn a_child_has_copies_and_an_execve_closes_them() {
    let mut opened = open(0, 0, 0, 3);
    opened.flags = Some(i64::from(libc::O_CLOEXEC));
    let calls = [
        opened,
        call(1, 0, "fork", 77),
        about(3, call(2, 0, "close", 0)),
        about(3, call(3, 1, "write", 10)),
        call(4, 1, "execve", 0),
        about(3, call(5, 1, "write", -9)),
        about(9, call(6, 0, "write", 10)),
    ];
    let threads = [thread(0, None, false), thread(1, Some(1), false)];
    let plan = plan_of(&calls, &threads, &[path(0, "/a", "absent")]);
    assert_eq!(
        show(&plan),
        [
            vec!["openat [0]", "inherit [0, 1]", "close [0]"],
            // The close is of another descriptor of the same file.
            vec!["write [1] after 3 of 0", "release [1]"],
        ]
    );
    assert_eq!(plan.most_open, 2);
    assert_eq!(plan.left_out.values().sum::<u64>(), 2, "{:?}", plan.left_out);
    assert_eq!(plan.carried.values().sum::<u64>(), 2);
}

#[test]
fn an_execve_removes_mappings_after_the_calls_on_them() {
    let calls = [
        open(0, 0, 0, 3),
        open(1, 1, 1, 4),
        about(3, call(2, 0, "mmap", 0x7000)),
        call(3, 1, "execve", 0),
    ];
    let threads =
        [thread(0, None, true), RecordedThread { creator_id: Some(0), ..thread(1, None, true) }];
    let plan = plan_of(&calls, &threads, &[path(0, "/a", "absent"), path(1, "/b", "absent")]);
    assert_eq!(show(&plan)[1], ["openat [1] after 1 of 0", "release [] after 2 of 0"]);
}

#[test]
fn a_recording_is_of_x86_64_unless_it_says_so_and_others_are_refused() {
    assert_eq!(architecture_of(None).as_deref(), Ok("x86_64"));
    assert_eq!(architecture_of(Some("\"aarch64\"")).as_deref(), Ok("aarch64"));
    let refused = architecture_of(Some("\"riscv64\"")).unwrap_err();
    assert!(refused.contains("\"riscv64\"; recordings of x86_64 and aarch64"), "{refused}");
    assert!(architecture_of(Some("64")).is_err());
}

#[test]
fn a_mapping_from_within_a_page_is_left_out() {
    let mapped = |offset| RecordedCall { offset_bytes: Some(offset), ..call(1, 0, "mmap", 4096) };
    for (offset, left_out) in [(page_bytes(), 0), (page_bytes() / 2, 1)] {
        let calls = [open(0, 0, 0, 3), about(3, mapped(offset as i64))];
        let plan = plan_of(&calls, &[thread(0, None, true)], &[path(0, "/a", "absent")]);
        assert_eq!(plan.left_out.values().sum::<u64>(), left_out, "{:?}", plan.left_out);
    }
}

#[test]
fn calls_on_one_file_wait_and_others_do_not() {
    let calls = [
        open(0, 0, 0, 3),
        open(1, 1, 1, 4),
        about(3, call(2, 1, "pwrite64", 10)),
        about(3, call(3, 0, "fsync", 0)),
        about(4, call(4, 0, "fsync", 0)),
    ];
    let threads =
        [thread(0, None, true), RecordedThread { creator_id: Some(0), ..thread(1, None, true) }];
    let plan = plan_of(&calls, &threads, &[path(0, "/a", "absent"), path(1, "/b", "absent")]);
    assert_eq!(
        show(&plan),
        [
            vec!["openat [0]", "fsync [0] after 2 of 1", "fsync [1]"],
            vec!["openat [1] after 1 of 0", "pwrite64 [0]"],
        ]
    );
}

#[test]
fn links_that_would_lead_out_are_not_made_or_lead_inside() {
    let link = RecordedCall {
        path_id: Some(0),
        path: Some("x".into()),
        text: Some("../../../etc/passwd".into()),
        ..call(0, 0, "symlink", 0)
    };
    let device = RecordedCall {
        path_id: Some(0),
        path: Some("x".into()),
        mode: Some(i64::from(libc::S_IFCHR)),
        ..call(1, 0, "mknod", 0)
    };
    let far = RecordedCall { length_bytes: Some(i64::MAX), ..about(3, call(3, 0, "ftruncate", 0)) };
    let far = RecordedCall { descriptor: Some(3), length_bytes: Some(i64::MAX), ..far };
    let calls = [link, device, open(2, 0, 0, 3), far, call(4, 0, "mount", 0)];
    let plan = plan_of(&calls, &[thread(0, None, false)], &[path(0, "/../d/x", "absent")]);
    assert_eq!(show(&plan), [vec!["symlink []", "openat [0]"]]);
    assert_eq!(plan.texts, [PlanText::Inside(b"etc/passwd".to_vec())]);
    assert_eq!(plan.names[0], b"d/x");
    let left_out: Vec<&str> = plan.left_out.keys().map(|(name, _)| name.as_str()).collect();
    assert_eq!(left_out, ["ftruncate", "mknod", "mount"]);
}

/// The plan of all that is recorded.
pub fn plan_all(
    calls: &[RecordedCall],
    threads: &[RecordedThread],
    snapshot: &[PathState],
    descriptors: &[OpenDescriptor],
    most_bytes: usize,
) -> Result<ReplayPlan, String> {
    let names = names_of(snapshot, descriptors, b"/", most_bytes)?;
    plan_rows(calls, threads, snapshot, names, descriptors, most_bytes)
}

fn plan_of(
    calls: &[RecordedCall],
    threads: &[RecordedThread],
    snapshot: &[PathState],
) -> ReplayPlan {
    plan_all(calls, threads, snapshot, &[], MOST_BYTES).unwrap()
}

/// Nothing of so many calls is lost, no step waits for ever, and no name leads out.
pub fn check(plan: &ReplayPlan, calls: usize) {
    // Every call is a step, or is counted.
    let steps = plan.lanes.iter().flat_map(|lane| &lane.steps);
    let made = steps.filter(|step| step.name != "inherit" && step.name != "release").count();
    let counts = [plan.carried.values(), plan.elsewhere.values()].into_iter().flatten();
    let others: u64 = plan.left_out.values().chain(counts).sum();
    assert_eq!(made as u64 + others, calls as u64);
    // Threads that make whatever they may come to the end.
    let mut next = vec![0_u32; plan.lanes.len()];
    let mut goes_on = true;
    while std::mem::take(&mut goes_on) {
        for (number, lane) in plan.lanes.iter().enumerate() {
            while let Some(step) = lane.steps.get(next[number] as usize)
                && lane.waits_of(step).iter().all(|it| next[it.lane as usize] >= it.steps)
            {
                next[number] += 1;
                goes_on = true;
            }
        }
    }
    for (lane, next) in plan.lanes.iter().zip(next) {
        assert_eq!(lane.steps.len(), next as usize);
    }
    for name in &plan.names {
        assert!(name.split(|byte| *byte == b'/').all(|part| part != b".."));
    }
}

#[test]
fn a_recording_that_grows_faster_than_its_calls_is_refused() {
    let most = 100_000;
    let refused = |calls: &[RecordedCall], threads: &[RecordedThread], snapshot: &[PathState]| {
        plan_all(calls, threads, snapshot, &[], most).unwrap_err()
    };
    let of_one = [thread(0, None, false)];
    // Each directory above a path is a name.
    let deep = path(0, &"/a".repeat(500), "file");
    assert!(refused(&[], &of_one, &[deep]).contains("the directories above them, take more"));
    // Each process copies what all before it copied.
    let mut calls: Vec<RecordedCall> = (0..50).map(|id| open(id, 0, 0, id + 3)).collect();
    calls.extend((50..100).map(|id| call(id, 0, "fork", id)));
    let mut threads = of_one.to_vec();
    threads.extend((1..51).map(|id| thread(id, Some(49 + id), false)));
    let at = [path(0, "/a", "absent")];
    assert!(refused(&calls, &threads, &at).contains("copies of descriptors"));
    // One call makes all threads, and its copies end with the first that is too much.
    let names = names_of(&at, &[], b"/", most).unwrap();
    threads.iter_mut().skip(1).for_each(|thread| thread.created_by_call_id = Some(50));
    let mut builder = Builder::new(&calls, &threads, names, MOST_LANES, most).unwrap();
    assert!(!builder.build());
    assert!(builder.scene.tables.copied * 96 <= most + 50 * 96);
    // All at once.
    let lives = |id: i64| RecordedCall { end_ns: Some(i64::MAX), ..call(id, id, "sync", 0) };
    let calls: Vec<RecordedCall> = (0..1001).map(lives).collect();
    let threads: Vec<RecordedThread> = (0..1001).map(|id| thread(id, None, true)).collect();
    assert!(refused(&calls, &threads, &[]).contains("more than 1000 threads"));
}

/// Each end of a process takes as long as the process is large, not the recording.
#[test]
fn a_recording_of_as_many_processes_as_calls_is_planned() {
    let (first, count) = (1, 100_000);
    let calls: Vec<_> = (first..=count).map(|id| call(id, id, "exit_group", 0)).collect();
    let threads: Vec<_> = (first..=count).map(|id| thread(id, None, false)).collect();
    let plan = plan_of(&calls, &threads, &[]);
    check(&plan, calls.len());
    assert_eq!(plan.carried["exit_group"], count as u64);
}

fn any_call() -> impl Strategy<Value = RecordedCall> {
    let names = vec![
        "openat",
        "close",
        "dup2",
        "fork",
        "execve",
        "exit_group",
        "exit",
        "pwrite64",
        "read",
        "fsync",
        "rename",
        "unlink",
        "mmap",
        "munmap",
        "msync",
        "fcntl",
        "close_range",
        "pipe",
        "mkdir",
        "symlink",
        "lseek",
        "nonsense",
        "copy_file_range",
    ];
    let numbers = || prop_oneof![0..6_i64, any::<i64>()].prop_map(Some);
    (
        prop::sample::select(names),
        (0..4_i64, any::<i64>(), any::<i64>()),
        (numbers(), numbers(), numbers(), numbers()),
        (numbers(), 0..5_i64, 0..5_i64),
    )
        .prop_map(|(name, (thread_id, begin_ns, took), (one, two, three, four), rest)| {
            let (result, path_id, path2_id) = rest;
            RecordedCall {
                thread_id,
                name: name.into(),
                begin_ns,
                end_ns: Some(begin_ns.wrapping_add(took)),
                result,
                descriptor: one,
                descriptor2: two,
                offset_bytes: three,
                length_bytes: four,
                address: two,
                flags: three,
                path_id: Some(path_id),
                path: Some("x".into()),
                path2_id: Some(path2_id),
                path2: Some("y".into()),
                text: Some("../z".into()),
                command: Some("F_DUPFD".into()),
                device: Some(1),
                inode: Some(path_id),
                ..RecordedCall::default()
            }
        })
}

proptest! {
    #[test]
    fn whatever_the_rows_all_steps_can_be_made(
        mut calls in prop::collection::vec(any_call(), 0..60),
    ) {
        for (id, call) in (0..).zip(&mut calls) {
            call.call_id = id;
        }
        calls.sort_by_key(|call| (call.begin_ns, call.call_id));
        let threads: Vec<RecordedThread> = (0..4).map(|number| {
            thread(number, (number > 0).then_some(number * 3), number == 2)
        }).collect();
        let snapshot = [
            path(0, "/a", "directory"), path(1, "/a/../../b", "file"), path(2, "/a/c", "symlink"),
            path(3, "/proc/self/mem", "file"), path(4, "/b/d", "absent"),
        ];
        check(&plan_of(&calls, &threads, &snapshot), calls.len());
    }
}
