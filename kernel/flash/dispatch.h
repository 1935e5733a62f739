/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The waiters for the device: the interrupt alone, or a thread of the driver, which in turn sleeps
 * until the interrupt or asks the device until it is done.
 */
#ifndef FLASH_DISPATCH_H
#define FLASH_DISPATCH_H

#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

struct flash;
struct flash_command;

struct flash_dispatch {
	struct task_struct *thread;	/* NULL: there is none */
	bool polling;
	wait_queue_head_t wakeup;
	spinlock_t lock;		/* waiting */
	struct list_head waiting;	/* commands that the thread has not yet taken */
	struct hrtimer timer;		/* the device's interrupt */
	bool interrupted;
};

/* Starts the thread that the module's parameter `completion` asks for, if any. */
int flash_dispatch_start(struct flash *flash, unsigned int index);

/* Ends it. No command may be waiting or under way. */
void flash_dispatch_stop(struct flash *flash);

/* Gives a command to the thread. */
void flash_dispatch(struct flash *flash, struct flash_command *command);

#endif
