//! Runs one live case from an empty private directory to its tables. There is no tracer: the
//! tables of requests, page runs and files stay empty, and the manifest says so.

use std::path::Path;

use anyhow::Context;
use rustix::fs::Advice;
use serde_json::{Value, json};

use super::directory::PrivateDirectory;
use super::location::Location;
use super::progress::{LiveProgress, tell};
use super::space::{explain, refuse_unless_free};
use crate::record::LiveCase;
use crate::tables::capture::Tables;
use crate::tables::manifest::{Manifest, Origin};
use crate::tables::timeline::Timeline;
use crate::workload;
use crate::workload::course;
use crate::workload::kind::ClosedWorkload;

/// Runs `case` in `directory`; writes its tables to `output`. `nand` is the configuration of raw
/// NAND, where the directory is on it.
///
/// # Errors
/// When any step fails; nothing in `output` counts then.
pub fn run(
    case: &LiveCase,
    directory: &PrivateDirectory,
    nand: Option<&Value>,
    output: &Path,
) -> anyhow::Result<()> {
    run_and_write(case, directory, nand, output).map_err(|error| explain(error, directory.path()))
}

fn run_and_write(
    case: &LiveCase,
    directory: &PrivateDirectory,
    nand: Option<&Value>,
    output: &Path,
) -> anyhow::Result<()> {
    let asked = workload::read(&case.case.workload)?;
    let location = Location::of(directory.path())?;
    refuse_unless_free(directory.path(), asked.space_needed())?;
    tell("prepare");
    let workload = asked.prepare(directory.path(), case.seed)?;
    let mut configuration = workload.configuration()?;
    if let Some(us) = configuration["lasts_us"].as_u64() {
        tell(&format!("lasts {} s", us.div_ceil(1_000_000)));
    }
    let found = location.configuration();
    for each in [Some(&found), nand].into_iter().flatten() {
        if let (Some(all), Some(each)) = (configuration.as_object_mut(), each.as_object()) {
            all.extend(each.clone());
        }
    }
    directory.sync()?;
    if workload.needs_cold_cache() {
        forget_pages(directory)?;
    }

    let mut progress = LiveProgress::start(&location)?;
    let (background, path) = (case.case.background, directory.path());
    let sync = || directory.sync();
    let closed = course::run(workload, background, path, &mut progress, sync)?;
    let timeline = progress.finish()?;

    tell("check");
    closed.remains.check()?;
    write_tables(case, &closed, &timeline, &location, configuration, output)
}

/// Asks the kernel to drop the clean pages of the workload's files from its cache
/// (posix_fadvise(2)): all that can be done without root and without harm to others.
fn forget_pages(directory: &PrivateDirectory) -> anyhow::Result<()> {
    let what = || format!("emptying the cache of {}", directory.path().display());
    let forget = |file: &std::fs::File| Ok(rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?);
    directory.visit_files(forget).with_context(what)
}

fn write_tables(
    case: &LiveCase,
    closed: &ClosedWorkload,
    timeline: &Timeline,
    location: &Location,
    configuration: Value,
    output: &Path,
) -> anyhow::Result<()> {
    let settings = json!(case.case);
    let device = json!({ "name": location.disk_name() });
    let (seed, clock) = (case.seed, "wall");
    let mut manifest = Manifest::new(Origin { case: settings, seed, clock, device, configuration });
    manifest.note("phases", timeline.phases());
    manifest.note("operation_hash", &closed.operation_hash);
    closed.manifest.iter().for_each(|(key, value)| manifest.note(key, value));
    let counters = timeline.counters();
    let tables = Tables {
        transactions: Some(&closed.transactions),
        counters: Some(&counters),
        ..Tables::default()
    };
    let manifest = manifest.rows(&tables.names(), None, &closed.incomplete_reasons);
    Ok(tables.write(output, &manifest)?)
}
