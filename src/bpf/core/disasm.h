/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PB_BPF_CORE_DISASM_H
#define PB_BPF_CORE_DISASM_H
#include "bpf/core/opcodes.h"
#include "bpf/core/textbuf.h"

/* What the text of an instruction takes from outside; all may be NULL. */
struct pb_bpf_names {
	const char *(*helper)(void *arg, int32_t id);	/* NULL: unknown */
	const char *(*kfunc)(void *arg, int32_t id);
	/* Writes what a 64-bit load stands for and returns true, or false: a number. */
	bool (*imm64)(void *arg, struct pb_bpf_text *t, const struct bpf_insn *insn, uint64_t imm);
	void *arg;
	bool hide;		/* pointers are shown as 0 */
};

/* The instruction at insn[0] in bpftool's words, "(b7) r0 = 1", without a newline.
 * A 64-bit load reads insn[1], too. Context: any. */
void pb_bpf_disasm(struct pb_bpf_text *t, const struct bpf_insn *insn,
		   const struct pb_bpf_names *names);
#endif
