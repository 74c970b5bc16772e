/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes one pass over all code of the module. All later stages rely on what this pass finds:
 *
 *   - bytes that a direct branch, a call or a switch's table leads to;
 *   - bytes whose address a RIP-relative lea takes. In a program at a fixed address, also bytes
 *     whose address is an immediate or a displacement;
 *   - calls of the compiler's hooks;
 *   - jumps that leave the code of their FDE;
 *   - instructions that touch their function's return slot, according to the CFI;
 *   - instructions that use memory below the stack pointer where there is no frame;
 *   - whether there is any system call;
 *   - padding that no code falls into. The code before such padding has an FDE or a symbol, and
 *     its last instruction is a return or a jump.
 *
 * Code is cut into pieces at the starts of sections, at the starts and ends of FDEs, and at
 * symbols. Each piece is decoded linearly from its start, so data between functions cannot put the
 * decoder out of step for long. If a piece has no FDE and no symbol and isn't padding, it is
 * decoded from every byte. All of its bytes that could be a branch count as a branch. If a branch
 * leads to a byte of other code at which no decoded instruction begins, the code is decoded from
 * there, too.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include "base/base.h"
#include "module/analysis/flow.h"
#include "module/analysis/insn.h"
#include "module/analysis/stages.h"
#include "module/elf/runtimes.h"

#define THREAD_FROM	(512u << 10)	/* two threads sweep a file with at least this many bytes of
					 * code */

struct worker {
	struct pb_an *an;
	const struct pb_cut *cuts;
	size_t from, to;
	ZydisDecoder decoder;
	struct pb_insn insn;
	struct pb_cfi_cursor cursor;
	long fde;		/* the cursor's FDE, or -1 */
	const struct pb_range *range;
	bool fixed;		/* the program is at a fixed address */
	bool own_stacks;	/* code without an FDE uses no memory below rsp, since its runtime
				 * may push there at any time (Go) */
	pb_hook_vec hook_calls;
	pb_addr_vec ra_reads, below_stack;
	pb_gap_vec gaps;
	pb_cross_jump_vec cross_jumps, stray_jumps;
	uint64_t ended_at;	/* address where the last piece ended, if its last instruction
				 * doesn't fall through; 0 otherwise */
	pb_addr_vec tables;	/* each address that code takes; a switch's table may be there */
	pb_addr_vec arrays;
	bool syscalls;
	bool vouched;		/* a symbol or an FDE says that the bytes are code */
	bool flows;		/* the worker notes what the search for exits needs (flow.h) */
	struct pb_flow flow;
};

/* Marks the target of a direct branch or call. */
static void mark_branch(const struct worker *w, uint64_t target, bool call)
{
	bool own = target - w->range->addr < w->range->size;
	const struct pb_range *r = own ? w->range : pb_range_find(w->an, target);

	if (!r)
		return;
	target -= r->addr;
	pb_bit_set(w->vouched ? r->branched : r->reached, target);
	if (call)
		pb_bit_set(r->called, target);
	if ((!own || !w->vouched) && r->otherwise)
		pb_bit_set(r->otherwise, target);
	if (call && own && w->vouched && r->direct)
		pb_bit_set(r->direct, target);
}

/* Notes a call of a hook. A jump counts only if it leads to CYG_EXIT: a compiler may end a function
 * with a tail call of CYG_EXIT. */
static void note_hook(struct worker *w, const pb_hook_vec *hooks, uint64_t key, uint64_t addr)
{
	const struct pb_hook_at *h = hooks->n ? pb_hook_find(hooks, key) : NULL;
	bool call = w->insn.what == PB_INSN_CALL;

	if (h && (call || h->hook == PB_HOOK_CYG_EXIT))
		pb_vec_push(&w->hook_calls, (struct pb_hook_at){ addr, h->hook, w->insn.length });
}

/* Notes a jump that leaves its FDE's code: a tail call, or a jump into a cold part. */
static void note_cross_jump(struct worker *w, uint64_t addr, uint64_t target)
{
	const struct pb_fde *f = w->fde >= 0 ? &w->an->cfi.fdes.v[w->fde] : NULL;

	if (f && target - f->start >= f->end - f->start)
		pb_vec_push(&w->cross_jumps, (struct pb_cross_jump){ addr, target });
}

/* Notes a jump from bytes without an FDE into the code of an FDE, unless it leads to the entry of a
 * function. */
static void note_stray_jump(struct worker *w, uint64_t addr, uint64_t target)
{
	const struct pb_cfi *cfi = &w->an->cfi;
	long to = pb_cfi_find(cfi, target);

	if (to >= 0 && (cfi->fdes.v[to].start != target || !cfi->fdes.v[to].entry))
		pb_vec_push(&w->stray_jumps, (struct pb_cross_jump){ addr, target });
}

/* Marks the immediates and displacements of an instruction, since they may be addresses of code:
 * for example, labels for computed gotos. Also notes the addresses of arrays: where one array
 * begins, another one ends. */
static void absolute_addresses(struct worker *w)
{
	const struct pb_insn *i = &w->insn;

	for (unsigned k = 0; k < 2; k++)
		if (i->imm_size[k] >= 32 && (k || !i->relative))
			pb_mark(w->an, i->imm[k], false);
	if (i->disp_size == 32 && !pb_insn_rip_relative(i))
		pb_mark(w->an, (uint64_t)i->disp, false);
	if (w->flows && i->disp_size == 32 && pb_insn_indexed(i) && i->disp % 8 == 0)
		pb_vec_push(&w->arrays, (uint64_t)i->disp);
}

/* Handles an operand at the address `at`. It may be a constant that lies between functions, so the
 * mark keeps slots away from its bytes. Data may lie in a range of code, too: if the file has no
 * section headers, a segment may hold both. */
static void rip_relative(struct worker *w, uint64_t addr, uint64_t at)
{
	const struct pb_insn *i = &w->insn;

	pb_mark(w->an, at, i->what == PB_INSN_LEA);
	if (i->what == PB_INSN_LEA && at % 4 == 0)
		pb_vec_push(&w->tables, at);
	else if (i->what == PB_INSN_CALL || i->what == PB_INSN_JMP)
		note_hook(w, &w->an->hook_slots, at, addr);
}

static void control_flow(struct worker *w, uint64_t addr)
{
	const struct pb_insn *i = &w->insn;
	uint64_t end = addr + i->length;

	if (i->relative) {
		uint64_t target = end + i->imm[0];
		bool call = i->what == PB_INSN_CALL;

		mark_branch(w, target, call);
		if (!call)
			note_cross_jump(w, addr, target);
		if (!call && w->flows && w->fde < 0)
			note_stray_jump(w, addr, target);
		if (call || w->insn.what == PB_INSN_JMP)
			note_hook(w, &w->an->hook_stubs, target, addr);
	} else if (pb_insn_rip_relative(i)) {
		rip_relative(w, addr, end + (uint64_t)i->disp);
	}
	if (w->fixed)
		absolute_addresses(w);
}

/*
 * True if the instruction uses the return slot, which is at CFA-8. A pop of the slot counts. An
 * instruction also counts, even an lea, if its operand names the slot by the CFA's register and a
 * displacement. Instructions with VEX, EVEX or XOP encoding don't count. gcc's copy of the return
 * address into a realigned frame doesn't count either (push -8(%r10), where the CFA is r10+0),
 * because only debuggers read that copy.
 */
static bool touches_return_address(const struct pb_insn *i, const struct pb_cfi_row *row)
{
	uint8_t base;

	if (i->what == PB_INSN_POP && row->cfa_reg == PB_REG_RSP && row->cfa_off == 8)
		return true;
	if (!i->has_modrm || i->mod == 3 || i->what == PB_INSN_NOP)
		return false;
	if (!i->legacy)
		return false;
	if (i->rm == 4) {
		if (i->sib_index != 4 || i->rex & PB_INSN_REX_X)
			return false;
		if (i->sib_base == 5 && i->mod == 0)
			return false;
		base = i->sib_base;
	} else {
		if (i->rm == 5 && i->mod == 0)
			return false;
		base = i->rm;
	}
	base |= (uint8_t)((i->rex & PB_INSN_REX_B) << 3);
	if (base != row->cfa_reg || i->disp != (int64_t)row->cfa_off - 8)
		return false;
	return !(i->what == PB_INSN_PUSH && row->cfa_off == 0);
}

/* True if the instruction is `lock or $0, (%rsp)` or similar: a memory barrier, which doesn't
 * change the slot. */
static bool is_barrier(const struct pb_insn *i)
{
	return i->locked && i->imm_size[0] && !i->imm[0] &&
	       (i->what == PB_INSN_OR || i->what == PB_INSN_ADD);
}

/* True if the instruction is an lea of the slot's address into rsp, or into the register on which
 * the CFA is based after the instruction. This occurs in hand-written code, which does not read the
 * slot. */
static bool moves_frame(const struct worker *w, uint64_t next)
{
	const struct pb_insn *i = &w->insn;
	uint8_t to = (uint8_t)(i->reg | (i->rex & PB_INSN_REX_R) << 1);
	struct pb_cfi_cursor cur = w->cursor;

	if (i->what != PB_INSN_LEA)
		return false;
	pb_cfi_advance(&cur, next);
	return to == PB_REG_RSP || to == cur.row.cfa_reg;
}

static bool decode(struct worker *w, uint64_t off)
{
	return pb_insn_decode(&w->decoder, w->range->bytes + off, w->range->size - off, &w->insn);
}

static bool is_padding(struct worker *w, uint64_t off, uint64_t end, bool *zeros)
{
	*zeros = false;
	while (off < end) {
		uint8_t b = w->range->bytes[off];

		*zeros |= !b;
		if (b == 0xcc || b == 0x00 || b == 0x90)
			off++;
		else if (decode(w, off) && w->insn.what == PB_INSN_NOP)
			off += w->insn.length;
		else
			return false;
	}
	return true;
}

static bool is_syscall(const struct pb_insn *i)
{
	return i->what == PB_INSN_SYSCALL || i->what == PB_INSN_SYSENTER ||
	       (i->what == PB_INSN_INT && i->imm[0] == 0x80);
}

/* True if the instruction is a `syscall`, and an instruction shortly before it loads the number of
 * rt_sigaction or rt_sigprocmask. In bytes that may be data, only such system calls count. */
static bool is_signal_syscall(const struct worker *w, uint64_t off)
{
	const uint8_t *b = w->range->bytes;

	if (w->insn.what != PB_INSN_SYSCALL)
		return false;
	for (uint64_t n = 5; n <= 16 && n <= off; n++)
		if (b[off - n] == 0xb8 && (b[off - n + 1] == 13 || b[off - n + 1] == 14) &&
		    !b[off - n + 2] && !b[off - n + 3] && !b[off - n + 4])
			return true;
	return false;
}

/* Adds bits to the bitmap of starts. Another thread may change the word, too. */
static void flush_starts(const struct worker *w, uint64_t word_at, uint64_t word)
{
	if (word)
		__atomic_fetch_or(&w->range->starts[word_at], word, __ATOMIC_RELAXED);
}

static void sweep_linear(struct worker *w, uint64_t off, uint64_t end, bool cfi)
{
	uint64_t base = w->range->addr, word_at = off / 64, word = 0;
	bool through = true;

	w->vouched = true;

	while (off < end) {
		if (!decode(w, off)) {
			through = true;
			if (w->flows)
				pb_flow_undecoded(&w->flow, base + off);
			off++;
			continue;
		}
		if (off / 64 != word_at) {
			flush_starts(w, word_at, word);
			word_at = off / 64;
			word = 0;
		}
		word |= 1ull << off % 64;
		through = w->insn.what != PB_INSN_RET &&
			  w->insn.what != PB_INSN_JMP;
		control_flow(w, base + off);
		w->syscalls |= is_syscall(&w->insn);
		if (cfi)
			pb_cfi_advance(&w->cursor, base + off);
		if (pb_insn_below_stack(&w->insn) &&
		    (cfi ? !pb_cfi_has_frame(&w->cursor.row) : !w->own_stacks))
			pb_vec_push(&w->below_stack, base + off);
		if (cfi) {
			if (touches_return_address(&w->insn, &w->cursor.row) &&
			    !is_barrier(&w->insn) && !moves_frame(w, base + off + w->insn.length))
				pb_vec_push(&w->ra_reads, base + off);
			if (w->flows)
				pb_flow_insn(&w->flow, &w->insn, base + off, &w->cursor.row);
		}
		off += w->insn.length;
	}
	flush_starts(w, word_at, word);
	if (w->flows)
		pb_flow_end(&w->flow, base + off, base + end, &w->cursor.row);
	w->ended_at = off == end && !through ? base + end : 0;
}

static void sweep_everywhere(struct worker *w, uint64_t off, uint64_t end)
{
	uint64_t base = w->range->addr;
	bool zeros;

	w->vouched = false;

	if (is_padding(w, off, end, &zeros)) {
		/* padding of zeros doesn't count: it may be data */
		if (w->ended_at == base + off && !zeros)
			pb_vec_push(&w->gaps, (struct pb_gap){ base + off, base + end });
		return;
	}
	for (; off < end; off++) {
		if (!decode(w, off))
			continue;
		control_flow(w, w->range->addr + off);
		w->syscalls |= is_signal_syscall(w, off);
	}
}

static void sweep_piece(struct worker *w, const struct pb_cut *c, uint64_t end)
{
	const struct pb_cfi *cfi = &w->an->cfi;
	long fde;

	if (!w->range || c->addr - w->range->addr >= w->range->size)
		w->range = pb_range_find(w->an, c->addr);
	if (!w->range || w->range->stubs)
		return;
	if (end > w->range->addr + w->range->size)
		end = w->range->addr + w->range->size;
	fde = pb_cfi_find(cfi, c->addr);
	if (fde >= 0 && fde != w->fde)
		pb_cfi_start(&w->cursor, cfi, &cfi->fdes.v[fde]);
	w->fde = fde;
	if (w->flows)
		pb_flow_begin(&w->flow, w->range, fde, c->addr, c->code);
	if (fde >= 0 || c->code)
		sweep_linear(w, c->addr - w->range->addr, end - w->range->addr, fde >= 0);
	else
		sweep_everywhere(w, c->addr - w->range->addr, end - w->range->addr);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (size_t i = w->from; i < w->to; i++)
		sweep_piece(w, &w->cuts[i], w->cuts[i + 1].addr);
	return NULL;
}

/* Returns the index of the cut that divides the code into two halves, one for each thread. Returns
 * 0 if one thread is enough. */
static size_t middle(const struct pb_an *an, const pb_cut_vec *cuts)
{
	uint64_t total = 0, seen = 0;
	size_t i;

	for (i = 0; i < an->ranges.n; i++)
		total += an->ranges.v[i].size;
	if (total < THREAD_FROM)
		return 0;
	for (i = 0; i + 1 < cuts->n && seen < total / 2; i++)
		if (pb_range_find(an, cuts->v[i].addr))
			seen += cuts->v[i + 1].addr - cuts->v[i].addr;
	return i + 1 < cuts->n ? i : 0;
}

static bool start_thread(pthread_t *t, struct worker *w)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(t, NULL, work, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return !err;
}

static void init(struct worker *w, struct pb_an *an, const pb_cut_vec *cuts, size_t from, size_t to)
{
	memset(w, 0, sizeof(*w));
	w->an = an;
	w->cuts = cuts->v;
	w->from = from;
	w->to = to;
	w->fde = -1;
	w->fixed = an->elf.eh->e_type == ET_EXEC;
	w->own_stacks = pb_runtime_has_own_stacks(an->runtimes);
	w->flows = an->flags & PB_MODULE_RETURNS;
	w->flow.an = an;
	w->flow.fde = -1;
	ZydisDecoderInit(&w->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderEnableMode(&w->decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
}

static void take(pb_addr_vec *to, pb_addr_vec *from)
{
	pb_vec_append(to, from->v, from->n);
	to->failed |= from->failed;
	pb_vec_free(from);
}

static void collect(struct pb_an *an, struct worker *w)
{
	take(&an->ra_reads, &w->ra_reads);
	take(&an->below_stack, &w->below_stack);
	take(&an->tables, &w->tables);
	take(&an->arrays, &w->arrays);
	pb_vec_append(&an->hook_calls, w->hook_calls.v, w->hook_calls.n);
	pb_vec_append(&an->gaps, w->gaps.v, w->gaps.n);
	pb_vec_append(&an->cross_jumps, w->cross_jumps.v, w->cross_jumps.n);
	if (w->syscalls)
		an->an_flags |= PB_AN_SYSCALLS;
	pb_vec_append(&an->stray_jumps, w->stray_jumps.v, w->stray_jumps.n);
	an->stray_jumps.failed |= w->stray_jumps.failed;
	pb_vec_free(&w->stray_jumps);
	an->cross_jumps.failed |= w->cross_jumps.failed;
	pb_vec_free(&w->cross_jumps);
	an->gaps.failed |= w->gaps.failed;
	pb_vec_free(&w->gaps);
	an->hook_calls.failed |= w->hook_calls.failed;
	pb_vec_free(&w->hook_calls);
	pb_flow_collect(&w->flow);
}

/*
 * Linear decoding may skip code: if data comes after a jump, an instruction that begins in the data
 * may hide the next instructions. But a branch leads to these, so the branch's target is no start
 * of a decoded instruction. The hidden code is decoded from there, up to an instruction that is
 * decoded already or doesn't fall through, since it may have branches, too.
 */

/* True if a decoded instruction may include the byte: the code there is decoded linearly. */
static bool is_linear(const struct pb_range *r, uint64_t off)
{
	for (uint64_t n = 1; n < ZYDIS_MAX_INSTRUCTION_LENGTH && n <= off; n++)
		if (pb_bit_test(r->starts, off - n))
			return true;
	return false;
}

static void follow_hidden(struct worker *w, uint64_t addr, pb_addr_vec *hidden, pb_addr_vec *todo)
{
	const struct pb_range *r = w->range = pb_range_find(w->an, addr);

	if (!r || r->stubs || !is_linear(r, addr - r->addr))
		return;
	w->fde = pb_cfi_find(&w->an->cfi, addr);
	for (; addr - r->addr < r->size && !pb_bit_test(r->starts, addr - r->addr);
	     addr += w->insn.length) {
		if (!decode(w, addr - r->addr))
			return;
		pb_bit_set(r->starts, addr - r->addr);
		pb_vec_push(hidden, addr);
		control_flow(w, addr);
		if (w->insn.relative)
			pb_vec_push(todo, addr + w->insn.length + w->insn.imm[0]);
		w->syscalls |= is_syscall(&w->insn);
		/* whether there is a frame isn't known */
		if (pb_insn_below_stack(&w->insn) && (w->fde >= 0 || !w->own_stacks))
			pb_vec_push(&w->below_stack, addr);
		if (w->insn.what == PB_INSN_RET || w->insn.what == PB_INSN_JMP ||
		    w->insn.what == PB_INSN_TRAP)
			return;
	}
}

/* Decodes hidden code. Then adds the targets of all branches to the bytes that are reached. The
 * starts of hidden instructions don't stay in r->starts: doubts.c must see that the unit isn't
 * decoded for certain. */
static bool find_hidden(struct worker *w)
{
	struct pb_an *an = w->an;
	pb_addr_vec hidden = { 0 }, todo = { 0 };
	bool ok;

	w->vouched = true;
	for (size_t i = 0; i < an->ranges.n; i++) {
		const struct pb_range *r = &an->ranges.v[i];

		for (uint64_t k = 0; k <= r->size / 64; k++)
			for (uint64_t odd = r->branched[k] & ~r->starts[k]; odd; odd &= odd - 1)
				pb_vec_push(&todo, r->addr + k * 64 +
						   (uint64_t)__builtin_ctzll(odd));
	}
	while (todo.n)
		follow_hidden(w, todo.v[--todo.n], &hidden, &todo);
	for (size_t i = 0; i < hidden.n; i++) {
		const struct pb_range *r = pb_range_find(an, hidden.v[i]);

		r->starts[(hidden.v[i] - r->addr) / 64] &= ~(1ull << (hidden.v[i] - r->addr) % 64);
	}
	for (size_t i = 0; i < an->ranges.n; i++) {
		struct pb_range *r = &an->ranges.v[i];

		for (uint64_t k = 0; k <= r->size / 64; k++)
			r->reached[k] |= r->branched[k];
		free(r->branched);
		r->branched = NULL;
	}
	ok = !hidden.failed && !todo.failed;
	pb_vec_free(&hidden);
	pb_vec_free(&todo);
	return ok;
}

int pb_sweep(struct pb_an *an, const char **why)
{
	pb_cut_vec cuts = { 0 };
	struct worker w[2];
	bool failed = false;
	pthread_t thread;

	*why = "no memory";
	pb_cuts_make(an, &cuts);
	if (an->flags & PB_MODULE_RETURNS) {
		an->units = calloc(an->cfi.fdes.n + 1, sizeof(*an->units));
		an->goes_on = calloc(an->cfi.fdes.n + 1, sizeof(*an->goes_on));
	}
	if (cuts.failed || (an->flags & PB_MODULE_RETURNS && (!an->units || !an->goes_on))) {
		pb_vec_free(&cuts);
		return -ENOMEM;
	}
	if (cuts.n > 1) {
		size_t half = middle(an, &cuts);

		init(&w[0], an, &cuts, 0, half);
		init(&w[1], an, &cuts, half, cuts.n - 1);
		bool threaded = half && start_thread(&thread, &w[0]);

		work(&w[1]);
		if (threaded)
			pthread_join(thread, NULL);
		else
			work(&w[0]);
		failed = !find_hidden(&w[1]);
		collect(an, &w[0]);
		collect(an, &w[1]);
	}
	pb_vec_free(&cuts);
	pb_hooks_sort(&an->hook_calls);
	if (failed || an->gaps.failed || an->cross_jumps.failed || an->hook_calls.failed ||
	    an->ra_reads.failed || an->below_stack.failed || an->tables.failed ||
	    an->arrays.failed ||
	    an->exits.failed || an->pads.failed || an->lags.failed || an->restores.failed ||
	    an->stray_jumps.failed)
		return -ENOMEM;
	pb_cross_jumps_sort(an);
	pb_vec_sort(&an->below_stack, pb_addr_compare);
	pb_vec_sort(&an->arrays, pb_addr_compare);
	pb_tables_follow(an);
	if (an->flags & PB_MODULE_RETURNS) {
		pb_labels_follow(an);
		pb_lags_check(an);
	}
	return 0;
}
