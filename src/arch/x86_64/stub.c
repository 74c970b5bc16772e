/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "arch/x86_64/stub.h"
#include "abi/analysis_access.h"
#include "base/base.h"
#include "base/mem.h"

static const uint8_t head[] = {
	0x4c, 0x89, 0x5c, 0x24, 0xf8,			/* mov %r11,-8(%rsp)   */
	0x4c, 0x8d, 0x1d, 0, 0, 0, 0,			/* lea site(%rip),%r11 */
	0x41, 0xff, 0x23,				/* jmp *(%r11)         */
	0x4c, 0x8b, 0x5c, 0x24, 0xf8,			/* mov -8(%rsp),%r11   */
};
_Static_assert(sizeof(head) == PB_STUB_COPY, "layout.h");
#define SITE_AT 8	/* of the lea's displacement, which ends at 12 */

static int put_rel32(uint8_t *at, uint64_t from, uint64_t to)
{
	int64_t rel = (int64_t)(to - from);
	int32_t rel32 = (int32_t)rel;

	if (rel != rel32)
		return -34;
	memcpy(at, &rel32, 4);
	return 0;
}

size_t pb_stub_size(const struct pb_recipe *r, const struct pb_recipe *dug)
{
	return pb_align_up((size_t)PB_STUB_COPY + r->len + (dug ? dug->len : 0u), 16);
}

_Static_assert(PB_STUB_COPY + 2 * PB_RECIPE_MAX <= PB_STUB_MAX, "stub.h");

/* out: what is to stand at `at`. */
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
	return -22;
}

static int put_recipe(uint8_t *out, uint64_t at, const struct pb_recipe *r, uint64_t bias)
{
	memcpy(out, pb_recipe_code(r), r->len);
	for (unsigned i = 0; i < r->nr_fixups; i++) {
		int err = fix(out, at, &pb_recipe_fixups(r)[i], bias);

		if (err)
			return err;
	}
	return 0;
}

int pb_stub_emit(uint8_t *out, uint64_t at, const struct pb_site *site, const struct pb_recipe *r,
		 const struct pb_recipe *dug, uint64_t bias)
{
	unsigned behind = PB_STUB_COPY + r->len;
	int err;

	memcpy(out, head, sizeof(head));
	if (put_rel32(out + SITE_AT, at + 12, (uint64_t)site))
		return -34;
	err = put_recipe(out + PB_STUB_COPY, at + PB_STUB_COPY, r, bias);
	if (!err && dug)
		err = put_recipe(out + behind, at + behind, dug, bias);
	return err;
}

int pb_jump_emit(uint8_t out[PB_JUMP_LEN], uint64_t from, uint64_t to)
{
	out[0] = 0xe9;
	return put_rel32(out + 1, from + PB_JUMP_LEN, to);
}

int pb_dig_emit(uint8_t out[PB_DIG_LEN], uint64_t from, uint64_t copy, uint64_t stub)
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
	/* as a number: rel may be any bytes */
	return (const struct pb_site *)((uint64_t)at + SITE_AT + 4 + (uint64_t)(int64_t)rel);
}

int pb_stub_is(const uint8_t *at, const struct pb_site *site)
{
	return !memcmp(at, head, SITE_AT) && pb_stub_site(at) == site;
}
