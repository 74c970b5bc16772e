/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions that eBPF programs are for: where they are is settled before the program
 * starts, and their modules get sites, too; what isn't to be traced of these is left out
 * by set_ftrace_notrace.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/analysis_access.h"
#include "cli/record.h"
#include "control/resolve.h"

struct hooks {
	struct record_hook *list;
	unsigned nr;
};

static const char *soname(const struct record_module *m)
{
	return pb_analysis_string(m->map, m->map->soname);
}

static bool is_of(const struct record_hook *h, const struct record_module *m)
{
	return !*h->module || !strcmp(record_base_name(h->module), record_base_name(m->path)) ||
	       !strcmp(record_base_name(h->module), soname(m));
}

static int add(struct hooks *to, const struct record_hook *h, const char *module)
{
	struct record_hook *list = realloc(to->list, (to->nr + 1) * sizeof(*list));

	if (!list)
		return record_error("out of memory");
	to->list = list;
	list[to->nr] = *h;
	list[to->nr++].module = module;
	return 0;
}

static int leave_out(struct record_options *o, const struct record_module *m, bool is_exe)
{
	char text[PATH_MAX];

	if (is_exe || !strcmp(o->tracer, "nop") || record_module_traced(o, m, false))
		return 0;
	snprintf(text, sizeof(text), "*:mod:%s", soname(m));
	return pb_control_writes_add(&o->writes, PB_CF_SET_FTRACE_NOTRACE, text) ?
	       record_error("too many control writes") : 0;
}

struct returning {
	const struct pb_analysis *module;
	unsigned nr;
};

static void count_returning(void *arg, unsigned module, uint32_t func)
{
	const struct pb_func *f = &pb_analysis_funcs(((struct returning *)arg)->module)[func];

	((struct returning *)arg)->nr += f->refused == PB_REFUSED_NOT && !(f->flags & PB_FUNC_ENTRY_ONLY);
}

/* Functions that look at their return address, setjmp and kin are watched at their entries only. */
static unsigned returning(const struct record_hook *h, const struct pb_analysis *m)
{
	struct returning r = { .module = m };
	char err[256];

	pb_control_match(&m, 1, PB_MATCH_GLOB, h->function, count_returning, &r, err, sizeof(err));
	return r.nr;
}

/* One hook: as many as modules that have its function. */
static int resolve(struct record_options *o, const struct record_hook *h, const struct record_known *k,
		   struct hooks *to)
{
	const struct pb_analysis *list[RECORD_MAX_LIBRARIES + 1];
	unsigned known = 0, matched = 0, usable = 0, returns = 0;
	char near[4 * PB_EDIT_MAX], err[256];
	int refused = 0;

	for (unsigned i = 0; i < k->nr; i++) {
		struct pb_resolved r;
		int ret;

		if (!is_of(h, k->list[i]))
			continue;
		list[known++] = k->list[i]->map;
		ret = pb_control_resolve(&k->list[i]->map, 1, PB_MATCH_GLOB, h->function, &r, err, sizeof(err));
		if (ret)
			return record_error("%s: %s", h->section, err);
		free(r.value);
		matched += r.matched;
		usable += r.usable;
		returns += h->returns ? returning(h, k->list[i]->map) : 0;
		refused = r.refused ? r.refused : refused;
		if (r.usable && (leave_out(o, k->list[i], !i) || add(to, h, soname(k->list[i]))))
			return 1;
	}
	if (usable && h->returns && !returns)
		return record_error("%s: its return can't be watched: it may look at its return address, or return "
				    "twice", h->section);
	if (usable)
		return 0;
	if (matched)
		return record_error("%s: can't be probed: %s", h->section, record_refused_text(refused));
	if (!known)	/* a library that comes later, perhaps */
		return add(to, h, record_base_name(h->module));
	pb_control_nearest_function(list, known, h->function, near, sizeof(near));
	return record_error(*near ? "%s: no such function; did you mean %s?" : "%s: no such function", h->section,
			    near);
}

int record_hooks_resolve(struct record_options *o, const struct record_target *t, struct record_modules *m)
{
	struct hooks to = { 0 };
	struct record_known *k;
	int ret = 0;

	if (!o->nr_hooks)
		return 0;
	k = record_known_modules(t, m, true);
	if (!k)
		return 1;
	for (unsigned i = 0; i < o->nr_hooks && !ret; i++)
		ret = resolve(o, &o->hooks[i], k, &to);
	free(k);
	free(o->hooks);
	o->hooks = to.list;
	o->nr_hooks = to.nr;
	return ret;
}

bool record_hooks_want(const struct record_options *o, const struct record_module *m)
{
	for (unsigned i = 0; i < o->nr_hooks; i++)
		if (is_of(&o->hooks[i], m))
			return true;
	return false;
}
