/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Looks patterns up before the program starts, and reports the patterns that match nothing. Such a
 * pattern is probably a typing error.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/analysis_access.h"
#include "control/resolve.h"
#include "recorder/bpf_hooks.h"
#include "recorder/expected.h"
#include "recorder/marks.h"
#include "recorder/modules.h"
#include "recorder/patterns.h"
#include "recorder/settings.h"
#include "recorder/target.h"
#include "recorder/texts.h"

#define LIST_MAX 4000	/* in bytes: if the list of names that would replace a pattern is longer, a
			 * pattern alias (marks.h) replaces the pattern */

struct known {
	const struct pb_analysis *list[RECORD_MAX_LIBRARIES + 1];
	unsigned nr;
	const char *exe;
	bool later;			/* --module may name libraries that are loaded later */
};

/* --- patterns ------------------------------------------------------------ */

static int add(struct record_options *o, enum pb_control_file file, const char *value)
{
	char plain[64];

	value = pb_control_plain(file, value, plain, sizeof(plain));
	if (!pb_control_writes_add(&o->writes, file, value))
		return 0;
	return record_error("the patterns have more than 64 kB; use a glob in place of many names");
}

static enum pb_control_file file_of(const struct record_options *o, char option)
{
	bool graph = !strcmp(o->tracer, "function_graph");

	switch (option) {
	case 'F':
		return graph ? PB_CF_SET_GRAPH_FUNCTION : PB_CF_SET_FTRACE_FILTER;
	case 'N':
		return graph ? PB_CF_SET_GRAPH_NOTRACE : PB_CF_SET_FTRACE_NOTRACE;
	case 'C':
		return PB_CF_GRAPH_CALLERS;
	case 'P':
		return PB_CF_SET_FTRACE_FILTER;
	case RECORD_SNAPSHOT_ON:
		return PB_CF_SNAPSHOT_ON;
	default:
		return PB_CF_SET_FTRACE_NOTRACE;
	}
}

static const char *option_name(const struct record_pattern *p)
{
	static char name[3] = "-?";

	name[1] = p->option;
	return p->option == RECORD_SNAPSHOT_ON ? "--snapshot-on" : name;
}

static int nothing_matches(const struct record_pattern *p, const struct known *k)
{
	char near[4 * PB_EDIT_MAX], where[PATH_MAX];

	pb_control_nearest_function(k->list, k->nr, p->text, near, sizeof(near));
	snprintf(where, sizeof(where), k->nr > 1 ? "%s and its libraries" : "%s", k->exe);
	if (*near)
		return record_error("%s %s: no function in %s matches; did you mean %s?",
				    option_name(p), p->text, where, near);
	return record_error("%s %s: no function in %s matches (see patchbay list%s)",
			    option_name(p), p->text, where,
			    k->later ? "; for a library that is loaded later say FUNC:mod:LIBRARY" :
			    k->nr > 1 ? "" : "; libraries need --module or --all");
}

/* True if the agent must get a pattern alias (a mark, see marks.h) in place of r->value. If the
 * agent can match the pattern itself, r->value is the pattern. Otherwise r->value lists the
 * functions that match. The list is replaced if it is long, or if the pattern is a glob with
 * wildcards, which may match any number of functions. */
static bool wants_mark(const struct record_options *o, const struct record_pattern *p,
		       const struct pb_resolved *r)
{
	/* the names of a module that is loaded later aren't known yet, so the agent can't get a
	 * list */
	if (!r->matched)
		return true;
	return r->listed && (strlen(r->value) > LIST_MAX ||
			     (o->match == PB_MATCH_GLOB && strpbrk(p->text, "*?[")));
}

static int use_mark(struct record_options *o, const struct record_pattern *p, struct pb_resolved *r)
{
	free(r->value);
	r->value = record_marks_add(o, o->match, p->text);
	if (r->value)
		return 0;
	return record_error("%s %s: %s", option_name(p), p->text, errno == E2BIG ?
			    "more than 64 patterns of these kinds: demangled names with wildcards, "
			    "long lists of matches, libraries that are loaded later; join patterns "
			    "with | and use --match=regex" :
			    "out of memory");
}

/* Appends ">MICROSECONDS" to each word of the value. */
static int with_time(struct pb_resolved *r, uint64_t ns)
{
	char time[40], *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return record_error("out of memory");
	pb_control_format_us(ns, time, sizeof(time));
	for (char *w = strtok(r->value, " \t\n"); w; w = strtok(NULL, " \t\n"))
		fprintf(f, "%s%s>%s", ftell(f) ? " " : "", w, time);
	fclose(f);
	free(r->value);
	r->value = text;
	return 0;
}

static int resolve_pattern(struct record_options *o, const struct record_pattern *p,
			   const struct known *k)
{
	static const char including[] = { 'F', 'C', 'P', RECORD_SNAPSHOT_ON, 0 };
	bool includes = strchr(including, p->option) && *p->text != '!';
	struct pb_resolved r;
	char err[256];
	int ret = pb_control_resolve(k->list, k->nr, o->match, p->text, &r, err,
				     sizeof(err));

	if (ret)
		return record_error("%s %s: %s", option_name(p), p->text, err);
	if (!r.matched && r.module_known)
		ret = nothing_matches(p, k);
	else if (!r.usable && r.matched && includes)
		ret = record_error("%s %s: can't be traced: %s", option_name(p), p->text,
				   record_refused_text(r.refused));
	else if (wants_mark(o, p, &r))
		ret = use_mark(o, p, &r);
	if (!ret && r.value && p->ns)
		ret = with_time(&r, p->ns);
	if (!ret && r.value)
		ret = add(o, file_of(o, p->option), r.value);
	free(r.value);
	return ret;
}

static int resolve_patterns(struct record_options *o, const struct record_target *t,
			    struct record_modules *m)
{
	struct known k = { .exe = t->exe, .later = o->nr_modules };
	struct record_known *all;
	int ret;

	if (!o->nr_patterns)
		return 0;
	all = record_known_modules(t, m, o->all || o->nr_modules);
	if (!all)
		return 1;
	for (unsigned i = 0; i < all->nr; i++)
		if (!i || record_module_traced(o, all->list[i], false))
			k.list[k.nr++] = all->list[i]->map;
	ret = 0;
	for (unsigned i = 0; i < o->nr_patterns && !ret; i++)
		ret = resolve_pattern(o, &o->patterns[i], &k);
	free(all);
	return ret;
}

/* The agent applies the writes in the order in which this function adds them. The tracer is written
 * last, so everything else is set when the tracer starts. */
int record_filters_resolve(struct record_options *o, const struct record_target *t,
			   struct record_modules *m)
{
	int ret = 0;

	if (o->clock)
		ret = add(o, PB_CF_TRACE_CLOCK, o->clock);
	if (!ret)
		ret = resolve_patterns(o, t, m);
	if (!ret)
		ret = record_hooks_resolve(o, t, m);
	if (o->size && !ret)
		ret = add(o, PB_CF_SET_FTRACE_SIZE, o->size);
	if (o->depth && !ret)
		ret = add(o, PB_CF_MAX_GRAPH_DEPTH, o->depth);
	if (o->thresh[0] && !ret)
		ret = add(o, PB_CF_TRACING_THRESH, o->thresh);
	for (unsigned i = 0; i < o->nr_sets && !ret; i++)
		ret = add(o, o->sets[i].file, o->sets[i].value);
	if (!ret)
		ret = add(o, PB_CF_CURRENT_TRACER, o->tracer);
	return ret;
}
