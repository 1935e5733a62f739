/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The counts of the model: what the host asked for, and what the NAND was made to do, by cause.
 *
 * Bytes of slots: mapped_write_bytes is write_bytes rounded out to whole slots, plus the edges of
 * zeroed ranges. Every one of them is programmed (host_programmed_bytes), replaced or discarded
 * while still in the cache (cache_overwritten_bytes, cache_discarded_bytes), or still there
 * (dirty_bytes, a level). nand_write_bytes counts whole program units, their padding included:
 * ftl_wa is nand_write_bytes / write_bytes.
 *
 * Times: busy_ns with a command in service; *_nand_ns of all dies together; cache_wait_ns and
 * mapping_wait_ns of commands, for room in the cache and for the mapping table to be read;
 * flush_ns of flushes from arrival to completion. slc_programs, of host_programs, went into the
 * buffer of single-level cells; idle_rounds are operations of all dies that an idle device did for
 * itself; wake_ups are commands that found it asleep. erase_count_spread is a level.
 */
#ifndef FLASH_STATISTICS_H
#define FLASH_STATISTICS_H

#include "arithmetic.h"

enum flash_cause {
	FLASH_FOR_HOST,
	FLASH_FOR_GC,
	FLASH_FOR_MAPPING,
	FLASH_FOR_WEAR,
	FLASH_FOR_SLC,
	FLASH_CAUSES,
};

/* fua_requests are among write_requests and zeroes_requests. */
#define FLASH_COMMAND_STATISTICS(S) \
	S(read_requests) \
	S(write_requests) \
	S(fua_requests) \
	S(flush_requests) \
	S(discard_requests) \
	S(zeroes_requests) \
	S(packed_requests) \
	S(read_bytes) \
	S(write_bytes) \
	S(discard_bytes) \
	S(zeroes_bytes) \
	S(mapped_write_bytes) \
	S(host_programmed_bytes) \
	S(cache_overwritten_bytes) \
	S(cache_discarded_bytes) \
	S(cache_read_bytes) \
	S(dirty_bytes) \
	S(nand_write_bytes) \
	S(mapping_misses) \
	S(slc_programs) \
	S(idle_rounds) \
	S(wake_ups) \
	S(busy_ns) \
	S(cache_wait_ns) \
	S(mapping_wait_ns) \
	S(flush_ns)

/* Name, and where it is. */
#define FLASH_NAND_STATISTICS(S) \
	S(host_programs, programs[FLASH_FOR_HOST]) \
	S(gc_programs, programs[FLASH_FOR_GC]) \
	S(mapping_programs, programs[FLASH_FOR_MAPPING]) \
	S(wear_programs, programs[FLASH_FOR_WEAR]) \
	S(slc_move_programs, programs[FLASH_FOR_SLC]) \
	S(host_page_reads, page_reads[FLASH_FOR_HOST]) \
	S(gc_page_reads, page_reads[FLASH_FOR_GC]) \
	S(mapping_page_reads, page_reads[FLASH_FOR_MAPPING]) \
	S(wear_page_reads, page_reads[FLASH_FOR_WEAR]) \
	S(slc_move_page_reads, page_reads[FLASH_FOR_SLC]) \
	S(gc_erases, erases[FLASH_FOR_GC]) \
	S(wear_erases, erases[FLASH_FOR_WEAR]) \
	S(host_nand_ns, nand_ns[FLASH_FOR_HOST]) \
	S(gc_nand_ns, nand_ns[FLASH_FOR_GC]) \
	S(mapping_nand_ns, nand_ns[FLASH_FOR_MAPPING]) \
	S(wear_nand_ns, nand_ns[FLASH_FOR_WEAR]) \
	S(slc_move_nand_ns, nand_ns[FLASH_FOR_SLC])

struct flash_statistics {
#define FLASH_FIELD(name) flash_u64 name;
	FLASH_COMMAND_STATISTICS(FLASH_FIELD)
#undef FLASH_FIELD
	flash_u64 programs[FLASH_CAUSES];
	flash_u64 page_reads[FLASH_CAUSES];
	flash_u64 erases[FLASH_CAUSES];
	flash_u64 nand_ns[FLASH_CAUSES];
};

#endif
