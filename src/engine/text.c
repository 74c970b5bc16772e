/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/mman.h>
#include "engine/text.h"
#include "abi/analysis_access.h"
#include "abi/analysis_check.h"
#include "arch/x86_64/stop.h"
#include "arch/x86_64/stub.h"
#include "base/base.h"
#include "base/mem.h"
#include "base/sys.h"
#include "ring/writer.h"

#define PAGE		4096ul
#define REACH		0x7ff00000ul	/* of a rel32, with room for the ends */
#define LOW_IMAGE	0x10000000ul	/* below: look for memory above the image */

struct pb_module pb_modules[PB_MAX_MODULES];
uint32_t pb_nr_modules;
uint64_t pb_text_ns, pb_text_stop_ns;

/*
 * The batch, in the order in which it is written, each part complete before
 * the next begins: large ones take several stops, between which threads run.
 *
 *   HOLES_ON	holes get their jump; nothing leads there yet
 *   WINDOWS	and the compiled-in calls
 *   HOLES_OFF	holes get their padding back; nothing leads there any more
 */
enum { HOLES_ON, WINDOWS, HOLES_OFF, NR_PARTS };

static struct part {
	struct pb_patch *p;
	size_t nr, max;
} batch[NR_PARTS];
static int batch_error;

static uint32_t lock;

/* The holder's PID: one that is not ours was copied by a fork. */
void pb_text_lock(void)
{
	uint32_t me = (uint32_t)pb_sys(SYS_getpid), free = 0;

	while (!__atomic_compare_exchange_n(&lock, &free, me, false, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		if (free == me)
			free = 0;	/* held: wait; else take it over */
		pb_sys(SYS_sched_yield);
	}
}

void pb_text_unlock(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static bool region_reaches(uint64_t at, size_t size, uint64_t lo, uint64_t hi)
{
	uint64_t end = at + size;

	return (end > lo ? end - lo : hi - at) < REACH && (hi > at ? hi - at : end - lo) < REACH;
}

/* Memory that text in [lo, hi) reaches, and that reaches it. Below the image,
 * where only the dynamic loader puts things; above it when the image lies so
 * low that there is no room (not position-independent), at the far end, as
 * its heap grows there. */
static uint8_t *map_near(uint64_t lo, uint64_t hi, size_t size)
{
	bool up = lo < LOW_IMAGE;
	uint64_t step = pb_align_up(size, 0x200000), at;

	at = up ? (REACH - 0x1000000 - size) & ~(PAGE - 1) : (lo - size - 0x10000) & ~(PAGE - 1);
	for (int i = 0; i < 2000; i++, at -= step) {
		long p;

		if (!region_reaches(at, size, lo, hi) || at < 0x10000 || (up && at < hi))
			break;
		p = pb_sys(SYS_mmap, at, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		if ((uint64_t)p == at)
			return (uint8_t *)at;
		if (!pb_sys_failed(p))
			pb_sys(SYS_munmap, p, size);	/* a kernel without NOREPLACE */
	}
	return NULL;
}

static bool image_matches(const struct pb_analysis *a, uint64_t bias)
{
	if (!a->note_vaddr)
		return true;	/* each window's bytes are compared all the same */
	return !memcmp((const void *)(bias + a->note_vaddr), a->build_id, a->build_id_len);
}

static size_t stubs_needed(const struct pb_analysis *a)
{
	const struct pb_func *f = pb_analysis_funcs(a);
	size_t size = PAGE;

	for (uint32_t i = 0; i < a->nr_funcs; i++)
		if (f[i].refused == PB_REFUSED_NOT)
			size += pb_stub_size(pb_func_recipe(a, &f[i]));
	/* batches start on pages of their own */
	return pb_align_up(size, PAGE) + 16 * PAGE;
}

static void init_sites(struct pb_module *m)
{
	const struct pb_func *f = pb_analysis_funcs(m->analysis);

	for (uint32_t i = 0; i < m->analysis->nr_funcs; i++) {
		struct pb_site *s = &m->sites[i];

		s->id = m->first_site + i;
		if (f[i].refused != PB_REFUSED_NOT)
			s->flags = FTRACE_FL_REFUSED | (uint64_t)f[i].refused << FTRACE_FL_REASON_SHIFT;
		else if (f[i].flags & PB_FUNC_ENTRY_ONLY)
			s->flags = FTRACE_FL_CALL_ONLY;
	}
}

struct pb_module *pb_text_add(const void *analysis, uint64_t size, uint64_t bias,
			      uint64_t link_map, uint32_t first_site, uint32_t number,
			      const char **why)
{
	const struct pb_analysis *a = analysis;
	struct pb_module *m;
	uint32_t i;

	if (pb_analysis_check(analysis, size)) {
		*why = "its analysis is damaged";
		return NULL;
	}
	if (!image_matches(a, bias)) {
		*why = "it is not the file on disk (replaced since it was loaded?)";
		return NULL;
	}
	for (i = 0; i < pb_nr_modules && pb_modules[i].present; i++)
		;
	if (i == PB_MAX_MODULES) {
		*why = "too many modules";
		return NULL;
	}
	m = &pb_modules[i];
	*m = (struct pb_module){ .analysis = a, .bias = bias, .link_map = link_map,
				 .first_site = first_site, .number = number };
	if (a->nr_sites) {
		size_t sites = pb_align_up(a->nr_funcs * sizeof(struct pb_site), PAGE);
		uint8_t *p;

		m->stubs_size = stubs_needed(a);
		m->region_size = sites + m->stubs_size;
		p = map_near(bias + a->image_start, bias + a->image_end, m->region_size);
		if (!p) {
			*why = "no memory for stubs within reach of it";
			return NULL;
		}
		m->sites = (struct pb_site *)p;
		m->stubs = p + sites;
		init_sites(m);
	}
	pb_barrier();
	m->present = true;
	if (i == pb_nr_modules)
		__atomic_store_n(&pb_nr_modules, i + 1, __ATOMIC_RELEASE);
	return m;
}

/* Nobody can be in its stubs that is not in text which is unmapped with it. */
void pb_text_remove(struct pb_module *m)
{
	struct pb_module gone = *m;

	m->present = false;
	m->sites = NULL;
	m->stubs = NULL;
	m->stubs_used = 0;
	pb_barrier();
	if (gone.sites)
		pb_sys(SYS_munmap, gone.sites, gone.region_size);
	pb_sys(SYS_munmap, gone.analysis, gone.analysis->size);
}

struct pb_module *pb_site_module(const struct pb_site *s)
{
	for (uint32_t i = 0; i < pb_nr_modules; i++) {
		struct pb_module *m = &pb_modules[i];

		if (m->sites && (uint64_t)s - (uint64_t)m->sites < m->region_size)
			return m;
	}
	return NULL;
}

struct pb_module *pb_module_at(uint64_t address)
{
	for (uint32_t i = 0; i < pb_nr_modules; i++) {
		struct pb_module *m = &pb_modules[i];

		if (m->present && address - m->bias - m->analysis->image_start <
				  m->analysis->image_end - m->analysis->image_start)
			return m;
	}
	return NULL;
}

struct pb_site *pb_site_by_id(uint32_t id)
{
	for (uint32_t i = 0; i < pb_nr_modules; i++) {
		struct pb_module *m = &pb_modules[i];

		if (m->present && m->first_site && id - m->first_site < m->analysis->nr_funcs)
			return &m->sites[id - m->first_site];
	}
	return NULL;
}

uint64_t pb_site_idle(const struct pb_module *m, const struct pb_site *s)
{
	return (uint64_t)m->stubs + s->stub + PB_STUB_IDLE;
}

/* ---- batches ------------------------------------------------------------ */

void pb_text_begin(void)
{
	for (int i = 0; i < NR_PARTS; i++)
		batch[i].nr = 0;
	batch_error = 0;
}

static bool grow(struct part *part)
{
	size_t max = part->max ? 2 * part->max : 4096;
	long p = pb_sys(SYS_mmap, 0, max * sizeof(*part->p), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pb_sys_failed(p)) {
		batch_error = (int)p;
		return false;
	}
	memcpy((void *)p, part->p, part->nr * sizeof(*part->p));
	if (part->p)
		pb_sys(SYS_munmap, part->p, part->max * sizeof(*part->p));
	part->p = (struct pb_patch *)p;
	part->max = max;
	return true;
}

static void add_patch(struct part *part, uint64_t addr, const uint8_t *bytes, uint8_t len)
{
	struct pb_patch *p;

	if (part->nr == part->max && !grow(part))
		return;
	p = &part->p[part->nr++];
	p->addr = addr;
	p->len = len;
	memcpy(p->bytes, bytes, len);
}

/* A thread may stand at the jump: the patch begins a byte earlier, which stays
 * what it is, and so has it inside. */
static void add_hole_off(uint64_t hole, const uint8_t *rest)
{
	uint8_t bytes[1 + PB_JUMP_LEN];

	bytes[0] = *(const uint8_t *)(hole - 1);
	memcpy(bytes + 1, rest, PB_JUMP_LEN);
	add_patch(&batch[HOLES_OFF], hole - 1, bytes, sizeof(bytes));
}

static void refuse(struct pb_site *s, enum pb_refused why)
{
	s->flags |= FTRACE_FL_REFUSED | (uint64_t)why << FTRACE_FL_REASON_SHIFT;
}

/* The site's stub, if it has none yet. */
static bool make_stub(struct pb_module *m, struct pb_site *s, const struct pb_func *f)
{
	const struct pb_recipe *r = pb_func_recipe(m->analysis, f);
	size_t size = pb_stub_size(r);
	uint64_t window = m->bias + pb_func_window(f);
	const uint8_t *text = (const uint8_t *)window;

	bool differs = memcmp(text, pb_recipe_rest(r), f->window_len) &&
		       memcmp(text, pb_recipe_orig(r), f->window_len);

	if (f->via)
		differs |= memcmp(text + f->via, pb_recipe_hole(r), PB_JUMP_LEN) != 0;
	if (differs) {
		refuse(s, PB_REFUSED_DIFFERS);
		return false;
	}
	if (m->stubs_used + size > m->stubs_size ||
	    pb_stub_emit(m->stubs + m->stubs_used, s, r, m->bias)) {
		refuse(s, PB_REFUSED_RANGE);
		return false;
	}
	/* offset 0 means none: the first stub stands behind a gap */
	s->stub = (uint32_t)m->stubs_used;
	if (!(s->flags & FTRACE_FL_DIRECT))
		s->body = (uint64_t)m->stubs + s->stub + PB_STUB_COPY;
	s->handler = pb_site_idle(m, s);
	m->stubs_used += size;
	return true;
}

static int add_jump(struct pb_module *m, const struct pb_site *s, const struct pb_func *f)
{
	uint64_t window = m->bias + pb_func_window(f);
	uint64_t from = f->via ? m->bias + pb_func_hole(f) : window;
	uint8_t jump[PB_JUMP_LEN];

	if (pb_jump_emit(jump, from, (uint64_t)m->stubs + s->stub))
		return -34;
	add_patch(&batch[f->via ? HOLES_ON : WINDOWS], from, jump, PB_JUMP_LEN);
	if (f->via) {
		pb_jump_emit_short(jump, f->via);
		add_patch(&batch[WINDOWS], window, jump, PB_JUMP_SHORT);
	}
	return 0;
}

void pb_text_change(struct pb_module *m, struct pb_site *s, bool on)
{
	const struct pb_func *f = pb_site_func(m, s);
	const struct pb_recipe *r;

	if (s->flags & FTRACE_FL_REFUSED)
		return;
	if (on && !s->stub) {
		if (!m->stubs_used)
			m->stubs_used = 16;
		if (!make_stub(m, s, f))
			return;
	}
	if (!on) {
		r = pb_func_recipe(m->analysis, f);
		add_patch(&batch[WINDOWS], m->bias + pb_func_window(f), pb_recipe_rest(r),
			  (uint8_t)pb_func_jump_len(f));
		if (f->via)
			add_hole_off(m->bias + pb_func_hole(f), pb_recipe_hole(r));
		s->flags &= ~FTRACE_FL_ENABLED;
		return;
	}
	if (add_jump(m, s, f))
		refuse(s, PB_REFUSED_RANGE);
	else
		s->flags |= FTRACE_FL_ENABLED;
}

static bool window_is_patched(const struct pb_module *m, const struct pb_func *f)
{
	return memcmp((const void *)(m->bias + pb_func_window(f)),
		      pb_recipe_rest(pb_func_recipe(m->analysis, f)), pb_func_jump_len(f));
}

static bool hole_is_patched(const struct pb_module *m, const struct pb_func *f)
{
	return memcmp((const void *)(m->bias + pb_func_hole(f)),
		      pb_recipe_hole(pb_func_recipe(m->analysis, f)), PB_JUMP_LEN);
}

bool pb_text_is_patched(const struct pb_module *m, const struct pb_site *s)
{
	const struct pb_func *f = pb_site_func(m, s);

	return window_is_patched(m, f) || (f->via && hole_is_patched(m, f));
}

void pb_text_change_nops(struct pb_module *m, bool on)
{
	const struct pb_nop *n = pb_analysis_nops(m->analysis);

	if (m->nopped == on)
		return;
	for (uint32_t i = 0; i < m->analysis->nr_nops; i++) {
		uint64_t addr = m->bias + n[i].addr;
		const uint8_t *want = on ? n[i].orig : pb_nop_bytes(n[i].len);

		if (!memcmp((void *)addr, want, n[i].len))
			add_patch(&batch[WINDOWS], addr, on ? pb_nop_bytes(n[i].len) : n[i].orig, n[i].len);
	}
	m->nopped = on;
}

/* Heap sort by address, skipped when they come in order, as they nearly always do. */
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

/* New stubs become executable, and are never written again. */
static int seal_stubs(void)
{
	for (uint32_t i = 0; i < pb_nr_modules; i++) {
		struct pb_module *m = &pb_modules[i];
		size_t end = pb_align_up(m->stubs_used, PAGE);
		long err;

		if (!m->present || !m->stubs_used || m->stubs_used == end)
			continue;
		err = pb_sys(SYS_mprotect, m->stubs, end, PROT_READ | PROT_EXEC);
		if (err)
			return (int)err;
		m->stubs_used = end;
	}
	return 0;
}

static int write_part(struct part *part, bool live)
{
	if (!part->nr)
		return 0;
	sort_patches(part->p, part->nr);
	return live ? pb_stop_and_poke(part->p, part->nr, pb_text_moved_pc, &pb_text_stop_ns) :
		      pb_text_poke(part->p, part->nr, -1);
}

/* Holes whose windows the batch didn't come to: nobody was there, no stop. */
static void take_back_holes(void)
{
	const struct part *part = &batch[HOLES_ON];

	for (size_t i = 0; i < part->nr; i++) {
		const struct pb_module *m = pb_module_at(part->p[i].addr);
		const struct pb_func *f = pb_analysis_hole_at(m->analysis, part->p[i].addr - m->bias);
		struct pb_patch p = { .addr = part->p[i].addr, .len = PB_JUMP_LEN };

		if (window_is_patched(m, f) || !hole_is_patched(m, f))
			continue;
		memcpy(p.bytes, pb_recipe_hole(pb_func_recipe(m->analysis, f)), PB_JUMP_LEN);
		pb_text_poke(&p, 1, -1);
	}
}

int pb_text_commit(bool live)
{
	uint64_t t0 = pb_now_ns();
	int err = batch_error ? batch_error : seal_stubs();

	for (int i = 0; i < NR_PARTS && !err; i++)
		err = write_part(&batch[i], live);
	if (err)
		take_back_holes();
	pb_text_ns += pb_now_ns() - t0;
	if (pb_text_stop_ns > pb_ring_map.ring->max_stop_ns)
		pb_ring_map.ring->max_stop_ns = pb_text_stop_ns;
	return err;
}

/* ---- program counters ---------------------------------------------------- */

/* The site whose jump stands in a hole at pc, or NULL. */
static struct pb_site *site_of_hole(struct pb_module *m, uint64_t pc)
{
	const struct pb_func *f = m && m->sites ?
				  pb_analysis_hole_at(m->analysis, pc - m->bias) : NULL;

	return f && hole_is_patched(m, f) ? &m->sites[f - pb_analysis_funcs(m->analysis)] : NULL;
}

uint64_t pb_text_original_pc(uint64_t pc, bool *own)
{
	struct pb_module *in = pb_module_at(pc);
	const struct pb_site *hole;

	for (uint32_t i = 0; i < pb_nr_modules; i++) {
		struct pb_module *m = &pb_modules[i];
		const uint8_t *at;
		uint64_t off = pc - (uint64_t)m->stubs;

		if (!m->sites || off >= m->stubs_used)
			continue;
		for (at = m->stubs + (off & ~15ul); at > m->stubs; at -= 16) {
			int32_t rel;
			const struct pb_site *s;
			const struct pb_func *f;

			memcpy(&rel, at + 8, 4);
			s = (const struct pb_site *)(at + 12 + rel);
			if (s < m->sites || s >= m->sites + m->analysis->nr_funcs ||
			    !pb_stub_is(at, s))
				continue;
			f = pb_site_func(m, s);
			off = pc - (uint64_t)at;
			*own = off < PB_STUB_COPY;
			if (*own)
				return m->bias + pb_func_window(f);
			return m->bias + pb_func_window(f) +
			       pb_recipe_orig_offset(pb_func_recipe(m->analysis, f),
						     (uint8_t)(off - PB_STUB_COPY));
		}
	}
	*own = false;
	hole = site_of_hole(in, pc);
	return hole ? in->bias + pb_func_window(pb_site_func(in, hole)) : 0;
}

uint64_t pb_text_moved_pc(uint64_t pc)
{
	struct pb_module *m = pb_module_at(pc);
	const struct pb_site *s = site_of_hole(m, pc);
	const struct pb_func *f;
	uint64_t off;
	int64_t i;
	int copy;

	if (!m || !m->sites)
		return 0;
	if (s)
		return (uint64_t)m->stubs + s->stub;
	i = pb_analysis_lower(m->analysis, pc - m->bias);
	if (i < 0)
		return 0;
	f = pb_analysis_funcs(m->analysis) + i;
	s = &m->sites[i];
	off = pc - m->bias - pb_func_window(f);
	if (!s->stub || !off || off >= pb_func_jump_len(f))
		return 0;
	copy = pb_recipe_copy_offset(pb_func_recipe(m->analysis, f), (uint8_t)off);
	return copy < 0 ? 0 : (uint64_t)m->stubs + s->stub + PB_STUB_COPY + (uint64_t)copy;
}
