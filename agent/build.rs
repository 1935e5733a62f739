//! Compiles kernel/block/attribution.bpf.c with clang into OUT_DIR/attribution.bpf.o, which the
//! agent embeds. The object depends on the sources and the compiler only: its DWARF, which holds
//! the paths of this machine, is stripped; BTF stays.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let sources = manifest.join("../kernel/block");
    let object = Path::new(&variable("OUT_DIR")).join("attribution.bpf.o");
    for folder in [&sources, &manifest.join("../kernel/bpf")] {
        println!("cargo::rerun-if-changed={}", folder.display());
    }

    run(Command::new("clang")
        .current_dir(&sources)
        .args(["-g", "-O2", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror"])
        // The headers that come with the libbpf we link, and the system's <linux/bpf.h>.
        .arg(format!("-I{}", variable("DEP_BPF_INCLUDE")))
        .arg("-I/usr/include/x86_64-linux-gnu")
        .args([&format!("-fdebug-prefix-map={}=.", sources.display()), "-fdebug-compilation-dir=."])
        .args(["-c", "attribution.bpf.c", "-o"])
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
        Ok(status) => panic!("{program} failed ({status}) on kernel/block/attribution.bpf.c"),
        Err(error) => panic!("{program}: {error}; apt-get install clang llvm"),
    }
}
