/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * System calls of programs that are not of 64 bits. A 32-bit program, and a 64-bit one that uses
 * int $0x80, has other numbers for its calls (arch/x86/entry/syscalls/syscall_32.tbl) and other
 * registers for their arguments: its nanosleep is 162, which is sync to others. The number is made
 * that of x86_64, by which everything else goes. Programs of x32 have the numbers of x86_64 and a
 * bit in them, but for calls whose structures differ.
 */
#ifndef JOJ_ABI_BPF_H
#define JOJ_ABI_BPF_H

#define TS_COMPAT 2		/* arch/x86/include/asm/thread_info.h: in a call of 32 bits */
#define X32_CALL 0x40000000	/* __X32_SYSCALL_BIT of arch/x86/include/uapi/asm/unistd.h */

#define CALLS_LIMIT 512
#define HAS_NATIVE 0x8000
#define NATIVE(number) ((number) | HAS_NATIVE)

/*
 * By their numbers of 32 bits. Every system call of the machine is looked up in the first table, so
 * that it has only those that wait, write, or change something; the second one has the others that
 * have a name in agent/src/tracer/causes/calls.rs. tests/tidy compares both with the system's
 * headers.
 */
static const __u16 natives[CALLS_LIMIT] = {
	[4 /* write */] = NATIVE(1),
	[5 /* open */] = NATIVE(2),
	[8 /* creat */] = NATIVE(85),
	[9 /* link */] = NATIVE(86),
	[10 /* unlink */] = NATIVE(87),
	[22 /* umount */] = NATIVE(166),
	[36 /* sync */] = NATIVE(162),
	[38 /* rename */] = NATIVE(82),
	[39 /* mkdir */] = NATIVE(83),
	[40 /* rmdir */] = NATIVE(84),
	[52 /* umount2 */] = NATIVE(166),
	[54 /* ioctl */] = NATIVE(16),
	[83 /* symlink */] = NATIVE(88),
	[92 /* truncate */] = NATIVE(76),
	[93 /* ftruncate */] = NATIVE(77),
	[94 /* fchmod */] = NATIVE(91),
	[95 /* fchown */] = NATIVE(93),
	[118 /* fsync */] = NATIVE(74),
	[144 /* msync */] = NATIVE(26),
	[146 /* writev */] = NATIVE(20),
	[148 /* fdatasync */] = NATIVE(75),
	[181 /* pwrite64 */] = NATIVE(18),
	[193 /* truncate64 */] = NATIVE(76),
	[194 /* ftruncate64 */] = NATIVE(77),
	[207 /* fchown32 */] = NATIVE(93),
	[228 /* fsetxattr */] = NATIVE(190),
	[295 /* openat */] = NATIVE(257),
	[296 /* mkdirat */] = NATIVE(258),
	[301 /* unlinkat */] = NATIVE(263),
	[302 /* renameat */] = NATIVE(264),
	[303 /* linkat */] = NATIVE(265),
	[304 /* symlinkat */] = NATIVE(266),
	[314 /* sync_file_range */] = NATIVE(277),
	[324 /* fallocate */] = NATIVE(285),
	[334 /* pwritev */] = NATIVE(296),
	[344 /* syncfs */] = NATIVE(306),
	[353 /* renameat2 */] = NATIVE(316),
	[379 /* pwritev2 */] = NATIVE(328),
	[437 /* openat2 */] = NATIVE(437),
};

static const __u16 other_natives[CALLS_LIMIT] = {
	[1 /* exit */] = NATIVE(60),
	[3 /* read */] = NATIVE(0),
	[6 /* close */] = NATIVE(3),
	[11 /* execve */] = NATIVE(59),
	[15 /* chmod */] = NATIVE(90),
	[18 /* oldstat */] = NATIVE(4),
	[21 /* mount */] = NATIVE(165),
	[28 /* oldfstat */] = NATIVE(5),
	[33 /* access */] = NATIVE(21),
	[84 /* oldlstat */] = NATIVE(6),
	[87 /* swapon */] = NATIVE(167),
	[90 /* mmap */] = NATIVE(9),
	[91 /* munmap */] = NATIVE(11),
	[106 /* stat */] = NATIVE(4),
	[107 /* lstat */] = NATIVE(6),
	[108 /* fstat */] = NATIVE(5),
	[115 /* swapoff */] = NATIVE(168),
	[141 /* getdents */] = NATIVE(78),
	[145 /* readv */] = NATIVE(19),
	[180 /* pread64 */] = NATIVE(17),
	[187 /* sendfile */] = NATIVE(40),
	[192 /* mmap2 */] = NATIVE(9),
	[195 /* stat64 */] = NATIVE(4),
	[196 /* lstat64 */] = NATIVE(6),
	[197 /* fstat64 */] = NATIVE(5),
	[219 /* madvise */] = NATIVE(28),
	[220 /* getdents64 */] = NATIVE(217),
	[225 /* readahead */] = NATIVE(187),
	[239 /* sendfile64 */] = NATIVE(40),
	[248 /* io_submit */] = NATIVE(209),
	[250 /* fadvise64 */] = NATIVE(221),
	[252 /* exit_group */] = NATIVE(231),
	[272 /* fadvise64_64 */] = NATIVE(221),
	[300 /* fstatat64 */] = NATIVE(262),
	[313 /* splice */] = NATIVE(275),
	[333 /* preadv */] = NATIVE(295),
	[358 /* execveat */] = NATIVE(322),
	[377 /* copy_file_range */] = NATIVE(326),
	[378 /* preadv2 */] = NATIVE(327),
	[383 /* statx */] = NATIVE(332),
	[426 /* io_uring_enter */] = NATIVE(426),
};

/* A system call: its number on x86_64, or OF_32_BITS and the number that it has there. */
struct call {
	__u32 number;
	bool is_32_bit;
};

static __always_inline __u32 native_of(__u32 number)
{
	__u32 place = number, native;

	if (number >= CALLS_LIMIT)
		return OF_32_BITS | number;
	/* The verifier of 6.1 forgets the check when the number goes to the stack and back. */
	asm volatile("" : "+r"(place));
	native = natives[place & (CALLS_LIMIT - 1)];
	if (!native)
		native = other_natives[place & (CALLS_LIMIT - 1)];
	return native ? native & ~HAS_NATIVE : OF_32_BITS | number;
}

static __always_inline __u32 native_of_x32(__u32 number)
{
	switch (number) {
	case 514:
		return 16;	/* ioctl */
	case 515:
		return 19;	/* readv */
	case 516:
		return 20;	/* writev */
	case 534:
		return 295;	/* preadv */
	case 535:
		return 296;	/* pwritev */
	case 546:
		return 327;	/* preadv2 */
	case 547:
		return 328;	/* pwritev2 */
	default:
		return number;
	}
}

static __always_inline struct call call_of(const struct task_struct *task, __u64 number)
{
	struct call call = { .number = number, .is_32_bit = false };

	if (OF_TASK(task, thread_info.status) & TS_COMPAT) {
		call.is_32_bit = true;
		call.number = native_of(number);
	} else if (number & X32_CALL && number < 2ULL * X32_CALL) {
		call.number = native_of_x32(number & ~X32_CALL);
	}
	return call;
}

/* Its arguments, from the first on. */
#define ARGUMENT(call, registers, of_64, of_32)                                                 \
	((call).is_32_bit ? (__u64)(__u32)(registers)->of_32 : (__u64)(registers)->of_64)
#define ARGUMENT_1(call, registers) ARGUMENT(call, registers, di, bx)
#define ARGUMENT_2(call, registers) ARGUMENT(call, registers, si, cx)
#define ARGUMENT_3(call, registers) ARGUMENT(call, registers, dx, dx)
#define ARGUMENT_4(call, registers) ARGUMENT(call, registers, r10, si)
#define ARGUMENT_5(call, registers) ARGUMENT(call, registers, r8, di)
#define ARGUMENT_6(call, registers) ARGUMENT(call, registers, r9, bp)

#endif
