/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control file snapshot_on has words of the forms FUNC and FUNC>MICROSECONDS. With FUNC, each
 * call of the function asks for a snapshot when the call begins. With FUNC>MICROSECONDS, a call
 * that took at least this time asks for a snapshot when the call ends. To ask, the agent adds to a
 * count in the ring. The observer looks at the count, and copies the ring.
 *
 * All words with the same time share one ops (struct ftrace_ops, text/ftrace.h). This ops has no
 * trampoline. So its sites have the handler pb_list, which calls the list function. C code opens
 * the calls of these sites.
 */
#include <asm/errno.h>
#include "abi/ring.h"
#include "abi/snapshot_word.h"
#include "arch/arch.h"
#include "base/base.h"
#include "base/mem.h"
#include "engine/clock.h"
#include "engine/files.h"
#include "engine/graph/calls.h"
#include "engine/graph/thread.h"
#include "engine/snapshot_on.h"
#include "engine/text/ftrace.h"
#include "engine/tracer.h"
#include "ring/ring_map.h"

#define MOST_TIMES 6		/* how many different times the words may have */

/* A word as it was written, for reads. */
struct word {
	struct word *next;
	char text[];
};

static struct trigger {
	struct ftrace_ops ops;
	uint64_t ns, ticks;	/* 0: a call asks when the call begins */
	struct word *first, *last;
	bool used, registered;
} triggers[MOST_TIMES];
static uint64_t ticks_per_ms;

/* ---- hits ------------------------------------------------------------------- */

static void ask(uint32_t site, uint64_t us)
{
	struct pb_ring *ring = pb_ring_map.ring;

	if (!ring || site >= PB_MAX_SITES)
		return;
	us = us < UINT32_MAX ? us : UINT32_MAX;
	__atomic_store_n(&ring->snapshot_by, PB_SNAPSHOT_BY(us, (uint64_t)pb_image, site),
			 __ATOMIC_RELAXED);
	__atomic_fetch_add(&ring->snapshots_asked, 1, __ATOMIC_RELEASE);
}

static void on_call(struct pb_site *site, uint64_t parent_ip, struct ftrace_ops *op)
{
	ask(site->id, 0);
}

static bool is_long(const struct trigger *t, uint64_t ticks)
{
	return t->used && t->ticks && ticks >= t->ticks && (int64_t)ticks >= 0;
}

static bool is_wanted(uint32_t id, uint64_t ticks)
{
	struct pb_site *s = pb_site_by_id(id);
	struct pb_module *m = s && s->flags & FTRACE_FL_TIMED ? pb_site_module(s) : NULL;

	for (struct trigger *t = triggers; m && t < triggers + MOST_TIMES; t++)
		if (is_long(t, ticks) && pb_ftrace_wants(&t->ops, m, (uint32_t)(s - m->sites)))
			return true;
	return false;
}

/* Most calls aren't long, so the time is looked at first. */
static void on_end(uint32_t id, uint64_t ticks)
{
	uint64_t us, before;
	struct pb_thread *self = pb_tls;
	bool wanted = false;

	for (struct trigger *t = triggers; !wanted && t < triggers + MOST_TIMES; t++)
		wanted = is_long(t, ticks);
	if (!wanted)
		return;
	before = pb_look_begin(self);
	wanted = is_wanted(id, ticks);
	pb_look_end(self, before);
	us = ticks * 1000 / ticks_per_ms;
	if (wanted)
		ask(id, us ? us : 1);	/* 0 stands for a call that has only begun */
}

/* ---- the file --------------------------------------------------------------- */

static void read_on(struct pb_seq *s)
{
	for (struct trigger *t = triggers; t < triggers + MOST_TIMES; t++) {
		for (const struct word *w = t->used ? t->first : NULL; w; w = w->next) {
			pb_seq_puts(s, w->text);
			pb_seq_puts(s, "\n");
		}
	}
}

/* Returns the trigger with this time, or an unused trigger; NULL: all triggers have other times. */
static struct trigger *trigger_of(uint64_t ns)
{
	struct trigger *unused = NULL;

	for (struct trigger *t = triggers; t < triggers + MOST_TIMES; t++) {
		if (t->used && t->ns == ns)
			return t;
		if (!t->used && !unused)
			unused = t;
	}
	return unused;
}

static struct word *copy_word(const char *word)
{
	size_t n = strlen(word) + 1;
	struct word *w = pb_arena_alloc(sizeof(*w) + n);

	if (w)
		memcpy(w->text, word, n);
	return w;
}

static void add_text(struct trigger *t, struct word *w)
{
	if (t->used)
		t->last->next = w;
	else
		t->first = w;
	t->last = w;
}

/* Splits "FUNC>TIME" at the '>'. */
static int split(char *word, uint64_t *ns)
{
	char *time = pb_snapshot_time(word);

	*ns = 0;
	if (!time)
		return 0;
	*time = 0;
	if (!time[1]) {
		pb_file_error = "no number of microseconds after >";
		return -EINVAL;
	}
	return pb_parse_us(time + 1, ns);
}

static int add_word(char *word, void *live)
{
	struct word *w = copy_word(word);
	struct trigger *t;
	uint64_t ns;
	int err = w ? split(word, &ns) : -ENOMEM;

	if (err)
		return err;
	t = trigger_of(ns);
	if (!t) {
		pb_file_error = "at most 6 different times";
		return -ENOSPC;
	}
	if (ns && pb_no_clock) {
		pb_file_error = "trace_clock is none, so calls have no times";
		return -EINVAL;
	}
	/* a filter that was left empty would select all functions */
	if (!*word || *word == '!' || *word == '#') {
		pb_file_error = "not a function";
		return -EINVAL;
	}
	err = pb_hash_write(&t->ops.filter, word, t->used, *(bool *)live);
	if (err)
		return err;
	add_text(t, w);
	t->ns = ns;
	t->ticks = pb_clock_ticks_of(ns, ticks_per_ms);
	t->used = true;
	t->ops.name = "snapshot";
	t->ops.func = ns ? NULL : on_call;
	t->ops.timed = ns;
	return 0;
}

static int install_one(struct trigger *t, bool live)
{
	int err;

	if (t->used == t->registered)
		return t->used ? pb_ftrace_update(live) : 0;
	err = t->used ? register_ftrace_function(&t->ops, live) :
			unregister_ftrace_function(&t->ops, live);
	if (!err)
		t->registered = t->used;
	return err;
}

/* Registers the ops of the triggers that are used, and only those. */
static int install(bool live)
{
	bool any = false, timed = false;
	int err = 0;

	for (struct trigger *t = triggers; t < triggers + MOST_TIMES; t++) {
		any |= t->used;
		timed |= t->used && t->ns;
	}
	/* returns must be hooked whenever calls are opened for them: from before the first ops is
	 * installed until after the last ops is gone */
	if (timed)
		__atomic_store_n(&pb_call_ended, on_end, __ATOMIC_RELAXED);
	if (any)
		pb_tracer_snapshots(true);
	for (struct trigger *t = triggers; !err && t < triggers + MOST_TIMES; t++)
		err = install_one(t, live);
	if (err)
		return err;
	if (!timed)
		__atomic_store_n(&pb_call_ended, NULL, __ATOMIC_RELAXED);
	pb_tracer_snapshots(any);
	return 0;
}

/* Whether the ends of calls are seen in at least one of the functions. */
static bool sees_ends(const struct trigger *t)
{
	for (struct pb_module *m = pb_modules; m < pb_modules + pb_nr_modules; m++)
		for (uint32_t i = 0; m->present && m->sites && i < m->analysis->nr_funcs; i++)
			if (m->sites[i].flags & FTRACE_FL_TIMED && pb_ftrace_wants(&t->ops, m, i))
				return true;
	return false;
}

/* Returns -EINVAL if a new word has a time, but the ends of its calls aren't seen. `before` has the
 * triggers before the write. Triggers that got no new word aren't checked: modules of their words
 * may not be loaded. For the same reason, this isn't used for the user's options. */
static int check_ends(const struct trigger *before)
{
	for (unsigned i = 0; i < MOST_TIMES; i++) {
		const struct trigger *t = &triggers[i];

		if (t->used && t->ns && t->last != before[i].last && !sees_ends(t)) {
			pb_file_error = "the ends of the function's calls can't be seen";
			return -EINVAL;
		}
	}
	return 0;
}

static int write_on(char *text, bool append, bool live)
{
	struct trigger before[MOST_TIMES];
	int err;

	memcpy(before, triggers, sizeof(before));
	ticks_per_ms = ticks_per_ms ? ticks_per_ms : pb_clock_per_ms();
	for (struct trigger *t = triggers; !append && t < triggers + MOST_TIMES; t++)
		t->used = false;
	err = pb_each_word(text, add_word, &live);
	if (!err)
		err = pb_tracer_explained(install(live));
	if (!err && live && !pb_file_options)
		err = check_ends(before);
	if (!err)
		return 0;
	for (unsigned i = 0; i < MOST_TIMES; i++) {
		/* An empty filter selects all functions. So a trigger that was unused keeps the
		 * filter of the refused write until it isn't registered any more. */
		if (before[i].used)
			pb_hash_restore(&triggers[i].ops.filter, before[i].ops.filter);
		triggers[i].first = before[i].first;
		triggers[i].last = before[i].last;
		if (before[i].last)
			before[i].last->next = NULL;
		triggers[i].ns = before[i].ns;
		triggers[i].ticks = before[i].ticks;
		triggers[i].used = before[i].used;
		triggers[i].ops.func = before[i].ops.func;
		triggers[i].ops.timed = before[i].ops.timed;
	}
	install(live);
	return err;
}

static const struct pb_file on_file = { read_on, write_on };

void pb_snapshot_on_register_files(void)
{
	pb_file_register(PB_CF_SNAPSHOT_ON, &on_file);
}
