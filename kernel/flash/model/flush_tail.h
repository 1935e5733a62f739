/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The time that a flush takes beyond its programs: most take nothing more, flush_tail_permille of a
 * thousand a time of a long tail. Of these, half take more than flush_tail_ns longer, a quarter
 * more than twice that, and so on: an exponential distribution, straight between these points.
 * Which flush takes how long is a function of flush_tail_seed and the flush's number.
 */
#ifndef FLASH_FLUSH_TAIL_H
#define FLASH_FLUSH_TAIL_H

#include "flash_config.h"

flash_u64 flash_flush_tail_ns(const struct flash_config *config, flash_u64 number);

#endif
