/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The numbers of system calls on x86_64, by which everything else goes, whatever processor this is:
 * arm64 has others (include/uapi/asm-generic/unistd.h), and no open, rename or unlink but those
 * that take a directory. tests/tidy compares the table with the system's headers.
 */
#ifndef JOJ_NATIVES_BPF_H
#define JOJ_NATIVES_BPF_H

#define CALLS_LIMIT 512
#define HAS_NATIVE 0x8000
#define NATIVE(number) ((number) | HAS_NATIVE)

#define OF_ARM64 0x20000000U	/* a call's number is arm64's: nothing here knows it by another */

#ifdef __TARGET_ARCH_arm64

static const __u16 of_arm64[CALLS_LIMIT] = {
	[2 /* io_submit */] = NATIVE(209),
	[7 /* fsetxattr */] = NATIVE(190),
	[25 /* fcntl */] = NATIVE(72),
	[29 /* ioctl */] = NATIVE(16),
	[34 /* mkdirat */] = NATIVE(258),
	[35 /* unlinkat */] = NATIVE(263),
	[36 /* symlinkat */] = NATIVE(266),
	[37 /* linkat */] = NATIVE(265),
	[38 /* renameat */] = NATIVE(264),
	[39 /* umount2 */] = NATIVE(166),
	[40 /* mount */] = NATIVE(165),
	[45 /* truncate */] = NATIVE(76),
	[46 /* ftruncate */] = NATIVE(77),
	[47 /* fallocate */] = NATIVE(285),
	[52 /* fchmod */] = NATIVE(91),
	[55 /* fchown */] = NATIVE(93),
	[56 /* openat */] = NATIVE(257),
	[57 /* close */] = NATIVE(3),
	[61 /* getdents64 */] = NATIVE(217),
	[63 /* read */] = NATIVE(0),
	[64 /* write */] = NATIVE(1),
	[65 /* readv */] = NATIVE(19),
	[66 /* writev */] = NATIVE(20),
	[67 /* pread64 */] = NATIVE(17),
	[68 /* pwrite64 */] = NATIVE(18),
	[69 /* preadv */] = NATIVE(295),
	[70 /* pwritev */] = NATIVE(296),
	[71 /* sendfile */] = NATIVE(40),
	[76 /* splice */] = NATIVE(275),
	[79 /* newfstatat */] = NATIVE(262),
	[80 /* fstat */] = NATIVE(5),
	[81 /* sync */] = NATIVE(162),
	[82 /* fsync */] = NATIVE(74),
	[83 /* fdatasync */] = NATIVE(75),
	[84 /* sync_file_range */] = NATIVE(277),
	[93 /* exit */] = NATIVE(60),
	[94 /* exit_group */] = NATIVE(231),
	[213 /* readahead */] = NATIVE(187),
	[215 /* munmap */] = NATIVE(11),
	[221 /* execve */] = NATIVE(59),
	[222 /* mmap */] = NATIVE(9),
	[223 /* fadvise64 */] = NATIVE(221),
	[224 /* swapon */] = NATIVE(167),
	[225 /* swapoff */] = NATIVE(168),
	[227 /* msync */] = NATIVE(26),
	[233 /* madvise */] = NATIVE(28),
	[267 /* syncfs */] = NATIVE(306),
	[276 /* renameat2 */] = NATIVE(316),
	[281 /* execveat */] = NATIVE(322),
	[285 /* copy_file_range */] = NATIVE(326),
	[286 /* preadv2 */] = NATIVE(327),
	[287 /* pwritev2 */] = NATIVE(328),
	[291 /* statx */] = NATIVE(332),
	[426 /* io_uring_enter */] = NATIVE(426),
	[437 /* openat2 */] = NATIVE(437),
};

static __always_inline __u32 number_on_x86_64(__u64 number)
{
	__u32 place = number, native;

	if (number >= CALLS_LIMIT)
		return OF_ARM64 | number;
	/* The verifier of 6.1 forgets the check when the number goes to the stack and back. */
	asm volatile("" : "+r"(place));
	native = of_arm64[place & (CALLS_LIMIT - 1)];
	return native ? native & ~HAS_NATIVE : OF_ARM64 | place;
}

#else

static __always_inline __u32 number_on_x86_64(__u64 number)
{
	return number;
}

#endif

#endif
