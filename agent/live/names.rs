//! Names that mean something else to the process that gives them: under another root directory,
//! among other mounts, and to a program of 32 bits. A file of this machine must not get another's.

use serde_json::json;

use crate::support::{assert_complete, file, mount_disk, note_skip, run, written_data};

/// In a chroot and in a mount namespace, each with files of the same paths as those that are
/// traced; and in a chroot that is in what is traced. What it is given: mount point, an empty
/// folder elsewhere.
const ELSEWHERE: &str = r#"
import ctypes, os, sys
mount_point, other = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)

def write(path, data=b"x" * 8192):
    file = os.open(path, os.O_CREAT | os.O_RDWR)
    os.pwrite(file, data, 0); os.fsync(file); os.close(file)

def aside(work):
    child = os.fork()
    if child == 0:
        work(); os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

def mislead():
    os.makedirs(f"{mount_point}/a", exist_ok=True)
    for name in ["b.db", "gone"]:
        open(f"{mount_point}/a/{name}", "w").close()
    os.rename(f"{mount_point}/a/b.db", f"{mount_point}/a/evil.txt")
    os.unlink(f"{mount_point}/a/gone")

def in_chroot():
    os.chroot(other); os.chdir("/"); mislead()

def in_namespace():
    assert libc.unshare(0x20000) == 0                                   # CLONE_NEWNS
    assert libc.mount(b"none", b"/", None, 0x4000 | 1 << 18, None) == 0  # MS_REC | MS_PRIVATE
    assert libc.mount(b"none", mount_point.encode(), b"tmpfs", 0, None) == 0
    mislead()

def within():
    os.chroot(f"{mount_point}/a"); os.chdir("/")
    os.rename("/own.txt", "/moved.txt")

os.mkdir(f"{mount_point}/a")
for name in ["b.db", "own.txt", "gone", "deleted"]:
    write(f"{mount_point}/a/{name}")
for work in [in_chroot, in_namespace, within]:
    aside(work)
write(f"{mount_point}/a/b.db")
os.unlink(f"{mount_point}/a/deleted")
"#;

#[test]
fn a_file_keeps_its_name_when_one_of_the_same_path_elsewhere_is_renamed() {
    let Some(mounted) = mount_disk("ext4", "defaults", 0) else { return };
    let other = tempfile::tempdir().unwrap();
    let places = [&mounted.mountpoint, other.path()].map(|path| path.display().to_string());
    let [mount_point, other] = &places;
    let capture = mounted.trace(&["python3", "-c", ELSEWHERE, mount_point, other]);
    assert_complete(&capture);
    let database = file(&capture, "/a/b.db");
    let history = database["path_history"].as_str().unwrap();
    assert_eq!((&database["file_kind"], history.matches("path").count()), (&"db".into(), 1));
    assert_eq!(written_data(&capture, "/a/b.db").0, 2 * 8192);
    assert_eq!(written_data(&capture, "/a/moved.txt").0, 8192);
    for (path, unlinked) in [("/a/gone", false), ("/a/deleted", true)] {
        assert_eq!(file(&capture, path)["unlinked"], unlinked, "{path}");
    }
    for request in capture["requests"].as_array().unwrap() {
        let reason = request["reason"].as_str().unwrap_or_default();
        assert!(!reason.contains("evil") && !reason.contains("gone: unlinked"), "{reason}");
    }
    // Two absolute names of a rename and one of an unlink, in each; and those before them.
    assert!(capture["unmatched_names"].as_u64() >= Some(6), "{}", capture["unmatched_names"]);
}

/// Calls by int $0x80, which takes a 32-bit program's numbers: open, write, fsync and rename; and
/// nanosleep, whose number is sync's to a 64-bit program. Static and at low addresses, because its
/// pointers must fit.
const OLD_CALLS: &str = r#"
static int call(int number, long first, long second, long third)
{
	int result;

	__asm__ volatile("int $0x80" : "=a"(result)
			 : "a"(number), "b"(first), "c"(second), "d"(third)
			 : "memory", "r8", "r9", "r10", "r11");
	return result;
}

static char data[8192] = "x";
static unsigned int pause[2] = { 0, 1000 };

void _start(void)
{
	int file = call(5, (long)"/proc/self/cwd/old.db", 0102, 0644), failed = file < 0;

	failed |= call(4, file, (long)data, sizeof(data)) != sizeof(data);
	failed |= call(118, file, 0, 0) != 0;
	failed |= call(38, (long)"old.db", (long)"new.db", 0) != 0;
	failed |= call(162, (long)pause, 0, 0) != 0;
	call(1, failed, 0, 0);
}
"#;

#[test]
fn calls_of_a_32_bit_program_are_what_they_are_to_it() {
    let Some(mounted) = mount_disk("ext4", "defaults", 0) else { return };
    let folder = tempfile::tempdir().unwrap();
    let paths = ["old.c", "old"].map(|name| folder.path().join(name).display().to_string());
    let [source, program] = &paths;
    std::fs::write(source, OLD_CALLS).unwrap();
    let flags = ["-O1", "-static", "-nostdlib", "-no-pie", "-fno-pie", "-fno-stack-protector"];
    run("cc", &[&flags[..], &["-o", program, source]].concat()).unwrap();
    let alone = std::process::Command::new(program).current_dir(folder.path()).status().unwrap();
    if alone.code().is_none() {
        note_skip("this kernel has no 32-bit calls");
        return;
    }
    assert!(alone.success(), "{alone}");
    let capture = mounted.trace_to(4, &[program]);
    assert_complete(&capture);
    let reason = "1 sync of 32-bit or x32 programs, whose commits are not found";
    assert_eq!(capture["incomplete_reasons"], json!([reason]));
    assert_eq!(written_data(&capture, "/new.db").0, 8192);
    assert!(file(&capture, "/new.db")["path_history"].as_str().unwrap().contains("/old.db"));
    let calls = |column: &str| {
        let requests = capture["requests"].as_array().unwrap().iter();
        requests.filter_map(|request| request[column].as_str()).collect::<Vec<_>>()
    };
    assert!(calls("asker_call").contains(&"fsync"), "{:?}", calls("asker_call"));
    assert!(!calls("asker_call").contains(&"sync"), "nanosleep is no sync");
    assert!(!calls("submitter_call").iter().any(|call| call.contains("call ")));
}
