// SPDX-License-Identifier: GPL-2.0-only
/*
 * CRC-32C by the processor's instruction, for User Mode Linux, whose kernel has it by tables alone.
 * It takes the place of the weak function of lib/crc32.c. A mount that replays the log of ext4 or
 * XFS computes little else. The sums are the same.
 */
#include <linux/crc32.h>
#include <linux/string.h>

#include <asm/cpufeature.h>

/* The same by tables, of lib/crc32.c. */
u32 __pure __crc32c_le_base(u32 crc, unsigned char const *bytes, size_t length);

u32 __pure __crc32c_le(u32 crc, unsigned char const *bytes, size_t length)
{
	u64 sum = crc, word;

	if (!boot_cpu_has(X86_FEATURE_XMM4_2))
		return __crc32c_le_base(crc, bytes, length);
	for (; length >= sizeof(word); length -= sizeof(word), bytes += sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		asm("crc32q %1, %0" : "+r"(sum) : "rm"(word));
	}
	for (; length; length--, bytes++)
		asm("crc32b %1, %0" : "+r"(sum) : "rm"(*bytes));
	return sum;
}
