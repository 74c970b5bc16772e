/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PB_BPF_JIT_H
#define PB_BPF_JIT_H
#include "bpf/prog.h"

#define PB_BPF_JIT_MOST	96	/* bytes of one instruction at most, with a prologue */

/*
 * Native code of a program. starts: a bit for each instruction where a subprogram
 * begins (the first needn't be marked); addr: nr + 1 words, offsets of the
 * instructions' code afterwards. out: size bytes, or NULL to learn the length. The
 * code can be put anywhere. Returns the length; -E2BIG: more than size; -EINVAL: an
 * instruction that has no native form. Context: not on a hit; writes to `out` only.
 */
int64_t pb_bpf_jit(const struct pb_bpf_prog *prog, const uint8_t *starts, uint32_t *addr,
		   uint8_t *out, uint32_t size, bool bmi2);
#endif
