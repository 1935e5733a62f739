//! Makes the tables of system calls. Compiles the BPF programs of kernel/ with clang, which the
//! agent embeds: into OUT_DIR/NAME.bpf.o and, for kernels before 5.17
//! (kernel/bpf/kernel_age.bpf.h), into OUT_DIR/NAME_before_5_17.bpf.o. An object depends on the
//! sources and the compiler only: its DWARF, which holds the paths of this machine, is stripped;
//! BTF stays. Compiles agent/preload with gcc into OUT_DIR/preload.so, which the agent embeds too:
//! it is for other programs, and linked to their C library alone. Compiles the VFSes of vfs/ and
//! links them, and what this machine's libelf needs beside libz. All of it is for the processor
//! that the agent is for.

#[path = "src/system_calls/generator.rs"]
mod generator;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Folder of kernel/, and the program in it.
const PROGRAMS: [(&str, &str); 3] =
    [("block", "attribution"), ("calls", "calls"), ("recorder", "recorder")];

fn main() {
    system_calls(&PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("src/system_calls"));
    let kernel = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../kernel");
    println!("cargo::rerun-if-changed={}", kernel.join("bpf").display());
    for (folder, name) in PROGRAMS {
        let sources = kernel.join(folder);
        println!("cargo::rerun-if-changed={}", sources.display());
        compile(&sources, name, name, &[]);
        compile(&sources, name, &format!("{name}_before_5_17"), &["-DBEFORE_5_17"]);
    }
    preload(&PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("preload"));
    sqlite_vfs(&PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../vfs"));
    libelf(&PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("libelf"));
}

/// Makes the agent's tables of system calls, and the header of the BPF programs.
fn system_calls(folder: &Path) {
    println!("cargo::rerun-if-changed={}", folder.display());
    let table = std::fs::read_to_string(folder.join("table.txt"));
    let made = generator::generate(&table.expect("the table of system calls is there"));
    for (name, text) in [
        ("numbers.rs", made.numbers),
        ("recorded_calls.rs", made.recorded),
        ("replayed_calls.rs", made.replayed),
        ("system_calls.h", made.header),
    ] {
        let path = Path::new(&variable("OUT_DIR")).join(name);
        std::fs::write(&path, text).unwrap_or_else(|it| panic!("{}: {it}", path.display()));
    }
}

fn compile(sources: &Path, name: &str, object: &str, flags: &[&str]) {
    let object = Path::new(&variable("OUT_DIR")).join(format!("{object}.bpf.o"));
    run(Command::new("clang")
        .current_dir(sources)
        .args(["-g", "-O2", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror"])
        .args(flags)
        // The headers that come with the libbpf we link, and the system's <linux/bpf.h>.
        .arg(format!("-I{}", variable("DEP_BPF_INCLUDE")))
        .arg(format!("-I{}", variable("OUT_DIR")))
        .arg(format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH))
        .arg(format!("-D__TARGET_ARCH_{}", kernel_word(&variable("CARGO_CFG_TARGET_ARCH"))))
        .args([&format!("-fdebug-prefix-map={}=.", sources.display()), "-fdebug-compilation-dir=."])
        .args(["-c", &format!("{name}.bpf.c"), "-o"])
        .arg(&object));
    run(Command::new("llvm-strip").arg("-g").arg(&object));
}

/// Return what the kernel calls a processor, and bpf_tracing.h of libbpf.
fn kernel_word(processor: &str) -> &'static str {
    match processor {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => panic!("joj-agent is for x86_64 and aarch64, not for {other}"),
    }
}

/// Return the compiler for the processor that the agent is for.
fn gcc() -> Command {
    Command::new(format!("{}-linux-gnu-gcc", variable("CARGO_CFG_TARGET_ARCH")))
}

/// The names of a folder's files with an extension, in their order.
fn file_names(folder: &Path, extension: &str) -> Vec<String> {
    let names: std::io::Result<Vec<_>> = std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
    let names = names.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<String> = names.iter().map(|it| it.to_string_lossy().into()).collect();
    names.retain(|name| Path::new(name).extension().is_some_and(|it| it == extension));
    names.sort();
    names
}

fn preload(folder: &Path) {
    println!("cargo::rerun-if-changed={}", folder.display());
    run(gcc()
        .current_dir(folder)
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-fvisibility=hidden"])
        .args(["-shared", "-s", "-Wl,--build-id=none", "-Wl,-z,defs"])
        .args(file_names(folder, "c"))
        .arg("-o")
        .arg(Path::new(&variable("OUT_DIR")).join("preload.so")));
}

/// The VFSes of vfs/ as a program has them that links SQLite. Their syncs are calls of
/// src/sqlite/sync_call.rs, which counts them and may leave them out, as SQLite's own are.
fn sqlite_vfs(folder: &Path) {
    let (headers, files) = (file_names(folder, "h"), file_names(folder, "c"));
    let names = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("older_sqlite/vfs_names.h");
    println!("cargo::rerun-if-changed={}", names.display());
    // Not the folder: what `make cure` builds is there too.
    for name in headers.iter().chain(&files) {
        println!("cargo::rerun-if-changed={}", folder.join(name).display());
    }
    for name in files {
        // Programs of their own, and what the dynamic linker puts before a SQLite.
        if ["preload.c", "redo_leave.c"].contains(&name.as_str()) {
            continue;
        }
        let object = Path::new(&variable("OUT_DIR")).join(&name).with_extension("o");
        run(gcc()
            .current_dir(folder)
            .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC"])
            .args(["-DSQLITE_CORE", "-Dfdatasync=joj_vfs_fdatasync", "-Dfsync=joj_vfs_fsync"])
            .arg(format!("-I{}", sqlite_headers()))
            .arg("-include")
            .arg(&names)
            .args(["-c", &name, "-o"])
            .arg(&object));
        println!("cargo::rustc-link-arg={}", object.display());
    }
    // The objects follow all libraries; a static libc is searched once more for what they call.
    if variable("CARGO_CFG_TARGET_FEATURE").split(',').any(|feature| feature == "crt-static") {
        println!("cargo::rustc-link-arg=-l:libc.a");
    }
}

/// From elfutils 0.189 on libelf unpacks sections by zstd too, where a distribution chose so; what
/// libbpf-sys links is libelf and libz. Arguments follow all libraries, as archives have to.
fn libelf(folder: &Path) {
    println!("cargo::rerun-if-changed={}", folder.display());
    let object = Path::new(&variable("OUT_DIR")).join("search_tree.o");
    run(gcc()
        .current_dir(folder)
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-ffunction-sections"])
        .args(["-c", "search_tree.c", "-o"])
        .arg(&object));
    println!("cargo::rustc-link-arg={}", object.display());
    let needed = output(Command::new("pkg-config").args(["--static", "--libs-only-l", "libelf"]));
    if needed.split_whitespace().any(|word| word == "-lzstd") {
        println!("cargo::rustc-link-arg=-l:libzstd.a");
    }
}

/// The folder of sqlite3.h: of what libsqlite3-sys comes with, or of another SQLite that it is told
/// to link (jojlab/guest/image/own_sqlite.py).
fn sqlite_headers() -> String {
    println!("cargo::rerun-if-env-changed=SQLITE3_INCLUDE_DIR");
    std::env::var("DEP_SQLITE3_INCLUDE").unwrap_or_else(|_| variable("SQLITE3_INCLUDE_DIR"))
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo did not set {name}"))
}

fn run(command: &mut Command) {
    output(command.stdout(Stdio::inherit()));
}

fn output(command: &mut Command) -> String {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.stderr(Stdio::inherit()).output() {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into(),
        Ok(output) => panic!("{program} failed ({}) on {command:?}", output.status),
        Err(error) => panic!("{program}: {error}; apt-get install clang llvm gcc pkg-config"),
    }
}
