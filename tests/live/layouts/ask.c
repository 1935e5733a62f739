// SPDX-License-Identifier: Apache-2.0
/*
 * Loads a BPF object as if the running kernel had the BTF of another file, gives its `probe` the
 * bytes of standard input, runs its program `ask`, and writes the bytes of `probe`.
 *   ask OBJECT BTF
 */
#include <stdio.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

int main(int count, char **words)
{
	LIBBPF_OPTS(bpf_object_open_opts, opened, .btf_custom_path = words[2]);
	LIBBPF_OPTS(bpf_test_run_opts, run);
	struct bpf_object *object = count == 3 ? bpf_object__open_file(words[1], &opened) : NULL;
	struct bpf_program *program;
	unsigned char probe[4096];
	struct bpf_map *map;
	size_t length;
	int key = 0;

	if (!object || bpf_object__load(object))
		return 1;
	map = bpf_object__find_map_by_name(object, ".bss");
	program = bpf_object__find_program_by_name(object, "ask");
	length = map ? bpf_map__value_size(map) : 0;
	if (!program || length == 0 || length > sizeof(probe))
		return 2;
	if (fread(probe, 1, length, stdin) != length ||
	    bpf_map_update_elem(bpf_map__fd(map), &key, probe, BPF_ANY))
		return 3;
	if (bpf_prog_test_run_opts(bpf_program__fd(program), &run) || run.retval)
		return 4;
	if (bpf_map_lookup_elem(bpf_map__fd(map), &key, probe))
		return 5;
	return fwrite(probe, 1, length, stdout) != length;
}
