/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that lets its users count properties of its requests. It passes each request to an eBPF
 * program that the user gives, and prints the map of the eBPF program at the end.
 *
 *   clang -g -O2 -target bpf -c requests.bpf.c -o requests.bpf.o
 *   cc embed.c -lpatchbay-bpf -o embed && ./embed requests.bpf.o
 */
#include <patchbay/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct request {		/* the context of a raw_tp program: its arguments as words */
	uint64_t id, bytes;
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

int main(int argc, char **argv)
{
	struct pb_bpf_machine *m;
	struct pb_bpf_program_info info;
	char why[256], *path = argc > 1 ? argv[1] : "requests.bpf.o";
	int prog, map, err = pb_bpf_machine_open(path, NULL, &m, why, sizeof(why));
	uint64_t dropped = 0, result, count;
	uint32_t key;

	if (err)
		die(path, why);
	prog = pb_bpf_machine_program(m, "on_request");
	map = pb_bpf_machine_map(m, "by_size");
	if (prog < 0 || map < 0)
		die(path, "it needs a program on_request and a map by_size");
	err = pb_bpf_machine_load(m, (uint32_t)prog, 0, NULL, 0);
	pb_bpf_machine_program_info(m, (uint32_t)prog, &info);
	if (err)
		die(info.name, info.why ? info.why : strerror(-err));

	for (uint64_t i = 0; i < 1000; i++) {
		struct request r = { i, i * 37 % 4096 };

		err = pb_bpf_machine_run(m, (uint32_t)prog, &r, &result);
		if (err)
			die(info.name, strerror(-err));
		dropped += !result;
	}

	printf("%s: %s code, %llu of 1000 dropped\n", info.name,
	       info.native ? "native" : "interpreted", (unsigned long long)dropped);
	for (err = pb_bpf_machine_next_key(m, (uint32_t)map, NULL, &key); !err;
	     err = pb_bpf_machine_next_key(m, (uint32_t)map, &key, &key))
		if (!pb_bpf_machine_lookup(m, (uint32_t)map, &key, &count, 0))
			printf("%6u bytes or more: %llu\n", 1u << key, (unsigned long long)count);
	pb_bpf_machine_close(m);
	return 0;
}
