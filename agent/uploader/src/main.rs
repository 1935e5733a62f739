//! joj-uploader: sends the segments of a spool, the oldest first, to the server of a fleet, and
//! deletes each when the server has it on stable storage. `joj-agent collect` starts it; it ends
//! with its standard input. Its modules: queue (the spool), server (one request), rights, state
//! (how it goes), uploading (when what is sent).

mod queue;
mod rights;
mod server;
mod state;
mod uploading;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use queue::Queue;
use server::{Server, WrongUse};
use state::Status;
use uploading::Uploading;

/// The exit code of a wrong use, and that where the machine cannot.
const WRONG_USE: u8 = 2;
const MACHINE_CANNOT: u8 = 3;

#[derive(Parser)]
#[command(name = "joj-uploader", version, about = "Sends what joj-agent collect has collected")]
struct Arguments {
    /// Address of the server, such as https://fleet.example
    #[arg(long)]
    server: String,
    /// File with the token of this device
    #[arg(long)]
    token_file: PathBuf,
    /// The collector's spool
    #[arg(long)]
    spool: PathBuf,
    /// Trust these certificate authorities (PEM), and not those of the system
    #[arg(long)]
    ca_file: Option<PathBuf>,
    /// Send what there is, and end; code 3 if something is left
    #[arg(long)]
    once: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("joj-uploader: {error:#}");
            let is_wrong = error.chain().any(|cause| cause.is::<WrongUse>());
            ExitCode::from(if is_wrong { WRONG_USE } else { MACHINE_CANNOT })
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let ca_file = arguments.ca_file.as_deref();
    let server = Server::new(&arguments.server, &arguments.token_file, ca_file)?;
    let queue = Queue::open(&arguments.spool)?;
    rights::restrict(&arguments.spool, &arguments.token_file)?;
    let told = Status::new(&arguments.spool, server.url());
    let mut uploading = Uploading::new(server, queue, told);
    if arguments.once {
        let is_all = uploading.send_all()?;
        return Ok(if is_all { ExitCode::SUCCESS } else { ExitCode::from(MACHINE_CANNOT) });
    }
    uploading.until_the_end()?;
    Ok(ExitCode::SUCCESS)
}
