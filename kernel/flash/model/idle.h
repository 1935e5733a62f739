/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A device's work for itself while the host asks for nothing: it moves data out of the buffer of
 * single-level cells, then collects garbage until idle_gc_rows more rows are free than it keeps
 * free beside the host's writes. It begins idle_work_delay_ns after the last command was served,
 * with an empty cache, and does one operation of every die at a time: a command that comes then
 * waits for these at most.
 */
#ifndef FLASH_IDLE_H
#define FLASH_IDLE_H

#include "arithmetic.h"

struct flash_model;

/* Does what begins before now_ns. The cache must have been drained until then. */
void flash_idle_work(struct flash_model *model, flash_u64 now_ns);

#endif
