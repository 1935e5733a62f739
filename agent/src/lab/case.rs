//! Runs one case from an empty device to its tables: device, mkfs, mount, workload under watch,
//! checks, and the files of schema/ in the output directory.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use serde_json::{Value, json};

use super::agreement;
use super::observation::{Observation, SOURCES};
use crate::device::disk::Disk;
use crate::device::flash_module;
use crate::errors::WrongUse;
use crate::filesystem::{make, mount::Mounted};
use crate::lab::channel::clock::{self, Clock};
use crate::record::Case;
use crate::tables::annotate::annotate;
use crate::tables::manifest::{Manifest, Origin, Traced};
use crate::tables::timeline::Timeline;
use crate::tables::write::Tables;
use crate::tracer::{Capture, Tracer};
use crate::workload::background::Background;
use crate::workload::{Finished, Observer, Workload};

/// Where the device is mounted.
const MOUNT_POINT: &str = "/mnt/flash";

/// Longest wait before the measured part: two periods of the kernel's timer tick (CONFIG_HZ=250).
/// A seed so meets another phase of tick and timers: deterministic is not free of noise.
const START_DELAY_NS: u64 = 8_000_000;

/// Runs `case` on its disk, or on a device made by the module at `flash_module`; writes its tables,
/// whose times are by `clock`, to `output`.
///
/// # Errors
/// When any step fails; nothing in `output` counts then.
pub fn run(
    case: &Case,
    flash_module: &Path,
    clock: Clock,
    tracer: &mut Tracer,
    output: &Path,
) -> anyhow::Result<()> {
    let settings = &case.case;
    let disks = match &case.disk {
        Some(name) => vec![Disk::of_kernel(name)?],
        None => {
            let models: Vec<_> = case.device_model.iter().chain(&case.journal_model).collect();
            flash_module::insert(flash_module, &models, settings.completion.word())?
        }
    };
    let [device, journal @ ..] = disks.as_slice() else {
        return Err(WrongUse("the case: neither disk nor device_model".to_owned()).into());
    };
    let (device, journal) = (device.node(), journal.first().map(Disk::node));
    make::make(settings.filesystem, device, journal, &settings.mkfs_options)?;
    let mounted = Mounted::new(
        settings.filesystem,
        device,
        journal,
        Path::new(MOUNT_POINT),
        &settings.mount_options,
    )?;
    let mut workload = Workload::prepare(mounted.directory(), &settings.workload, case.seed)?;
    let mut configuration = configuration(&workload, &mounted, &disks)?;
    configuration["clock_source"] = clock::source()?.into();
    ready(&mounted, &disks, &workload, case.seed)?;

    let mut observation = Observation::start(&disks, tracer)?;
    let background = Background::start(settings.background, mounted.directory())?;
    workload.run(&mut observation)?;
    let background = background.map(Background::stop).transpose()?;
    observation.enter("settle")?;
    let mut finished = workload.close()?;
    mounted.sync()?;
    observation.leave()?;
    let timeline = observation.finish()?;

    finished.check()?;
    finished.manifest.extend(background.map(|did| ("background", did)));
    let capture = tracer.finish().context("making requests of the tracer's events")?;
    let about = About { case, clock, disks: &disks, configuration };
    write_tables(about, capture, &finished, &timeline, output)
}

/// What comes between a prepared workload and its run: everything is on the devices, these have
/// their past, the caches are as the workload needs them, and the seed's delay is over.
///
/// # Errors
/// If a step fails.
pub fn ready(
    mounted: &Mounted,
    disks: &[Disk],
    workload: &Workload,
    seed: u64,
) -> anyhow::Result<()> {
    mounted.sync()?;
    disks.iter().try_for_each(Disk::age)?; // after mkfs, which discards the disk
    if workload.needs_cold_cache() {
        drop_caches()?;
    }
    let delay_ns = ChaCha8Rng::seed_from_u64(!seed).next_u64() % START_DELAY_NS;
    std::thread::sleep(Duration::from_nanos(delay_ns));
    Ok(())
}

/// Empties the page cache and the caches of inodes and names of what is clean; see
/// Documentation/admin-guide/sysctl/vm.rst, drop_caches.
fn drop_caches() -> anyhow::Result<()> {
    let control = "/proc/sys/vm/drop_caches";
    std::fs::write(control, "3").context(control)
}

/// The configuration in force, read back from the workload, the mount table and the block layer.
fn configuration(workload: &Workload, mounted: &Mounted, disks: &[Disk]) -> anyhow::Result<Value> {
    let mut configuration = workload.configuration()?;
    configuration["mount"] = mounted.line()?.into();
    for (disk, place) in disks.iter().zip(["queue", "journal_queue"]) {
        for setting in ["write_cache", "fua", "scheduler", "nr_requests", "max_sectors_kb"] {
            configuration[place][setting] = disk.queue_setting(setting)?.into();
        }
    }
    Ok(configuration)
}

/// The journal's device, as the manifest has it; null where there is none.
fn journal_device(case: &Case) -> Value {
    let describe = |model| json!({ "name": case.case.journal_device, "model": model });
    case.journal_model.as_ref().map_or(Value::Null, describe)
}

/// What the tables are of.
struct About<'a> {
    case: &'a Case,
    clock: Clock,
    disks: &'a [Disk],
    configuration: Value,
}

fn write_tables(
    about: About,
    mut capture: Capture,
    finished: &Finished,
    timeline: &Timeline,
    output: &Path,
) -> anyhow::Result<()> {
    let About { case, clock, disks, configuration } = about;
    annotate(&mut capture.requests, timeline, &finished.transactions);
    let counters = timeline.counters();
    let counted: Vec<_> = disks.iter().zip(SOURCES).collect();
    let mut reasons = agreement::differences(&capture.requests, &counters, &counted);
    reasons.extend(capture.gaps.reasons(capture.lost_events));
    // Times are what the lab is for.
    reasons.extend(capture.gaps.untimed());
    reasons.extend(finished.incomplete_reasons.iter().cloned());
    let device = json!({ "name": case.case.device, "model": case.device_model });
    let (settings, seed, clock) = (json!(case.case), case.seed, clock.word());
    let mut manifest = Manifest::new(Origin { case: settings, seed, clock, device, configuration });
    manifest.note("journal_device", journal_device(case));
    manifest.note("phases", timeline.phases());
    manifest.note("operation_hash", &finished.operation_hash);
    finished.manifest.iter().for_each(|(key, value)| manifest.note(key, value));
    let (lost_events, unattributed_bytes) = (capture.lost_events, capture.gaps.unattributed_bytes);
    let tables = Tables {
        requests: &capture.requests,
        page_runs: &capture.page_runs,
        files: &capture.files,
        transactions: &finished.transactions,
        counters: &counters,
        manifest: &manifest.rows(Traced::Yes { lost_events, unattributed_bytes }, &reasons),
    };
    Ok(tables.write(output)?)
}
