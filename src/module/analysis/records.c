/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds the functions that the compiler prepared for tracing, by these signs:
 *
 *   __mcount_loc                  addresses of calls of mcount or __fentry__, or
 *                                 of the nops in their place (-mrecord-mcount,
 *                                 -mnop-mcount, tools/recordmcount.c)
 *   __patchable_function_entries  addresses of the first nop, which may come before the entry
 *                                 (for example, with -fpatchable-function-entry=16,14)
 *   xray_instr_map                addresses of XRay's sleds, that is, of code that XRay may
 *                                 patch; a sled of kind 0 is at an entry
 *   no record                     calls of the compilers' hooks, which sweep.c finds
 *
 * If any function of a module has such a sign, the module's functions without a sign are refused.
 * With PB_MODULE_ALL_SITES, they are not refused for this reason.
 */
#include <errno.h>
#include <string.h>
#include "module/analysis/insn.h"
#include "module/analysis/stages.h"

#define ENDBR_LEN	4
#define XRAY_ENTRY	0
#define MAX_PROLOGUE	1024	/* limit on the bytes between an entry and its call of a hook */
#define MAX_PREFIX	4096	/* how many bytes of nops before an entry may belong to that
				 * entry */

struct xray_sled {
	uint64_t addr, func;
	uint8_t kind, always, version, pad[13];
};

static void recorded(struct pb_fn *f, uint8_t kind)
{
	f->recorded = true;
	if (kind != PB_SITE_SYMBOL)
		f->kind = kind;
}

/* Returns the length of the call at addr, or 0 if there is no call of a kind that compilers and
 * linkers make: call rel32, the same with a prefix 67, and call *slot(%rip). Bytes that may be no
 * code are decoded from each byte. So if the byte before a call is the last one of another
 * instruction, and looks like a prefix, it must not count as part of the call. */
static uint8_t call_length(const struct pb_an *an, uint64_t addr)
{
	const struct pb_range *r = pb_range_find(an, addr);
	const uint8_t *p;
	uint64_t left;

	if (!r)
		return 0;
	p = r->bytes + (addr - r->addr);
	left = r->size - (addr - r->addr);
	if (left >= 5 && p[0] == 0xe8)
		return 5;
	return left >= 6 && ((p[0] == 0xff && p[1] == 0x15) || (p[0] == 0x67 && p[1] == 0xe8)) ?
	       6 : 0;
}

/* Notes a call that becomes a nop. The same call may be noted twice. */
static void add_nop(struct pb_an *an, uint64_t addr, uint8_t len)
{
	const struct pb_range *r = pb_range_find(an, addr);
	struct pb_nop n = { .addr = addr, .len = len };

	memcpy(n.orig, r->bytes + (addr - r->addr), len);
	pb_vec_push(&an->nops, n);
}

static bool at_window(const struct pb_fn *f, uint64_t addr)
{
	return addr == f->addr + f->window;
}

static void hook_call(struct pb_an *an, uint64_t addr, uint8_t len)
{
	struct pb_fn *f = pb_fn_of(an, addr);

	add_nop(an, addr, len);
	if (f)
		recorded(f, at_window(f, addr) ? PB_SITE_FENTRY : PB_SITE_MCOUNT);
}

/* True if the call of a hook is where compilers put it. Before a call of __fentry__ there are only
 * nops. Before a call of mcount there is the prologue: no other call, and no branch that leaves the
 * code before the call. (The prologue may save registers conditionally, or touch a large frame's
 * pages in a loop.) Other calls are the program's own: it may have a function with a hook's
 * name. */
static bool is_compiled_in(const struct pb_an *an, const struct pb_fn *f,
			   const struct pb_hook_at *h)
{
	const struct pb_range *r = pb_range_find(an, f->addr);
	bool fentry = h->hook == PB_HOOK_FENTRY;
	uint64_t at = f->addr + f->window;
	ZydisDecoder decoder;
	struct pb_insn i;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (h->addr - f->addr > MAX_PROLOGUE)
		return false;
	for (; at < h->addr; at += i.length) {
		if (!pb_insn_decode(&decoder, r->bytes + (at - r->addr), r->size - (at - r->addr),
				    &i) ||
		    i.what == PB_INSN_CALL || i.what == PB_INSN_JMP || i.what == PB_INSN_RET ||
		    (fentry && i.what != PB_INSN_NOP) ||
		    (i.relative && at + i.length + i.imm[0] - f->addr > h->addr - f->addr))
			return false;
	}
	return at == h->addr;
}

static void called_hook(struct pb_an *an, const struct pb_hook_at *h)
{
	struct pb_fn *f = pb_fn_of(an, h->addr);

	if (h->hook == PB_HOOK_MCOUNT || h->hook == PB_HOOK_FENTRY) {
		if (h->len == call_length(an, h->addr) && (!f || is_compiled_in(an, f, h)))
			hook_call(an, h->addr, h->len);
	} else if (f && h->hook == PB_HOOK_CYG) {
		recorded(f, PB_SITE_CYG);
	}
}

static void mcount_record(struct pb_an *an, uint64_t addr)
{
	uint8_t len = call_length(an, addr);
	struct pb_fn *f = pb_fn_of(an, addr);

	if (len)
		hook_call(an, addr, len);
	else if (f)
		recorded(f, PB_SITE_NOP);
}

/* Handles a record of __patchable_function_entries. The record's address is that of the first nop,
 * which lies in the function or before it. */
static void patchable_record(struct pb_an *an, uint64_t addr)
{
	long i = pb_fn_lower(an, addr);
	struct pb_fn *f = i >= 0 ? &an->fns.v[i] : NULL;

	if (f && (addr == f->addr || at_window(f, addr))) {
		recorded(f, PB_SITE_NOP);
		return;
	}
	if (i + 1 < (long)an->fns.n && an->fns.v[i + 1].addr - addr <= MAX_PREFIX)
		recorded(&an->fns.v[i + 1], PB_SITE_NOP);
}

static void address_table(struct pb_an *an, const Elf64_Shdr *sh,
			  void (*one)(struct pb_an *, uint64_t))
{
	uint64_t n = sh->sh_type == SHT_NOBITS ? 0 : sh->sh_size / 8, addr;

	for (uint64_t i = 0; i < n && pb_word_at(an, sh->sh_addr + i * 8, &addr); i++)
		if (pb_range_find(an, addr))
			one(an, addr);
}

/* Sleds are at even addresses, so the entry's sled may come after a nop of one byte. */
static bool at_sled(const struct pb_an *an, const struct pb_fn *f, uint64_t addr)
{
	const struct pb_range *r = pb_range_find(an, f->addr);

	if (at_window(f, addr - 1))
		return r->bytes[addr - 1 - r->addr] == 0x90;
	return at_window(f, addr);
}

static void xray_table(struct pb_an *an, const Elf64_Shdr *sh)
{
	uint64_t n = sh->sh_type == SHT_NOBITS ? 0 : sh->sh_size / sizeof(struct xray_sled);

	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = sh->sh_addr + i * sizeof(struct xray_sled), addr;
		const uint8_t *p = pb_elf_at(&an->elf, at, sizeof(struct xray_sled));
		struct xray_sled s;
		struct pb_fn *f;

		if (!p || !pb_word_at(an, at, &addr))
			return;
		memcpy(&s, p, sizeof(s));
		if (s.version >= 2)
			addr += at;	/* the field is relative to its own address */
		f = pb_fn_of(an, addr);
		if (s.kind == XRAY_ENTRY && f && at_sled(an, f, addr))
			recorded(f, PB_SITE_XRAY);
	}
}

static int by_addr(const void *a, const void *b)
{
	const struct pb_nop *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Sorts the calls. If two calls overlap, the shorter one counts: the bytes before it may belong to
 * another instruction. */
static void sort_nops(struct pb_an *an)
{
	struct pb_nop *v = an->nops.v;
	size_t n = 0;

	pb_vec_sort(&an->nops, by_addr);
	for (size_t i = 0; i < an->nops.n; i++) {
		if (!n || v[i].addr - v[n - 1].addr >= v[n - 1].len)
			v[n++] = v[i];
		else if (v[i].len < v[n - 1].len)
			v[n - 1] = v[i];
	}
	an->nops.n = n;
}

static void find_endbr(struct pb_an *an)
{
	static const uint8_t endbr[ENDBR_LEN] = { 0xf3, 0x0f, 0x1e, 0xfa };

	for (size_t i = 0; i < an->fns.n; i++) {
		struct pb_fn *f = &an->fns.v[i];
		const struct pb_range *r = pb_range_find(an, f->addr);
		uint64_t off = f->addr - r->addr;

		if (r->size - off >= ENDBR_LEN && !memcmp(r->bytes + off, endbr, ENDBR_LEN)) {
			f->flags |= PB_FUNC_ENDBR;
			f->window = ENDBR_LEN;
		}
	}
}

static void leave_others_alone(struct pb_an *an)
{
	bool any = false;

	for (size_t i = 0; i < an->fns.n; i++)
		any |= an->fns.v[i].recorded;
	if (!any || an->flags & PB_MODULE_ALL_SITES)
		return;
	for (size_t i = 0; i < an->fns.n; i++)
		if (!an->fns.v[i].recorded && !an->fns.v[i].refused)
			an->fns.v[i].refused = PB_REFUSED_UNINSTRUMENTED;
}

int pb_records_read(struct pb_an *an, const char **why)
{
	find_endbr(an);
	for (size_t i = 0; i < an->hook_calls.n; i++)
		called_hook(an, &an->hook_calls.v[i]);
	for (size_t i = 0; i < an->records.n; i++) {
		const Elf64_Shdr *sh = an->records.v[i];
		const char *name = pb_elf_section_name(&an->elf, sh);

		if (!strcmp(name, "__mcount_loc"))
			address_table(an, sh, mcount_record);
		else if (!strcmp(name, "xray_instr_map"))
			xray_table(an, sh);
		else
			address_table(an, sh, patchable_record);
	}
	*why = "no memory";
	if (an->nops.failed)
		return -ENOMEM;
	sort_nops(an);
	leave_others_alone(an);
	return 0;
}
