/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes up for what kernels before 5.17 lack of BPF. Every program is compiled twice;
 * user space loads the one made with BEFORE_5_17 where the kernel has no bpf_loop (agent/src/bpf),
 * which is the youngest of what the other one uses:
 *
 *	bpf_loop				5.17	bounded loops
 *	bpf_task_pt_regs			5.15	the top of the thread's stack
 *	programs that are asked			5.14	a raw tracepoint's that is run by hand
 *	bpf_for_each_map_elem			5.13	nothing: see block/transactions.bpf.h
 *	atomic operations that return a value	5.12	numbers by processor; the kernel's ring
 *	bpf_get_current_task_btf		5.11	bpf_get_current_task, and reads by helper
 *
 * Comes before the struct task_struct of the program that includes it.
 */
#ifndef JOJ_KERNEL_AGE_BPF_H
#define JOJ_KERNEL_AGE_BPF_H

struct task_struct;

#ifdef BEFORE_5_17

/* A step of a loop; it returns 1 where the loop ends. */
#define STEP static __always_inline long

/* The verifier goes through every turn of it: keep LIMIT, and the step, small. */
#define REPEAT(limit, step, context)                                                            \
	do {                                                                                    \
		for (__u32 turn = 0; turn < (limit); turn++)                                    \
			if (step(turn, context))                                                \
				break;                                                          \
	} while (0)

/* The verifier takes it for a number: its fields are read with OF_TASK. */
static __always_inline struct task_struct *current_task(void)
{
	return (void *)bpf_get_current_task();
}

#define OF_TASK(task, field) READ(task_struct, task, field)
#define POINTER_OF_TASK(task, field) READ(task_struct, task, field)

#else

#define STEP static long
#define REPEAT(limit, step, context) bpf_loop(limit, step, context, 0)

static __always_inline struct task_struct *current_task(void)
{
	return (void *)bpf_get_current_task_btf();
}

#define OF_TASK(task, field) ((task)->field)	/* no pointer */
#define POINTER_OF_TASK(task, field) (UNTRUSTED(task_struct, task)->field)

#endif

#endif
