/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The assembler of asm.h. It parses one statement after another. At the end, resolve() fills in the
 * targets of the instructions that name a label. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "asm.h"
#include "asm_words.h"
#include "bpf/core/opcodes.h"

static struct bpf_insn *emit(struct as *a, struct bpf_insn i)
{
	static struct bpf_insn nowhere;

	if (a->out->nr == a->out->most) {
		asm_fail(a, "more than %u instructions", a->out->most);
		return &nowhere;
	}
	a->out->insns[a->out->nr++] = i;
	return &a->out->insns[a->out->nr - 1];
}

/* Parses pc+N, or a label. Labels are resolved at the end. */
static bool target(struct as *a, bool long_jump)
{
	struct bpf_insn *i = &a->out->insns[a->out->nr - 1];
	const char *start;
	struct use *u;

	asm_blanks(a);
	if (!strncmp(a->p, "pc", 2) && (a->p[2] == '+' || a->p[2] == '-')) {
		a->p += 2;
		return long_jump ? asm_imm32(a, &i->imm) : asm_offset(a, &i->off);
	}
	for (start = a->p; isalnum((unsigned char)*a->p) || *a->p == '_'; a->p++)
		;
	if (a->p == start || a->nr_uses == sizeof(a->uses) / sizeof(a->uses[0]))
		return asm_fail(a, "a label expected at \"%s\"", a->p);
	u = &a->uses[a->nr_uses++];
	*u = (struct use){ .insn = a->out->nr - 1, .line = a->line, .long_jump = long_jump };
	snprintf(u->name, sizeof(u->name), "%.*s", (int)(a->p - start), start);
	return true;
}

/* Parses "u8 *)(r1 +0)"; the opening bracket was parsed before. Returns the width in bytes, or 0
 * with an error. */
static unsigned memory(struct as *a, uint8_t *base, __s16 *off, bool *sx)
{
	static const char *const names[] = { "u8", "u16", "u32", "u64", "s8", "s16", "s32" };

	for (unsigned k = 0; k < 7; k++) {
		if (!asm_take(a, names[k]))
			continue;
		if (sx)
			*sx = k > 3;
		else if (k > 3)
			break;
		if (!asm_expect(a, "*") || !asm_expect(a, ")") || !asm_expect(a, "(") ||
		    !asm_reg(a, 'r', base) || !asm_offset(a, off) || !asm_expect(a, ")"))
			return 0;
		return 1u << k % 4;
	}
	asm_fail(a, "a type expected at \"%s\"", a->p);
	return 0;
}

static uint8_t size_code(unsigned width)
{
	return width == 1 ? BPF_B : width == 2 ? BPF_H : width == 4 ? BPF_W : BPF_DW;
}

static bool packet(struct as *a)
{
	static const struct { const char *name; uint8_t size; } sizes[] = {
		{ "u8", BPF_B }, { "u16", BPF_H }, { "u32", BPF_W } };
	struct bpf_insn i = { .code = BPF_LD };
	uint8_t src;

	for (int k = 0; k < 3; k++)
		if (asm_take(a, sizes[k].name)) {
			i.code |= sizes[k].size;
			break;
		}
	if (!asm_expect(a, "*") || !asm_expect(a, ")") || !asm_expect(a, "skb") ||
	    !asm_expect(a, "["))
		return false;
	if (asm_take_reg(a, 'r', &src, NULL)) {
		i.src_reg = src;
		i.code |= BPF_IND;
		if (!asm_expect(a, "+"))
			return false;
	} else {
		i.code |= BPF_ABS;
	}
	emit(a, i);
	return asm_imm32(a, &a->out->insns[a->out->nr - 1].imm) && asm_expect(a, "]");
}

/* r1 = *(u32 *)(r2 +4), *(u8 *)skb[...] */
static bool load(struct as *a, uint8_t dst)
{
	struct bpf_insn i = { .dst_reg = dst };
	unsigned width;
	uint8_t base;
	bool sx;

	if (strstr(a->p, "skb["))
		return packet(a);
	width = memory(a, &base, &i.off, &sx);
	if (!width)
		return false;
	i.src_reg = base;
	i.code = (uint8_t)(BPF_LDX | (sx ? BPF_MEMSX : BPF_MEM) | size_code(width));
	emit(a, i);
	return true;
}

/* *(u32 *)(r2 +4) = r1; lock *(u32 *)(r2 +4) += r1 */
static bool store(struct as *a, bool locked)
{
	static const struct { const char *word; uint8_t op; } ops[] = {
		{ "+=", BPF_ADD }, { "|=", BPF_OR }, { "&=", BPF_AND }, { "^=", BPF_XOR } };
	struct bpf_insn i = { 0 };
	unsigned width;
	uint8_t base, src;

	width = memory(a, &base, &i.off, NULL);
	if (!width)
		return false;
	i.dst_reg = base;
	if (locked) {
		for (int k = 0; k < 4; k++) {
			if (!asm_take(a, ops[k].word))
				continue;
			i.code = (uint8_t)(BPF_STX | BPF_ATOMIC | size_code(width));
			i.imm = ops[k].op;
			if (!asm_reg(a, 'r', &src))
				return false;
			i.src_reg = src;
			emit(a, i);
			return true;
		}
		return asm_fail(a, "an operation expected at \"%s\"", a->p);
	}
	if (!asm_expect(a, "="))
		return false;
	if (asm_take_reg(a, 'r', &src, NULL)) {
		i.src_reg = src;
		i.code = (uint8_t)(BPF_STX | BPF_MEM | size_code(width));
	} else {
		i.code = (uint8_t)(BPF_ST | BPF_MEM | size_code(width));
		if (!asm_imm32(a, &i.imm))
			return false;
	}
	emit(a, i);
	return true;
}

/* r1 = atomic64_fetch_add((u64 *)(r2 +0), r1) and the like */
static bool fetch(struct as *a, uint8_t dst)
{
	static const struct { const char *word; uint8_t op; } ops[] = {
		{ "fetch_add", BPF_ADD | BPF_FETCH }, { "fetch_or", BPF_OR | BPF_FETCH },
		{ "fetch_and", BPF_AND | BPF_FETCH }, { "fetch_xor", BPF_XOR | BPF_FETCH },
		{ "xchg", BPF_XCHG }, { "cmpxchg", BPF_CMPXCHG } };
	struct bpf_insn i = { 0 };
	unsigned width, wide = 4;
	uint8_t base, src, r0;
	int k;

	if (!strncmp(a->p, "64", 2)) {
		wide = 8;
		a->p += 2;
	}
	if (!asm_expect(a, "_"))
		return false;
	for (k = 0; k < 6 && !asm_take(a, ops[k].word); k++)
		;
	if (k == 6)
		return asm_fail(a, "an operation expected at \"%s\"", a->p);
	if (!asm_expect(a, "(") || !asm_expect(a, "(") ||
	    !(width = memory(a, &base, &i.off, NULL)) || !asm_expect(a, ","))
		return false;
	if (width != wide)
		return asm_fail(a, "the type isn't %u bytes", wide);
	i = (struct bpf_insn){ .code = (uint8_t)(BPF_STX | BPF_ATOMIC | size_code(width)),
			       .dst_reg = base, .off = i.off, .imm = ops[k].op };
	if (ops[k].op == BPF_CMPXCHG && (!asm_reg(a, 'r', &r0) || !asm_expect(a, ",") || r0 || dst))
		return asm_fail(a, "the compared register must be r0");
	if (!asm_reg(a, 'r', &src) || !asm_expect(a, ")"))
		return false;
	if (ops[k].op != BPF_CMPXCHG && src != dst)
		return asm_fail(a, "both registers must be the same");
	i.src_reg = src;
	emit(a, i);
	return true;
}

/* be16, le32, bswap64 ... */
static bool byte_order(struct as *a, uint8_t dst)
{
	static const struct { const char *word; uint8_t code; } ops[] = {
		{ "le", BPF_ALU | BPF_END | BPF_TO_LE }, { "be", BPF_ALU | BPF_END | BPF_TO_BE },
		{ "bswap", BPF_ALU64 | BPF_END | BPF_TO_LE } };

	asm_blanks(a);
	for (int k = 0; k < 3; k++) {
		size_t n = strlen(ops[k].word);
		uint8_t again;
		int bits;

		if (strncmp(a->p, ops[k].word, n) || !isdigit((unsigned char)a->p[n]))
			continue;
		bits = atoi(a->p + n);
		a->p += n + 2;
		if (!asm_reg(a, 'r', &again) || again != dst)
			return asm_fail(a, "both registers must be the same");
		emit(a, (struct bpf_insn){ .code = ops[k].code, .dst_reg = dst, .imm = bits });
		return true;
	}
	return false;
}

static bool load64(struct as *a, uint8_t dst)
{
	struct bpf_insn i = { .code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = dst };
	uint64_t v;
	const char *p = a->p;

	if (asm_take(a, "func")) {
		i.src_reg = BPF_PSEUDO_FUNC;
		emit(a, i);
		if (!target(a, true))
			return true;
		emit(a, (struct bpf_insn){ 0 });
		return true;
	}
	if (asm_take(a, "map")) {
		i.src_reg = BPF_PSEUDO_MAP_FD;
		if (!asm_imm32(a, &i.imm))
			return true;
		emit(a, i);
		emit(a, (struct bpf_insn){ 0 });
		return true;
	}
	if (!asm_take_number(a, &v) || (!asm_take(a, "ll") && a->code != 0x18)) {
		a->p = p;
		return false;
	}
	i.imm = (__s32)(uint32_t)v;
	emit(a, i);
	emit(a, (struct bpf_insn){ .imm = (__s32)(uint32_t)(v >> 32) });
	return true;
}

/* Parses the right side of an assignment to a register. */
static bool assign(struct as *a, uint8_t dst, char letter)
{
	static const struct { const char *word; int bits; } casts[] = {
		{ "(s8)", 8 }, { "(s16)", 16 }, { "(s32)", 32 } };
	uint8_t class = letter == 'w' ? BPF_ALU : BPF_ALU64, src;
	struct bpf_insn i = { .dst_reg = dst };

	if (letter == 'r') {
		if (asm_take(a, "*"))
			return asm_expect(a, "(") && load(a, dst);
		asm_blanks(a);
		if (!strncmp(a->p, "atomic", 6)) {
			a->p += 6;
			return fetch(a, dst);
		}
		if (byte_order(a, dst) || a->failed || load64(a, dst))
			return !a->failed;
	}
	for (int k = 0; k < 3; k++)
		if (asm_take(a, casts[k].word))
			i.off = (__s16)casts[k].bits;
	asm_blanks(a);
	if (!i.off && *a->p == '-' && a->p[1] == letter) {
		a->p++;
		if (!asm_reg(a, letter, &src) || src != dst)
			return asm_fail(a, "both registers must be the same");
		i.code = class | BPF_NEG;
	} else if (asm_take_reg(a, letter, &src, NULL)) {
		i.src_reg = src;
		i.code = class | BPF_MOV | BPF_X;
	} else {
		i.code = class | BPF_MOV | BPF_K;
		if (!asm_imm32(a, &i.imm))
			return false;
	}
	emit(a, i);
	return true;
}

static bool arithmetic(struct as *a, uint8_t dst, char letter)
{
	static const struct { const char *word; uint8_t op; int16_t off; } ops[] = {
		{ "s>>=", BPF_ARSH, 0 }, { "<<=", BPF_LSH, 0 }, { ">>=", BPF_RSH, 0 },
		{ "s/=", BPF_DIV, 1 }, { "s%=", BPF_MOD, 1 }, { "+=", BPF_ADD, 0 },
		{ "-=", BPF_SUB, 0 }, { "*=", BPF_MUL, 0 }, { "/=", BPF_DIV, 0 },
		{ "|=", BPF_OR, 0 }, { "&=", BPF_AND, 0 }, { "%=", BPF_MOD, 0 },
		{ "^=", BPF_XOR, 0 } };
	struct bpf_insn i = { .dst_reg = dst };
	uint8_t src;
	size_t k;

	for (k = 0; k < sizeof(ops) / sizeof(ops[0]) && !asm_take(a, ops[k].word); k++)
		;
	if (k == sizeof(ops) / sizeof(ops[0]))
		return asm_fail(a, "an operation expected at \"%s\"", a->p);
	i.code = (uint8_t)((letter == 'w' ? BPF_ALU : BPF_ALU64) | ops[k].op);
	i.off = ops[k].off;
	if (asm_take_reg(a, letter, &src, NULL)) {
		i.src_reg = src;
		i.code |= BPF_X;
	} else if (!asm_imm32(a, &i.imm)) {
		return false;
	}
	emit(a, i);
	return true;
}

static bool branch(struct as *a)
{
	static const struct { const char *word; uint8_t op; } ops[] = {
		{ "s>=", BPF_JSGE }, { "s<=", BPF_JSLE }, { "s>", BPF_JSGT }, { "s<", BPF_JSLT },
		{ "==", BPF_JEQ }, { "!=", BPF_JNE }, { ">=", BPF_JGE }, { "<=", BPF_JLE },
		{ ">", BPF_JGT }, { "<", BPF_JLT }, { "&", BPF_JSET } };
	struct bpf_insn i = { 0 };
	uint8_t r;
	char letter;
	size_t k;

	if (!asm_take_reg(a, 0, &r, &letter))
		return asm_fail(a, "a register expected at \"%s\"", a->p);
	i.dst_reg = r;
	for (k = 0; k < sizeof(ops) / sizeof(ops[0]) && !asm_take(a, ops[k].word); k++)
		;
	if (k == sizeof(ops) / sizeof(ops[0]))
		return asm_fail(a, "a comparison expected at \"%s\"", a->p);
	i.code = (uint8_t)((letter == 'w' ? BPF_JMP32 : BPF_JMP) | ops[k].op);
	if (asm_take_reg(a, letter, &r, NULL)) {
		i.src_reg = r;
		i.code |= BPF_X;
	} else if (!asm_imm32(a, &i.imm)) {
		return false;
	}
	emit(a, i);
	return asm_expect(a, "goto") && target(a, false);
}

static bool call(struct as *a)
{
	struct bpf_insn i = { .code = BPF_JMP | BPF_CALL };
	const char *hash = strchr(a->p, '#');

	if (hash) {
		if (strstr(a->p, "kernel-function#"))
			i.src_reg = BPF_PSEUDO_KFUNC_CALL;
		a->p = hash + 1;
		emit(a, i);
		return asm_imm32(a, &a->out->insns[a->out->nr - 1].imm);
	}
	i.src_reg = BPF_PSEUDO_CALL;
	emit(a, i);
	return target(a, true);
}

static bool raw(struct as *a)
{
	struct bpf_insn i = { 0 };
	__s32 v[5];

	for (int k = 0; k < 5; k++)
		if (!asm_imm32(a, &v[k]))
			return false;
	i = (struct bpf_insn){ .code = (__u8)v[0], .dst_reg = (__u8)(v[1] & 15),
			       .src_reg = (__u8)(v[2] & 15), .off = (__s16)v[3], .imm = v[4] };
	emit(a, i);
	return true;
}

static bool instruction(struct as *a);

static bool times(struct as *a)
{
	const char *again, *end;
	uint64_t n;

	if (!asm_take_number(a, &n))
		return asm_fail(a, "a number expected at \"%s\"", a->p);
	again = end = a->p;
	while (n--) {
		a->p = again;
		if (!instruction(a))
			return false;
		end = a->p;
	}
	a->p = end;
	return true;
}

static bool instruction(struct as *a)
{
	char letter;
	uint8_t dst;

	if (asm_take(a, ".raw"))
		return raw(a);
	if (asm_take(a, ".times"))
		return times(a);
	if (asm_take(a, "exit")) {
		emit(a, (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT });
		return true;
	}
	if (asm_take(a, "gotol")) {
		emit(a, (struct bpf_insn){ .code = BPF_JMP32 | BPF_JA });
		return target(a, true);
	}
	if (asm_take(a, "goto")) {
		emit(a, (struct bpf_insn){ .code = BPF_JMP | BPF_JA });
		return target(a, false);
	}
	if (asm_take(a, "may_goto")) {
		emit(a, (struct bpf_insn){ .code = BPF_JMP | BPF_JCOND });
		return target(a, false);
	}
	if (asm_take(a, "if"))
		return branch(a);
	if (asm_take(a, "call"))
		return call(a);
	if (asm_take(a, "lock"))
		return asm_expect(a, "*") && asm_expect(a, "(") && store(a, true);
	if (asm_take(a, "*"))
		return asm_expect(a, "(") && store(a, false);
	if (!asm_take_reg(a, 0, &dst, &letter))
		return asm_fail(a, "no instruction: \"%s\"", a->p);
	if (asm_take(a, "="))
		return assign(a, dst, letter);
	return arithmetic(a, dst, letter);
}

/* Parses labels, the opcode in brackets and an instruction. Each of these parts may be missing. */
static bool statement(struct as *a)
{
	const char *colon;

	for (;;) {
		const char *p;

		asm_blanks(a);
		for (p = a->p; isalnum((unsigned char)*p) || *p == '_'; p++)
			;
		colon = *p == ':' && p > a->p ? p : NULL;
		if (!colon)
			break;
		if (a->nr_labels == ASM_MOST_LABELS)
			return asm_fail(a, "too many labels");
		snprintf(a->labels[a->nr_labels].name, sizeof(a->labels[0].name), "%.*s",
			 (int)(colon - a->p), a->p);
		a->labels[a->nr_labels++].at = a->out->nr;
		a->p = colon + 1;
	}
	a->code = -1;
	if (a->p[0] == '(' && isxdigit((unsigned char)a->p[1]) &&
	    isxdigit((unsigned char)a->p[2]) && a->p[3] == ')') {
		a->code = (int)strtol(a->p + 1, NULL, 16);
		a->p += 4;
	}
	asm_blanks(a);
	if (!*a->p)
		return true;
	if (!instruction(a))
		return false;
	asm_blanks(a);
	return !*a->p || asm_fail(a, "unexpected text after the instruction: \"%s\"", a->p);
}

static bool resolve(struct as *a)
{
	for (uint32_t u = 0; u < a->nr_uses; u++) {
		struct use *use = &a->uses[u];
		struct bpf_insn *i = &a->out->insns[use->insn];
		uint32_t l = 0;
		int64_t by;

		while (l < a->nr_labels && strcmp(a->labels[l].name, use->name))
			l++;
		a->line = use->line;
		if (l == a->nr_labels)
			return asm_fail(a, "there is no label %s", use->name);
		by = (int64_t)a->labels[l].at - use->insn - 1;
		if (use->long_jump)
			i->imm = (__s32)by;
		else if (by != (int16_t)by)
			return asm_fail(a, "%s is too far", use->name);
		else
			i->off = (__s16)by;
	}
	return true;
}

int assemble(const char *text, struct asm_out *out)
{
	struct as *a = calloc(1, sizeof(*a));
	bool good = true;
	int ret;

	a->out = out;
	a->line = 1;
	out->nr = 0;
	out->error[0] = 0;
	while (good && *text) {
		char one[256];
		size_t n = strcspn(text, "\n;"), code;

		code = strcspn(text, "\n;#");
		/* in "call name#12", the number sign isn't the start of a comment */
		if (text[code] == '#' && code && memmem(text, code, "call", 4))
			code = n;
		snprintf(one, sizeof(one), "%.*s", (int)(code < n ? code : n), text);
		/* a comment extends to the end of the line, even if it contains semicolons */
		if (code < n || text[code] == '#')
			n = strcspn(text, "\n");
		for (size_t end = strlen(one); end && isspace((unsigned char)one[end - 1]);)
			one[--end] = 0;
		a->p = one;
		good = statement(a);
		text += n;
		if (*text == '\n')
			a->line++;
		if (*text)
			text++;
	}
	ret = good && !a->failed && resolve(a) && !a->failed ? 0 : -1;
	free(a);
	return ret;
}
