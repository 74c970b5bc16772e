/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes a program from instructions for the chosen engine, and runs it (unverified.h). A failure
 * ends the test. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "bpf/map/map.h"
#include "bpf/run/image.h"
#include "unverified.h"

void choose(enum engine e)
{
	pb_bpf_settings.jit_enable = e != INTERPRETER;
	pb_bpf_settings.jit_harden = e == BLINDED ? 2 : 0;
}

struct pb_bpf_prog *make_of(const struct pb_bpf_prog_spec *from, const struct bpf_insn *insns,
			    uint32_t nr, const uint8_t *special)
{
	struct pb_bpf_prog_spec s = *from;
	struct pb_bpf_prog *p = NULL;
	uint8_t ops[256];

	for (uint32_t i = 0; i < nr; i++) {
		ops[i] = special && special[i] ? special[i] : (uint8_t)pb_bpf_decode(&insns[i]);
		if (ops[i] == PB_BPF_OP_LD_IMM64)
			ops[++i] = 0;
	}
	s.insns = insns;
	s.ops = ops;
	s.nr = nr;
	if (!s.stack)
		s.stack = 512;
	assert_int_equal(pb_bpf_prog_make(&s, &p), 0);
	assert_int_equal(!p->jited, !pb_bpf_settings.jit_enable);
	return p;
}

uint64_t run_with(const struct pb_bpf_prog *p, void *ctx)
{
	struct pb_bpf_run run = { .prog = p, .ctx = ctx };

	return pb_bpf_enter(&run);
}
