/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Treats a test's program like a user's program: verifies and resolves it, makes it for each
 * engine, and runs it with a packet. For comparison, kernel_test_run() runs the program in the
 * kernel.
 */
#ifndef TESTS_BPF_OWN_H
#define TESTS_BPF_OWN_H
#include <linux/bpf.h>
#include <stdint.h>
#include "engines.h"

struct pb_bpf_map;

struct own_prog {
	struct pb_bpf_prog *progs[NR_ENGINES];
	uint32_t ctx_needed;
};

struct own_run {
	const uint8_t *in;
	uint32_t len;
	/* out */
	uint8_t out[4096];
	uint32_t out_len, retval;
};

#define OWN_MOST_FUNCS	8
/* Stores the index of each function's first instruction in starts; starts[0] is 0. Returns the
 * number of functions. */
uint32_t own_find_funcs(const struct bpf_insn *insns, uint32_t nr, uint32_t *starts);

/* Loads insns. An LD_IMM64 with BPF_PSEUDO_MAP_FD contains an index into maps[]. Returns 0, or
 * -errno with a log. */
int own_load(struct own_prog *p, uint32_t type, const struct bpf_insn *insns, uint32_t nr,
	     struct pb_bpf_map *const *maps, uint32_t nr_maps, char *log, uint32_t log_size);
int own_run(const struct own_prog *p, enum engine e, struct own_run *r);
void own_free(struct own_prog *p);

int kernel_test_run(int fd, struct own_run *r);
#endif
