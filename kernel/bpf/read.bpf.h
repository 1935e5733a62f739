/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reading kernel memory behind an untyped address, at the offset and size that the running
 * kernel's BTF gives a field.
 *
 * Where the kernel has bpf_rdonly_cast (Linux 6.2), a read is one load instead of a helper call,
 * and the program costs well under half. The cast needs a type that is in vmlinux: types of
 * modules have numbers of their own. So every address is cast to struct qstr, which begins with a
 * union of a 32 and a 64 bit integer. Both ways answer 0 for an address that is not mapped.
 */
#ifndef JOJ_READ_BPF_H
#define JOJ_READ_BPF_H

/* The verifier drops the branch that this kernel lacks. */
const volatile struct settings settings SEC(".rodata.settings") = {};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct qstr {
	union {
		struct {
			__u32 hash, len;
		};
		__u64 hash_len;
	};
	const unsigned char *name;
};
#pragma clang attribute pop

#ifndef BEFORE_5_17
extern void *bpf_rdonly_cast(const void *object, __u32 btf_id) __ksym __weak;

/*
 * POINTER, to a struct TYPE of vmlinux, as one that the verifier does not trust. Of each pointer
 * that is loaded through one that it trusts it looks for a type of a certain name among all of the
 * kernel, on each way that leads there (btf_nested_type_is_trusted() of kernel/bpf/btf.c; Linux 6.5
 * has it, 6.2 has not); bench/README.md says what that took. All else is loaded through the trusted
 * one: that costs less.
 */
#define UNTRUSTED(type, pointer)                                                                \
	((struct type *)(settings.has_rdonly_cast ?                                             \
				 bpf_rdonly_cast(pointer, bpf_core_type_id_kernel(struct type)) :\
				 (void *)(pointer)))
#else
#define UNTRUSTED(type, pointer) (pointer)
#endif

static __always_inline __u64 read_memory(__u64 address, __u32 size)
{
#ifndef BEFORE_5_17
	if (settings.has_rdonly_cast) {
		struct qstr *words = bpf_rdonly_cast((void *)address,
						     bpf_core_type_id_kernel(struct qstr));

		if (size == 8)
			return words->hash_len;
		return words->hash & (size == 1 ? 0xff : size == 2 ? 0xffff : ~0U);
	}
#endif
	__u64 value = 0;

	if (size == 8)
		bpf_probe_read_kernel(&value, 8, (void *)address);
	else if (size == 4)
		bpf_probe_read_kernel(&value, 4, (void *)address);
	else if (size == 2)
		bpf_probe_read_kernel(&value, 2, (void *)address);
	else
		bpf_probe_read_kernel(&value, 1, (void *)address);
	return value;
}

/* The value of FIELD of the struct TYPE at ADDRESS, as an unsigned integer. */
#define READ(type, address, field)                                                              \
	read_memory((__u64)(address) +                                                          \
			    __builtin_preserve_field_info(((struct type *)0)->field,            \
							  BPF_FIELD_BYTE_OFFSET),               \
		    __builtin_preserve_field_info(((struct type *)0)->field,                    \
						  BPF_FIELD_BYTE_SIZE))

/* The first SIZE (a multiple of 8) bytes of the string at ADDRESS, which may be longer. */
#define READ_WORDS(destination, size, address)                                                  \
	do {                                                                                    \
		for (int word = 0; word < (size) / 8; word++)                                   \
			((__u64 *)(destination))[word] = read_memory((address) + 8 * word, 8);  \
	} while (0)

#endif
