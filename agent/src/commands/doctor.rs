//! `joj-agent doctor`: says what this machine's kernel lets the agent do, and why it does not let
//! it do the rest. It loads the BPF programs to find out, and sees no I/O.

use std::process::ExitCode;

use crate::commits::witness::CallWitness;
use crate::errors::{MACHINE_CANNOT, text};
use crate::messages::print;
use crate::process::page_bytes;
use crate::recorder::{Data, Method, RecordingOptions, RecordingWay};
use crate::tracer::Tracer;

/// Small: nothing is read from it.
const RING_BYTES: u32 = 1 << 20;

/// Prints a line for each thing, and returns 3 if there is one that cannot be done.
///
/// # Errors
/// If nobody takes what is printed.
pub fn run() -> anyhow::Result<ExitCode> {
    let kernel = rustix::system::uname();
    let (release, machine) = (kernel.release().to_string_lossy(), kernel.machine());
    let pages = page_bytes();
    print(format_args!("Linux {release}, {}, pages of {pages} bytes", machine.to_string_lossy()))?;
    print("can     bench, record --by ptrace: they need nothing of the kernel's BPF")?;
    let by_ebpf = RecordingOptions { by: Method::Ebpf, data: Data::None, ring_bytes: RING_BYTES };
    let mut code = ExitCode::SUCCESS;
    for (ability, obstacle) in [
        ("trace, collect, verify: the tracer", obstacle(Tracer::load(RING_BYTES))),
        ("trace, collect: the finder of commits", obstacle(CallWitness::load(RING_BYTES, true))),
        ("record --by ebpf: the recorder", obstacle(RecordingWay::choose(by_ebpf))),
    ] {
        match obstacle {
            None => print(format_args!("can     {ability} is loaded"))?,
            Some(obstacle) => {
                print(format_args!("cannot  {ability}: {obstacle}"))?;
                code = ExitCode::from(MACHINE_CANNOT);
            }
        }
    }
    Ok(code)
}

/// Return why a program was not loaded; none where it was.
fn obstacle<T, E: Into<anyhow::Error>>(loaded: Result<T, E>) -> Option<String> {
    loaded.err().map(|error| text(&error.into()))
}
