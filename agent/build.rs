//! Compiles the BPF programs of kernel/ with clang into OUT_DIR/NAME.bpf.o, which the agent embeds.
//! An object depends on the sources and the compiler only: its DWARF, which holds the paths of this
//! machine, is stripped; BTF stays.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder of kernel/, and the program in it.
const PROGRAMS: [(&str, &str); 2] = [("block", "attribution"), ("calls", "calls")];

fn main() {
    let kernel = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../kernel");
    println!("cargo::rerun-if-changed={}", kernel.join("bpf").display());
    for (folder, name) in PROGRAMS {
        let sources = kernel.join(folder);
        println!("cargo::rerun-if-changed={}", sources.display());
        compile(&sources, name);
    }
}

fn compile(sources: &Path, name: &str) {
    let object = Path::new(&variable("OUT_DIR")).join(format!("{name}.bpf.o"));
    run(Command::new("clang")
        .current_dir(sources)
        .args(["-g", "-O2", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror"])
        // The headers that come with the libbpf we link, and the system's <linux/bpf.h>.
        .arg(format!("-I{}", variable("DEP_BPF_INCLUDE")))
        .arg("-I/usr/include/x86_64-linux-gnu")
        .args([&format!("-fdebug-prefix-map={}=.", sources.display()), "-fdebug-compilation-dir=."])
        .args(["-c", &format!("{name}.bpf.c"), "-o"])
        .arg(&object));
    run(Command::new("llvm-strip").arg("-g").arg(&object));
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo did not set {name}"))
}

fn run(command: &mut Command) {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{program} failed ({status}) on {command:?}"),
        Err(error) => panic!("{program}: {error}; apt-get install clang llvm"),
    }
}
