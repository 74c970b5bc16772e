/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Native code of a program; image.c puts it where it runs. */
#ifndef PB_BPF_JIT_JIT_H
#define PB_BPF_JIT_JIT_H
#include "bpf/core/program.h"

#define PB_BPF_JIT_MOST	128	/* bytes of one instruction at most */

/* A load that may fault, and where to go on then; offsets in the code. */
struct pb_bpf_jit_fault {
	uint32_t at, to;
};

/* A function of the code, for unwinding; offsets. */
struct pb_bpf_jit_frame {
	uint32_t entry, body, end;	/* body: the first instruction after the prologue */
	uint16_t room;			/* bytes below rbp, above the registers it saves */
	uint8_t saved;
};

struct pb_bpf_jit {
	/* in */
	const struct pb_bpf_prog *prog;
	uint32_t *addr;		/* room for nr + 1; offsets of the instructions' code afterwards */
	uint8_t *notes;		/* room for nr; for itself */
	uint8_t *out;		/* NULL: to learn the lengths */
	uint32_t size;		/* of out */
	uint64_t base;		/* where it will run, or 0: anywhere */
	struct pb_bpf_jit_fault *faults;	/* with out: room for nr_faults, ascending by
						 * `at` */
	struct pb_bpf_jit_frame *frames;	/* with out: room for two a subprogram */
	uint64_t seed;		/* of blinding, the same both times */
	bool blind;		/* no constant of the program stands in its code */
	bool bmi2;		/* pb_bpf_jit_has_bmi2() */
	/* out */
	uint32_t len, nr_faults, nr_frames, passes;
};

/*
 * 0; -E2BIG: more than size; -EINVAL: an instruction that has no native form. The
 * first byte is that of the entry, struct pb_bpf_prog's `jited`. With the same base
 * and seed the length is the same. Context: not on a hit; writes to `addr`,
 * `notes`, `out` and `faults` only.
 */
int pb_bpf_jit(struct pb_bpf_jit *job);
bool pb_bpf_jit_has_bmi2(void);
#endif
