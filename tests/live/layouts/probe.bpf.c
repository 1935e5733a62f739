// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asks the tracer's own functions of kernel/block/compat.bpf.h for the time of an inode and the
 * order of a folio. Both lie in this program's memory, laid out as a kernel's BTF says.
 */
#include <stdbool.h>
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "../../../kernel/bpf/ring.h"
#include "../../../kernel/bpf/read.bpf.h"
#include "../../../kernel/bpf/kernel_age.bpf.h"
#include "../../../kernel/bpf/processor.bpf.h"
#include "../../../kernel/block/kernel_types.bpf.h"
#include "../../../kernel/block/compat.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__u8 inode[64], folio[128];	/* given */
	__u64 modification_time_ns;	/* answered */
	__u64 folio_order;
} probe;

SEC("syscall")
int ask(void *context)
{
	probe.modification_time_ns = modification_time((__u64)probe.inode);
	probe.folio_order = folio_order((__u64)probe.folio);
	return 0;
}
