// SPDX-License-Identifier: GPL-2.0-only
/*
 * The vector and floating-point registers of a process of User Mode Linux, which it saves at each
 * stop of the process and puts back after it: 2.4 KiB, and two calls of six. Between, none changes
 * unless something else runs in that process of the host. So those of init, which is the agent,
 * stay there over a system call, and are saved once another task is about to run there.
 *
 * Init alone, as it never ends. Where it makes another process, that begins with what is saved, so
 * these calls save.
 */
#include <linux/signal.h>
#include <asm/unistd.h>

#include <kern_util.h>
#include <registers.h>
#include <sysdep/ptrace.h>

#define INIT 1
/* What the tracer is told of a stop at a system call (ptrace(2), PTRACE_O_TRACESYSGOOD). */
#define AT_SYSTEM_CALL ((SIGTRAP | 0x80) << 8 | 0x7f)

int put_vector_registers(int process, struct uml_pt_regs *registers);
int get_vector_registers(int process, struct uml_pt_regs *registers, int status);

/* Those of init while it is at a system call, and the process of the host that holds them then. */
static struct uml_pt_regs *unsaved;
static int holder;

int put_vector_registers(int process, struct uml_pt_regs *registers)
{
	int error = 0;

	if (unsaved && holder == process) {
		if (unsaved == registers)
			return 0;
		error = get_fp_registers(process, unsaved->fp);
		unsaved = NULL;
	}
	return error ? error : put_fp_registers(process, registers->fp);
}

int get_vector_registers(int process, struct uml_pt_regs *registers, int status)
{
	if (unsaved == registers)
		unsaved = NULL;
	if (status == AT_SYSTEM_CALL && get_current_pid() == INIT) {
		switch (registers->gp[HOST_ORIG_AX]) {
		case __NR_clone:
		case __NR_clone3:
		case __NR_fork:
		case __NR_vfork:
		case __NR_execve:
		case __NR_execveat:
		case __NR_rt_sigreturn:
			break;
		default:
			unsaved = registers;
			holder = process;
			return 0;
		}
	}
	return get_fp_registers(process, registers->fp);
}
