/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds the functions that eBPF programs attach to. Some errors are reported before the traced
 * program starts: a missing file, or a function that the file doesn't have. If an eBPF program
 * attaches to a function, the function's module gets sites even if the module isn't traced.
 * set_ftrace_notrace then keeps the module's functions out of the trace.
 *
 * Only this file decides which modules a hook (struct record_hook) belongs to. With a module's
 * analysis, an agent receives a bit mask (record_hooks_links): bit i is set if hook i, the agent's
 * link i (abi/progs.h), belongs to the module. If a hook names a path, device and inode are
 * compared, so the program may load the file by another name. Hooks that never attached are
 * reported at the end, with the reason.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/analysis_access.h"
#include "base/clean_text.h"
#include "control/resolve.h"
#include "reader/datadir_writer.h"
#include "recorder/bpf_hooks.h"
#include "recorder/expected.h"
#include "recorder/hints.h"
#include "recorder/modules.h"
#include "recorder/recording.h"
#include "recorder/settings.h"
#include "recorder/target.h"
#include "recorder/texts.h"

/* The result of the search for a hook's functions in some modules. */
struct found {
	const struct pb_analysis *list[RECORD_MAX_LIBRARIES + 1];	/* the modules that were
									 * searched */
	unsigned known;				/* number of modules that were searched */
	unsigned matched, usable, returns;	/* counts of functions; `returns` counts functions
						 * whose return can be hooked */
	int refused;				/* the reason of the last function that was refused;
						 * 0: none was. If functions matched, none is
						 * usable and none was refused, they were compiled
						 * with -finstrument-functions */
};

static const char *soname(const struct record_module *m)
{
	return pb_analysis_string(m->map, m->map->soname);
}

/* True if the hook belongs to module m. If a hook names no module, it belongs to each module that
 * has the function and is loaded when the program starts. */
static bool is_of(const struct record_options *o, unsigned hook, const struct record_module *m)
{
	const struct record_hook *h = &o->hooks[hook];

	if (!*h->module)
		return m->links[hook / 64] >> hook % 64 & 1;
	if (h->by_path)
		return h->dev == m->dev && h->ino == m->ino;
	return !strcmp(h->module, record_base_name(m->path)) || !strcmp(h->module, soname(m));
}

/* Keeps the module's functions out of the trace, unless the module is traced. */
static int leave_out(struct record_options *o, const struct record_module *m, bool is_exe)
{
	char text[PATH_MAX];

	if (is_exe || !strcmp(o->tracer, "nop") || record_module_traced(o, m, false))
		return 0;
	snprintf(text, sizeof(text), "*:mod:%s", soname(m));
	return pb_control_writes_add(&o->writes, PB_CF_SET_FTRACE_NOTRACE, text) ?
	       record_error("too many control writes") : 0;
}

static void count_one(void *arg, unsigned module, uint32_t func)
{
	struct found *f = arg;
	const struct pb_func *fn = &pb_analysis_funcs(f->list[f->known - 1])[func];

	f->matched++;
	if (fn->refused != PB_REFUSED_NOT)
		f->refused = fn->refused;
	if (fn->refused != PB_REFUSED_NOT || fn->kind == PB_SITE_CYG)
		return;
	f->usable++;
	f->returns += pb_func_returns(f->list[f->known - 1], fn);
}

/* Searches module m for the hook's functions, and adds their counts to *f. Returns the number of
 * usable functions in m. On an error, prints one line and returns -1. */
static int look(struct found *f, const struct record_hook *h, const struct record_module *m)
{
	unsigned usable = f->usable;
	char err[256];

	if (f->known == RECORD_MAX_LIBRARIES + 1)
		return 0;
	f->list[f->known++] = m->map;
	if (pb_control_match(&m->map, 1, PB_MATCH_GLOB, h->function, count_one, f, err,
			     sizeof(err)) < 0) {
		record_error("%s: %s", h->section, err);
		return -1;
	}
	return (int)(f->usable - usable);
}

/* If the eBPF program can't be attached, writes the reason to `text` and returns true. */
static bool reason(const struct found *f, const struct record_hook *h, char *text, size_t len)
{
	char near[4 * PB_EDIT_MAX];

	if (f->usable && (!h->returns || f->returns))
		return false;
	if (f->usable) {
		snprintf(text, len,
			 "the function's return can't be hooked: not all exits of the function can "
			 "be patched (list --entry-only has the reason)");
	} else if (f->matched) {
		snprintf(text, len, "can't be probed: %s",
			 f->refused ? record_refused_text(f->refused) :
			 "its module is compiled with -finstrument-functions; the compiler's hooks "
			 "don't get the call's registers");
	} else {
		pb_control_nearest_function(f->list, f->known, h->function, near, sizeof(near));
		snprintf(text, len, *near ? "no such function; did you mean %s?" :
			 "no such function", near);
	}
	return true;
}

/* --- before the program starts --------------------------------------------- */

/* If the hook names a path, checks that the file exists and notes its device and inode. */
static int find_file(struct record_hook *h)
{
	struct stat st;

	if (!strchr(h->module, '/'))
		return 0;
	if (stat(h->module, &st))
		return record_error("%s: %s: %s", h->section, h->module, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return record_error("%s: %s: not a file", h->section, h->module);
	h->by_path = true;
	h->dev = st.st_dev;
	h->ino = st.st_ino;
	return 0;
}

static int resolve(struct record_options *o, unsigned hook, const struct record_known *k,
		   struct record_modules *m)
{
	struct found *f = calloc(1, sizeof(*f));
	struct record_hook *h = &o->hooks[hook];
	const struct record_module *file;
	char text[600];
	int ret = f ? find_file(h) : record_error("out of memory");

	for (unsigned i = 0; i < k->nr && !ret; i++) {
		int usable = !*h->module || is_of(o, hook, k->list[i]) ? look(f, h, k->list[i]) : 0;

		if (usable > 0)
			k->list[i]->links[hook / 64] |= 1ull << hook % 64;
		ret = usable < 0 || (usable && leave_out(o, k->list[i], !i));
	}
	if (!ret && !f->known && h->by_path) {	/* the file may be loaded later, but its functions
						 * can be searched before that */
		file = record_known_file(m, h->module, text, sizeof(text));
		ret = file ? look(f, h, file) < 0 :
		      record_error("%s: %s: %s", h->section, h->module, text);
	}
	/* if a library isn't known and isn't named by a path, it may be loaded later: no error */
	if (!ret && (f->known || !*h->module) && reason(f, h, text, sizeof(text)))
		ret = record_error("%s: %s", h->section, text);
	free(f);
	return ret;
}

void record_hooks_free(struct record_options *o)
{
	for (unsigned i = 0; i < o->nr_hooks; i++) {
		free(o->hooks[i].function);
		free(o->hooks[i].module);
	}
	free(o->hooks);
}

int record_hooks_resolve(struct record_options *o, const struct record_target *t,
			 struct record_modules *m)
{
	struct record_known *k;
	int ret = 0;

	if (!o->nr_hooks)
		return 0;
	if (o->nr_hooks > 64 * PB_MSG_LINKS)
		return record_error("more than %d programs to attach", 64 * PB_MSG_LINKS);
	k = record_known_modules(t, m, true);
	if (!k)
		return 1;
	for (unsigned i = 0; i < o->nr_hooks && !ret; i++)
		ret = resolve(o, i, k, m);
	free(k);
	return ret;
}

/* --- while the program runs, and afterwards --------------------------------- */

bool record_hooks_links(const struct record_options *o, const struct record_module *m,
			uint64_t links[PB_MSG_LINKS])
{
	bool any = false;

	memset(links, 0, sizeof(links[0]) * PB_MSG_LINKS);
	for (unsigned i = 0; i < o->nr_hooks; i++)
		if (is_of(o, i, m)) {
			links[i / 64] |= 1ull << i % 64;
			any = true;
		}
	return any;
}

static void why_never(const struct record_options *o, unsigned hook, const struct record_modules *m,
		      char *text, size_t len)
{
	const struct record_hook *h = &o->hooks[hook];
	struct found *f = calloc(1, sizeof(*f));
	char near[400];

	for (uint32_t i = 0; f && i < m->nr; i++)
		if (m->list[i]->traced && is_of(o, hook, m->list[i]))
			look(f, h, m->list[i]);
	if (f && f->known) {
		if (!reason(f, h, text, len))
			snprintf(text, len, "Patchbay has replaced this function with its own, or "
					    "there was no room for a stub; probe its caller "
					    "instead");
	} else if (h->by_path) {
		snprintf(text, len, "this file was not loaded");
	} else {
		record_hint_library(m, h->module, near, sizeof(near));
		snprintf(text, len, "no library of this name was loaded%s%s%s",
			 *near ? "; did you mean " : "", near, *near ? "?" : "");
	}
	free(f);
}

void record_hooks_never(const struct record_options *o, const struct record_modules *m,
			void (*say)(void *arg, const char *text), void *arg)
{
	char why[600], text[PATH_MAX + 700];

	for (unsigned i = 0; o->attached && i < o->nr_hooks; i++) {
		if (__atomic_load_n(&o->attached[i], __ATOMIC_RELAXED))
			continue;
		why_never(o, i, m, why, sizeof(why));
		snprintf(text, sizeof(text), "%.*s: never attached: %s", PATH_MAX,
			 o->hooks[i].section, why);
		pb_text_clean(text, '?', 0);
		say(arg, text);
	}
}

static void say_hook(void *arg, const char *text)
{
	const struct record_server *s = arg;

	record_error("%s", text);
	pb_datadir_note(s->datadir, text);
}

void record_hint_hooks(const struct record_server *s)
{
	if (!s->progs_error)	/* already reported */
		record_hooks_never(s->options, s->modules, say_hook, (void *)s);
}
