/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The code of stubs, for the agent and for the recorder, which makes the file of stubs. A stub has
 * a fixed head and a body. The head jumps to the site's handler. The body has a relocated copy of
 * the displaced instructions. The analysis has this copy as a recipe: code, and the fixups that the
 * code needs at its final address. In the body, a jump to code of the agent comes before each exit,
 * or replaces it (frame.h). This code of the agent ends the call. The stub's code depends on the
 * address at which it will run. The caller passes this address and a buffer for the code.
 */
#include <asm/errno.h>
#include "arch/arch.h"
#include "abi/analysis_access.h"
#include "base/base.h"
#include "base/mem.h"

static const uint8_t head[] = {
	0x4c, 0x89, 0x5c, 0x24, 0xc8,			/* mov %r11,-56(%rsp)  */
	0x4c, 0x8d, 0x1d, 0, 0, 0, 0,			/* lea site(%rip),%r11 */
	0x41, 0xff, 0x23,				/* jmp *(%r11)         */
	0x4c, 0x8b, 0x5c, 0x24, 0xc8,			/* mov -56(%rsp),%r11  */
};
_Static_assert(sizeof(head) == PB_STUB_COPY, "frame.h");
_Static_assert((uint8_t)F_R11 == 0xc8 && F_SERIAL >= -PB_RED_ZONE, "frame.h");
#define SITE_AT 8	/* offset of the lea's displacement, which ends at 12 */

static int put_rel32(uint8_t *at, uint64_t from, uint64_t to)
{
	int64_t rel = (int64_t)(to - from);
	int32_t rel32 = (int32_t)rel;

	if (rel != rel32)
		return -ERANGE;
	memcpy(at, &rel32, 4);
	return 0;
}

/* ---- what is displaced ----------------------------------------------------- */

static const uint8_t exit_head[] = {
	0x4c, 0x89, 0x5c, 0x24, 0xc8,			/* mov %r11,-56(%rsp)  */
	0x4c, 0x8d, 0x1d, 6, 0, 0, 0,			/* lea 1f(%rip),%r11   */
	0xff, 0x25, 0, 0, 0, 0,				/* jmp *jump(%rip)     */
	0x4c, 0x8b, 0x5c, 0x24, 0xc8,			/* 1: mov -56(%rsp),%r11 */
};
_Static_assert(sizeof(exit_head) == PB_EXIT_JUMP_LEN, "frame.h");
#define JUMP_AT		14	/* offset of the jump's displacement */
#define JCC_LEN		(PB_EXIT_JUMP_LEN + PB_JUMP_LEN)

/* How the code of a recipe ends. */
struct tail {
	unsigned at;		/* offset of the unconditional exit's copy, or of the end */
	unsigned head;		/* number of bytes that are inserted before the exit's copy */
	unsigned exit;		/* number of bytes of the exit's copy */
	unsigned jccs;		/* number of conditional exits; the code that they jump to comes
				 * last */
};

static struct tail tail_of(const struct pb_place *p)
{
	const struct pb_window_exit *last = p->nr_exits ? &p->exits[p->nr_exits - 1] : NULL;
	struct tail t = { .at = p->recipe->len, .jccs = p->nr_exits };

	if (!last || last->kind == PB_EXIT_JCC)
		return t;
	t.at = (unsigned)pb_recipe_copy_offset(p->recipe, last->off);
	t.jccs--;
	t.head = last->kind == PB_EXIT_RET ? PB_EXIT_RET_LEN : PB_EXIT_JUMP_LEN;
	t.exit = last->kind == PB_EXIT_RET ? 0 : p->recipe->len - t.at;
	return t;
}

static unsigned jccs_at(const struct tail *t)
{
	return t->at + t->head + t->exit;
}

unsigned pb_body_exits(const struct pb_place *p)
{
	struct tail t = tail_of(p);

	return jccs_at(&t);
}

unsigned pb_body_second(const struct pb_place *p)
{
	struct tail t = tail_of(p);

	return jccs_at(&t) + t.jccs * JCC_LEN;
}

size_t pb_body_size(const struct pb_place *p)
{
	return pb_body_second(p) + (p->second ? p->second->len : 0u);
}

/* A site's stub has at most PB_STUB_MAX bytes, because two bytes of a window hold at most one
 * conditional exit. The unconditional exit's code is shorter than JCC_LEN. */
_Static_assert(PB_STUB_COPY + 2 * PB_RECIPE_MAX + PB_WINDOW_MAX / 2 * JCC_LEN <= PB_STUB_MAX,
	       "arch.h");

/* Applies a fixup to the code in `out`. The code will run at the address `at`. */
static int fix(uint8_t *out, uint64_t at, const struct pb_fixup *f, uint64_t bias)
{
	uint64_t value = bias + f->value;
	uint32_t half;

	switch (f->kind) {
	case PB_FIX_REL32:
		return put_rel32(out + f->off, at + f->off + 4 + f->addend, value);
	case PB_FIX_ABS64:
		memcpy(out + f->off, &value, 8);
		return 0;
	case PB_FIX_LO32:
	case PB_FIX_HI32:
		half = (uint32_t)(f->kind == PB_FIX_LO32 ? value : value >> 32);
		memcpy(out + f->off, &half, 4);
		return 0;
	}
	return -EINVAL;
}

/* Writes the recipe's code and applies its fixups. The first `len` bytes go to `out`. The next `nr`
 * bytes follow after a gap of `gap` bytes. */
static int put_recipe(uint8_t *out, uint64_t at, const struct pb_recipe *r, unsigned len,
		      unsigned gap, unsigned nr, uint64_t bias)
{
	int err = 0;

	memcpy(out, pb_recipe_code(r), len);
	memcpy(out + len + gap, pb_recipe_code(r) + len, nr);
	for (unsigned i = 0; i < r->nr_fixups && !err; i++) {
		const struct pb_fixup *f = &pb_recipe_fixups(r)[i];

		if (f->off < len)
			err = fix(out, at, f, bias);
		else if (nr)
			err = fix(out + gap, at + gap, f, bias);
	}
	return err;
}

static int put_exit_head(uint8_t *out, uint64_t at, const struct pb_returns *words)
{
	memcpy(out, exit_head, sizeof(exit_head));
	return put_rel32(out + JUMP_AT, at + JUMP_AT + 4, (uint64_t)&words->jump);
}

/* Returns the fixup of a conditional exit's displacement. The value of the fixup is the exit's
 * target. */
static const struct pb_fixup *target_of(const struct pb_recipe *r, const struct pb_window_exit *e)
{
	const struct pb_fixup *f = pb_recipe_fixups(r);

	while (!pb_exit_target(r, e, f))
		f++;
	return f;
}

/* Writes the code that conditional exits jump to instead of their targets. This code comes after
 * the recipe's code, at offset `start`. */
static int put_jccs(uint8_t *out, uint64_t at, const struct pb_place *p, unsigned start,
		    const struct pb_returns *words, uint64_t bias)
{
	int err = 0;

	for (unsigned i = 0; i < p->nr_exits && p->exits[i].kind == PB_EXIT_JCC && !err; i++) {
		const struct pb_fixup *f = target_of(p->recipe, &p->exits[i]);
		unsigned to = start + i * JCC_LEN;

		err = put_rel32(out + f->off, f->off + 4, to);
		if (!err)
			err = put_exit_head(out + to, at + to, words);
		to += PB_EXIT_JUMP_LEN;
		if (!err)
			err = pb_jump_emit(out + to, at + to, bias + f->value);
	}
	return err;
}

int pb_body_emit(uint8_t *out, uint64_t at, const struct pb_place *p,
		 const struct pb_returns *words, uint64_t bias)
{
	struct tail t = tail_of(p);
	unsigned second = pb_body_second(p);
	int err = put_recipe(out, at, p->recipe, t.at, t.head, t.exit, bias);

	if (!err && t.head == PB_EXIT_RET_LEN) {
		out[t.at] = 0xff;
		out[t.at + 1] = 0x25;
		err = put_rel32(out + t.at + 2, at + t.at + PB_EXIT_RET_LEN, (uint64_t)&words->ret);
	} else if (!err && t.head) {
		err = put_exit_head(out + t.at, at + t.at, words);
	}
	if (!err)
		err = put_jccs(out, at, p, jccs_at(&t), words, bias);
	if (!err && p->second)
		err = put_recipe(out + second, at + second, p->second, p->second->len, 0, 0, bias);
	return err;
}

/* ---- what a program counter in a body means --------------------------------- */

#define JMP_REL32	0xe9
#define SKIP_LEN	2	/* length of the jmp +5 before the jmp rel32 in a loop's copy */

/* If the code of pair i is the copy of a loop, jrcxz or jecxz (relocate.c), returns the fixup of
 * its jmp rel32; else NULL. In the copy of another instruction, this opcode is either not before
 * the last displacement, or it is the first byte. */
static const struct pb_fixup *loop_jump(const struct pb_recipe *r, unsigned i)
{
	const struct pb_pair *p = pb_recipe_pairs(r);
	const struct pb_fixup *f = pb_recipe_fixups(r);

	for (unsigned k = 0; i + 1u < r->nr_pairs && k < r->nr_fixups; k++)
		if (f[k].kind == PB_FIX_REL32 && f[k].off + 4u == p[i + 1].copy &&
		    f[k].off > p[i].copy + SKIP_LEN + 1u &&
		    pb_recipe_code(r)[f[k].off - 1] == JMP_REL32)
			return &f[k];
	return NULL;
}

/* Returns whether the copy of a call, in the code at offset `off`, has pushed a word. If a copy has
 * a word of its target on the stack for a moment, the push of the return address comes after that.
 * Only calls have the fixup LO32, and only in this push. */
static bool call_has_pushed(const struct pb_recipe *r, unsigned off)
{
	const struct pb_fixup *f = pb_recipe_fixups(r);
	unsigned copy = pb_recipe_pairs(r)[r->nr_pairs - 1].copy;

	for (unsigned k = 0; k < r->nr_fixups; k++)
		if (f[k].kind == PB_FIX_LO32)
			return off > copy && off != f[k].off - 1u;
	return false;
}

/* Looks up the code at offset `off` of the recipe's code. window: the link-time address of the code
 * that the recipe replaces. */
static struct pb_original in_recipe(const struct pb_recipe *r, uint64_t window, unsigned off)
{
	unsigned i = pb_recipe_pair(r, (uint8_t)off);
	const struct pb_fixup *loop = loop_jump(r, i);
	uint64_t pc = window + pb_recipe_pairs(r)[i].orig;
	struct pb_original o = { .pc = pc, .next = pc };

	if (loop && off + 1 >= loop->off)
		o.next = loop->value;
	else if (loop && off + 1 + SKIP_LEN >= loop->off)
		o.next = window + pb_recipe_pairs(r)[i + 1].orig;
	if (call_has_pushed(r, off))
		o.pushed = 8;
	return o;
}

/* Looks up the code that is inserted before an exit. If the exit is a loop, it has counted. */
static struct pb_original before_exit(const struct pb_place *p, const struct pb_window_exit *e,
				      bool own)
{
	int copy = pb_recipe_copy_offset(p->recipe, e->off);
	const struct pb_fixup *loop = NULL;
	uint64_t pc = p->window + e->off;

	if (e->kind == PB_EXIT_JCC && copy >= 0)
		loop = loop_jump(p->recipe, pb_recipe_pair(p->recipe, (uint8_t)copy));
	return (struct pb_original){ .pc = pc, .next = loop ? loop->value : pc, .own = own };
}

struct pb_original pb_body_original(const struct pb_place *p, unsigned off)
{
	struct tail t = tail_of(p);
	unsigned jccs = jccs_at(&t), second = pb_body_second(p);

	if (off < t.at)
		return in_recipe(p->recipe, p->window, off);
	if (off < jccs)
		return before_exit(p, &p->exits[p->nr_exits - 1],
				   t.head == PB_EXIT_JUMP_LEN && off - t.at < t.head);
	if (off < second)
		return before_exit(p, &p->exits[(off - jccs) / JCC_LEN],
				   (off - jccs) % JCC_LEN < PB_EXIT_JUMP_LEN);
	if (p->second)
		return in_recipe(p->second, pb_place_second(p), off - second);
	return in_recipe(p->recipe, p->window, p->recipe->len - 1u);
}

int pb_body_copy(const struct pb_place *p, uint64_t addr)
{
	uint64_t off = addr - p->window;
	int copy = -1;

	if (off < p->recipe->window_len)
		copy = pb_recipe_copy_offset(p->recipe, (uint8_t)off);
	if (copy >= 0 || !p->second)
		return copy;
	off = addr - pb_place_second(p);
	copy = off < p->second->window_len ? pb_recipe_copy_offset(p->second, (uint8_t)off) : -1;
	return copy < 0 ? copy : copy + (int)pb_body_second(p);
}

/* ---- the stub of a site ---------------------------------------------------- */

size_t pb_stub_size(const struct pb_place *p)
{
	return pb_align_up(PB_STUB_COPY + pb_body_size(p), 16);
}

int pb_stub_emit(uint8_t *out, uint64_t at, const struct pb_site *site, const struct pb_place *p,
		 const struct pb_returns *words, uint64_t bias)
{
	memcpy(out, head, sizeof(head));
	if (put_rel32(out + SITE_AT, at + 12, (uint64_t)site))
		return -ERANGE;
	return pb_body_emit(out + PB_STUB_COPY, at + PB_STUB_COPY, p, words, bias);
}

int pb_jump_emit(uint8_t out[PB_JUMP_LEN], uint64_t from, uint64_t to)
{
	out[0] = 0xe9;
	return put_rel32(out + 1, from + PB_JUMP_LEN, to);
}

int pb_code_slot_emit(uint8_t out[PB_CODE_SLOT_LEN], uint64_t from, uint64_t copy, uint64_t stub)
{
	int err = pb_jump_emit(out, from, copy);

	return err ? err : pb_jump_emit(out + PB_JUMP_LEN, from + PB_JUMP_LEN, stub);
}

void pb_jump_emit_short(uint8_t out[PB_JUMP_SHORT], int via)
{
	out[0] = 0xeb;
	out[1] = (uint8_t)(via - PB_JUMP_SHORT);
}

const struct pb_site *pb_stub_site(const uint8_t *at)
{
	int32_t rel;

	memcpy(&rel, at + SITE_AT, 4);
	/* computed as an integer, because rel may have any value */
	return (const struct pb_site *)((uint64_t)at + SITE_AT + 4 + (uint64_t)(int64_t)rel);
}

int pb_stub_is(const uint8_t *at, const struct pb_site *site)
{
	return !memcmp(at, head, SITE_AT) && pb_stub_site(at) == site;
}
