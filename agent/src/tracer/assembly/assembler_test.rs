//! From hand-made records to rows: joining, flushes, askers, gaps.

use super::*;
use crate::tables::rows::Request;
use crate::tracer::records::{RequestRecord, Sync};

const DISK: u32 = 7 << 20;
const MAPPED: u32 = 253 << 20;
const FILESYSTEM: u32 = DISK;
const WRITE: u32 = 1;
const FUA: u32 = 1 << 17;
const PREFLUSH: u32 = 1 << 18;
/// Addresses of bios begin here.
const BIOS: u64 = 0x10_0000;

fn assembler(settled_ns: u64) -> Assembler {
    let flash = TracedDisk { name: "flash0".to_owned(), takes_bios: false };
    let mapped = TracedDisk { name: "dm-0".to_owned(), takes_bios: true };
    let disks = BTreeMap::from([(DISK, flash), (MAPPED, mapped)]);
    Assembler::new(&disks, Surroundings::nothing(), Rc::default(), settled_ns)
}

fn capture(records: Vec<Record>) -> Capture {
    let mut assembler = assembler(0);
    records.into_iter().for_each(|record| assembler.feed(record, &Symbols::default()));
    assembler.finish(0)
}

fn bio(serial: u64, sector: u64, length_bytes: u32, flags: u32, tid: u32) -> Record {
    let comm = format!("task-{tid}");
    let time_ns = 1000 + serial;
    let device = DISK;
    let address = BIOS + serial;
    let place = Bio { serial, address, sector, length_bytes, flags, ..Bio::default() };
    Record::Bio(Bio { device, time_ns, tid, pid: tid, comm, ..place }, None)
}

/// A stretch of file `inode`'s data.
fn run(serial: u64, offset_bytes: u32, length_bytes: u32, inode: u64) -> Record {
    let (magic, mode, flags) = (0xef53, 0o100644, crate::tracer::records::RUN_OFFSET);
    let owner = Run { inode, magic, mode, flags, filesystem: FILESYSTEM, ..Run::default() };
    let file_offset_bytes = u64::from(offset_bytes);
    Record::Run(Run { serial, offset_bytes, length_bytes, file_offset_bytes, ..owner })
}

fn request(
    address: u64,
    sector: u64,
    length_bytes: u32,
    flags: u32,
    time_ns: u64,
) -> RequestRecord {
    let place =
        RequestRecord { request: address, sector, length_bytes, flags, ..RequestRecord::default() };
    RequestRecord { device: DISK, time_ns, bio_count: 1, ..place }
}

fn issue(address: u64, sector: u64, length_bytes: u32, flags: u32, time_ns: u64) -> Record {
    Record::Issue(request(address, sector, length_bytes, flags, time_ns))
}

fn complete(address: u64, length_bytes: u32, time_ns: u64) -> Record {
    Record::Complete(request(address, 0, length_bytes, 0, time_ns))
}

/// A flush for the bio of this serial.
fn flush(address: u64, serial: u64, time_ns: u64) -> Record {
    let flush = request(address, u64::MAX, 0, 2 | PREFLUSH, time_ns);
    Record::Issue(RequestRecord { origin: BIOS + serial, ..flush })
}

fn fsync(tid: u32, inode: u64) -> Record {
    let task = Sync { tid, pid: tid, comm: format!("task-{tid}"), call: 74, ..Sync::default() };
    Record::SyncBegin(Sync { inode, filesystem: FILESYSTEM, disk: DISK, time_ns: 1, ..task })
}

#[test]
fn a_write_is_followed_from_call_to_completion() {
    let capture = capture(vec![
        fsync(5, 12),
        run(0, 0, 8192, 12),
        bio(0, 800, 8192, WRITE, 9),
        issue(1, 800, 8192, WRITE, 2000),
        complete(1, 4096, 2500),
        complete(1, 4096, 3000),
    ]);
    let [row] = capture.requests.as_slice() else { panic!("one request") };
    assert_eq!((row.queue_ns, row.issue_ns, row.complete_ns), (1000, 2000, Some(3000)));
    assert_eq!((row.operation.as_ref(), row.sector, row.length_bytes), ("write", Some(800), 8192));
    assert_eq!((row.block_type.as_ref(), row.file_id), ("data", Some(0)));
    assert_eq!((row.submitter_tid, row.submitter_comm.as_str()), (9, "task-9"));
    assert_eq!((row.asker_tid, row.asker_call.as_deref()), (Some(5), Some("fsync")));
    assert_eq!((row.asker_begin_ns, row.asker_file_id), (Some(1), Some(0)));
    let [run] = capture.page_runs.as_slice() else { panic!("one run") };
    assert_eq!((run.sector, run.length_bytes, run.file_offset_bytes), (800, 8192, Some(0)));
    assert_eq!((capture.lost_events, capture.gaps), (0, Gaps::default()));
}

#[test]
fn a_bios_last_run_comes_with_it() {
    let Record::Bio(bio, None) = bio(0, 800, 8192, WRITE, 9) else { panic!("a bio") };
    let Record::Run(last) = run(0, 4096, 4096, 13) else { panic!("a run") };
    let capture = capture(vec![
        run(0, 0, 4096, 12),
        Record::Bio(bio, Some(last)),
        issue(1, 800, 8192, WRITE, 2000),
        complete(1, 8192, 3000),
    ]);
    let runs: Vec<_> = capture.page_runs.iter().map(|run| (run.sector, run.file_id)).collect();
    assert_eq!(runs, [(800, Some(0)), (808, Some(1))]);
    assert_eq!((capture.lost_events, capture.gaps), (0, Gaps::default()));
}

/// A disk that takes several ranges at once gets bios from anywhere in one request.
#[test]
fn a_discard_of_several_ranges_has_a_run_for_each() {
    const DISCARD: u32 = 3;
    let range = |address, sector, length_bytes| {
        let range = request(address, sector, length_bytes, 0, 1900);
        Record::Range(RequestRecord { origin: 7, ..range })
    };
    let issue = |address, sector, length_bytes| {
        let request = request(address, sector, length_bytes, DISCARD, 2000);
        Record::Issue(RequestRecord { origin: 7, bio_count: 2, ..request })
    };
    let capture = capture(vec![
        run(0, 0, 4096, 0),
        bio(0, 800, 4096, DISCARD, 9),
        run(1, 0, 8192, 0),
        bio(1, 1600, 8192, DISCARD, 9),
        // Beside the first one: what the request would reach if it were one range.
        run(2, 0, 8192, 0),
        bio(2, 808, 8192, DISCARD, 9),
        // Of a request whose issue was not seen.
        Record::Range(RequestRecord { origin: 5, ..request(1, 4000, 512, 0, 1800) }),
        range(1, 800, 4096),
        range(1, 1600, 8192),
        issue(1, 800, 4096 + 8192),
        complete(1, 4096 + 8192, 3000),
        Record::Issue(request(2, 808, 8192, DISCARD, 2100)),
        complete(2, 8192, 3100),
    ]);
    let runs = capture.page_runs.iter();
    let runs: Vec<_> = runs.map(|run| (run.request_id, run.sector, run.length_bytes)).collect();
    assert_eq!(runs, [(0, 800, 4096), (0, 1600, 8192), (1, 808, 8192)]);
    let rows: Vec<_> = capture.requests.iter().map(|row| (row.sector, row.length_bytes)).collect();
    assert_eq!(rows, [(Some(800), 12288), (Some(808), 8192)]);
    assert!(!capture.requests[0].one_run);
    assert_eq!((capture.lost_events, capture.gaps), (0, Gaps::default()));
}

#[test]
fn two_owners_in_one_bio_make_two_runs_and_a_mixed_request() {
    let capture = capture(vec![
        run(0, 0, 4096, 12),
        run(0, 4096, 4096, 13),
        bio(0, 800, 8192, WRITE, 9),
        issue(1, 800, 8192, WRITE, 2000),
    ]);
    assert_eq!(capture.page_runs.len(), 2);
    assert_eq!(capture.page_runs[1].sector, 808);
    let row = &capture.requests[0];
    assert_eq!((row.file_id, row.block_type.as_ref(), row.one_run), (None, "data", false));
    assert_eq!(capture.files.len(), 2);
    assert_eq!(capture.gaps.incomplete_requests, 1);
}

#[test]
fn a_split_bio_keeps_its_offsets() {
    let capture = capture(vec![
        run(0, 0, 8192, 12),
        bio(0, 800, 8192, WRITE, 9),
        issue(1, 800, 4096, WRITE, 2000),
        issue(2, 808, 4096, WRITE, 2100),
    ]);
    let offsets = capture.page_runs.iter().map(|run| run.file_offset_bytes);
    assert!(offsets.eq([Some(0), Some(4096)]));
    let marks = capture.requests.iter().map(|row| (row.one_run, row.sequential));
    assert!(marks.eq([(true, false), (true, true)]));
}

#[test]
fn a_flush_belongs_to_the_bio_that_asked_for_it() {
    let capture = capture(vec![
        bio(0, 0, 0, WRITE | PREFLUSH, 9),
        flush(1, 0, 2000),
        complete(1, 0, 2500),
        bio(1, 0, 0, WRITE | PREFLUSH, 10),
        flush(1, 1, 3000),
        complete(1, 0, 3500),
    ]);
    let rows: Vec<_> = capture.requests.iter().collect();
    assert_eq!((rows[0].block_type.as_ref(), rows[0].length_bytes), ("flush", 0));
    assert_eq!((rows[0].sector, rows[0].queue_ns, rows[0].complete_ns), (None, 2000, Some(2500)));
    assert_eq!((rows[0].submitter_tid, rows[1].submitter_tid), (9, 10));
    assert_eq!(capture.gaps.unattributed_flushes, 0);
}

/// A device without FUA gets flush, write, flush for one commit block (block/blk-flush.c).
#[test]
fn a_commit_block_is_flushed_before_and_after() {
    let capture = capture(vec![
        run(0, 0, 4096, 12),
        bio(0, 800, 4096, WRITE | PREFLUSH | FUA, 9),
        flush(1, 0, 2000),
        complete(1, 0, 2500),
        issue(2, 800, 4096, WRITE, 2600),
        complete(2, 4096, 2700),
        flush(1, 0, 2800),
    ]);
    let submitters: Vec<_> = capture.requests.iter().map(|row| row.submitter_tid).collect();
    assert_eq!(submitters, [9, 9, 9]);
    assert!(capture.requests[1].preflush && !capture.requests[1].fua);
    assert_eq!(capture.gaps.unattributed_flushes, 0);
}

/// A commit block waits for its flush, and a bio without data for the next one. That the commit
/// block completes twice, at last without having been issued again, takes nobody's place.
#[test]
fn a_write_that_ends_twice_leaves_another_its_flush() {
    let capture = capture(vec![
        run(0, 0, 4096, 12),
        bio(0, 800, 4096, WRITE | PREFLUSH | FUA, 9),
        bio(1, 0, 0, WRITE | PREFLUSH, 10),
        flush(1, 0, 2000),
        complete(1, 0, 2500),
        issue(2, 800, 4096, WRITE | FUA, 2600),
        complete(2, 4096, 2700),
        complete(2, 0, 2700),
        flush(1, 1, 2800),
        complete(1, 0, 2900),
    ]);
    let submitters: Vec<_> = capture.requests.iter().map(|row| row.submitter_tid).collect();
    assert_eq!((submitters, capture.gaps), (vec![9, 9, 10], Gaps::default()));
}

#[test]
fn a_flush_nobody_asked_for_is_counted() {
    let asked = bio(0, 0, 0, WRITE | PREFLUSH, 9);
    assert_eq!(capture(vec![asked, flush(1, 7, 2000)]).gaps.unattributed_flushes, 1);
}

#[test]
fn lost_bios_and_runs_are_unknown_and_counted() {
    // A lost bio; a bio with a lost run; a run with a lost bio.
    let capture = capture(vec![
        issue(1, 800, 4096, WRITE, 2000),
        run(1, 0, 4096, 12),
        bio(1, 1600, 8192, WRITE, 9),
        issue(2, 1600, 8192, WRITE, 2100),
        run(3, 0, 4096, 12),
        bio(4, 2400, 4096, WRITE, 9),
    ]);
    assert_eq!(capture.gaps.unattributed_bytes, 8192);
    assert_eq!(capture.gaps.unissued_bios, 1);
    assert_eq!(capture.lost_events, 1);
    for request in &capture.requests {
        let runs = capture.page_runs.iter().filter(|run| run.request_id == request.request_id);
        assert_eq!(runs.map(|run| run.length_bytes).sum::<i64>(), request.length_bytes);
    }
}

#[test]
fn a_request_put_back_by_a_busy_driver_counts_once() {
    let capture = capture(vec![
        run(0, 0, 4096, 12),
        bio(0, 800, 4096, WRITE, 9),
        issue(1, 800, 4096, WRITE, 2000),
        issue(1, 800, 4096, WRITE, 2200),
        complete(1, 4096, 2500),
    ]);
    assert_eq!(capture.requests.len(), 1);
    assert_eq!((capture.requests[0].issue_ns, capture.requests[0].complete_ns), (2200, Some(2500)));
}

#[test]
fn a_flush_put_back_by_a_busy_driver_counts_once() {
    let capture = capture(vec![
        bio(0, 0, 0, WRITE | PREFLUSH, 9),
        flush(1, 0, 2000),
        flush(1, 0, 2200),
        complete(1, 0, 2500),
    ]);
    assert_eq!((capture.requests.len(), capture.gaps), (1, Gaps::default()));
    assert_eq!((capture.requests[0].issue_ns, capture.requests[0].complete_ns), (2200, Some(2500)));
}

#[test]
fn rows_are_taken_when_they_are_complete_and_in_order() {
    let mut assembler = assembler(0);
    let feed = |assembler: &mut Assembler, records: Vec<Record>| {
        records.into_iter().for_each(|record| assembler.feed(record, &Symbols::default()));
    };
    feed(
        &mut assembler,
        vec![
            run(0, 0, 4096, 12),
            bio(0, 800, 4096, WRITE, 9),
            run(1, 0, 4096, 12),
            bio(1, 808, 4096, WRITE, 9),
            issue(1, 800, 4096, WRITE, 2000),
            issue(2, 808, 4096, WRITE, 2100),
            complete(2, 4096, 2500),
        ],
    );
    assert_eq!(assembler.take_finished(0).requests, []);
    feed(&mut assembler, vec![complete(1, 4096, 2600)]);
    let ids = |rows: &[Request]| rows.iter().map(|row| row.request_id).collect::<Vec<_>>();
    assert_eq!(ids(&assembler.take_finished(0).requests), [0, 1]);
    assert!(assembler.is_idle());
    feed(
        &mut assembler,
        vec![run(2, 0, 4096, 12), bio(2, 900, 4096, WRITE, 9), issue(3, 900, 4096, WRITE, 3000)],
    );
    // It never completes: after the deadline it is a row, and missed.
    let late = assembler.take_finished(3001);
    assert_eq!((ids(&late.requests), late.page_runs.len()), (vec![2], 1));
    assert_eq!(assembler.gaps().incomplete_requests, 1);
    feed(&mut assembler, vec![complete(3, 4096, 9000)]);
    assert_eq!(assembler.finish(0).gaps.incomplete_requests, 1);
}

#[test]
fn bios_from_before_or_after_the_trace_are_no_part_of_it() {
    let mut assembler = assembler(1500);
    let mut feed = |record| assembler.feed(record, &Symbols::default());
    feed(issue(1, 800, 4096, WRITE, 1200));
    feed(complete(1, 4096, 1300));
    feed(flush(2, 7, 1400));
    feed(run(0, 0, 4096, 12));
    feed(bio(0, 800, 4096, WRITE, 9));
    assembler.end(2000);
    let mut feed = |record| assembler.feed(record, &Symbols::default());
    feed(issue(1, 800, 4096, WRITE, 2200));
    feed(issue(3, 1800, 4096, WRITE, 2300));
    feed(flush(2, 7, 2400));
    feed(complete(1, 4096, 2500));
    let capture = assembler.finish(0);
    assert_eq!(capture.requests.len(), 1);
    assert_eq!(capture.gaps, Gaps { edge_requests: 4, ..Gaps::default() });
}

#[test]
fn a_request_of_before_the_end_that_is_read_later_is_a_part_of_the_tracing() {
    let mut assembler = assembler(0);
    assembler.end(2000);
    let mut feed = |record| assembler.feed(record, &Symbols::default());
    [(1, 1999), (2, 2000)].into_iter().for_each(|(it, ns)| feed(issue(it, 800, 4096, WRITE, ns)));
    let gaps = assembler.finish(0).gaps;
    assert_eq!((gaps.unattributed_bytes, gaps.edge_requests), (4096, 1));
}

/// A bio of a disk whose driver takes bios, and its end.
fn bio_of_mapped_disk(serial: u64, sector: u64, length_bytes: u32, flags: u32) -> Record {
    let Record::Bio(known, _) = bio(serial, sector, length_bytes, flags, 9) else { unreachable!() };
    Record::Bio(Bio { device: MAPPED, address: 0x1000 + serial, ..known }, None)
}

fn end(device: u32, address: u64, error: u32, time_ns: u64) -> Record {
    let request = RequestRecord { request: address, time_ns, error, ..RequestRecord::default() };
    Record::BioEnd(RequestRecord { device, ..request })
}

#[test]
fn each_bio_of_a_driver_that_takes_bios_is_a_request() {
    let capture = capture(vec![
        fsync(5, 12),
        run(0, 0, 4096, 12),
        run(0, 4096, 4096, 13),
        bio_of_mapped_disk(0, 800, 8192, WRITE | PREFLUSH | FUA),
        bio_of_mapped_disk(1, 0, 0, WRITE | PREFLUSH),
        // Of a bio that the driver made of the first.
        end(MAPPED, 0x9000, 0, 1500),
        end(MAPPED, 0x1001, 0, 2000),
        end(MAPPED, 0x1000, 0, 3000),
    ]);
    let [write, flush] = capture.requests.as_slice() else { panic!("{:?}", capture.requests) };
    assert_eq!((write.device.as_str(), write.operation.as_ref()), ("dm-0", "write"));
    assert_eq!((write.sector, write.length_bytes, write.bio_count), (Some(800), 8192, 1));
    assert_eq!((write.queue_ns, write.issue_ns, write.complete_ns), (1000, 1000, Some(3000)));
    assert!(write.preflush && write.fua);
    assert_eq!((flush.operation.as_ref(), flush.block_type.as_ref()), ("flush", "flush"));
    assert_eq!((flush.sector, flush.length_bytes, flush.complete_ns), (None, 0, Some(2000)));
    let runs: Vec<_> =
        capture.page_runs.iter().map(|run| (run.sector, run.length_bytes, run.file_id)).collect();
    assert_eq!(runs, [(800, 4096, Some(0)), (808, 4096, Some(1))]);
    assert_eq!((capture.lost_events, capture.gaps), (0, Gaps::default()));
}

#[test]
fn a_bio_that_its_driver_refused_or_never_ended_is_counted() {
    let capture = capture(vec![
        run(0, 0, 4096, 12),
        bio_of_mapped_disk(0, 800, 4096, WRITE),
        run(1, 0, 4096, 12),
        bio_of_mapped_disk(1, 808, 4096, WRITE),
        end(MAPPED, 0x1000, 10, 2000),
    ]);
    let gaps = Gaps { failed_requests: 1, incomplete_requests: 1, ..Gaps::default() };
    assert_eq!((capture.requests.len(), capture.gaps), (2, gaps));
}

#[test]
fn a_bio_that_fails_before_it_is_a_request_is_not_waited_for() {
    let at = |serial, address| {
        let Record::Bio(known, _) = bio(serial, 800, 4096, WRITE, 9) else { unreachable!() };
        Record::Bio(Bio { address, ..known }, None)
    };
    // 12: it shall not wait, and is sent again; 10: an error.
    let capture = capture(vec![
        run(0, 0, 4096, 12),
        at(0, 0x1000),
        end(DISK, 0x1000, 12, 1500),
        run(1, 0, 4096, 13),
        at(1, 0x2000),
        issue(1, 800, 4096, WRITE, 2000),
        complete(1, 4096, 2500),
        run(2, 0, 4096, 12),
        at(2, 0x3000),
        end(DISK, 0x3000, 10, 3000),
    ]);
    assert_eq!(capture.requests.len(), 1);
    assert_eq!(capture.files[capture.requests[0].file_id.unwrap() as usize].inode, 13);
    assert_eq!(capture.gaps, Gaps { failed_requests: 1, ..Gaps::default() });
}

#[test]
fn bios_of_a_request_are_counted_beyond_where_the_kernel_stops() {
    for (bios, counted, told) in [(1500, 1024, 1500), (1024, 1024, 1024), (2, 3, 3)] {
        let mut records: Vec<Record> = Vec::new();
        for serial in 0..bios {
            records.extend([run(serial, 0, 4096, 12), bio(serial, 8 * serial, 4096, WRITE, 9)]);
        }
        let whole = request(1, 0, 4096 * bios as u32, WRITE, 5000);
        records.push(Record::Issue(RequestRecord { bio_count: counted, ..whole }));
        assert_eq!(capture(records).requests[0].bio_count, told);
    }
}

#[test]
fn each_device_has_its_own_last_end_and_a_flush_is_none() {
    let rows = [
        ("a", "write", Some(8), 4096, false),
        ("a", "flush", None, 0, false),
        ("b", "read", Some(16), 4096, false),
        ("a", "read", Some(16), 512, true),
        ("a", "discard", Some(17), 4096, false),
        ("a", "write", Some(17), 4096, true),
        ("b", "write", Some(25), 4096, false),
        ("a", "write", None, 4096, false),
        ("a", "write", None, 4096, false),
    ];
    let mut sequence = Sequence::default();
    for (device, operation, sector, length_bytes, sequential) in rows {
        let (device, operation) = (device.to_owned(), operation.into());
        let mut row = Request { device, operation, sector, length_bytes, ..Request::default() };
        sequence.mark(&mut row);
        assert_eq!(row.sequential, sequential, "{row:?}");
    }
}
