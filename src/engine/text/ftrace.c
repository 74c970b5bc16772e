/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decides for each site which handler gets its hits, for the tracers (tracer.c), for replaced
 * functions and for eBPF. A tracer registers a struct ftrace_ops, called "the ops", which has
 * filters. An update uses the filters to compute for each site the handler, and whether the site's
 * jump is needed. First, most sites that no ops selects any more become idle (text.h). (Sites with
 * eBPF programs, and sites whose calls the compiler's hooks report, get their new handler at the
 * end.) Then text_batch.c writes the jumps of all sites in one batch. Then the new handlers are
 * stored. A handler is one word, so running threads see either the old or the new handler. The
 * control files that list functions are here, too.
 */
#include <asm/errno.h>
#include "engine/files.h"
#include "engine/text/ftrace.h"
#include "abi/analysis_access.h"
#include "arch/arch.h"
#include "base/base.h"
#include "base/mem.h"
#include "ring/writer.h"

#define MAX_OPS 16

static struct ftrace_ops *ops_list;
uint32_t pb_min_size;
bool pb_keep_patched;

static bool traced(const struct pb_module *m)
{
	return m->present && m->first_site && m->sites;
}

bool pb_ftrace_wants(const struct ftrace_ops *op, const struct pb_module *m, uint32_t func)
{
	if (!pb_hash_empty(&op->filter) && !pb_hash_has(&op->filter, m, func))
		return false;
	return pb_hash_empty(&op->notrace) || !pb_hash_has(&op->notrace, m, func);
}

/* Whether set_ftrace_size excludes the function. Always true in a module that isn't traced. */
static bool is_too_small(const struct pb_module *m, uint32_t func)
{
	return !m->first_site ||
	       (pb_min_size && pb_analysis_funcs(m->analysis)[func].size < pb_min_size);
}

/* Returns how many ops select the site. *only gets one of them. */
static unsigned count_ops(const struct pb_module *m, uint32_t func, struct ftrace_ops **only)
{
	unsigned nr = 0;

	if (is_too_small(m, func))
		return 0;
	for (struct ftrace_ops *op = ops_list; op; op = op->next) {
		if (pb_ftrace_wants(op, m, func)) {
			*only = op;
			nr++;
		}
	}
	return nr;
}

unsigned pb_ftrace_list(struct pb_site *site, uint64_t parent_ip)
{
	struct pb_module *m = pb_site_module(site);
	unsigned mode = PB_ENTER_LIST;

	if (!m)
		return mode;
	for (struct ftrace_ops *op = ops_list; op; op = op->next) {
		/* read once: a write to snapshot_on may change it meanwhile */
		ftrace_func *func = __atomic_load_n(&op->func, __ATOMIC_RELAXED);

		if (!pb_ftrace_wants(op, m, (uint32_t)(site - m->sites)))
			continue;
		if (op->graph_mode)
			mode = op->graph_mode(m, site);
		else if (func)
			func(site, parent_ip, op);
	}
	return mode;
}

bool pb_site_is_caller(uint32_t id)
{
	struct pb_site *s = pb_site_by_id(id);

	return s && s->flags & FTRACE_FL_CALLER;
}

bool pb_site_goes_on(uint32_t id)
{
	struct pb_site *s = pb_site_by_id(id);

	return s && s->flags & FTRACE_FL_GOES_ON;
}

static uint64_t idle_handler(const struct pb_module *m, const struct pb_site *s)
{
	return s->flags & FTRACE_FL_DIRECT ? (uint64_t)pb_direct : pb_site_idle(m, s);
}

uint64_t (*pb_ftrace_regs)(struct pb_site *site, uint64_t next, uint64_t idle);

static uint64_t handler_of_ops(struct pb_module *m, struct pb_site *s, unsigned nr,
			       struct ftrace_ops *only)
{
	uint64_t handler = 0;

	if (nr > 1 || (nr && !only->trampoline))
		return (uint64_t)pb_list;
	if (nr)
		handler = only->trampoline(m, s);
	return handler ? handler : idle_handler(m, s);
}

/* eBPF programs come before all ops, and decide whether the ops see the call. */
static uint64_t handler_of(struct pb_module *m, struct pb_site *s, unsigned nr,
			   struct ftrace_ops *only)
{
	uint64_t handler = handler_of_ops(m, s, nr, only);

	return s->flags & FTRACE_FL_REGS ? pb_ftrace_regs(s, handler, idle_handler(m, s)) : handler;
}

static void set_handler(struct pb_site *s, uint64_t handler)
{
	__atomic_store_n(&s->handler, handler, __ATOMIC_RELEASE);
}

static bool keep_jump(const struct pb_module *m, const struct pb_site *s, unsigned nr)
{
	return nr || s->flags & (FTRACE_FL_DIRECT | FTRACE_FL_REGS) ||
	       (pb_keep_patched && s->stub) || pb_text_hosts_returns(m, s);
}

/* Whether the compiler's hooks report the site's calls (engine/graph/cyg.c). The text of such a
 * site isn't patched; the hooks look at its handler. */
static bool reported_by_hooks(const struct pb_module *m, const struct pb_site *s)
{
	return pb_site_func(m, s)->kind == PB_SITE_CYG && !(s->flags & FTRACE_FL_DIRECT);
}

/* Whether an ops selects the site and needs its exits patched. */
static bool wants_return(const struct pb_module *m, const struct pb_site *s, uint32_t func)
{
	if (s->flags & FTRACE_FL_REFUSED || !pb_site_exits_itself(s) || reported_by_hooks(m, s) ||
	    is_too_small(m, func))
		return false;
	for (struct ftrace_ops *op = ops_list; op; op = op->next)
		if ((op->graph_mode || op->timed) && pb_ftrace_wants(op, m, func))
			return true;
	return false;
}

/* Whether an ops needs to know how long the site's calls take, and the ends of these calls are seen
 * now. */
static bool is_timed(const struct pb_module *m, const struct pb_site *s, uint32_t func)
{
	bool seen = reported_by_hooks(m, s) ||
		    (pb_site_exits_itself(s) ? pb_site_returns_on(m, s) :
					       s->flags & FTRACE_FL_ENDS);

	if (!seen || is_too_small(m, func))
		return false;
	for (struct ftrace_ops *op = ops_list; op; op = op->next)
		if (op->timed && pb_ftrace_wants(op, m, func))
			return true;
	return false;
}

/* Returns FTRACE_FL_CALLER or 0. */
static uint64_t caller_flag(const struct pb_module *m, uint32_t func)
{
	for (struct ftrace_ops *op = ops_list; op; op = op->next)
		if (op->caller && pb_ftrace_wants(op, m, func) && op->caller(m, func))
			return FTRACE_FL_CALLER;
	return 0;
}

/* Marks the windows of those exits that must be patched. Called for all modules before any site is
 * prepared, because several functions may have the same window. */
static void want_returns(struct pb_module *m)
{
	for (uint32_t i = 0; m->present && m->exits && i < m->analysis->nr_funcs; i++) {
		if (m->sites[i].flags & FTRACE_FL_RETURNS)
			pb_text_want_tails(m, &m->sites[i]);
		else if (wants_return(m, &m->sites[i], i))
			pb_text_want_returns(m, &m->sites[i]);
	}
}

/* If no ops selects the site any more, the site becomes idle at once, unless it has eBPF programs,
 * or the compiler's hooks report its calls. If the site's text must change, the site is added to
 * the batch. */
static void prepare_site(struct pb_module *m, struct pb_site *s, uint32_t func)
{
	struct ftrace_ops *only = NULL;
	unsigned nr = count_ops(m, func, &only);

	if (s->flags & FTRACE_FL_REFUSED)
		return;
	if (nr && m->libc)
		__atomic_or_fetch(&pb_ring_unseen, PB_UNSEEN_LIBC, __ATOMIC_SEQ_CST);
	s->flags = (s->flags & ~(FTRACE_FL_COUNT | FTRACE_FL_TRAMP | FTRACE_FL_TIMED)) | nr |
		   (nr == 1 ? FTRACE_FL_TRAMP : 0) |
		   (nr && is_timed(m, s, func) ? FTRACE_FL_TIMED : 0);
	if (reported_by_hooks(m, s)) {
		s->flags = nr ? s->flags | FTRACE_FL_ENABLED : s->flags & ~FTRACE_FL_ENABLED;
		return;
	}
	if (!nr && s->stub && !(s->flags & FTRACE_FL_REGS))
		set_handler(s, idle_handler(m, s));
	if (!pb_text_settled(s, keep_jump(m, s, nr)))
		pb_text_change(m, s, keep_jump(m, s, nr));
}

static void finish_site(struct pb_module *m, struct pb_site *s, uint32_t func, bool failed)
{
	struct ftrace_ops *only = NULL;
	unsigned nr = s->flags & FTRACE_FL_COUNT;
	uint64_t set = s->flags & FTRACE_FL_TRAMP ? FTRACE_FL_TRAMP_EN : 0;

	if (s->flags & FTRACE_FL_REFUSED)
		return;
	if (failed && !reported_by_hooks(m, s))
		pb_text_look(m, s);
	/* the exits are patched by now, so the agent sees the end of each call that it opens to
	 * measure the call's time */
	if (nr && is_timed(m, s, func))
		set |= FTRACE_FL_TIMED;
	/* the site's new handler depends on this flag */
	if (nr)
		set |= caller_flag(m, func);
	s->flags = (s->flags & ~(FTRACE_FL_TRAMP_EN | FTRACE_FL_TIMED | FTRACE_FL_CALLER)) | set;
	if (nr)
		count_ops(m, func, &only);
	if (reported_by_hooks(m, s))
		set_handler(s, nr ? handler_of(m, s, nr, only) : 0);
	else if (s->stub)
		set_handler(s, pb_text_near(m, handler_of(m, s, nr, only)));
}

/* Indices of the modules, in the order of the modules' addresses. Patches are added in this order,
 * so that the batch needn't be sorted. */
static uint16_t by_address[PB_MAX_MODULES];
_Static_assert(PB_MAX_MODULES <= UINT16_MAX, "by_address[]");

static void order_modules(const struct pb_module *modules, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t k = i;

		for (; k && modules[by_address[k - 1]].bias > modules[i].bias; k--)
			by_address[k] = by_address[k - 1];
		by_address[k] = (uint16_t)i;
	}
}

static void prepare_module(struct pb_module *m)
{
	const struct pb_func *f;
	uint32_t window = 0;

	/* a module that is gone has no analysis any more */
	if (!m->present || !m->sites)
		return;
	f = pb_analysis_funcs(m->analysis);
	for (uint32_t i = 0; i < m->analysis->nr_funcs; i++) {
		pb_text_change_returns(m, &window, f[i].addr, pb_keep_patched);
		prepare_site(m, &m->sites[i], i);
	}
	pb_text_change_returns(m, &window, UINT64_MAX, pb_keep_patched);
}

static int update(struct pb_module *modules, uint32_t nr, bool live)
{
	int err;

	pb_text_begin();
	order_modules(modules, nr);
	for (struct pb_module *m = modules; m < modules + nr; m++)
		want_returns(m);
	for (uint32_t k = 0; k < nr; k++)
		prepare_module(&modules[by_address[k]]);
	err = pb_text_commit(live);
	for (struct pb_module *m = modules; m < modules + nr; m++) {
		if (err && m->present)
			pb_text_look_returns(m);
		for (uint32_t i = 0; m->present && m->sites && i < m->analysis->nr_funcs; i++)
			finish_site(m, &m->sites[i], i, err);
	}
	return err;
}

int pb_ftrace_update(bool live)
{
	return update(pb_modules, pb_nr_modules, live);
}

int pb_ftrace_update_module(struct pb_module *m, bool live)
{
	return update(m, 1, live);
}

static void forget_regs(void)
{
	for (struct pb_module *m = pb_modules; pb_ftrace_regs && m < pb_modules + pb_nr_modules;
	     m++)
		for (uint32_t i = 0; m->present && m->sites && i < m->analysis->nr_funcs; i++)
			m->sites[i].flags &= ~(FTRACE_FL_REGS | FTRACE_FL_RETURNS);
}

int pb_ftrace_stop(bool live)
{
	ops_list = NULL;
	pb_keep_patched = false;
	forget_regs();
	return pb_ftrace_update(live);
}

void pb_ftrace_look(void)
{
	for (struct pb_module *m = pb_modules; m < pb_modules + pb_nr_modules; m++) {
		if (!m->present || !m->sites)
			continue;
		pb_text_look_returns(m);
		for (uint32_t i = 0; i < m->analysis->nr_funcs; i++)
			pb_text_look(m, &m->sites[i]);
	}
}

static void no_direct(const struct pb_module *m, struct pb_site *s)
{
	s->flags &= ~(FTRACE_FL_DIRECT | FTRACE_FL_DIRECT_EN | FTRACE_FL_ENDS | FTRACE_FL_PASSES);
	s->body = pb_site_idle(m, s);
	set_handler(s, pb_site_idle(m, s));
}

int pb_ftrace_undo(bool live)
{
	struct pb_module *end = pb_modules + pb_nr_modules;
	int err;

	pb_text_begin();
	for (struct pb_module *m = pb_modules; m < end; m++) {
		uint32_t window = 0;

		if (m->present && m->sites)
			pb_text_change_returns(m, &window, UINT64_MAX, false);
		for (uint32_t i = 0; m->present && m->sites && i < m->analysis->nr_funcs; i++)
			pb_text_change(m, &m->sites[i], false);
	}
	err = pb_text_commit(live);
	for (struct pb_module *m = pb_modules; m < end; m++) {
		if (err && m->present)
			pb_text_look_returns(m);
		for (uint32_t i = 0; m->present && m->sites && i < m->analysis->nr_funcs; i++) {
			struct pb_site *s = &m->sites[i];

			if (err)
				pb_text_look(m, s);
			else if (s->stub)
				no_direct(m, s);
		}
	}
	return err;
}

static int add_ops(struct ftrace_ops *ops)
{
	struct ftrace_ops **p = &ops_list;
	int nr = 0;

	for (; *p; p = &(*p)->next, nr++)
		if (*p == ops)
			return -EBUSY;
	if (nr == MAX_OPS)
		return -ENOSPC;
	ops->next = NULL;
	*p = ops;
	return 0;
}

static int remove_ops(struct ftrace_ops *ops)
{
	for (struct ftrace_ops **p = &ops_list; *p; p = &(*p)->next) {
		if (*p == ops) {
			*p = ops->next;
			return 0;
		}
	}
	return -ENOENT;
}

int pb_ftrace_exchange(struct ftrace_ops *old, struct ftrace_ops *new, bool live)
{
	int err = old ? remove_ops(old) : 0;

	if (!err && new) {
		err = add_ops(new);
		if (err && old)
			add_ops(old);
	}
	if (err)
		return err;
	err = pb_ftrace_update(live);
	if (err) {
		if (new)
			remove_ops(new);
		if (old)
			add_ops(old);
		pb_ftrace_update(live);	/* the text is as before, but the handlers are already those
					 * of `new` */
	}
	return err;
}

int register_ftrace_function(struct ftrace_ops *ops, bool live)
{
	return pb_ftrace_exchange(NULL, ops, live);
}

int unregister_ftrace_function(struct ftrace_ops *ops, bool live)
{
	return pb_ftrace_exchange(ops, NULL, live);
}

uint64_t pb_ftrace_replace_at(struct pb_module *m, uint64_t address, const void *body,
			      uint64_t ends)
{
	const struct pb_func *f = pb_analysis_at(m->analysis, address - m->bias);
	struct pb_site *s;

	if (!f || f->refused != PB_REFUSED_NOT || (!m->sites && !pb_text_ask(m)))
		return 0;
	s = &m->sites[f - pb_analysis_funcs(m->analysis)];
	if (!s->stub)
		pb_text_change(m, s, true);
	if (s->flags & FTRACE_FL_REFUSED)
		return 0;
	s->flags |= FTRACE_FL_DIRECT | FTRACE_FL_DIRECT_EN | ends;
	s->body = (uint64_t)body;
	set_handler(s, (uint64_t)pb_direct);
	return (uint64_t)m->stubs + s->stub + PB_STUB_COPY;
}

static bool has_alias(const char *aliases, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = aliases; *p; p++) {
		size_t i = 0;

		while (i < n && p[i] == name[i])
			i++;
		if (i == n && (p[n] == '\n' || !p[n]))
			return true;
		while (*p && *p != '\n')
			p++;
		if (!*p)
			break;
	}
	return false;
}

bool pb_function_has_name(const struct pb_module *m, const struct pb_func *f, const char *name)
{
	const struct pb_analysis *a = m->analysis;

	return pb_streq(pb_func_name(a, f), name) ||
	       (f->aliases && has_alias(pb_analysis_string(a, f->aliases), name));
}

uint64_t pb_function_named(const struct pb_module *m, const char *name)
{
	const struct pb_func *f = pb_analysis_funcs(m->analysis);

	for (uint32_t i = 0; i < m->analysis->nr_funcs; i++)
		if (pb_function_has_name(m, &f[i], name))
			return m->bias + f[i].addr;
	return 0;
}

void pb_ftrace_totals_add(struct pb_ftrace_totals *t, const struct pb_module *m)
{
	if (!m->present || !m->first_site)
		return;
	t->modules++;
	if (!m->sites) {
		t->refused += m->analysis->nr_refused;
		return;
	}
	for (uint32_t i = 0; i < m->analysis->nr_funcs; i++) {
		uint64_t flags = m->sites[i].flags;

		t->refused += !!(flags & FTRACE_FL_REFUSED);
		t->sites += !(flags & FTRACE_FL_REFUSED);
		t->patched += flags & FTRACE_FL_ENABLED && flags & FTRACE_FL_COUNT;
	}
}

struct pb_ftrace_totals pb_ftrace_totals(void)
{
	struct pb_ftrace_totals t = { 0 };

	for (uint32_t k = 0; k < pb_nr_modules; k++)
		pb_ftrace_totals_add(&t, &pb_modules[k]);
	return t;
}

/* ---- files --------------------------------------------------------------- */

static void put_name(struct pb_seq *s, const struct pb_module *m, const struct pb_func *f)
{
	pb_seq_puts(s, pb_func_name(m->analysis, f));
	pb_seq_puts(s, " [");
	pb_seq_puts(s, pb_analysis_string(m->analysis, m->analysis->soname));
	pb_seq_puts(s, "]");
}

static void show_available(struct pb_seq *s)
{
	for (uint32_t k = 0; k < pb_nr_modules && !pb_seq_full(s); k++) {
		const struct pb_module *m = &pb_modules[k];
		const struct pb_func *f = pb_analysis_funcs(m->analysis);

		if (!traced(m))
			continue;
		for (uint32_t i = 0; i < m->analysis->nr_funcs && !pb_seq_full(s); i++) {
			if (m->sites[i].flags & FTRACE_FL_REFUSED)
				continue;
			put_name(s, m, &f[i]);
			pb_seq_puts(s, "\n");
		}
	}
}

/* Follows the format of Linux 6.1, "name (count)[ R][ I][ D]\ttramp: ... ->...", without R, I and
 * addresses. */
static void show_enabled(struct pb_seq *s)
{
	for (uint32_t k = 0; k < pb_nr_modules && !pb_seq_full(s); k++) {
		const struct pb_module *m = &pb_modules[k];
		const struct pb_func *f = pb_analysis_funcs(m->analysis);

		if (!m->present || !m->sites)
			continue;
		for (uint32_t i = 0; i < m->analysis->nr_funcs && !pb_seq_full(s); i++) {
			uint64_t flags = m->sites[i].flags;
			struct ftrace_ops *only = NULL;

			if (!(flags & FTRACE_FL_ENABLED) ||
			    !(flags & (FTRACE_FL_COUNT | FTRACE_FL_DIRECT)))
				continue;
			put_name(s, m, &f[i]);
			pb_seq_puts(s, " (");
			pb_seq_u64(s, flags & FTRACE_FL_COUNT);
			pb_seq_puts(s, flags & FTRACE_FL_DIRECT ? ")    D" : ")     ");
			if (flags & FTRACE_FL_TRAMP && count_ops(m, i, &only)) {
				pb_seq_puts(s, "\ttramp: ");
				pb_seq_puts(s, only->name);
			}
			pb_seq_puts(s, "\n");
		}
	}
}

static void show_totals(struct pb_seq *s)
{
	struct pb_ftrace_totals t = pb_ftrace_totals();

	pb_seq_u64(s, t.sites);
	pb_seq_puts(s, " sites, ");
	pb_seq_u64(s, t.patched);
	pb_seq_puts(s, " patched, ");
	pb_seq_u64(s, t.refused);
	pb_seq_puts(s, " refused, modules: ");
	pb_seq_u64(s, t.modules);
	pb_seq_puts(s, "\nns of text changes: ");
	pb_seq_u64(s, pb_text_ns);
	pb_seq_puts(s, ", longest stop: ");
	pb_seq_u64(s, pb_stop_longest_ns);
	pb_seq_puts(s, "\n");
}

void pb_ftrace_register_files(void)
{
	pb_file_register(PB_CF_AVAILABLE_FILTER_FUNCTIONS,
			 &(struct pb_file){ show_available, NULL });
	pb_file_register(PB_CF_ENABLED_FUNCTIONS, &(struct pb_file){ show_enabled, NULL });
	pb_file_register(PB_CF_DYN_FTRACE_TOTAL_INFO, &(struct pb_file){ show_totals, NULL });
}
