/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compiles a program to native code. bpf/run/image.c maps the memory in which the code runs. */
#ifndef PB_BPF_JIT_JIT_H
#define PB_BPF_JIT_JIT_H
#include "bpf/core/program.h"

#define PB_BPF_JIT_MOST	128	/* the largest number of bytes of native code for one eBPF
				 * instruction */

/* at: a load that may fault; to: the code at which to continue after the fault. Both are offsets in
 * the native code. */
struct pb_bpf_jit_fault {
	uint32_t at, to;
};

/* Describes a function of the native code, for unwinding. entry, body and end are offsets in the
 * code. */
struct pb_bpf_jit_frame {
	uint32_t entry, body, end;	/* body: the first instruction after the prologue */
	uint16_t room;			/* bytes between rbp and the saved registers */
	uint8_t saved;			/* registers that the function saves: SAVE_ bits
					 * (jit_priv.h) */
};

struct pb_bpf_jit {
	/* in */
	const struct pb_bpf_prog *prog;
	uint32_t *addr;		/* room for prog->nr + 1 elements; on return, the offset of each
				 * instruction's code */
	uint8_t *notes;		/* room for prog->nr elements; used only inside the JIT */
	uint8_t *out;		/* NULL: the call only computes lengths */
	uint32_t size;		/* bytes of `out` */
	uint64_t base;		/* the address at which the code will run; 0: not known */
	struct pb_bpf_jit_fault *faults;	/* if `out` isn't NULL: room for nr_faults elements.
						 * pb_bpf_jit() fills the elements in ascending
						 * order of `at` */
	struct pb_bpf_jit_frame *frames;	/* if `out` isn't NULL: room for two elements for
						 * each subprogram */
	uint64_t seed;		/* for random numbers, if `blind` is set; must be the same when
				 * lengths are computed and when code is written */
	bool blind;		/* blind constants: the code must not contain constants that the
				 * program chooses */
	bool bmi2;		/* pb_bpf_jit_has_bmi2() */
	/* results. If `out` isn't NULL, nr_faults is also an input */
	uint32_t len, nr_faults, nr_frames, passes;
};

/*
 * Returns 0. -E2BIG: the program has too many instructions or subprograms, or `out` or `faults` has
 * too little room. -EINVAL: an instruction isn't supported, or addresses still move after many
 * passes. The function that runs the program is at the start of the code. The caller must set
 * `jited` of struct pb_bpf_prog to this function. The same base and seed give the same length.
 * Context: not on a hit. Writes only to the results and to `addr`, `notes`, `out`, `faults` and
 * `frames`.
 */
int pb_bpf_jit(struct pb_bpf_jit *job);
/* Returns whether the processor has the instructions of BMI2. */
bool pb_bpf_jit_has_bmi2(void);
#endif
