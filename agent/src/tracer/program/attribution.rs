//! The attribution program (kernel/block/attribution.bpf.c), which build.rs compiles: loaded and
//! attached, switched on and off, and asked for what it counted.

use std::ffi::CStr;
use std::ops::{Deref, DerefMut};

use super::control::{ControlMemory, DISKS_LIMIT, TracerState};
use crate::bpf::{BpfError, LoadPlan, Objects, PREEMPTIBLE, Program, Symbols};

/// Programs for a tracepoint that not every kernel has, and the further ones where a task may lose
/// its processor within one.
const OPTIONAL: [(&CStr, &str); 9] = [
    (c"uring_submitted", "__traceiter_io_uring_submit_req"),
    (c"uring_submitted_before", "__traceiter_io_uring_submit_sqe"),
    (c"uring_completed", "__traceiter_io_uring_complete"),
    (c"bio_queued_within", PREEMPTIBLE),
    (c"bio_queued_twice_within", PREEMPTIBLE),
    (c"request_issued_within", PREEMPTIBLE),
    (c"request_issued_twice_within", PREEMPTIBLE),
    (c"request_completed_twice_within", PREEMPTIBLE),
    (c"bio_ended_twice_within", PREEMPTIBLE),
];

/// The end of the names of programs that take over where another was skipped
/// (further_programs.bpf.h).
const TAKES_OVER: &[u8] = b"_within";

/// The bytes of the ring that are kept for each processor: what the runs of a bio may need, and the
/// bio.
const KEPT_BYTES: u64 = 32 << 10;

/// The sums of totals.bpf.h, and those that found no place there.
const SUMS: [&CStr; 2] = [c"totals", c"further_totals"];
const KEY_BYTES: usize = 112;
/// One of them: struct total_key of event.h, and how many runs and bytes.
pub type KernelSum = ([u8; KEY_BYTES], [u64; 2]);

/// The reason why the program cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AttributionError {
    #[error(transparent)]
    Bpf(#[from] BpfError),
    #[error("{0} disks at once: at most {DISKS_LIMIT} can be traced together")]
    Disks(usize),
}

/// The program; what every program can do is that of `Program`.
pub struct Attribution {
    // Dropped before the program, which has it mapped.
    control: ControlMemory,
    program: Program,
}

impl Attribution {
    /// Loads and attaches, switched off.
    ///
    /// # Errors
    /// If the ring's size is no power of two, or the kernel refuses a step.
    pub fn load(ring_bytes: u32, symbols: &Symbols) -> Result<Self, BpfError> {
        let plan = LoadPlan {
            objects: &Objects::ATTRIBUTION,
            ring_bytes,
            kept_bytes_each: KEPT_BYTES,
            optional: &OPTIONAL,
            unused: &[],
        };
        let program = Program::load(&plan, symbols)?;
        // SAFETY: mapped as long as the program lives, which is as long as we do.
        let control = unsafe { ControlMemory::new(program.section(c".data.control")?) };
        let mut attribution = Attribution { control, program };
        attribution.set_addresses(symbols);
        Ok(attribution)
    }

    /// Tells the program where the kernel's functions are.
    pub fn set_addresses(&mut self, symbols: &Symbols) {
        self.control.set_addresses(symbols);
    }

    /// Traces these disks (major << 20 | minor) from now on; with totals alone, no bio has records.
    ///
    /// # Errors
    /// If there are more than `DISKS_LIMIT`.
    pub fn switch_on(&mut self, disks: &[u32], totals_alone: bool) -> Result<(), AttributionError> {
        let mut places = [0; DISKS_LIMIT];
        let first = places.get_mut(..disks.len()).ok_or(AttributionError::Disks(disks.len()))?;
        first.copy_from_slice(disks);
        for map in SUMS {
            self.program.map::<KEY_BYTES, 2>(map)?.clear()?;
        }
        self.control.begin(places, totals_alone);
        Ok(())
    }

    /// Has the program report no new bios, or nothing more at all.
    pub fn set_state(&mut self, state: TracerState) {
        self.control.set_enabled(state);
    }

    /// Records that did not fit in the ring since the program was loaded; where totals alone are
    /// asked for, bios need none.
    pub fn lost_records(&self) -> u64 {
        let control = self.control.read();
        let lost = [
            control.lost_bios,
            control.lost_runs,
            control.lost_paths,
            control.lost_syncs,
            control.lost_requests,
            control.lost_changes,
            if control.totals_alone == 0 { control.counted_bios } else { 0 },
        ];
        lost.iter().sum()
    }

    /// Bios that are in the sums and have no record, since the program was loaded.
    pub fn counted_bios(&self) -> u64 {
        self.control.read().counted_bios
    }

    /// Bios, and runs of bios, that are neither in a record nor in the sums.
    pub fn uncounted_runs(&self) -> u64 {
        let control = self.control.read();
        control.lost_bios + control.lost_runs + control.lost_totals
    }

    /// Times since the load that the kernel did not run a part of the program because that part
    /// was running on this CPU already: an interrupt or another task came in between. Less those
    /// that another part took over.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn skipped_runs(&self) -> Result<u64, BpfError> {
        // Read first: a run that is skipped and caught meanwhile is then one too many for a moment,
        // and not one too few for ever.
        let caught_runs = self.control.read().caught_runs;
        let skipped = self.program.skipped_runs(|name| !name.ends_with(TAKES_OVER))?;
        Ok(skipped.saturating_sub(caught_runs))
    }

    /// Return whether nobody holds the request at an address: it is complete. False where the
    /// kernel does not answer.
    pub fn is_request_free(&self, address: u64) -> bool {
        self.program.ask(c"request_is_free", address) == Some(1)
    }

    /// The sums of bios without records since the last `switch_on`.
    ///
    /// # Errors
    /// If the kernel does not hand them out.
    pub fn sums(&self) -> Result<Vec<KernelSum>, BpfError> {
        let mut sums = Vec::new();
        for map in SUMS {
            sums.extend(self.program.map(map)?.entries()?);
        }
        Ok(sums)
    }
}

impl Deref for Attribution {
    type Target = Program;

    fn deref(&self) -> &Program {
        &self.program
    }
}

impl DerefMut for Attribution {
    fn deref_mut(&mut self) -> &mut Program {
        &mut self.program
    }
}
