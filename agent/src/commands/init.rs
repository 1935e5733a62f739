//! Process 1 of a guest: prepares, stops for the snapshot, does the one job it finds when it is
//! continued, hands the results out and stops again. By the clock on the wall there is no snapshot.
//! An error before the snapshot ends process 1 and so panics the kernel, which the lab sees and
//! reports with the console; an error of the job is a result and travels in outcome.json.
//!
//! In User Mode Linux it is process 1 too, and judges states of a run that a guest performed: all
//! that comes in and goes out are files of the one folder of the host that is mounted there.

use crate::errors::{WrongUse, is_wrong_use, text};
use crate::lab::channel::clock::Clock;
use crate::lab::channel::handout::Region;
use crate::lab::channel::{clock, fw_cfg, hardware, preparation, trees};
use crate::lab::{case, power_cut, self_test};
use crate::record::{Afterwards, Job};
use crate::tracer::Tracer;
use anyhow::Context;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::system::{RebootCommand, reboot};
use serde_json::json;
use std::fs;
use std::path::Path;

const CASE_FILE: &str = "opt/jojlab/case";
/// The file that says what is done after a case.
const AFTERWARDS_FILE: &str = "opt/jojlab/afterwards";
/// Input files and trees of the job; its record names them by their paths in `INPUTS`.
const INPUT_FILES: &str = "opt/jojlab/input/";
const INPUT_TREES: &str = "opt/jojlab/tree/";
/// The kernel's functions with their addresses.
const SYMBOLS: &str = "/proc/kallsyms";
const INPUTS: &str = "/inputs";
const RESULTS: &str = "/results";
const KERNEL_LINE: &str = "/proc/cmdline";
/// The word on the kernel's line of a User Mode Linux that judges, and where its folder of the host
/// is mounted (jojlab/guest/user_mode.py).
const JUDGE: &str = "joj.judge";
const HOST: &str = "/host";
const FLASH_MODULE: &str = "/modules/flash.ko";

/// Room for the events of thousands of transactions, so that nothing is read while they run.
const RING_BYTES: u32 = 32 << 20;

/// Runs the guest's life from boot to the last stop.
///
/// # Errors
/// Only before the snapshot, or when the results cannot be handed out; it never returns otherwise.
pub fn run() -> anyhow::Result<()> {
    anyhow::ensure!(
        std::process::id() == 1,
        "init is process 1 of a guest and cannot run elsewhere"
    );
    // The name that the tables show as submitter; the kernel would call us init.
    rustix::thread::set_name(c"joj-agent").context("naming the process")?;
    preparation::mount_kernel_filesystems()?;
    let line = fs::read_to_string(KERNEL_LINE).context(KERNEL_LINE)?;
    if line.split_ascii_whitespace().any(|word| word == JUDGE) {
        return judge_handed_run();
    }
    preparation::load_modules(Path::new("/modules"))?;
    let clock = Clock::here()?;
    settle(clock)?;
    let mut tracer = Tracer::load(RING_BYTES)?;
    let mut region = Region::open()?;
    if clock == Clock::Virtual {
        clock::stop().context("cannot stop for the snapshot")?;
    }

    // Every case of the virtual clock starts here, from the same memory and the same time.
    let result = take_inputs()
        .and_then(|()| Ok(fw_cfg::read(CASE_FILE)?))
        .and_then(|bytes| run_job(&bytes, clock, &mut tracer));
    hand_out(&mut region, result)?;
    loop {
        match clock {
            Clock::Virtual => clock::stop(),
            Clock::Wall => clock::end(),
        }
        .context("cannot stop at the end")?;
    }
}

/// Runs the life of User Mode Linux, to its end.
fn judge_handed_run() -> anyhow::Result<()> {
    let (place, results) = (Path::new(HOST), &Path::new(HOST).join("results"));
    fs::create_dir_all(place).context(HOST)?;
    mount("none", place, "hostfs", MountFlags::empty(), None).context(HOST)?;
    settle_kernel()?;
    let judge = || match serde_json::from_slice(&fs::read(place.join("job")).context("job")?)? {
        Job::Case(case) => power_cut::run_handed(&case, &place.join("flash.ko"), place, results),
        Job::SelfTest(_) => anyhow::bail!("a self-test has no power cuts"),
    };
    write_outcome(results, &judge())?;
    unmount(place, UnmountFlags::empty()).context(HOST)?;
    reboot(RebootCommand::PowerOff).context("cannot end")
}

fn take_inputs() -> anyhow::Result<()> {
    let inputs = Path::new(INPUTS);
    fw_cfg::write_below(INPUT_FILES, inputs)?;
    for (name, archive) in fw_cfg::read_below(INPUT_TREES, trees::MOST_TREE_BYTES)? {
        trees::unpack(&archive, &inputs.join(name))?;
    }
    Ok(())
}

fn run_job(json: &[u8], clock: Clock, tracer: &mut Tracer) -> anyhow::Result<()> {
    let (module, results) = (Path::new(FLASH_MODULE), Path::new(RESULTS));
    match serde_json::from_slice(json).map_err(|error| WrongUse(format!("the job: {error}")))? {
        Job::Case(case) => {
            let finished = case::run(&case, module, clock, tracer, results)?;
            let wanted = afterwards()?;
            if wanted.symbols {
                fs::copy(SYMBOLS, results.join("symbols")).context(SYMBOLS)?;
            }
            match wanted.power_cuts {
                Some(cuts) => power_cut::run(&cuts, &case, finished, results),
                None => Ok(()),
            }
        }
        Job::SelfTest(test) => self_test::run(&test, module, tracer, results),
    }
}

/// Return what is asked of a run that is over. Nothing is read of it before: the run is the same
/// whatever is asked.
fn afterwards() -> anyhow::Result<Afterwards> {
    let bytes = fw_cfg::read(AFTERWARDS_FILE)?;
    let wrong = |error| WrongUse(format!("what comes afterwards: {error}"));
    Ok(Afterwards::parse(&bytes).map_err(wrong)?)
}

/// Brings the kernel into the state that all cases shall find.
fn settle(clock: Clock) -> anyhow::Result<()> {
    settle_kernel()?;
    if clock == Clock::Virtual {
        hardware::halt_rtc().context("no right to the clock's ports")?;
    }
    clock.settle()?;
    fs::create_dir(RESULTS).context(RESULTS)
}

/// Does of it what any machine needs.
fn settle_kernel() -> anyhow::Result<()> {
    // A guest out of memory must die and say so, not go on with a process missing.
    let panic_on_oom = "/proc/sys/vm/panic_on_oom";
    fs::write(panic_on_oom, "1").context(panic_on_oom)?;
    preparation::seed_random_numbers().context("seeding random numbers")?;
    let mut byte = [0; 1];
    getrandom(&mut byte, GetRandomFlags::NONBLOCK).context("the seed is not enough")?;
    Ok(())
}

fn hand_out(region: &mut Region, result: anyhow::Result<()>) -> anyhow::Result<()> {
    let results = Path::new(RESULTS);
    write_outcome(results, &result)?;
    let Err(error) = region.write(results) else {
        return Ok(());
    };
    // What cannot be handed out is an error of the case; the message itself always fits.
    fs::remove_dir_all(results).context(RESULTS)?;
    fs::create_dir(results).context(RESULTS)?;
    write_outcome(results, &Err(error.into()))?;
    Ok(region.write(results)?)
}

fn write_outcome(results: &Path, result: &anyhow::Result<()>) -> anyhow::Result<()> {
    let outcome = match result {
        Ok(()) => json!({"status": "ok"}),
        Err(error) => json!({
            "status": "error",
            "kind": if is_wrong_use(error) { "use" } else { "machine" },
            "message": text(error),
        }),
    };
    fs::write(results.join("outcome.json"), outcome.to_string()).context("outcome.json")
}
