// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocates the buffers of UBI or UBIFS by vmalloc, kmalloc or a kmem_cache of their own, as the
 * parameter `allocator` of the module says at that moment; the parameter `buffers` tells which
 * there are and what lies behind them, as the memory itself says and not what was asked for. It is
 * linked into both modules, so that each has parameters and buffers of its own.
 */
#include <linux/io.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <asm/pgtable.h>
#include "chosen_buffers.h"

enum allocator { VMALLOC, KMALLOC, KMEM_CACHE };

static const char *const words[] = {
	[VMALLOC] = "vmalloc",
	[KMALLOC] = "kmalloc",
	[KMEM_CACHE] = "kmem_cache",
};

struct buffer {
	struct list_head list;
	const char *name;
	size_t bytes;
	void *memory;
	struct kmem_cache *cache; /* of KMEM_CACHE only */
};

static enum allocator allocator = VMALLOC;
static LIST_HEAD(buffers);
static DEFINE_MUTEX(lock);

static void *allocate(struct buffer *buffer)
{
	switch (allocator) {
	case KMALLOC:
		return kmalloc(buffer->bytes, GFP_KERNEL);
	case KMEM_CACHE:
		buffer->cache = kmem_cache_create(buffer->name, buffer->bytes, 0, 0, NULL);
		return buffer->cache ? kmem_cache_alloc(buffer->cache, GFP_KERNEL) : NULL;
	default:
		return vmalloc(buffer->bytes);
	}
}

static void release(struct buffer *buffer)
{
	if (buffer->cache && buffer->memory)
		kmem_cache_free(buffer->cache, buffer->memory);
	else
		kvfree(buffer->memory);
	kmem_cache_destroy(buffer->cache);
	kfree(buffer);
}

void *allocate_chosen_buffer(const char *name, size_t bytes)
{
	struct buffer *buffer = kzalloc(sizeof(*buffer), GFP_KERNEL);

	if (!buffer)
		return NULL;
	buffer->name = name;
	buffer->bytes = bytes;
	mutex_lock(&lock);
	buffer->memory = allocate(buffer);
	if (buffer->memory)
		list_add_tail(&buffer->list, &buffers);
	mutex_unlock(&lock);
	if (buffer->memory)
		return buffer->memory;
	release(buffer);
	return NULL;
}

void release_buffer(const void *memory)
{
	struct buffer *buffer, *next;

	if (!memory)
		return;
	mutex_lock(&lock);
	list_for_each_entry_safe(buffer, next, &buffers, list) {
		if (buffer->memory == memory) {
			list_del(&buffer->list);
			release(buffer);
			break;
		}
	}
	mutex_unlock(&lock);
}

static const char *found_allocator(const void *memory)
{
	if (is_vmalloc_addr(memory))
		return words[VMALLOC];
	/* kmalloc has what is larger than two pages of the page allocator (mm/slab_common.c). */
	return PageSlab(virt_to_head_page(memory)) ? words[KMEM_CACHE] : words[KMALLOC];
}

static phys_addr_t physical_address(const void *memory)
{
	if (is_vmalloc_addr(memory))
		return page_to_phys(vmalloc_to_page(memory)) + offset_in_page(memory);
	return virt_to_phys((void *)memory);
}

/* NAME BYTES ALLOCATOR ADDRESS PHYSICAL PAGE RUNS: the smallest page of the page tables behind it,
 * and how many stretches are contiguous in physical memory.
 */
static int print_buffer(char *text, int room, const struct buffer *buffer)
{
	unsigned long page_bytes = ULONG_MAX;
	phys_addr_t expected = 0;
	unsigned int runs = 0, level;
	size_t at;

	for (at = 0; at < buffer->bytes; at += PAGE_SIZE) {
		phys_addr_t found = physical_address(buffer->memory + at);

		runs += !at || found != expected;
		expected = found + PAGE_SIZE;
		if (lookup_address((unsigned long)buffer->memory + at, &level))
			page_bytes = min(page_bytes, page_level_size(level));
	}
	expected = physical_address(buffer->memory);
	return scnprintf(text, room, "%s %zu %s %lx %llx %lu %u\n", buffer->name, buffer->bytes,
			 found_allocator(buffer->memory), (unsigned long)buffer->memory,
			 (unsigned long long)expected, page_bytes, runs);
}

static int get_buffers(char *text, const struct kernel_param *param)
{
	const struct buffer *buffer;
	int length = 0;

	mutex_lock(&lock);
	list_for_each_entry(buffer, &buffers, list)
		length += print_buffer(text + length, PAGE_SIZE - length, buffer);
	mutex_unlock(&lock);
	return length;
}

static const struct kernel_param_ops buffers_ops = { .get = get_buffers };
module_param_cb(buffers, &buffers_ops, NULL, 0400);

static int get_allocator(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%s\n", words[READ_ONCE(allocator)]);
}

static int set_allocator(const char *text, const struct kernel_param *param)
{
	int found = sysfs_match_string(words, text);

	if (found < 0)
		return found;
	mutex_lock(&lock);
	allocator = found;
	mutex_unlock(&lock);
	return 0;
}

static const struct kernel_param_ops allocator_ops = {
	.set = set_allocator,
	.get = get_allocator,
};
module_param_cb(allocator, &allocator_ops, NULL, 0600);
