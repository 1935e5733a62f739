//! joj-agent: runs on the device under test. The stages, in the order data takes:
//! workload -> syscall -> filesystem -> block -> device, watched by block, written by trace.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!(
    "joj-agent runs on Linux on x86_64 only: guest/ports.rs uses that processor's I/O ports, and \
     kernel/block/calls.bpf.h and block/causes know its system call numbers"
);

mod block;
mod case;
mod commands;
mod device;
mod errors;
mod filesystem;
mod guest;
mod live;
mod messages;
mod parent;
mod power_cut;
mod syscall;
mod trace;
mod tracing;
mod verify;
mod workload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "joj-agent", version, about = "jojlab's agent on the device under test")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Be process 1 of a guest: prepare, stop for the snapshot, run one case, hand its tables out
    Init,
    /// Be the load in a case's background; a case starts it itself
    #[command(hide = true)]
    Background(commands::background::Arguments),
    /// Run a workload in a directory of this machine, by its own clock; the case is JSON on stdin
    Bench(commands::bench::Arguments),
    /// Trace disks while a command runs, and say what every byte they were sent belongs to
    Trace(commands::trace::Arguments),
    /// Make known writes on a mounted filesystem, and check what the tracer says of each
    Verify(commands::verify::Arguments),
}

fn main() -> ExitCode {
    // The kernel starts /init with no arguments that are ours.
    let arguments = if std::process::id() == 1 {
        Arguments { command: Command::Init }
    } else {
        Arguments::parse()
    };
    let result = match arguments.command {
        Command::Init => commands::init::run().map(|()| ExitCode::SUCCESS),
        Command::Background(arguments) => commands::background::run(&arguments),
        Command::Bench(arguments) => commands::bench::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Trace(arguments) => commands::trace::run(&arguments),
        Command::Verify(arguments) => commands::verify::run(&arguments),
    };
    match result {
        Ok(code) => code,
        Err(error) => ExitCode::from(errors::tell(&error)),
    }
}
