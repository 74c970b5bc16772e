/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes eBPF instructions as text, for the verifier's log and for `patchbay bpf dump`. */
#ifndef PB_BPF_CORE_DISASM_H
#define PB_BPF_CORE_DISASM_H
#include "bpf/core/opcodes.h"
#include "bpf/core/textbuf.h"

/* Functions of the caller that supply names for the text of an instruction. Each function may be
 * NULL. */
struct pb_bpf_names {
	const char *(*helper)(void *arg, int32_t id);	/* returns NULL: the helper is unknown */
	const char *(*kfunc)(void *arg, int32_t id);
	/* Writes the name of the object that a 64-bit load refers to, and returns true. Returns
	 * false if the operand is a plain number. */
	bool (*imm64)(void *arg, struct pb_bpf_text *t, const struct bpf_insn *insn, uint64_t imm);
	void *arg;
	bool hide;		/* show addresses as 0, for a loader that may not see addresses */
};

/* Writes the instruction as bpftool does, for example "(b7) r0 = 1". Writes no newline. Reads
 * insn[0]; for a 64-bit load, reads insn[1], too. Context: any. */
void pb_bpf_disasm(struct pb_bpf_text *t, const struct bpf_insn *insn,
		   const struct pb_bpf_names *names);
#endif
