// SPDX-License-Identifier: GPL-2.0-only
/*
 * CRC-32C by the processor's instruction, for User Mode Linux, whose kernel has it by tables alone.
 * It takes the place of the weak function of lib/crc32.c. A mount that replays the log of ext4 or
 * XFS computes little else. The sums are the same.
 *
 * The instruction takes three cycles, and one may begin in each: three parts of a block are summed
 * at a time. The sum of what follows a part is then added to that of the part followed by as many
 * zeroes. That is linear, so it is looked up for each byte of the sum.
 */
#include <linux/crc32.h>

#include <asm/cpufeature.h>
#include <asm/unaligned.h>

/* A third of a block of a filesystem, less some words. */
#define PART_BYTES 1360
#define PART_WORDS (PART_BYTES / sizeof(u64))

/* Of each byte of a sum at its place: the sum after a part of zeroes. */
static u32 after_zeroes[sizeof(u32)][256];

/* The same by tables, of lib/crc32.c. */
u32 __pure __crc32c_le_base(u32 crc, unsigned char const *bytes, size_t length);

/* Not by memcpy(): where the kernel is built with -fno-builtin, that is a call for each word. */
static inline u64 with_word(u64 sum, const unsigned char *bytes)
{
	asm("crc32q %1, %0" : "+r"(sum) : "rm"(get_unaligned((const u64 *)bytes)));
	return sum;
}

static u32 with_zeroes(u32 sum)
{
	return after_zeroes[0][sum & 255] ^ after_zeroes[1][sum >> 8 & 255] ^
	       after_zeroes[2][sum >> 16 & 255] ^ after_zeroes[3][sum >> 24];
}

static void fill_after_zeroes(void)
{
	static const unsigned char zeroes[sizeof(u64)];
	size_t place, byte, word;

	for (place = 0; place < sizeof(u32); place++)
		for (byte = 0; byte < 256; byte++) {
			u64 sum = (u32)byte << 8 * place;

			for (word = 0; word < PART_WORDS; word++)
				sum = with_word(sum, zeroes);
			after_zeroes[place][byte] = sum;
		}
}

static u32 with_three_parts(u64 first, const unsigned char *bytes)
{
	u64 second = 0, third = 0;
	size_t word;

	if (!after_zeroes[0][1])
		fill_after_zeroes();
	for (word = 0; word < PART_WORDS; word++, bytes += sizeof(u64)) {
		first = with_word(first, bytes);
		second = with_word(second, bytes + PART_BYTES);
		third = with_word(third, bytes + 2 * PART_BYTES);
	}
	return with_zeroes(with_zeroes(first) ^ second) ^ third;
}

u32 __pure __crc32c_le(u32 crc, unsigned char const *bytes, size_t length)
{
	u64 sum = crc;

	if (!boot_cpu_has(X86_FEATURE_XMM4_2))
		return __crc32c_le_base(crc, bytes, length);
	for (; length >= 3 * PART_BYTES; length -= 3 * PART_BYTES, bytes += 3 * PART_BYTES)
		sum = with_three_parts(sum, bytes);
	for (; length >= sizeof(u64); length -= sizeof(u64), bytes += sizeof(u64))
		sum = with_word(sum, bytes);
	for (; length; length--, bytes++)
		asm("crc32b %1, %0" : "+r"(sum) : "rm"(*bytes));
	return sum;
}
