/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Refuses units (the code of one FDE) about which the sweep (stages.h) may be wrong: their exits
 * are not hooked. There are four cases. A branch leads into the middle of an instruction. Two FDEs
 * cover the same code. The unit sets rsp to a register whose value isn't known (cfi_restores.c).
 * Code without an FDE jumps into the unit.
 */
#include "module/analysis/exits_priv.h"

static void flag(struct pb_an *an, size_t unit, enum pb_inexit why)
{
	an->units[unit] |= 1u << why;
}

/* True if the unit's bytes aren't in one range of code, or if a branch leads into the middle of a
 * decoded instruction. It is then not certain which bytes are code. A branch to the byte after a
 * lock prefix is allowed: a program that has only one thread jumps over the prefix. The bytes of a
 * unit that is bad already aren't searched: FDEs that overlap may have any number of bytes. */
static bool out_of_step(const struct pb_an *an, const struct pb_fde *f, bool bad)
{
	const struct pb_range *r = pb_range_find(an, f->start);
	uint64_t from, to;

	if (!r || f->end - r->addr > r->size)
		return true;
	if (bad)
		return false;
	from = f->start - r->addr;
	to = f->end - 1 - r->addr;
	for (uint64_t i = from / 64; i <= to / 64; i++) {
		uint64_t odd = r->reached[i] & ~r->otherwise[i] & ~r->starts[i];

		if (i == from / 64)
			odd &= ~0ull << from % 64;
		if (i == to / 64)
			odd &= ~0ull >> (63 - to % 64);
		for (; odd; odd &= odd - 1) {
			uint64_t off = i * 64 + (uint64_t)__builtin_ctzll(odd);

			if (!off || r->bytes[off - 1] != PB_INSN_LOCK ||
			    !pb_bit_test(r->starts, off - 1))
				return true;
		}
	}
	return false;
}

/*
 * Refuses the units whose FDEs overlap. The sweep takes the last FDE that begins before an address,
 * but nothing proves that this FDE's rows are the right ones. And the sweep doesn't follow the code
 * of the other FDE into the bytes that both cover, so it would miss exits there. lld makes such
 * FDEs: it deletes the jump at the end of a basic block's section, but doesn't shorten the FDE.
 */
static void find_overlaps(struct pb_an *an)
{
	const struct pb_cfi *cfi = &an->cfi;
	size_t widest = 0;	/* of the FDEs so far, the one that ends last */

	for (size_t u = 1; u < cfi->fdes.n; u++) {
		if (cfi->fdes.v[u].start < cfi->fdes.v[widest].end) {
			flag(an, u, PB_INEXIT_OVERLAP);
			flag(an, widest, PB_INEXIT_OVERLAP);
		}
		if (cfi->fdes.v[u].end > cfi->fdes.v[widest].end)
			widest = u;
	}
}

/* The search for code without an FDE. */
struct bare {
	struct pb_an *an;
	uint64_t **seen;	/* for each range: a bitmap with a bit for each byte where an
				 * instruction begins in code without an FDE */
	pb_addr_vec work;
	ZydisDecoder decoder;
};

/* Follows the code at addr up to an instruction that doesn't fall through. */
static void follow(struct bare *n, uint64_t addr)
{
	struct pb_an *an = n->an;
	const struct pb_range *r = pb_range_find(an, addr);
	uint64_t *seen = r && !r->stubs ? n->seen[r - an->ranges.v] : NULL;
	struct pb_insn i;

	for (; seen && addr - r->addr < r->size && pb_cfi_find(&an->cfi, addr) < 0;
	     addr += i.length) {
		uint64_t off = addr - r->addr;

		if (pb_bit_test(seen, off) || pb_exit_work(an, 8) ||
		    !pb_insn_decode(&n->decoder, r->bytes + off, r->size - off, &i))
			return;
		pb_bit_set(seen, off);
		if (i.relative)
			pb_vec_push(&n->work, addr + i.length + i.imm[0]);
		if (i.what == PB_INSN_JMP || i.what == PB_INSN_RET || i.what == PB_INSN_TRAP)
			return;
	}
}

/* Starts the search for code without an FDE: at functions' symbols, and at addresses to which known
 * code jumps or which it calls. Addresses of labels, and addresses that known code only takes,
 * don't count: the bytes there are often constants. */
static void find_bare(struct bare *n)
{
	struct pb_an *an = n->an;

	for (size_t i = 0; i < an->cross_jumps.n; i++)
		follow(n, an->cross_jumps.v[i].to);
	for (size_t i = 0; i < an->cands.n; i++)
		follow(n, an->cands.v[i].addr);
	for (size_t i = 0; i < an->ranges.n; i++) {
		const struct pb_range *r = &an->ranges.v[i];

		for (uint64_t k = 0; k <= r->size / 64; k++)
			for (uint64_t word = r->direct[k]; word; word &= word - 1)
				follow(n, r->addr + k * 64 + (uint64_t)__builtin_ctzll(word));
	}
	while (n->work.n)
		follow(n, n->work.v[--n->work.n]);
}

/* Flags the units into which code without an FDE jumps. The CFI doesn't say where the return
 * address is when such a jump is made, so nothing proves it at the unit's exits either. */
static void flag_strays(const struct bare *n)
{
	struct pb_an *an = n->an;

	for (size_t i = 0; i < an->stray_jumps.n; i++) {
		const struct pb_cross_jump *j = &an->stray_jumps.v[i];
		const struct pb_range *r = pb_range_find(an, j->from);

		if (pb_bit_test(n->seen[r - an->ranges.v], j->from - r->addr))
			flag(an, (size_t)pb_cfi_find(&an->cfi, j->to), PB_INEXIT_UNPROVEN);
	}
}

static bool find_strays(struct pb_an *an)
{
	struct bare n = { .an = an };
	bool ok = true;

	if (!an->stray_jumps.n)
		return true;
	ZydisDecoderInit(&n.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	n.seen = calloc(an->ranges.n, sizeof(*n.seen));
	for (size_t i = 0; n.seen && i < an->ranges.n; i++) {
		n.seen[i] = calloc(an->ranges.v[i].size / 64 + 1, sizeof(**n.seen));
		ok &= n.seen[i] != NULL;
	}
	ok &= n.seen != NULL;
	if (ok) {
		find_bare(&n);
		ok = !n.work.failed;
		flag_strays(&n);
	}
	for (size_t i = 0; n.seen && i < an->ranges.n; i++)
		free(n.seen[i]);
	free(n.seen);
	pb_vec_free(&n.work);
	return ok;
}

bool pb_doubts_find(struct pb_an *an)
{
	find_overlaps(an);
	for (size_t u = 0; u < an->cfi.fdes.n; u++)
		if (out_of_step(an, &an->cfi.fdes.v[u], an->units[u]))
			flag(an, u, PB_INEXIT_DECODE);
	pb_restores_check(an);
	return find_strays(an);
}
