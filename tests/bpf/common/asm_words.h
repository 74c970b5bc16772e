/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The state of the assembler (asm.h), and the functions that read words of its source. A function
 * advances a->p past the word that it read. Blanks before the word don't matter.
 */
#ifndef TESTS_BPF_ASM_WORDS_H
#define TESTS_BPF_ASM_WORDS_H
#include <stdbool.h>
#include "asm.h"

struct label {
	char name[48];
	uint32_t at;
};

/* An instruction that names a label as its target. resolve() computes the target. */
struct use {
	char name[48];
	uint32_t insn;
	int line;
	bool long_jump;		/* the jump's target is stored in imm, not in off */
};

struct as {
	const char *p;		/* the rest of the current statement */
	struct asm_out *out;
	int line;
	bool failed;
	int code;		/* the opcode in "(xx)" before the instruction, or -1 */
	struct label labels[ASM_MOST_LABELS];
	struct use uses[4096];
	uint32_t nr_labels, nr_uses;
};

/* Stores the message in a->out, unless there is a message already. Returns false. */
bool asm_fail(struct as *a, const char *format, ...);
void asm_blanks(struct as *a);
/* Skips `text` if the source continues with it. If `text` ends in a letter or digit, a word of the
 * source must end there, too. */
bool asm_take(struct as *a, const char *text);
bool asm_expect(struct as *a, const char *text);
/* `letter` is 'r' or 'w', or 0 if both letters are allowed. *was gets the letter that was found;
 * `was` may be NULL. */
bool asm_take_reg(struct as *a, char letter, uint8_t *reg, char *was);
bool asm_reg(struct as *a, char letter, uint8_t *r);
bool asm_take_number(struct as *a, uint64_t *v);
bool asm_imm32(struct as *a, __s32 *imm);
bool asm_offset(struct as *a, __s16 *off);
#endif
