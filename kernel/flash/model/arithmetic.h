/* SPDX-License-Identifier: GPL-2.0-only */
/* Integer types and arithmetic of the flash model, the same in the kernel and in user space. */
#ifndef FLASH_ARITHMETIC_H
#define FLASH_ARITHMETIC_H

/* At least 64 bits by the C standard, and what the kernel's "ullong" parameters are made of. */
typedef unsigned long long flash_u64;
typedef unsigned int flash_u32;

#define FLASH_NS_PER_S 1000000000ULL
#define FLASH_NULL ((void *)0)

/* 64-bit division: 32-bit kernels have no operator for it, so there the glue brings it along. */
#ifdef __KERNEL__
flash_u64 flash_divide(flash_u64 dividend, flash_u64 divisor);
#else
static inline flash_u64 flash_divide(flash_u64 dividend, flash_u64 divisor)
{
	return dividend / divisor;
}
#endif

static inline flash_u64 flash_divide_up(flash_u64 dividend, flash_u64 divisor)
{
	flash_u64 quotient = flash_divide(dividend, divisor);

	return quotient + (quotient * divisor != dividend);
}

static inline flash_u64 flash_min(flash_u64 a, flash_u64 b)
{
	return a < b ? a : b;
}

static inline flash_u64 flash_max(flash_u64 a, flash_u64 b)
{
	return a > b ? a : b;
}

/* Rounded up. No overflow: a length is below 2^32, and NS_PER_S below 2^30. */
static inline flash_u64 flash_transfer_ns(flash_u64 length_bytes, flash_u64 bandwidth_bytes_per_s)
{
	return flash_divide_up(length_bytes * FLASH_NS_PER_S, bandwidth_bytes_per_s);
}

#endif
