// SPDX-License-Identifier: Apache-2.0
/*
 * Two functions that libelf.a of elfutils 0.192 (Debian 13) calls and does not hold: they are in
 * elfutils' lib/eu-search.c, of which Debian has no archive (sourceware.org, bug 32293). Where
 * libelf.a holds them, its own are taken; where it calls neither (Debian 12), the linker drops
 * these.
 *
 * A tree keeps what elf_getdata_rawchunk() read. libbpf never calls that, so trees stay empty; its
 * lock, which follows the root, is never taken.
 */
#define _GNU_SOURCE
#include <search.h>
#include <stddef.h>

struct search_tree {
	void *root;
};

void eu_search_tree_init(struct search_tree *tree);
void eu_search_tree_fini(struct search_tree *tree, void (*free_node)(void *));

__attribute__((weak)) void eu_search_tree_init(struct search_tree *tree)
{
	tree->root = NULL;
}

__attribute__((weak)) void eu_search_tree_fini(struct search_tree *tree, void (*free_node)(void *))
{
	tdestroy(tree->root, free_node);
}
