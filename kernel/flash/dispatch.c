// SPDX-License-Identifier: GPL-2.0-only
/*
 * The dispatch thread of a disk, named mmcqd/N as that of Linux 3.0 to 4.15 (drivers/mmc/card/
 * queue.c, mmc_queue_thread): takes commands from the block layer, hands them to the device, and
 * waits until they are done; then it ends them, in its own context. How it waits is what
 * section 6.4 of ATC'13 changes: it sleeps until the interrupt, or it polls, which keeps the
 * processor busy and saves the switch to another task and back.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/string.h>

#include "command.h"
#include "compat.h"
#include "disk.h"
#include "dispatch.h"

static char *completion = "direct";
module_param(completion, charp, 0444);
MODULE_PARM_DESC(completion, "direct: no thread; interrupt or polling: what the thread waits by");

/*
 * What is executed between two looks at the device: about a thousand instructions, as a look takes
 * a real driver about a microsecond on a register bus. A completion is seen as much later at most.
 * Instructions that do nothing, in long pieces: `pause`, clocks and jumps are what an emulated
 * processor is slowest at.
 */
#define FLASH_POLL_ROUNDS 32
#define FLASH_POLL_ROUND() asm volatile(".rept 30\n\tnop\n\t.endr" ::: "memory")

static bool flash_has_waiting(struct flash_dispatch *dispatch)
{
	return !list_empty_careful(&dispatch->waiting);
}

/* Takes all that waits: the block layer sends no more than the device takes at once. */
static void flash_take(struct flash_dispatch *dispatch, struct list_head *under_way)
{
	struct flash_command *command, *next, *later;
	struct list_head *before;
	LIST_HEAD(taken);

	spin_lock_irq(&dispatch->lock);
	list_splice_init(&dispatch->waiting, &taken);
	spin_unlock_irq(&dispatch->lock);
	list_for_each_entry_safe(command, next, &taken, entry) {
		command->completion_ns = flash_begin(command);
		before = under_way;
		list_for_each_entry(later, under_way, entry) {
			if (later->completion_ns > command->completion_ns) {
				before = &later->entry;
				break;
			}
		}
		list_move_tail(&command->entry, before);
	}
}

static enum hrtimer_restart flash_interrupt(struct hrtimer *timer)
{
	struct flash_dispatch *dispatch = container_of(timer, struct flash_dispatch, timer);
	struct flash *flash = container_of(dispatch, struct flash, dispatch);
	unsigned long flags;

	spin_lock_irqsave(&flash->lock, flags);
	flash->completion_interrupts++;
	spin_unlock_irqrestore(&flash->lock, flags);
	WRITE_ONCE(dispatch->interrupted, true);
	wake_up(&dispatch->wakeup);
	return HRTIMER_NORESTART;
}

static void flash_sleep_until(struct flash_dispatch *dispatch, u64 completion_ns)
{
	hrtimer_cancel(&dispatch->timer);
	WRITE_ONCE(dispatch->interrupted, false);
	hrtimer_start(&dispatch->timer, ns_to_ktime(completion_ns), HRTIMER_MODE_ABS);
	wait_event(dispatch->wakeup,
		   READ_ONCE(dispatch->interrupted) || flash_has_waiting(dispatch));
}

/* Other tasks come to their turn, as the scheduler says. */
static void flash_poll_until(struct flash_dispatch *dispatch, u64 completion_ns)
{
	unsigned int i;

	while (ktime_get_ns() < completion_ns && !flash_has_waiting(dispatch)) {
		for (i = 0; i < FLASH_POLL_ROUNDS; i++)
			FLASH_POLL_ROUND();
		cond_resched();
	}
}

static int flash_dispatch_thread(void *data)
{
	struct flash_dispatch *dispatch = &((struct flash *)data)->dispatch;
	struct flash_command *first;
	LIST_HEAD(under_way);

	while (!kthread_should_stop()) {
		flash_take(dispatch, &under_way);
		first = list_first_entry_or_null(&under_way, struct flash_command, entry);
		if (!first) {
			wait_event_interruptible(dispatch->wakeup, flash_has_waiting(dispatch) ||
						 kthread_should_stop());
			continue;
		}
		if (dispatch->polling)
			flash_poll_until(dispatch, first->completion_ns);
		else
			flash_sleep_until(dispatch, first->completion_ns);
		while (first && first->completion_ns <= ktime_get_ns()) {
			list_del(&first->entry);
			flash_end(first);
			first = list_first_entry_or_null(&under_way, struct flash_command, entry);
		}
	}
	return 0;
}

int flash_dispatch_start(struct flash *flash, unsigned int index)
{
	static const char * const words[] = { "direct", "interrupt", "polling" };
	struct flash_dispatch *dispatch = &flash->dispatch;
	int word = match_string(words, ARRAY_SIZE(words), completion);
	struct task_struct *thread;

	if (word < 0) {
		pr_err("parameter completion is %s: must be direct, interrupt or polling\n",
		       completion);
		return -EINVAL;
	}
	if (!word)
		return 0;
	dispatch->polling = word == 2;
	init_waitqueue_head(&dispatch->wakeup);
	spin_lock_init(&dispatch->lock);
	INIT_LIST_HEAD(&dispatch->waiting);
	flash_timer_init(&dispatch->timer, flash_interrupt);
	thread = kthread_run(flash_dispatch_thread, flash, "mmcqd/%u", index);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	dispatch->thread = get_task_struct(thread);
	return 0;
}

void flash_dispatch_stop(struct flash *flash)
{
	struct flash_dispatch *dispatch = &flash->dispatch;

	if (!dispatch->thread)
		return;
	kthread_stop(dispatch->thread);
	hrtimer_cancel(&dispatch->timer);
	put_task_struct(dispatch->thread);
	dispatch->thread = NULL;
}

void flash_dispatch(struct flash *flash, struct flash_command *command)
{
	struct flash_dispatch *dispatch = &flash->dispatch;
	unsigned long flags;

	spin_lock_irqsave(&dispatch->lock, flags);
	list_add_tail(&command->entry, &dispatch->waiting);
	spin_unlock_irqrestore(&dispatch->lock, flags);
	wake_up(&dispatch->wakeup);
}
