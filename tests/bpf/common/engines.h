/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A test's instructions on all of our engines. */
#ifndef TESTS_BPF_ENGINES_H
#define TESTS_BPF_ENGINES_H
#include <linux/bpf.h>
#include <stdint.h>

enum engine { ENGINE_INTERPRETER, ENGINE_JIT, ENGINE_BLINDED, ENGINE_BASELINE, NR_ENGINES };
extern const char *const engine_names[NR_ENGINES];

/* Programs that are made from now on are for it. */
void engine_choose(enum engine e);

struct engine_prog {
	struct pb_bpf_prog *progs[NR_ENGINES];
};

/*
 * Makes what a loader would make of them: subprograms are what is called, frames what
 * accesses through r10 need. Helpers are called as they stand, by number in `calls`.
 * 0, or -errno: an instruction isn't one, or names fields that it doesn't have.
 */
int engine_prog_make(struct engine_prog *p, const struct bpf_insn *insns, uint32_t nr);
/* r1 = mem, r2 = len, r3 = end of the packet that the kernel would have */
uint64_t engine_prog_run(const struct engine_prog *p, enum engine e, uint8_t *mem, uint32_t len);
void engine_prog_free(struct engine_prog *p);
#endif
