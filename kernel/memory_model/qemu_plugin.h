/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What plugin.c uses of the plugin interface of QEMU 7.2, version 1, and 10.0, version 2 and later
 * (include/qemu/qemu-plugin.h in QEMU's source): Debian builds the interface into QEMU, and has no
 * package with the header.
 */
#ifndef QEMU_PLUGIN_H
#define QEMU_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* QEMU 10 takes 2 and later; what is declared here is the same in both. */
enum { QEMU_PLUGIN_FIRST_VERSION = 1, QEMU_PLUGIN_SECOND_VERSION = 2 };
#define QEMU_PLUGIN_EXPORT __attribute__((visibility("default")))

enum { QEMU_PLUGIN_CB_NO_REGS = 0 };
enum { QEMU_PLUGIN_MEM_RW = 3 };

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
/* Nothing of it is read. */
typedef struct qemu_info qemu_info_t;

typedef void (*qemu_plugin_tb_function)(qemu_plugin_id_t id, struct qemu_plugin_tb *block);
typedef void (*qemu_plugin_memory_function)(unsigned int cpu, qemu_plugin_meminfo_t info,
					    uint64_t address, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_tb_function call);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *instruction,
				      qemu_plugin_memory_function call, int flags, int kinds,
				      void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t address);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *place);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *place);
/* Came with the second version. */
int qemu_plugin_num_vcpus(void) __attribute__((weak));

#endif
