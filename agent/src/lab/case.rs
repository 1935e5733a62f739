//! Runs one case from an empty device to its tables: device, mkfs, mount, workload under watch,
//! checks, and the files of schema/ in the output directory.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

use super::agreement;
use super::observation::{Observation, SOURCES, TracedNand};
use super::stand::{PreparedWorkload, Stand};
use crate::device::disk::Disk;
use crate::errors::text;
use crate::filesystem::mount::MountedFilesystem;
use crate::lab::channel::clock;
use crate::lab::channel::clock::Clock;
use crate::lab::channel::handout::Marks;
use crate::lab::observation;
use crate::raw_nand::follower::NandWatch;
use crate::raw_nand::ubi;
use crate::record::Case;
use crate::tables::capture::{Manifest, Origin, Tables, TraceLoss, annotate};
use crate::tables::rows::{Counter, FlashOperation};
use crate::tables::timeline::{Timeline, now_ns};
use crate::tracer::{Capture, Tracer};
use crate::workload;
use crate::workload::FailedRun;
use crate::workload::kind::ClosedWorkload;
use crate::workload::power_cut::{CutMoment, CutOutcome};

/// Runs `case` on its disk, or on a device made by the module at `flash_module`; writes its tables,
/// whose times are by `clock`, to `output`.
///
/// # Errors
/// When any step fails; nothing in `output` counts then.
pub fn run<'a>(
    case: &'a Case,
    flash_module: &Path,
    clock: Clock,
    tracer: &mut Tracer,
    output: &Path,
) -> anyhow::Result<FinishedCase<'a>> {
    let stand = Stand::for_case(case, flash_module)?;
    let mut marks = Marks::open()?;
    let PreparedWorkload { mounted, workload, mut configuration } =
        stand.prepare(case, &mut |step| marks.begin(step))?;
    marks.pause();
    configuration["clock_source"] = clock::clock_source()?.into();
    let traced = |nand| {
        anyhow::Ok(TracedNand { watch: NandWatch::new(nand), filesystem: mounted.number()? })
    };
    let nand = stand.raw_nand().map(traced).transpose()?;
    let mut observation = Observation::start(&stand.disks, nand, tracer, marks)?;
    let (background, place) = (case.case.background, mounted.directory());
    // After an error that was planted the filesystem may have no more to say than another one.
    let is_faulty = workload::read(&case.case.workload)?.has_planted_fault();
    let sync =
        || mounted.sync().or_else(|error| if is_faulty { Ok(()) } else { Err(error.into()) });
    let closed = match workload::run(workload, background, place, &mut observation, sync) {
        Ok(closed) => closed,
        Err(stopped) => return Err(explain_failure(&stand, mounted, case, stopped)),
    };
    let (timeline, nand_operations) = observation.finish()?;
    let end_ns = now_ns();
    stand.disks.iter().try_for_each(Disk::end_record)?;

    closed.remains.check()?;
    let flash_operations = nand_operations
        .as_ref()
        .map(|nand_operations| observation::flash_operation_rows(&nand_operations.operations));
    tracer.add_operations(nand_operations.unwrap_or_default());
    let mut capture = tracer.finish().context("making requests of the tracer's events")?;
    let (disks, configured) = (stand.disks.as_slice(), configuration.clone());
    let about = CaptureSubject { case, clock, disks, configuration: configured, flash_operations };
    write_tables(about, &mut capture, &closed, &timeline, output)?;
    Ok(FinishedCase { stand, mounted, closed, configuration, end_ns, capture })
}

/// A case whose run is over, and in its tables; what was written is in the records of its modelled
/// disks.
pub struct FinishedCase<'a> {
    pub stand: Stand<'a>,
    pub mounted: MountedFilesystem,
    pub closed: ClosedWorkload,
    pub configuration: Value,
    /// The moment when everything had been written back.
    pub end_ns: i64,
    pub capture: Capture,
}

/// The journal's device, as the manifest has it; null where there is none.
fn journal_device(case: &Case) -> Value {
    let describe = |model| json!({ "name": case.case.journal_device, "model": model });
    case.journal_model.as_ref().map_or(Value::Null, describe)
}

/// The case and machine that the tables describe.
struct CaptureSubject<'a> {
    case: &'a Case,
    clock: Clock,
    disks: &'a [Disk],
    configuration: Value,
    /// The operations of raw NAND.
    flash_operations: Option<Vec<FlashOperation>>,
}

fn write_tables(
    about: CaptureSubject,
    capture: &mut Capture,
    closed: &ClosedWorkload,
    timeline: &Timeline,
    output: &Path,
) -> anyhow::Result<()> {
    annotate(&mut capture.requests, timeline, &closed.transactions);
    let counters = timeline.counters();
    let reasons = incomplete_reasons(about.disks, capture, &counters, closed);
    let tables = Tables {
        requests: Some(&capture.requests),
        page_runs: Some(&capture.page_runs),
        flash_operations: about.flash_operations.as_deref(),
        files: Some(&capture.files),
        transactions: Some(&closed.transactions),
        counters: Some(&counters),
    };
    let loss = TraceLoss {
        lost_events: capture.lost_events,
        unattributed_bytes: capture.gaps.unattributed_bytes,
    };
    let manifest = manifest(&about, closed, timeline);
    let manifest = manifest.rows(&tables.names(), Some(loss), &reasons);
    Ok(tables.write(output, &manifest)?)
}

/// Return why the capture is incomplete: what trace and disks disagree on, what the tracer missed,
/// and what the workload left out.
fn incomplete_reasons(
    disks: &[Disk],
    capture: &Capture,
    counters: &[Counter],
    closed: &ClosedWorkload,
) -> Vec<String> {
    let counted: Vec<_> = disks.iter().zip(SOURCES).collect();
    let mut reasons = agreement::differences(&capture.requests, counters, &counted);
    reasons.extend(capture.gaps.reasons(capture.lost_events));
    // Times are what the lab is for.
    reasons.extend(capture.gaps.untimed_words());
    reasons.extend(closed.incomplete_reasons.iter().cloned());
    reasons
}

fn manifest(about: &CaptureSubject, closed: &ClosedWorkload, timeline: &Timeline) -> Manifest {
    let (case, configuration) = (about.case, about.configuration.clone());
    let device = json!({ "name": case.case.device, "model": case.device_model });
    let (settings, seed, clock) = (json!(case.case), case.seed, about.clock.word());
    let mut manifest = Manifest::new(Origin { case: settings, seed, clock, device, configuration });
    manifest.note("journal_device", journal_device(case));
    manifest.note("phases", timeline.phases());
    manifest.note("operation_hash", &closed.operation_hash);
    closed.manifest.iter().for_each(|(key, value)| manifest.note(key, value));
    manifest
}

// What is left on raw NAND that wore out in the middle of a run. It can only be read from then on:
// its files are copied off it, as its owner would do, and the workload looks in the copy for what
// had returned.

const REMEDY: &str = "A part that lasts has a larger endurance_erases or capacity_bytes, fewer \
                      factory_bad_blocks, or bits that flip less often";

/// The mount point of the worn disk.
const PLACE: &str = "/mnt/worn";

/// The error that ended a run; where the disk is worn out, with that reason and what is left on it.
pub fn explain_failure(
    stand: &Stand,
    mounted: MountedFilesystem,
    case: &Case,
    stopped: FailedRun,
) -> anyhow::Error {
    let Some(reason) = stand.raw_nand().and_then(ubi::read_only_reason) else {
        return stopped.error;
    };
    let FailedRun { error, close } = stopped;
    let at_ns = now_ns();
    let remains = match workload::read(&case.case.workload)
        .map(|request| request.refuses_power_cut())
    {
        Ok(None) => close()
            .map_err(anyhow::Error::from)
            .and_then(|closed| left(stand, mounted, closed, at_ns))
            .unwrap_or_else(|error| format!("What is left could not be read: {}", text(&error))),
        _ => "What is left was not looked at: this workload could not tell".to_owned(),
    };
    error.context(format!("{reason}. {remains}. {REMEDY}"))
}

/// Says what is left, of a workload that knows what had returned.
fn left(
    stand: &Stand,
    mounted: MountedFilesystem,
    mut closed: ClosedWorkload,
    at_ns: i64,
) -> anyhow::Result<String> {
    closed.transactions = closed.remains.operations(&closed.transactions);
    let directory = mounted.directory().to_owned();
    mounted.unmount()?;
    stand.detach()?;
    stand.attach()?;
    let worn = stand.mount_read_only(Path::new(PLACE))?;
    copy(worn.directory(), &directory)?;
    worn.unmount()?;

    let found = closed.remains.judge(&CutMoment { transactions: &closed.transactions, at_ns })?;
    let returned = closed.transactions.iter().filter(|it| it.return_ns <= at_ns).count();
    Ok(match found.outcome {
        CutOutcome::Kept => {
            format!("Mounted again, it has every one of the {returned} transactions that returned")
        }
        outcome => format!(
            "Mounted again, it is {outcome}: {} of the {returned} transactions that returned are \
             gone; {}",
            found.lost, found.message
        ),
    })
}

/// Copies the folders and files of `from` into the folder `to`.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let read = || format!("reading {}", from.display());
    for entry in fs::read_dir(from).with_context(read)? {
        let entry = entry.with_context(read)?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let copied = || format!("copying {}", path.display());
        if entry.file_type().with_context(copied)?.is_dir() {
            fs::create_dir(&target).with_context(copied)?;
            copy(&path, &target)?;
        } else {
            fs::copy(&path, &target).with_context(copied)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::{Trace, import};
    use crate::record::small_case;
    use crate::tables::read::read;
    use crate::tables::write::ManifestRow;
    use crate::workload;

    /// Replays a recording without a read, in which one call has a descriptor of unknown origin.
    fn replay_workload() -> ClosedWorkload {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "1 0 open \"/a\" O_RDWR|O_CREAT 5\n1 1 fsync 7\n").unwrap();
        let recording = folder.path().join("recording");
        import(&Trace::Mobigen(&script), &recording, None).unwrap();
        let fields = json!({
            "workload": "replay", "recording": recording, "timing": "recorded",
            "timing_percent": 100, "recorded_root": "/",
        });
        let request = workload::read(&serde_json::from_value(fields).unwrap()).unwrap();
        let workload = request.prepare(folder.path(), 1).unwrap();
        let case = small_case();
        let run = workload::run(workload, case.case.background, folder.path(), &mut (), || Ok(()));
        run.map_err(anyhow::Error::from).unwrap()
    }

    #[test]
    fn left_out_calls_of_a_workload_make_the_capture_incomplete() {
        let (case, closed) = (small_case(), replay_workload());
        let mut capture = Capture { lost_events: 2, ..Capture::default() };
        let reasons = incomplete_reasons(&[], &capture, &[], &closed);
        let words = ["2 events of the tracer were lost", "1 call of fsync left out:"];
        assert_eq!(reasons.len(), words.len(), "{reasons:?}");
        assert!(reasons.iter().zip(words).all(|(reason, words)| reason.starts_with(words)));
        let about = CaptureSubject {
            case: &case,
            clock: Clock::Virtual,
            disks: &[],
            configuration: json!({}),
            flash_operations: None,
        };
        let folder = tempfile::tempdir().unwrap();
        write_tables(about, &mut capture, &closed, &Timeline::default(), folder.path()).unwrap();
        let rows = read::<ManifestRow>(folder.path(), 100).unwrap();
        let value = |key| &rows.iter().find(|row| row.key == key).unwrap().value;
        assert_eq!(value("incomplete"), "true");
        assert_eq!(value("incomplete_reasons"), &json!(reasons).to_string());
        assert_eq!(value("lost_events"), "2");
    }

    #[test]
    fn a_copy_has_folders_and_files() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join("folder")).unwrap();
        fs::write(from.path().join("folder/file"), "contents").unwrap();
        copy(from.path(), to.path()).unwrap();
        assert_eq!(fs::read(to.path().join("folder/file")).unwrap(), b"contents");
    }
}
