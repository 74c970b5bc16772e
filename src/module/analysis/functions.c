/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the table of functions from symbols and FDEs. A function starts at an address that control
 * reaches by a call, so that CFA = rsp+8 there. Cold parts, the linker's stubs, signal restorers
 * and labels are not in the table. Other stages look functions up by address. A function at whose
 * entry the code may have data in the red zone is refused.
 */
#include <errno.h>
#include <string.h>
#include "base/base.h"
#include "module/analysis/exits_priv.h"
#include "module/elf/runtimes.h"

#define FUNCTION_ALIGN 16	/* compilers align functions to this number of bytes, but don't
				 * align other code to it */

static unsigned underscores(const struct pb_cand *c)
{
	unsigned n = 0;

	while (n < c->len && c->name[n] == '_')
		n++;
	return n;
}

/* Sorts candidates by address. At one address, the best name comes first. */
static int by_quality(const void *a, const void *b)
{
	const struct pb_cand *x = a, *y = b;
	uint32_t min = x->len < y->len ? x->len : y->len;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if ((x->flags ^ y->flags) & PB_CAND_GLOBAL)
		return x->flags & PB_CAND_GLOBAL ? -1 : 1;
	if (underscores(x) != underscores(y))
		return underscores(x) < underscores(y) ? -1 : 1;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return memcmp(x->name, y->name, min);
}

/* The rows of an FDE. If the FDE has many symbols, its instructions are executed only once. */
struct rows {
	long fde;		/* -1: no FDE yet */
	struct pb_cfi_cursor cur;
};

/* True if the return address is on top of the stack at addr. Without CFI at addr, the result is
 * true. Must be called in the order of addresses. */
static bool enters_here(const struct pb_an *an, struct rows *rows, uint64_t addr,
			bool *ra_undefined)
{
	long i = pb_cfi_find(&an->cfi, addr);
	const struct pb_fde *f;

	*ra_undefined = false;
	if (i < 0)
		return true;
	f = &an->cfi.fdes.v[i];
	if (f->start == addr) {
		*ra_undefined = f->ra_undefined;
		return f->entry && !f->signal;
	}
	if (i != rows->fde)
		pb_cfi_start(&rows->cur, &an->cfi, f);
	rows->fde = i;
	pb_cfi_advance(&rows->cur, addr);
	return !pb_cfi_has_frame(&rows->cur.row) && !f->signal;
}

/* True if a call leads to addr, or if an lea or a relocation takes the address. Compilers neither
 * call a cold part nor take its address. */
static bool is_called(const struct pb_range *r, uint64_t addr)
{
	return pb_bit_test(r->called, addr - r->addr);
}

/* True if the code at addr is a linker's stub: [endbr64] [bnd] jmp *slot(%rip). If the sections
 * have names, ranges.c has already found the linker's stubs. In all files, this test also leaves
 * out functions without a name that begin with such a jump. */
static bool is_stub(const struct pb_range *r, uint64_t addr)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const uint8_t *p = r->bytes + (addr - r->addr), *end = r->bytes + r->size;

	if (end - p >= 4 && !memcmp(p, endbr, 4))
		p += 4;
	if (p < end && *p == 0xf2)
		p++;
	return end - p >= 2 && p[0] == 0xff && p[1] == 0x25;
}

/*
 * True if the code at addr is `nop; call`: the bottom of a stack that the program makes itself
 * (Go's goexit). No code calls this function. The runtime computes the function's address, so no
 * instruction contains it. The runtime puts the address after the nop on the new stack, as a return
 * address. Unwinders look up the byte before a return address. This byte is the nop, so they find
 * the function.
 */
static bool is_stack_bottom(const struct pb_an *an, uint64_t addr)
{
	const struct pb_range *r = pb_range_find(an, addr);
	const uint8_t *p = r->bytes + (addr - r->addr);

	return r->size - (addr - r->addr) >= 6 && p[0] == 0x90 && p[1] == 0xe8;
}

static void set_start(struct pb_an *an, struct pb_fn *f, bool ra_undefined)
{
	if (ra_undefined || f->addr == an->elf.eh->e_entry || is_stack_bottom(an, f->addr))
		f->refused = PB_REFUSED_START;
	if (an->is_agent)
		f->refused = PB_REFUSED_AGENT;
}

static void from_cands(struct pb_an *an, struct rows *rows, size_t first, size_t n)
{
	const struct pb_cand *c = &an->cands.v[first];
	struct pb_fn f = { .addr = c->addr, .cand = first, .nr_cands = (uint32_t)n, .fde = -1 };
	long fde = pb_cfi_find(&an->cfi, c->addr);
	bool ra_undefined, cold = true;

	if (!enters_here(an, rows, c->addr, &ra_undefined) ||
	    (pb_name_stub(c->name, c->len) && is_stub(pb_range_find(an, c->addr), c->addr)))
		return;
	for (size_t i = 0; i < n; i++) {
		cold &= pb_name_cold(c[i].name, c[i].len);
		if (c[i].size > f.size)
			f.size = c[i].size;
		if (c[i].flags & PB_CAND_IFUNC)
			f.refused = PB_REFUSED_IFUNC;
		if (pb_name_start(c[i].name, c[i].len))
			f.refused = PB_REFUSED_START;
		if (pb_name_memtest(c[i].name, c[i].len))
			f.refused = PB_REFUSED_MEMTEST;
		if (pb_runtime_copies(an->runtimes, c[i].name, c[i].len))
			f.refused = PB_REFUSED_COPIED;
		if (an->is_loader && pb_name_loader(c[i].name, c[i].len))
			f.refused = PB_REFUSED_LOADER;
	}
	if (cold && !is_called(pb_range_find(an, f.addr), f.addr))
		return;
	if (fde >= 0 && an->cfi.fdes.v[fde].start == f.addr) {
		f.fde = (int32_t)fde;
		if (!f.size)
			f.size = an->cfi.fdes.v[fde].end - f.addr;
	}
	if (c->flags & PB_CAND_GLOBAL)
		f.flags |= PB_FUNC_GLOBAL;
	set_start(an, &f, ra_undefined);
	pb_vec_push(&an->fns, f);
}

static void from_fde(struct pb_an *an, size_t i)
{
	const struct pb_fde *fde = &an->cfi.fdes.v[i];
	const struct pb_range *r = pb_range_find(an, fde->start);
	struct pb_fn f = { .addr = fde->start, .size = fde->end - fde->start, .fde = (int32_t)i,
			   .flags = PB_FUNC_UNNAMED };

	if (!r || r->stubs || !fde->entry || fde->signal || is_stub(r, f.addr))
		return;
	if (f.addr % FUNCTION_ALIGN && !is_called(r, f.addr))
		return;
	/* in a stripped loader, the functions that bind calls can't be distinguished from other
	 * functions, so all functions without a name are refused */
	if (an->is_loader)
		f.refused = PB_REFUSED_LOADER;
	set_start(an, &f, fde->ra_undefined);
	pb_vec_push(&an->fns, f);
}

/* Makes functions of candidates and FDEs, in the order of their addresses. */
static void merge(struct pb_an *an)
{
	struct rows rows = { .fde = -1 };
	size_t c = 0, d = 0;

	while (c < an->cands.n || d < an->cfi.fdes.n) {
		uint64_t ca = c < an->cands.n ? an->cands.v[c].addr : UINT64_MAX;
		uint64_t da = d < an->cfi.fdes.n ? an->cfi.fdes.v[d].start : UINT64_MAX;
		size_t n = 0;

		if (ca <= da) {
			while (c + n < an->cands.n && an->cands.v[c + n].addr == ca)
				n++;
			from_cands(an, &rows, c, n);
			c += n;
		} else {
			from_fde(an, d);
		}
		while (d < an->cfi.fdes.n && an->cfi.fdes.v[d].start <= ca &&
		       an->cfi.fdes.v[d].start <= da)
			d++;
	}
}

/* Collects the addresses that no window may cross: the starts of functions, labels, FDEs and
 * ranges. */
static void make_barriers(struct pb_an *an)
{
	size_t n = 0;

	for (size_t i = 0; i < an->cands.n; i++)
		pb_vec_push(&an->barriers, an->cands.v[i].addr);
	for (size_t i = 0; i < an->cfi.fdes.n; i++)
		pb_vec_push(&an->barriers, an->cfi.fdes.v[i].start);
	pb_vec_append(&an->barriers, an->labels.v, an->labels.n);
	for (size_t i = 0; i < an->ranges.n; i++)
		pb_vec_push(&an->barriers, an->ranges.v[i].addr);
	pb_vec_sort(&an->barriers, pb_addr_compare);
	for (size_t i = 0; i < an->barriers.n; i++)
		if (!n || an->barriers.v[n - 1] != an->barriers.v[i])
			an->barriers.v[n++] = an->barriers.v[i];
	an->barriers.n = n;
}

/* If a function's size is unknown, the function ends at the next barrier. */
static void bound_sizes(struct pb_an *an)
{
	for (size_t i = 0; i < an->fns.n; i++) {
		struct pb_fn *f = &an->fns.v[i];
		const struct pb_range *r = pb_range_find(an, f->addr);
		size_t next = pb_addr_lower(&an->barriers, f->addr + 1);
		uint64_t end = r->addr + r->size;

		if (!f->size) {
			if (next < an->barriers.n && an->barriers.v[next] < end)
				end = an->barriers.v[next];
			f->size = end - f->addr;
		}
		if (f->size > end - f->addr)
			f->size = end - f->addr;
		if (f->size > UINT32_MAX)
			f->size = UINT32_MAX;
	}
}

long pb_fn_lower(const struct pb_an *an, uint64_t addr)
{
	size_t low = pb_bisect(i, 0, an->fns.n, an->fns.v[i].addr <= addr);

	return (long)low - 1;
}

const struct pb_fn *pb_fn_at(const struct pb_an *an, uint64_t addr)
{
	long i = pb_fn_lower(an, addr);

	return i >= 0 && an->fns.v[i].addr == addr ? &an->fns.v[i] : NULL;
}

struct pb_fn *pb_fn_of(const struct pb_an *an, uint64_t addr)
{
	long i = pb_fn_lower(an, addr);

	return i >= 0 && addr - an->fns.v[i].addr < an->fns.v[i].size ? &an->fns.v[i] : NULL;
}

/*
 * Control may reach a function's entry although the function has not been called: a loop begins at
 * the entry, or the "function" is a part that the compiler moved away from a function, or code runs
 * on into it. Then the code may have data in the red zone (the 128 bytes below rsp, which signal
 * handlers leave alone), and a stub at the entry would overwrite this data. A call or a tail jump
 * leaves nothing in the red zone.
 */

/* True if code of [from, to) uses memory below rsp. */
static bool uses_red_zone(const struct pb_an *an, uint64_t from, uint64_t to)
{
	size_t i = pb_addr_lower(&an->below_stack, from);

	return i < an->below_stack.n && an->below_stack.v[i] < to;
}

bool pb_unit_uses_red_zone(const struct pb_an *an, long unit)
{
	return unit >= 0 &&
	       uses_red_zone(an, an->cfi.fdes.v[unit].start, an->cfi.fdes.v[unit].end);
}

/* True if the code from `at` to `end` may come to `entry`: by a branch that isn't a call, or, if
 * `entry` is `end`, because its last instruction continues there. Also true if not all of the code
 * lies in one range of code (an FDE in a broken file), or if a hostile file makes the searches of
 * this section too long (pb_exit_work()). */
static bool comes_to(struct pb_an *an, uint64_t at, uint64_t end, uint64_t entry)
{
	const struct pb_range *r = pb_range_find(an, at);
	struct pb_insn i = { .what = PB_INSN_TRAP };
	ZydisDecoder decoder;

	if (!r || end - r->addr > r->size)
		return true;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (; at < end; at += i.length) {
		if (pb_exit_work(an, 8))
			return true;
		if (!pb_insn_decode(&decoder, r->bytes + (at - r->addr), r->size - (at - r->addr),
				    &i))
			i = (struct pb_insn){ .length = 1, .what = PB_INSN_TRAP };
		else if (i.relative && i.what != PB_INSN_CALL &&
			 at + i.length + i.imm[0] - entry <= PB_ENTRY_REACH)
			return true;
	}
	return at == entry && i.what != PB_INSN_JMP && i.what != PB_INSN_RET &&
	       i.what != PB_INSN_CALL && i.what != PB_INSN_TRAP;
}

/* True if a jump leads from the unit `from` into the unit `to`. */
static bool jumps_into(struct pb_an *an, long from, long to)
{
	const struct pb_fde *t = &an->cfi.fdes.v[to];

	for (size_t i = pb_cross_jump_lower(an, t->start);
	     i < an->cross_jumps.n && an->cross_jumps.v[i].to < t->end; i++)
		if (pb_exit_work(an, 8) ||
		    pb_cfi_find(&an->cfi, an->cross_jumps.v[i].from) == from)
			return true;
	return false;
}

/* True if a jump from another unit to f's entry isn't a tail jump, and there may be data in the red
 * zone: the other unit is a part of f, or f is a part of the other unit. own: f's unit uses the red
 * zone. */
static bool jumped_to(struct pb_an *an, const struct pb_fn *f, long unit, bool own)
{
	bool uses = false, one = true;
	long other = -1;

	for (size_t i = pb_cross_jump_lower(an, f->addr); i < an->cross_jumps.n &&
	     an->cross_jumps.v[i].to - f->addr <= PB_ENTRY_REACH; i++) {
		long u = pb_cfi_find(&an->cfi, an->cross_jumps.v[i].from), k;

		if (u < 0 || u == unit || u == other)
			continue;
		one &= other < 0;
		other = u;
		uses |= pb_unit_uses_red_zone(an, u);
		k = pb_fn_lower(an, an->cfi.fdes.v[u].start);
		if ((own || uses) && unit >= 0 &&
		    (k < 0 || an->fns.v[k].addr != an->cfi.fdes.v[u].start) &&
		    jumps_into(an, unit, u))
			return true;
	}
	return uses && one && f->flags & PB_FUNC_UNNAMED &&
	       !is_called(pb_range_find(an, f->addr), f->addr);
}

static void refuse_red_zones(struct pb_an *an)
{
	for (size_t i = 0; i < an->fns.n; i++) {
		struct pb_fn *f = &an->fns.v[i];
		long unit = pb_cfi_find(&an->cfi, f->addr);
		const struct pb_fde *u = unit < 0 ? NULL : &an->cfi.fdes.v[unit];
		const struct pb_fn *last = i ? f - 1 : NULL;
		uint64_t start = u ? u->start : f->addr, end = u ? u->end : f->addr + f->size;
		bool own = uses_red_zone(an, start, end);

		if (f->refused)
			continue;
		if ((own && comes_to(an, start, end, f->addr)) || jumped_to(an, f, unit, own) ||
		    (last && last->addr + last->size == f->addr &&
		     uses_red_zone(an, last->addr, f->addr) &&
		     comes_to(an, last->addr, f->addr, f->addr)))
			f->refused = PB_REFUSED_RED_ZONE;
	}
}

int pb_functions_make(struct pb_an *an, const char **why)
{
	pb_vec_sort(&an->cands, by_quality);
	make_barriers(an);
	merge(an);
	*why = "no memory";
	if (an->fns.failed || an->barriers.failed)
		return -ENOMEM;
	bound_sizes(an);
	for (size_t i = 0; i < an->ifuncs.n; i++) {
		long k = pb_fn_lower(an, an->ifuncs.v[i]);

		if (k >= 0 && an->fns.v[k].addr == an->ifuncs.v[i] && !an->fns.v[k].refused)
			an->fns.v[k].refused = PB_REFUSED_IFUNC;
	}
	refuse_red_zones(an);
	return 0;
}
