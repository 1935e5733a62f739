//! Unseen completions: what other witnesses say, and what is then reported as missing.

use super::*;

const DISK: u32 = 7 << 20;
const MAPPED: u32 = 253 << 20;
const WRITE: u32 = crate::tracer::records::kernel::OPERATION_WRITE;

fn joiner() -> Joiner {
    let disk = TracedDisk { name: "loop0".to_owned(), takes_bios: false };
    let mapped = TracedDisk { name: "dm-0".to_owned(), takes_bios: true };
    Joiner::new(BTreeMap::from([(DISK, disk), (MAPPED, mapped)]), 0)
}

/// A bio of a page.
fn queue(joiner: &mut Joiner, device: u32, sector: u64) {
    let place = Bio { device, sector, length_bytes: 4096, ..Bio::default() };
    let bio = Bio { flags: WRITE, address: 0x100_0000 + sector, ..place };
    let run = Run { length_bytes: 4096, ..Run::default() };
    let class = crate::tracer::classify::classify(
        &bio,
        &Run { mode: 0o100_644, magic: 1, inode: 12, ..run.clone() },
        &crate::bpf::Symbols::default(),
        &crate::tracer::classify::layout::Layout::default(),
    );
    joiner.queue(bio, vec![(run, class)], Cause::default());
}

/// The request of that page; `origin` is when it was allocated.
fn request(address: u64, sector: u64, origin: u64, time_ns: u64) -> RequestRecord {
    let place =
        RequestRecord { request: address, sector, length_bytes: 4096, ..RequestRecord::default() };
    RequestRecord { device: DISK, flags: WRITE, origin, time_ns, bio_count: 1, ..place }
}

fn times(drafts: &[Draft]) -> Vec<Option<i64>> {
    drafts.iter().map(|draft| draft.row.complete_ns).collect()
}

#[test]
fn an_address_that_is_used_again_says_that_the_request_before_is_complete() {
    let mut joiner = joiner();
    // The same page twice: only when it was allocated tells the second request from the first.
    for (origin, time_ns) in [(500, 1000), (1500, 2000)] {
        queue(&mut joiner, DISK, 8);
        joiner.issue(&request(1, 8, origin, time_ns));
    }
    joiner.complete(&request(1, 8, 0, 3000));
    assert_eq!(times(&joiner.take_drafts(0)), [None, Some(3000)]);
    let gaps = Gaps { untimed_requests: 1, ..Gaps::default() };
    assert_eq!((joiner.gaps(), joiner.is_idle()), (gaps, true));
    assert_eq!(gaps.reasons(0), Vec::<String>::new());
    assert!(gaps.untimed_words().is_some_and(|text| text.starts_with("1 request completed")));
}

#[test]
fn a_request_that_is_put_back_is_the_same_one() {
    let mut joiner = joiner();
    queue(&mut joiner, DISK, 8);
    joiner.issue(&request(1, 8, 500, 1000));
    joiner.issue(&request(1, 8, 500, 2000));
    joiner.complete(&request(1, 8, 0, 3000));
    let drafts = joiner.take_drafts(0);
    assert_eq!((times(&drafts), drafts[0].row.issue_ns), (vec![Some(3000)], 2000));
    assert_eq!(joiner.gaps(), Gaps::default());
}

#[test]
fn a_request_that_the_kernel_says_is_free_is_complete_and_holds_up_no_row() {
    let mut joiner = joiner();
    for (address, sector, time_ns) in [(1, 8, 1000), (2, 16, 2000), (3, 24, 9000)] {
        queue(&mut joiner, DISK, sector);
        joiner.issue(&request(address, sector, 0, time_ns));
    }
    let overdue = joiner.overdue(9000);
    assert_eq!(overdue.iter().map(|it| it.address).collect::<Vec<_>>(), [1, 2]);
    // The second's completion comes while the kernel is asked.
    joiner.complete(&request(2, 16, 0, 9500));
    overdue.into_iter().for_each(|it| joiner.end_unseen(it));
    assert_eq!(times(&joiner.take_drafts(0)), [None, Some(9500)]);
    assert_eq!(joiner.gaps(), Gaps { untimed_requests: 1, ..Gaps::default() });
    assert!(!joiner.is_idle());
}

/// A joiner whose disk has two requests, and a bio that no request took.
fn busy_joiner() -> Joiner {
    let mut joiner = joiner();
    for sector in [8, 16, 24] {
        queue(&mut joiner, DISK, sector);
    }
    for (address, sector) in [(1, 8), (2, 16)] {
        joiner.issue(&request(address, sector, 0, 1000));
    }
    joiner
}

#[test]
fn requests_that_the_disk_says_it_has_at_the_end_are_not_lost() {
    let mut joiner = busy_joiner();
    joiner.leave_under_way(DISK, 2);
    joiner.leave_waiting(&BTreeSet::from([DISK]));
    assert_eq!(times(&joiner.take_drafts(u64::MAX >> 1)), [None, None]);
    let gaps = Gaps { under_way_requests: 2, waiting_bios: 1, ..Gaps::default() };
    assert_eq!((joiner.gaps(), joiner.is_idle()), (gaps, true));
    assert_eq!(gaps.reasons(0), Vec::<String>::new());
    let words = [
        "2 requests were under way at the end: their times are not known",
        "1 bio was in no request at the end: it has no rows",
    ];
    assert_eq!(gaps.unended_words(), words);
}

#[test]
fn more_requests_than_the_disk_has_at_the_end_are_lost_and_so_are_bios_it_does_not_vouch_for() {
    let mut joiner = busy_joiner();
    joiner.leave_under_way(DISK, 1);
    joiner.leave_waiting(&BTreeSet::from([MAPPED]));
    joiner.take_drafts(u64::MAX >> 1);
    let gaps = Gaps { incomplete_requests: 2, unissued_bios: 1, ..Gaps::default() };
    assert_eq!(joiner.gaps(), gaps);
    let words = ["1 bios were queued and never issued", "2 requests were never seen to complete"];
    assert_eq!(gaps.reasons(0), words);
}

#[test]
fn a_flush_of_a_bio_at_an_address_that_was_seen_is_left_out_once_the_trace_is_at_rest() {
    let mut joiner = joiner();
    let bio = Bio { device: DISK, flags: WRITE | FLAG_PREFLUSH, address: 7, ..Bio::default() };
    let flush = |time_ns| RequestRecord {
        flags: OPERATION_FLUSH,
        length_bytes: 0,
        ..request(5, 0, 7, time_ns)
    };
    joiner.queue(bio, Vec::new(), Cause::default());
    joiner.issue(&flush(1000));
    joiner.complete(&flush(1100));
    joiner.end(2000);
    joiner.forget_flush_askers();
    joiner.issue(&flush(3000));
    assert_eq!(times(&joiner.take_drafts(0)), [Some(1100)]);
    assert_eq!(joiner.gaps(), Gaps { edge_requests: 1, ..Gaps::default() });
}

#[test]
fn the_address_of_a_request_that_began_after_the_end_is_used_again_too() {
    let mut joiner = busy_joiner();
    joiner.end(2000);
    joiner.issue(&request(1, 80, 1500, 3000));
    let gaps = Gaps { untimed_requests: 1, edge_requests: 1, ..Gaps::default() };
    assert_eq!(joiner.gaps(), gaps);
}

#[test]
fn a_disk_at_rest_is_done_with_its_requests_alone() {
    let mut joiner = joiner();
    queue(&mut joiner, MAPPED, 8);
    queue(&mut joiner, DISK, 8);
    joiner.issue(&request(1, 8, 0, 1000));
    assert_eq!(joiner.overdue(u64::MAX >> 1).len(), 1, "a bio is asked about by its disk");
    assert_eq!(joiner.busy_disks(), BTreeSet::from([DISK, MAPPED]));
    joiner.end_all_unseen(MAPPED);
    assert_eq!(joiner.busy_disks(), BTreeSet::from([DISK]));
    // Of this one nobody says anything.
    assert_eq!(times(&joiner.take_drafts(u64::MAX >> 1)), [None, None]);
    let gaps = Gaps { untimed_requests: 1, incomplete_requests: 1, ..Gaps::default() };
    assert_eq!(joiner.gaps(), gaps);
    assert_eq!(gaps.reasons(0), ["1 requests were never seen to complete"]);
}
