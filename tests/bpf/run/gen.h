/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random programs that a verifier should accept. At the start, r1 is the address of a packet, and
 * r3 is the packet's end. The packet's first GEN_MEMORY bytes are the program's memory; 8 bytes
 * for the result follow them (kernel_run.h). The programs access this memory and their stack. They
 * also branch, loop, and call their own subprograms. They return a hash of the stack and of all
 * registers that hold numbers.
 */
#ifndef TESTS_BPF_GEN_H
#define TESTS_BPF_GEN_H
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

#define GEN_MEMORY	64
#define GEN_MOST_INSNS	8000

/* Returns a random number. Edge values are more frequent than other values. */
uint64_t gen_number(uint64_t *state);
/* Returns the number of instructions. If `maps` is true, the program may use maps. Its instructions
 * name a map by BPF_PSEUDO_MAP_FD and a value of enum gen_map. */
uint32_t gen_program(uint64_t seed, bool maps, struct bpf_insn *insns);
enum gen_map { GEN_ARRAY, GEN_HASH, GEN_NR_MAPS };
#define GEN_ARRAY_VALUE		32
#define GEN_ARRAY_ENTRIES	8
#define GEN_HASH_VALUE		16
#define GEN_HASH_ENTRIES	16
#define GEN_HASH_KEYS		32	/* a key is a number from 0 to 31, in 4 bytes */
void gen_memory(uint64_t *state, uint8_t *mem);
#endif
