/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs the instructions of a test on each of our engines. */
#ifndef TESTS_BPF_ENGINES_H
#define TESTS_BPF_ENGINES_H
#include <linux/bpf.h>
#include <stdint.h>

enum engine { ENGINE_INTERPRETER, ENGINE_JIT, ENGINE_BLINDED, ENGINE_BASELINE, NR_ENGINES };
extern const char *const engine_names[NR_ENGINES];

/* Programs that are made after this call use engine e. */
void engine_choose(enum engine e);

struct engine_prog {
	struct pb_bpf_prog *progs[NR_ENGINES];
};

/*
 * Makes a program for each engine, without the verifier. So this function itself finds the
 * subprograms: one begins at the target of each call. This function also computes the size of each
 * subprogram's frame from accesses through r10, and from negative constants that are added to a
 * register, which may be a copy of r10. Returns 0 or -errno. -EINVAL: an instruction is invalid,
 * sets a field that it doesn't use, or calls a helper. -ENOTSUP: the JIT has made no native code.
 */
int engine_prog_make(struct engine_prog *p, const struct bpf_insn *insns, uint32_t nr);
/* Runs the program with r1 = mem and r2 = len. r3 is mem + kernel_packet_len(len): in the kernel,
 * this is the end of the packet (kernel_run.h). */
uint64_t engine_prog_run(const struct engine_prog *p, enum engine e, uint8_t *mem, uint32_t len);
void engine_prog_free(struct engine_prog *p);
#endif
