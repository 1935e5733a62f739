/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The facts of the processor that the programs are compiled for, x86_64 or arm64: where a
 * system call has its number and arguments, which calls are those of 32-bit programs, the flags of
 * open(2) that differ, pages, stacks, and the order of stores. Comes after kernel_age.bpf.h and
 * before the struct task_struct of the program that includes it, which has the field thread_info.
 *
 * A call's first argument and its result share a register on arm64: orig_x0 is the argument until
 * the call is over.
 */
#ifndef JOJ_PROCESSOR_BPF_H
#define JOJ_PROCESSOR_BPF_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#ifdef __TARGET_ARCH_arm64

struct pt_regs {
	__u64 regs[31];
	__u64 orig_x0;
	__s32 syscallno;
};

struct thread_info {
	unsigned long flags;
};

#else

struct pt_regs {
	unsigned long di, si, dx, r10, r8, r9, orig_ax;
	unsigned long bx, cx, bp;	/* arguments of 32-bit programs */
};

struct thread_info {
	__u32 status;
};

#endif
#pragma clang attribute pop

#ifdef __TARGET_ARCH_arm64

#define TIF_32BIT 22		/* arch/arm64/include/asm/thread_info.h */
#define IS_32_BIT(task) (OF_TASK(task, thread_info.flags) >> TIF_32BIT & 1)
#define IS_X32(number) false

#define CALL_NUMBER(registers) ((__u64)(registers)->syscallno)
#define REGISTER_1(registers) ((registers)->orig_x0)
#define REGISTER_2(registers) ((registers)->regs[1])
#define REGISTER_3(registers) ((registers)->regs[2])
#define REGISTER_4(registers) ((registers)->regs[3])
#define REGISTER_5(registers) ((registers)->regs[4])
#define REGISTER_6(registers) ((registers)->regs[5])
#define REGISTERS_WORDS 48	/* struct pt_regs has no more on any kernel */

#define O_DIRECT 0200000	/* arch/arm64/include/uapi/asm/fcntl.h */
#define STAT_BYTES 128		/* struct stat of include/uapi/asm-generic/stat.h */

#define PAGE_SHIFT settings.page_shift
#define THREAD_BYTES (1ULL << (PAGE_SHIFT > 14 ? PAGE_SHIFT : 14))	/* asm/memory.h */

/* Stores a word of 64 bits that others see after all stores before it: a swap orders all. */
static __always_inline void store_last(__u64 *place, __u64 value)
{
	barrier();
	__sync_lock_test_and_set(place, value);
}

#else

#define TS_COMPAT 2		/* arch/x86/include/asm/thread_info.h: in a call of 32 bits */
#define IS_32_BIT(task) (OF_TASK(task, thread_info.status) & TS_COMPAT)
#define X32_CALL 0x40000000	/* __X32_SYSCALL_BIT of arch/x86/include/uapi/asm/unistd.h */
#define IS_X32(number) ((number) & X32_CALL && (__u64)(number) < 2ULL * X32_CALL)

#define CALL_NUMBER(registers) ((registers)->orig_ax)
#define REGISTER_1(registers) ((registers)->di)
#define REGISTER_2(registers) ((registers)->si)
#define REGISTER_3(registers) ((registers)->dx)
#define REGISTER_4(registers) ((registers)->r10)
#define REGISTER_5(registers) ((registers)->r8)
#define REGISTER_6(registers) ((registers)->r9)
#define REGISTERS_WORDS 32

#define O_DIRECT 040000		/* include/uapi/asm-generic/fcntl.h */
#define STAT_BYTES 144		/* struct stat of arch/x86/include/uapi/asm/stat.h */

#define PAGE_SHIFT 12
#define THREAD_BYTES 16384	/* THREAD_SIZE of arch/x86/include/asm/page_64_types.h */

/* Likewise: all stores are seen in their order here. */
static __always_inline void store_last(__u64 *place, __u64 value)
{
	barrier();
	*(volatile __u64 *)place = value;
}

#endif

#define PAGE_BYTES (1U << PAGE_SHIFT)

#endif
