/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes one batch of changes to the program's text, for ftrace.c. It writes either the whole batch
 * or nothing.
 *
 * Owner. A batch belongs to the holder of the text's lock: the first thread at the start, the
 * thread that runs the loader's hook, or the agent's thread. Only the holder calls the functions
 * here, so the tables need no atomic access. The holder first adds changes, and then commits them.
 * Adding a change writes nothing to the text.
 *
 * A place is the window of an entry, or a window of exits. It has the following states, and the
 * text may keep each of them forever:
 *
 *   plain       the program's bytes
 *   stub        the stub exists, but no jump leads to it; the text is as before
 *   slot        PB_HAS_SLOT: the jump from the trampoline slot to the stub is in place
 *   patched     PB_HAS_WINDOW: the jump is in the window
 *
 * One rule makes any sequence of these states safe: a jump is in place only while everything that
 * it leads to is in place. So a stub is executable before any jump leads to it, and is never freed
 * while its module is mapped. A slot is written before the window that jumps to it, and restored
 * after that window. The displacement of the first of two shared jumps consists of bytes of the
 * second jump. So the first jump is written after the second, and taken out before the second. The
 * parts below put this rule into practice.
 *
 * Waiting. At the start there is only one thread, so text is written at once. Text that the loader
 * has just mapped is also written at once, because no thread runs it. In live text the owner is the
 * agent's thread, which runs no code of the program and blocks all signals. The owner starts a
 * helper (pb_stop_world()) and waits for it. The helper waits until each other thread has stopped;
 * at the first try it waits for 20 ms at most. Then the helper writes the text, and lets the
 * threads go. A thread inside dlopen may wait for the text's lock meanwhile; such a thread is
 * stopped while it waits. Neither the owner nor the helper needs anything that a stopped thread
 * holds.
 *
 * What a thread sees. A thread never runs while bytes are written, so it sees each patch whole. A
 * large part takes several stops, and between stops the thread may run anywhere. It finds each
 * patch either written or not yet written. By the rule, the code is correct in both states. A
 * thread that was stopped inside bytes that a patch replaces goes on at the copy of its instruction
 * in the stub. If it was stopped at the first of these bytes, it stays there, and executes the new
 * bytes. (In a slot the first byte counts as inside: when the slot's jump is taken out, no
 * instruction takes its place.) A thread in a stub runs on and leaves the stub by itself. The
 * kernel's return to a stopped thread serializes its instruction stream, so that the thread fetches
 * the new bytes.
 *
 * What a signal handler sees. A handler runs in a thread, so it sees what a thread sees. But its
 * signal frame may hold a program counter inside bytes that a patch replaces. So the helper
 * searches the stacks for such frames. If it finds one, the stop is given up and tried again,
 * because the handler may return meanwhile. After many tries, the helper moves the program counter
 * in the frame (doc/design/text.md, "Stop the world").
 *
 * Failure. Before a part is written, each of its patches saves the old bytes; `done` counts the
 * patches that may be in the text. If the threads can't be stopped for a part, the parts that were
 * written are taken back. The last part is taken back first, so that the rule also holds during the
 * undo. If the threads can't be stopped for the undo either, some places keep their new state.
 * pb_text_look() finds out from the text which places these are.
 *
 * Memory. If memory for all patches of a batch is missing, the batch fails. A detach must not fail
 * for this reason. Its batches only restore text (pb_text_only_restores), so they may be written in
 * pieces. A place that has no room in a piece keeps those flags (PB_HAS_*) that stand for its
 * jumps, so everything that these jumps need stays, too: the slot that a window's jump leads to
 * (pb_batch_off()), and the second of two shared jumps while the first is there (change_off(),
 * pb_text_change_returns()). So the rule holds between two pieces as well.
 */
#include <asm/errno.h>
#include <sys/mman.h>
#include "engine/text/text_priv.h"
#include "arch/arch.h"
#include "base/base.h"
#include "base/pages.h"
#include "base/sys.h"
#include "ring/writer.h"

uint64_t pb_text_ns;

/*
 * The parts, in the order in which they are written. Each part is complete before the next begins.
 *
 *   SLOTS_ON	slots get their jump; no jump leads to these slots yet
 *   SHARED_OFF	windows with the first of two shared jumps get their bytes back; the second
 *		jump is still in place
 *   WINDOWS	all other windows are written, and so are the calls of mcount and __fentry__ that
 *		the compiler inserted (struct pb_nop). A patch that contains two shared jumps is
 *		in this part
 *   SHARED_ON	windows with the first of two shared jumps get that jump; the second jump
 *		is already in place
 *   SLOTS_OFF	slots get their bytes back; no jump leads to these slots any more
 */
enum { SLOTS_ON, SHARED_OFF, WINDOWS, SHARED_ON, SLOTS_OFF, NR_PARTS };

#define SMALL_PART	4096	/* a part keeps memory for this many patches between batches */
#define SPARE		64	/* a part has this room if no memory can be mapped */

static struct part {
	struct pb_patch *p;
	size_t nr, max;
	size_t done;		/* how many patches may have been written */
} batch[NR_PARTS];
static struct pb_patch spare[NR_PARTS][SPARE];
static int batch_error;
bool pb_text_only_restores;

void pb_text_begin(void)
{
	for (int i = 0; i < NR_PARTS; i++)
		batch[i].nr = 0;
	batch_error = 0;
}

/* If another thread forks while a part's memory is moved or freed, the part's pointer may be
 * invalid in the child. So max is 0 meanwhile: a part with max 0 counts as a part without memory,
 * and the child maps new memory for it. */
static void take_memory(struct part *part)
{
	part->max = 0;
	pb_barrier();
}

static void give_memory(struct part *part, uint64_t at, size_t max)
{
	part->p = (struct pb_patch *)at;
	pb_barrier();
	part->max = max;
}

static bool grow(struct part *part)
{
	struct part old = *part;
	bool mapped = old.max > SPARE;
	size_t max = mapped ? 2 * old.max : SMALL_PART, size = max * sizeof(*part->p);
	long p;

	take_memory(part);
	p = mapped ? pb_pages_remap((uint64_t)old.p, old.max * sizeof(*old.p), size) :
		     pb_pages_map(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				  0);
	if (!pb_sys_failed(p)) {
		if (!mapped)
			memcpy((void *)p, spare[part - batch], old.max * sizeof(*old.p));
		give_memory(part, (uint64_t)p, max);
		return true;
	}
	if (old.max) {
		give_memory(part, (uint64_t)old.p, old.max);
		/* also for EAGAIN, which means that the process locks its memory (MCL_FUTURE), and
		 * may lock no more */
		batch_error = -ENOMEM;
	} else {
		give_memory(part, (uint64_t)spare[part - batch], SPARE);
	}
	return !old.max;
}

/* Frees the memory of a large part, up to SMALL_PART patches. A detach may need this rest when no
 * memory can be mapped. */
static void shrink(struct part *part)
{
	struct part old = *part;

	part->nr = part->done = 0;
	if (old.max <= SMALL_PART)
		return;
	take_memory(part);
	pb_pages_cut((uint64_t)(old.p + SMALL_PART), (uint64_t)(old.p + old.max));
	give_memory(part, (uint64_t)old.p, SMALL_PART);
}

/* False: there is no room. */
static bool add_patch(struct part *part, uint64_t addr, const uint8_t *bytes, uint8_t len)
{
	struct pb_patch *p;

	if (part->nr == part->max && !grow(part))
		return false;
	p = &part->p[part->nr++];
	p->addr = addr;
	p->len = len;
	p->slot = false;
	memcpy(p->bytes, bytes, len);
	return true;
}

/* Adds the patch of a slot in padding, and marks it as a slot. If a thread is stopped at the slot's
 * jump when this jump is taken out, the thread goes on in the stub. */
static bool add_slot(struct part *part, uint64_t slot, const uint8_t *to)
{
	if (!add_patch(part, slot, to, PB_JUMP_LEN))
		return false;
	part->p[part->nr - 1].slot = true;
	return true;
}

static void refuse(struct pb_site *s, enum pb_refused why)
{
	if (!(s->flags & FTRACE_FL_REFUSED))
		s->flags |= FTRACE_FL_REFUSED | (uint64_t)why << FTRACE_FL_REASON_SHIFT;
}

static bool emit_stub(struct pb_module *m, struct pb_site *s)
{
	struct pb_place p = pb_func_place(m->analysis, pb_site_func(m, s));
	uint32_t stub;

	if (!pb_place_as_in_file(m, &p)) {
		refuse(s, PB_REFUSED_DIFFERS);
		return false;
	}
	stub = pb_stub_of_site(m, s, &p);
	if (!stub) {
		refuse(s, PB_REFUSED_RANGE);
		return false;
	}
	m->stubs_used = true;
	s->stub = stub;
	if (!(s->flags & FTRACE_FL_DIRECT))
		s->body = (uint64_t)m->stubs + stub + PB_STUB_IDLE;
	s->handler = pb_site_idle(m, s);
	return true;
}

static bool is_first(const struct pb_module *m, const struct pb_site *s)
{
	return pb_site_func(m, s)->flags & PB_FUNC_SHARES;
}

static bool is_second(const struct pb_module *m, const struct pb_site *s)
{
	return pb_func_is_second(m->analysis, pb_site_func(m, s));
}

/* Whether the site's jump is the second of two shared jumps. The first jump belongs to a function's
 * entry or to an exit. */
static bool is_shared(const struct pb_module *m, const struct pb_site *s)
{
	return is_second(m, s) || pb_func_before(m->analysis, pb_site_func(m, s));
}

/* Makes the stub of a site that has none yet. If two sites have shared jumps, both sites get their
 * stubs at once, because the targets of the two jumps are chosen together. */
static bool make_stub(struct pb_module *m, struct pb_site *s)
{
	struct pb_site *first = is_first(m, s) ? s : is_second(m, s) ? s - 1 : NULL;

	if (!emit_stub(m, s))
		return false;
	if (!first || first->flags & FTRACE_FL_REFUSED) {
		pb_shared_first_make(m, s);
		return true;
	}
	if ((!first->stub && !emit_stub(m, first)) ||
	    (!first[1].stub && !emit_stub(m, first + 1)) ||
	    !pb_shared_make(m, m->bias + pb_func_window(pb_site_func(m, first)),
			    (uint64_t)m->stubs + first[0].stub, (uint64_t)m->stubs + first[1].stub))
		refuse(first, PB_REFUSED_RANGE);
	return !(s->flags & FTRACE_FL_REFUSED);
}

static int slot_on(struct pb_module *m, const struct pb_place *p, uint64_t stub, uint64_t body)
{
	uint64_t slot = m->bias + pb_place_slot(p);
	uint8_t bytes[PB_CODE_SLOT_LEN];

	if (pb_place_in_code(p)) {
		if (pb_code_slot_emit(bytes, slot - PB_JUMP_LEN, body + pb_body_second(p), stub))
			return -ERANGE;
		add_patch(&batch[SLOTS_ON], slot - PB_JUMP_LEN, bytes, PB_CODE_SLOT_LEN);
	} else {
		if (pb_jump_emit(bytes, slot, stub))
			return -ERANGE;
		add_slot(&batch[SLOTS_ON], slot, bytes);
	}
	return 0;
}

static bool slot_off(struct pb_module *m, const struct pb_place *p)
{
	if (pb_place_in_code(p))
		return add_patch(&batch[SLOTS_OFF], m->bias + pb_place_second(p),
				 pb_recipe_rest(p->second), PB_CODE_SLOT_LEN);
	return add_slot(&batch[SLOTS_OFF], m->bias + pb_place_slot(p), pb_recipe_slot(p->recipe));
}

/* Adds one patch with two shared jumps: the first jump's one byte, then the second jump. */
static int both_on(const struct pb_place *p, uint64_t window)
{
	uint8_t bytes[PB_JUMP_SHARED + PB_JUMP_LEN];
	uint64_t second = window + PB_JUMP_SHARED, to = pb_shared_target(second);

	if (!to || pb_jump_emit(bytes + PB_JUMP_SHARED, second, to))
		return -ERANGE;
	pb_jump_emit_first(bytes);
	add_patch(&batch[WINDOWS], window, bytes, (uint8_t)pb_place_patch_len(p));
	return 0;
}

static int window_on(struct pb_module *m, const struct pb_place *p, uint64_t to)
{
	uint64_t window = m->bias + p->window;
	uint8_t jump[PB_JUMP_LEN];

	if (pb_place_with_second(p))
		return both_on(p, window);
	if (p->shares) {
		pb_jump_emit_first(jump);
		add_patch(&batch[SHARED_ON], window, jump, PB_JUMP_SHARED);
		return 0;
	}
	if (p->via)
		pb_jump_emit_short(jump, p->via);
	else if (pb_jump_emit(jump, window, to))
		return -ERANGE;
	add_patch(&batch[WINDOWS], window, jump, (uint8_t)pb_place_jump_len(p));
	return 0;
}

int pb_batch_on(struct pb_module *m, const struct pb_place *p, uint64_t stub, uint64_t body,
		unsigned *has)
{
	int err = 0;

	if (p->via && !(*has & PB_HAS_SLOT)) {
		err = slot_on(m, p, stub, body);
		*has |= err ? 0 : PB_HAS_SLOT;
	}
	if (!err && !(*has & PB_HAS_WINDOW)) {
		err = window_on(m, p, stub);
		*has |= err ? 0 : PB_HAS_WINDOW;
	}
	return err;
}

static bool window_off(struct pb_module *m, const struct pb_place *p)
{
	bool first = p->shares && !pb_place_with_second(p);
	uint8_t bytes[PB_JUMP_SHARED + PB_JUMP_LEN];

	memcpy(bytes, pb_recipe_rest(p->recipe), pb_place_jump_len(p));
	if (pb_place_with_second(p))
		memcpy(bytes + PB_JUMP_SHARED, pb_recipe_rest(p->second), PB_JUMP_LEN);
	return add_patch(&batch[first ? SHARED_OFF : WINDOWS], m->bias + p->window, bytes,
			 (uint8_t)pb_place_patch_len(p));
}

void pb_batch_off(struct pb_module *m, const struct pb_place *p, unsigned *has)
{
	if (*has & PB_HAS_WINDOW && window_off(m, p))
		*has &= ~PB_HAS_WINDOW;
	if (*has == PB_HAS_SLOT && slot_off(m, p))
		*has = 0;
}

static unsigned has_of(const struct pb_site *s)
{
	return (s->flags & FTRACE_FL_ENABLED ? PB_HAS_WINDOW : 0) |
	       (s->flags & FTRACE_FL_SLOT ? PB_HAS_SLOT : 0);
}

static void set_has(struct pb_site *s, unsigned has)
{
	s->flags &= ~(FTRACE_FL_ENABLED | FTRACE_FL_SLOT);
	s->flags |= (has & PB_HAS_WINDOW ? FTRACE_FL_ENABLED : 0) |
		    (has & PB_HAS_SLOT ? FTRACE_FL_SLOT : 0);
}

/* Takes a site from plain to patched: makes its stub at once, and adds to the batch the jumps that
 * its text lacks. */
static void change_on(struct pb_module *m, struct pb_site *s)
{
	const struct pb_func *f = pb_site_func(m, s);
	struct pb_place p = pb_func_place(m->analysis, f);
	unsigned has = has_of(s);
	uint64_t stub, to;
	int err = 0;

	if (!s->stub && !make_stub(m, s))
		return;
	/* the second of two shared jumps is written first; if that isn't possible, neither jump is
	 * written */
	if (is_first(m, s)) {
		pb_text_change(m, s + 1, true);
		err = pb_text_settled(s + 1, true) ? 0 : -ERANGE;
	}
	stub = (uint64_t)m->stubs + s->stub;
	to = is_shared(m, s) ? pb_shared_target(m->bias + pb_func_window(f)) : 0;
	if (!err)
		err = pb_batch_on(m, &p, to ? to : stub, stub + PB_STUB_COPY, &has);
	set_has(s, has);
	if (err)
		refuse(s, PB_REFUSED_RANGE);
}

static void change_off(struct pb_module *m, struct pb_site *s)
{
	struct pb_place p = pb_func_place(m->analysis, pb_site_func(m, s));
	unsigned has = has_of(s);

	/* the second of two shared jumps stays as long as the first, even if no ops selects this
	 * site */
	if ((is_second(m, s) && s[-1].flags & FTRACE_FL_ENABLED) || pb_shared_first_is_on(m, s))
		return;
	pb_batch_off(m, &p, &has);
	set_has(s, has);
}

void pb_text_change(struct pb_module *m, struct pb_site *s, bool on)
{
	if (s->flags & FTRACE_FL_REFUSED || (on && pb_text_only_restores))
		return;
	if (on)
		change_on(m, s);
	else
		change_off(m, s);
}

void pb_text_look(struct pb_module *m, struct pb_site *s)
{
	struct pb_place p;

	if (!s->stub)
		return;
	p = pb_func_place(m->analysis, pb_site_func(m, s));
	set_has(s, pb_place_look(m, &p));
}

void pb_text_change_nops(struct pb_module *m, bool on)
{
	const struct pb_nop *n = pb_analysis_nops(m->analysis);

	for (uint32_t i = 0; i < m->analysis->nr_nops; i++) {
		uint64_t addr = m->bias + n[i].addr;
		const uint8_t *want = on ? n[i].orig : pb_nop_bytes(n[i].len);

		if (!memcmp((void *)addr, want, n[i].len))
			add_patch(&batch[WINDOWS], addr, on ? pb_nop_bytes(n[i].len) : n[i].orig,
				  n[i].len);
	}
}

/* Heap sort by address. Nearly always the patches are already in order, and nothing is sorted. */
static void sift_down(struct pb_patch *p, size_t root, size_t nr)
{
	for (size_t child; (child = 2 * root + 1) < nr; root = child) {
		struct pb_patch tmp;

		if (child + 1 < nr && p[child].addr < p[child + 1].addr)
			child++;
		if (p[root].addr >= p[child].addr)
			return;
		tmp = p[root];
		p[root] = p[child];
		p[child] = tmp;
	}
}

static void sort_patches(struct pb_patch *p, size_t nr)
{
	size_t i;

	for (i = 1; i < nr && p[i - 1].addr <= p[i].addr; i++)
		;
	if (i >= nr)
		return;
	for (i = nr / 2; i--;)
		sift_down(p, i, nr);
	for (i = nr; i-- > 1;) {
		struct pb_patch tmp = p[0];

		p[0] = p[i];
		p[i] = tmp;
		sift_down(p, 0, i);
	}
}

static int write_part(struct part *part, bool live)
{
	struct pb_stop stop = { .p = part->p, .nr = part->nr, .moved = pb_text_moved_pc,
				.moved_fault = pb_text_moved_fault };
	int err;

	if (!part->nr)
		return 0;
	/* no thread runs this text */
	if (!live) {
		part->done = part->nr;
		return pb_text_poke(part->p, part->nr);
	}
	err = pb_stop_world(&stop);
	part->done = stop.done;
	return err;
}

static void save_old(struct part *part)
{
	for (size_t i = 0; i < part->nr; i++)
		memcpy(part->p[i].old, (const void *)part->p[i].addr, part->p[i].len);
	part->done = 0;
}

/* Takes back slots in padding whose windows weren't written yet. No thread can be in such a slot,
 * so no stop is needed. A thread may be in a code slot, so code slots are left to take_back(). */
static void take_back_slots(void)
{
	const struct part *part = &batch[SLOTS_ON];

	for (size_t i = 0; i < part->done; i++) {
		struct pb_patch p = part->p[i];
		const struct pb_module *m = pb_module_at(p.addr);
		struct pb_place place;

		if (!p.slot || !pb_slot_owner(m, p.addr, &place) ||
		    pb_window_is_patched(m, &place) || !pb_slot_is_patched(m, &place))
			continue;
		memcpy(p.bytes, p.old, p.len);
		pb_text_poke(&p, 1);
	}
}

/* Restores the text part by part, as long as the threads can be stopped. */
static void take_back(bool live)
{
	int err = 0;

	take_back_slots();
	for (int i = NR_PARTS; i-- && !err;) {
		struct part *part = &batch[i];

		/* if a part wasn't begun, its `done` is 0 */
		part->nr = part->done;
		for (size_t k = 0; k < part->nr; k++)
			memcpy(part->p[k].bytes, part->p[k].old, part->p[k].len);
		err = write_part(part, live);
	}
}

int pb_text_commit(bool live)
{
	uint64_t t0 = pb_now_ns();
	bool piece = pb_text_only_restores && batch_error == -ENOMEM;
	int err = piece ? 0 : batch_error;

	/* stubs become executable before any jump leads to them */
	if (!err && !pb_text_only_restores)
		err = pb_stubs_seal();

	/* all old bytes are saved before the first byte is written */
	for (int i = 0; i < NR_PARTS; i++) {
		sort_patches(batch[i].p, batch[i].nr);
		save_old(&batch[i]);
	}
	for (int i = 0; i < NR_PARTS && !err; i++)
		err = write_part(&batch[i], live);
	if (err)
		take_back(live);
	/* debuggers learn of a stub even if its jump was taken back, because a thread may be in the
	 * stub */
	for (struct pb_module *m = pb_modules; m < pb_modules + pb_nr_modules; m++)
		if (m->present && m->stubs_used && !m->jit)
			pb_jit_announce(m);
	for (int i = 0; i < NR_PARTS; i++)
		shrink(&batch[i]);
	pb_text_ns += pb_now_ns() - t0;
	if (pb_ring_map.ring && pb_stop_longest_ns > pb_ring_map.ring->max_stop_ns)
		pb_ring_map.ring->max_stop_ns = pb_stop_longest_ns;
	return piece && !err ? -EINPROGRESS : err;
}
