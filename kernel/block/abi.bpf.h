/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * System calls of programs that are not of 64 bits. A 32-bit program, and on x86_64 one of 64 bits
 * that uses int $0x80, has other numbers for its calls, and on x86 other registers for their
 * arguments: its nanosleep is 162, which is sync to others. The number is made that of x86_64, by
 * which everything else goes. Programs of x32 have the numbers of x86_64 and a bit in them, but for
 * calls whose structures differ.
 *
 * Every system call of the machine is looked up in the table natives, so that it has only those
 * that wait, write, or change something; other_natives has the others that have a name. Both are of
 * agent/src/system_calls/table.txt.
 */
#ifndef JOJ_ABI_BPF_H
#define JOJ_ABI_BPF_H

#ifdef __TARGET_ARCH_arm64
static const __u16 natives[CALLS_LIMIT] = { NATIVES_OF_ARM };
static const __u16 other_natives[CALLS_LIMIT] = { OTHER_NATIVES_OF_ARM };
#else
static const __u16 natives[CALLS_LIMIT] = { NATIVES_OF_I386 };
static const __u16 other_natives[CALLS_LIMIT] = { OTHER_NATIVES_OF_I386 };

static __always_inline __u32 native_of_x32(__u32 number)
{
	switch (number) {
	CASES_OF_X32
	default:
		return number;
	}
}
#endif

/* A system call: its number on x86_64, or the one it has and OF_32_BITS or OF_ARM64. */
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

static __always_inline struct call call_of(const struct task_struct *task, __u64 number)
{
	struct call call = { .number = number, .is_32_bit = false };

	if (IS_32_BIT(task)) {
		call.is_32_bit = true;
		call.number = native_of(number);
		return call;
	}
#ifdef __TARGET_ARCH_arm64
	call.number = number_on_x86_64(number);
#else
	if (IS_X32(number))
		call.number = native_of_x32(number & ~X32_CALL);
#endif
	return call;
}

/* Its arguments, from the first on. */
#ifdef __TARGET_ARCH_arm64
#define ARGUMENT(call, of_64)                                                                   \
	((call).is_32_bit ? (__u64)(__u32)(of_64) : (__u64)(of_64))
#define ARGUMENT_1(call, registers) ARGUMENT(call, REGISTER_1(registers))
#define ARGUMENT_2(call, registers) ARGUMENT(call, REGISTER_2(registers))
#define ARGUMENT_3(call, registers) ARGUMENT(call, REGISTER_3(registers))
#define ARGUMENT_4(call, registers) ARGUMENT(call, REGISTER_4(registers))
#define ARGUMENT_5(call, registers) ARGUMENT(call, REGISTER_5(registers))
#define ARGUMENT_6(call, registers) ARGUMENT(call, REGISTER_6(registers))
#else
#define ARGUMENT(call, registers, of_64, of_32)                                                 \
	((call).is_32_bit ? (__u64)(__u32)(registers)->of_32 : (__u64)(registers)->of_64)
#define ARGUMENT_1(call, registers) ARGUMENT(call, registers, di, bx)
#define ARGUMENT_2(call, registers) ARGUMENT(call, registers, si, cx)
#define ARGUMENT_3(call, registers) ARGUMENT(call, registers, dx, dx)
#define ARGUMENT_4(call, registers) ARGUMENT(call, registers, r10, si)
#define ARGUMENT_5(call, registers) ARGUMENT(call, registers, r8, di)
#define ARGUMENT_6(call, registers) ARGUMENT(call, registers, r9, bp)
#endif

#endif
