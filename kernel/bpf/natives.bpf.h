/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The numbers of system calls on x86_64, by which everything else goes, whatever processor this is:
 * arm64 has others, and no open, rename or unlink but those that take a directory.
 */
#ifndef JOJ_NATIVES_BPF_H
#define JOJ_NATIVES_BPF_H

#define CALLS_LIMIT 512
#define HAS_NATIVE 0x8000
#define NATIVE(number) ((number) | HAS_NATIVE)

#include "system_calls.h"	/* of agent/src/system_calls/table.txt */

#define OF_ARM64 0x20000000U	/* a call's number is arm64's: nothing here knows it by another */

#ifdef __TARGET_ARCH_arm64

static const __u16 of_arm64[CALLS_LIMIT] = {
	NATIVES_OF_ARM64
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
