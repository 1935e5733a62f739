//! joj-agent: runs on the device under test. Its rooms stand on floors; each uses only those below:
//! filesystem, record, device, tables, bpf, tracer and commits, live_trace, sqlite, recorder,
//! import, workload, verify, lab, live and collector, commands.

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!(
    "joj-agent runs on Linux on x86_64 and aarch64 only: lab/channel knows the hardware of their \
     guests, and kernel/ their registers and system call numbers"
);

mod bpf;
mod byte_text;
mod collector;
mod commands;
mod commits;
mod device;
mod errors;
mod filesystem;
#[cfg(test)]
mod fuzz;
mod import;
mod lab;
mod live;
mod live_trace;
mod messages;
mod process;
mod raw_nand;
mod record;
mod recorder;
mod sql_script;
mod sqlite;
mod system_calls;
mod tables;
mod tracer;
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
    /// Run as process 1 of a guest: prepare, stop for the snapshot, run one case, return its tables
    Init,
    /// Run the background load of a case; the case starts it
    #[command(hide = true)]
    Background(commands::background::Arguments),
    /// Run a workload in a directory of this machine, in real time; reads the case as JSON on stdin
    Bench(commands::bench::Arguments),
    /// Collect for months what disks and SQLite do on this machine, and send it to a server
    Collect(commands::collect::Arguments),
    /// Load the BPF programs, and say what this machine's kernel lets the agent do
    Doctor,
    /// Make a recording of a trace that another program wrote; prints the counts as JSON
    Import(commands::import::Arguments),
    /// Run the program of a case without privileges; the case starts it
    #[command(hide = true)]
    Confined(commands::confined::Arguments),
    /// Record the file system calls of a program, of all its threads and children
    Record(commands::record::Arguments),
    /// Trace disks while a command runs, and attribute every byte of their I/O
    Trace(commands::trace::Arguments),
    /// Write known bytes to a new filesystem, and check how the tracer attributes them
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
        Command::Collect(arguments) => commands::collect::run(&arguments),
        Command::Doctor => commands::doctor::run(),
        Command::Import(arguments) => commands::import::run(&arguments),
        Command::Confined(arguments) => commands::confined::run(&arguments),
        Command::Record(arguments) => commands::record::run(&arguments),
        Command::Trace(arguments) => commands::trace::run(&arguments),
        Command::Verify(arguments) => commands::verify::run(&arguments),
    };
    match result {
        Ok(code) => code,
        Err(error) => ExitCode::from(errors::tell(&error)),
    }
}
