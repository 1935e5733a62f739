/* SPDX-License-Identifier: GPL-2.0-only */
/* The disks' parameters, as the module's command line gives them: a value for each disk. */
#ifndef FLASH_PARAMETERS_H
#define FLASH_PARAMETERS_H

#include "model/flash_config.h"

/* A filesystem's, and that of its external journal. */
#define FLASH_DISKS_MAX 2

/* As many disks as the parameter with most values says; at least one. */
unsigned int flash_parameters_disks(void);

/* Takes what was given for one disk. An error is told in the kernel's log. */
int flash_parameters_take(struct flash_config *config, unsigned int index);

#endif
