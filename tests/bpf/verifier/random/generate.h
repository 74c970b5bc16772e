/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Generates random programs. The generator keeps a rough account of the contents of registers and
 * stack, so the verifier accepts most programs. Finally, the generator changes fields of one or two
 * instructions in some programs.
 */
#ifndef PB_TEST_GENERATE_H
#define PB_TEST_GENERATE_H
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include "bpf/verifier/verify.h"

/* the maps of a generated program; the imm of an LD_IMM64 is one of these numbers */
enum { GEN_HASH, GEN_ARRAY, GEN_DIRECT, GEN_PROGS, GEN_OUT, GEN_RING, GEN_MAPS };
#define GEN_HASH_KEY	8
#define GEN_HASH_VALUE	32
#define GEN_ARRAY_VALUE	48
#define GEN_DIRECT_VALUE 40
#define GEN_OUT_VALUE	128
#define GEN_RING_BYTES	4096
#define GEN_ENTRIES	4

extern const struct pb_bpf_map_attr gen_maps[GEN_MAPS];

#define GEN_MOST 512
#define GEN_MOST_FUNCS 8

struct gen_program {
	struct bpf_insn insns[GEN_MOST];
	int nr;
	uint32_t type;		/* BPF_PROG_TYPE_ */
	uint32_t flags;		/* BPF_F_ */
	bool changed;		/* in the end, the generator changed fields of one or two
				 * instructions */
	struct pb_bpf_func funcs[GEN_MOST_FUNCS];
	uint32_t nr_funcs;
};

/* Makes a random program. The same seed gives the same program. */
void generate(struct gen_program *p, uint64_t seed);
#endif
