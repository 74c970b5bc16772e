/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An assembler for tests. It reads the output of pb_bpf_disasm(), and also:
 *
 *	# comment          ; separates instructions, like a new line
 *	again:             a label, at the beginning of a line or after a semicolon
 *	r1 = 0x1234 ll     64-bit load. pb_bpf_disasm() begins each line with the opcode; after the
 *			   opcode "(18)" the ll may be missing
 *	r1 = func again    address of a subprogram
 *	r1 = map 3         64-bit load with imm 3 and source BPF_PSEUDO_MAP_FD
 *	if w1 s< -5 goto again
 *	may_goto again
 *	call again         calls a subprogram; call #12 or call NAME#12 calls a helper
 *	.raw 0x07 1 0 0 5  the fields code dst src off imm, unchecked
 *	.times 5 r1 += 1   an instruction, five times
 *
 * Numbers are decimal, or hexadecimal with 0x. They may have a sign. 32-bit fields take -2^31 ...
 * 2^32 - 1.
 */
#ifndef TESTS_BPF_ASM_H
#define TESTS_BPF_ASM_H
#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

#define ASM_MOST_LABELS	256

struct asm_out {
	struct bpf_insn *insns;		/* has room for `most` instructions */
	uint32_t nr, most;
	char error[200];		/* message if assemble() fails; begins with the line
					 * number */
};

/* Returns 0, or -1 with a message in out->error. */
int assemble(const char *text, struct asm_out *out);
#endif
