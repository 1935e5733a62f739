/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls of 32-bit programs of x86, by their numbers there (arch/x86/entry/syscalls/syscall_32.tbl),
 * and those of x32: see abi.bpf.h. tests/tidy compares the tables with the system's headers.
 */
#ifndef JOJ_ABI_X86_BPF_H
#define JOJ_ABI_X86_BPF_H

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

#endif
