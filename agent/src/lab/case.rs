//! Runs one case from an empty device to its tables: device, mkfs, mount, workload under watch,
//! checks, and the files of schema/ in the output directory.

use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

use super::agreement;
use super::observation::{Observation, SOURCES, TracedNand};
use super::stand::{Prepared, Stand};
use super::worn_out;
use crate::device::disk::Disk;
use crate::filesystem::mount::Mounted;
use crate::lab::channel::clock::{self, Clock};
use crate::lab::channel::handout::Marks;
use crate::lab::observation;
use crate::raw_nand::follower::NandWatch;
use crate::record::Case;
use crate::tables::capture::Tables;
use crate::tables::capture::annotate;
use crate::tables::capture::{Manifest, Origin, TraceLoss};
use crate::tables::rows::{Counter, FlashOperation};
use crate::tables::timeline::Timeline;
use crate::tables::timeline::now_ns;
use crate::tracer::{Capture, Tracer};
use crate::workload;
use crate::workload::kind::ClosedWorkload;

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
) -> anyhow::Result<Finished<'a>> {
    let stand = Stand::for_case(case, flash_module)?;
    let mut marks = Marks::open()?;
    let Prepared { mounted, workload, mut configuration } =
        stand.prepare(case, &mut |step| marks.begin(step))?;
    marks.pause();
    configuration["clock_source"] = clock::clock_source()?.into();
    let traced = |nand| {
        anyhow::Ok(TracedNand { watch: NandWatch::new(nand), filesystem: mounted.number()? })
    };
    let nand = stand.raw_nand().map(traced).transpose()?;
    let mut observation = Observation::start(&stand.disks, nand, tracer, marks)?;
    let (background, place) = (case.case.background, mounted.directory());
    let sync = || Ok(mounted.sync()?);
    let closed = match workload::run(workload, background, place, &mut observation, sync) {
        Ok(closed) => closed,
        Err(stopped) => return Err(worn_out::explained(&stand, mounted, case, stopped)),
    };
    let (timeline, nand_operations) = observation.finish()?;
    let end_ns = now_ns();
    stand.disks.iter().try_for_each(Disk::end_record)?;

    closed.remains.check()?;
    let flash_operations = nand_operations
        .as_ref()
        .map(|nand_operations| observation::flash_operation_rows(&nand_operations.operations));
    tracer.add_operations(nand_operations.unwrap_or_default());
    let capture = tracer.finish().context("making requests of the tracer's events")?;
    let (disks, configured) = (stand.disks.as_slice(), configuration.clone());
    let about = About { case, clock, disks, configuration: configured, flash_operations };
    write_tables(about, capture, &closed, &timeline, output)?;
    Ok(Finished { stand, mounted, closed, configuration, end_ns })
}

/// A case whose run is over, and in its tables; what was written is in the records of its modelled
/// disks.
pub struct Finished<'a> {
    pub stand: Stand<'a>,
    pub mounted: Mounted,
    pub closed: ClosedWorkload,
    pub configuration: Value,
    /// When everything had been written back.
    pub end_ns: i64,
}

/// The journal's device, as the manifest has it; null where there is none.
fn journal_device(case: &Case) -> Value {
    let describe = |model| json!({ "name": case.case.journal_device, "model": model });
    case.journal_model.as_ref().map_or(Value::Null, describe)
}

/// The case and machine that the tables describe.
struct About<'a> {
    case: &'a Case,
    clock: Clock,
    disks: &'a [Disk],
    configuration: Value,
    /// The operations of raw NAND.
    flash_operations: Option<Vec<FlashOperation>>,
}

fn write_tables(
    about: About,
    mut capture: Capture,
    closed: &ClosedWorkload,
    timeline: &Timeline,
    output: &Path,
) -> anyhow::Result<()> {
    annotate(&mut capture.requests, timeline, &closed.transactions);
    let counters = timeline.counters();
    let reasons = incomplete_reasons(about.disks, &capture, &counters, closed);
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

/// Why the capture is incomplete: what trace and disks disagree on, what the tracer missed, and
/// what the workload left out.
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
    reasons.extend(capture.gaps.untimed());
    reasons.extend(closed.incomplete_reasons.iter().cloned());
    reasons
}

fn manifest(about: &About, closed: &ClosedWorkload, timeline: &Timeline) -> Manifest {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::{Trace, import};
    use crate::record::small_case;
    use crate::tables::read::read;
    use crate::tables::write::ManifestRow;
    use crate::workload;

    /// Replays a recording without a read, in which one call has a descriptor of unknown origin.
    fn replayed() -> ClosedWorkload {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "1 0 open \"/a\" O_RDWR|O_CREAT 5\n1 1 fsync 7\n").unwrap();
        let recording = folder.path().join("recording");
        import(&Trace::Mobigen(&script), &recording, None).unwrap();
        let fields = json!({
            "workload": "replay", "script": "", "recording": recording, "timing": "recorded",
            "timing_percent": 100, "recorded_root": "/",
        });
        let request = workload::read(&serde_json::from_value(fields).unwrap()).unwrap();
        let workload = request.prepare(folder.path(), 1).unwrap();
        let case = small_case();
        let run = workload::run(workload, case.case.background, folder.path(), &mut (), || Ok(()));
        run.map_err(anyhow::Error::from).unwrap()
    }

    #[test]
    fn what_a_workload_left_out_makes_the_capture_incomplete() {
        let (case, closed) = (small_case(), replayed());
        let capture = Capture { lost_events: 2, ..Capture::default() };
        let reasons = incomplete_reasons(&[], &capture, &[], &closed);
        let words = ["2 events of the tracer were lost", "1 call of fsync left out:"];
        assert_eq!(reasons.len(), words.len(), "{reasons:?}");
        assert!(reasons.iter().zip(words).all(|(reason, words)| reason.starts_with(words)));
        let about = About {
            case: &case,
            clock: Clock::Virtual,
            disks: &[],
            configuration: json!({}),
            flash_operations: None,
        };
        let folder = tempfile::tempdir().unwrap();
        write_tables(about, capture, &closed, &Timeline::default(), folder.path()).unwrap();
        let rows = read::<ManifestRow>(folder.path(), 100).unwrap();
        let value = |key| &rows.iter().find(|row| row.key == key).unwrap().value;
        assert_eq!(value("incomplete"), "true");
        assert_eq!(value("incomplete_reasons"), &json!(reasons).to_string());
        assert_eq!(value("lost_events"), "2");
    }
}
