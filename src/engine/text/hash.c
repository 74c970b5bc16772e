/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Filters: lists of patterns for functions, in the order in which the patterns were written. They
 * are called hashes after the kernel's struct ftrace_hash, but they are lists. */
#include <asm/errno.h>
#include "engine/files.h"
#include "engine/text/ftrace.h"
#include "abi/analysis_access.h"
#include "base/glob.h"
#include "base/mem.h"

struct pb_pattern {
	struct pb_pattern *next;
	const char *function;	/* a glob for the function's name */
	const char *module;	/* for pb_glob_match_module(), or NULL */
	bool remove, exact;
};

/* Returns whether the hash is empty. A hash that has only removals ("!name") counts as empty. An
 * empty filter selects all functions. An empty notrace hash excludes no function. */
bool pb_hash_empty(const struct ftrace_hash *h)
{
	for (const struct pb_pattern *p = h->first; p; p = p->next)
		if (!p->remove)
			return false;
	return true;
}

static bool module_matches(const struct pb_pattern *p, const struct pb_module *m)
{
	return !p->module ||
	       pb_glob_match_module(p->module,
				    pb_analysis_string(m->analysis, m->analysis->soname));
}

static bool name_matches(const struct pb_pattern *p, const char *name, size_t n)
{
	if (!p->exact)
		return pb_glob_match_n(p->function, name, n);
	return strlen(p->function) == n && !memcmp(p->function, name, n);
}

/* Whether the pattern matches the function's name or one of its aliases. An alias that begins
 * with PB_ALIAS_MARK comes from the recorder, and stands for a pattern that the agent can't match.
 * Only an exact pattern matches such an alias. */
static bool matches(const struct pb_pattern *p, const struct pb_module *m, uint32_t func)
{
	const struct pb_func *f = pb_analysis_funcs(m->analysis) + func;
	const char *a = pb_func_name(m->analysis, f);

	if (!module_matches(p, m))
		return false;
	if (name_matches(p, a, strlen(a)))
		return true;
	if (!f->aliases)
		return false;
	for (a = pb_analysis_string(m->analysis, f->aliases); *a;) {
		size_t n = 0;

		while (a[n] && a[n] != '\n')
			n++;
		if ((*a != PB_ALIAS_MARK || p->exact) && name_matches(p, a, n))
			return true;
		a += n + (a[n] == '\n');
	}
	return false;
}

bool pb_hash_has(const struct ftrace_hash *h, const struct pb_module *m, uint32_t func)
{
	bool has = false;

	for (const struct pb_pattern *p = h->first; p; p = p->next)
		if (has == p->remove && matches(p, m, func))
			has = !p->remove;
	return has;
}

static bool is_glob(const char *s)
{
	for (; *s; s++)
		if (*s == '*' || *s == '?' || *s == '[' || *s == '\\')
			return true;
	return false;
}

/* Parses "[!]function[:mod:[!]module]". The pattern has a copy of the text. */
static struct pb_pattern *parse(const char *text)
{
	size_t n = strlen(text);
	struct pb_pattern *p = pb_arena_alloc(sizeof(*p) + n + 1);
	char *function, *module;

	if (!p)
		return NULL;
	*p = (struct pb_pattern){ .remove = false };
	function = memcpy(p + 1, text, n + 1);
	if (*function == '!') {
		p->remove = true;
		function++;
	}
	module = (char *)pb_glob_command(function, strlen(function), PB_GLOB_MODULE);
	if (module) {
		*module = 0;
		p->module = module + strlen(PB_GLOB_MODULE);
	}
	p->function = *function ? function : "*";
	p->exact = *p->function == PB_ALIAS_MARK || !is_glob(p->function);
	return p;
}

static bool known(const struct pb_pattern *p)
{
	for (uint32_t k = 0; k < pb_nr_modules; k++) {
		const struct pb_module *m = &pb_modules[k];

		if (!m->present || !m->first_site)
			continue;
		for (uint32_t i = 0; i < m->analysis->nr_funcs; i++)
			if (matches(p, m, i))
				return true;
	}
	return false;
}

static bool holds_any(const struct ftrace_hash *h)
{
	for (uint32_t k = 0; k < pb_nr_modules; k++) {
		const struct pb_module *m = &pb_modules[k];

		if (!m->present || !m->first_site)
			continue;
		for (uint32_t i = 0; i < m->analysis->nr_funcs; i++)
			if (pb_hash_has(h, m, i))
				return true;
	}
	return false;
}

/* Set for writes while the program runs, but not for the user's options: each word must match a
 * function. */
static bool must_match;

static int add_word(char *word, void *arg)
{
	struct ftrace_hash *h = arg;
	struct pb_pattern *p;

	if (*word == '#')
		return 0;
	p = parse(word);
	if (!p)
		return -ENOMEM;
	if (must_match && !known(p)) {
		pb_file_error = "no function matches";
		return -EINVAL;
	}
	if (h->last)
		h->last->next = p;
	else
		h->first = p;
	h->last = p;
	return 0;
}

/* Whether one of the patterns waits for a module with functions that it matches. */
static bool waits(const struct ftrace_hash *h)
{
	for (const struct pb_pattern *p = h->first; p; p = p->next)
		if (!p->remove && !known(p))
			return true;
	return false;
}

/* In the kernel a filter is a set of functions, and is empty once the last function is removed. But
 * it isn't empty while it waits for a module (FTRACE_HASH_FL_MOD). So while the program runs, a
 * filter that selects no function, and doesn't wait, becomes empty. no_function: the filter to
 * which patterns were appended already selected no function, although it wasn't empty. This comes
 * from the user's options, and remains so. */
static bool becomes_empty(const struct ftrace_hash *h, bool no_function)
{
	if (!must_match || holds_any(h))
		return false;
	return pb_hash_empty(h) || (!no_function && !waits(h));
}

int pb_hash_write(struct ftrace_hash *h, char *text, bool append, bool live)
{
	struct ftrace_hash new = append ? *h : (struct ftrace_hash){ 0 };
	struct pb_pattern *old_last = new.last;
	bool no_function;
	int err;

	must_match = live && !pb_file_options;
	no_function = must_match && !pb_hash_empty(&new) && !holds_any(&new);
	err = pb_each_word(text, add_word, &new);
	if (err) {
		if (old_last)
			old_last->next = NULL;
		return err;
	}
	*h = becomes_empty(&new, no_function) ? (struct ftrace_hash){ 0 } : new;
	return 0;
}

void pb_hash_restore(struct ftrace_hash *h, struct ftrace_hash before)
{
	if (before.last)
		before.last->next = NULL;
	*h = before;
}

void pb_hash_show(const struct ftrace_hash *h, struct pb_seq *s, const char *if_empty)
{
	if (pb_hash_empty(h)) {
		pb_seq_puts(s, if_empty);
		return;
	}
	for (uint32_t k = 0; k < pb_nr_modules && !pb_seq_full(s); k++) {
		const struct pb_module *m = &pb_modules[k];

		if (!m->present || !m->first_site)
			continue;
		for (uint32_t i = 0; i < m->analysis->nr_funcs && !pb_seq_full(s); i++) {
			if (!pb_hash_has(h, m, i))
				continue;
			pb_seq_puts(s, pb_func_name(m->analysis,
						    pb_analysis_funcs(m->analysis) + i));
			pb_seq_puts(s, "\n");
		}
	}
}
