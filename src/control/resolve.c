/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Looks patterns up in analyses. Finds the functions that match a pattern. If none of them can be
 * traced, finds the reason. */
#include "control/resolve.h"

#include <errno.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/analysis_access.h"
#include "base/base.h"
#include "base/glob.h"
#include "control/function_names.h"
#include "module/demangle.h"

/* --- names --------------------------------------------------------------- */

static int demangled(const char *name, int (*fn)(void *, const char *, enum pb_name_kind),
		     void *arg)
{
	static const struct { enum pb_demangle how; enum pb_name_kind kind; } forms[] = {
		{ PB_DEMANGLE_SHORT, PB_NAME_SHORT }, { PB_DEMANGLE_SIMPLE, PB_NAME_SHORT },
		{ PB_DEMANGLE_FULL, PB_NAME_DEMANGLED },
	};
	int ret = 0;

	for (size_t i = 0; i < pb_array_size(forms) && !ret; i++) {
		char *text = pb_demangle(name, forms[i].how);

		if (!text)
			return 0;
		ret = fn(arg, text, forms[i].kind);
		free(text);
	}
	return ret;
}

static int raw_and_demangled(const char *name, bool demangle,
			     int (*fn)(void *, const char *, enum pb_name_kind), void *arg)
{
	int ret = fn(arg, name, PB_NAME_RAW);

	return ret || !demangle ? ret : demangled(name, fn, arg);
}

int pb_names_each(const struct pb_analysis *a, const struct pb_func *f, bool demangle,
		  int (*fn)(void *arg, const char *name, enum pb_name_kind kind), void *arg)
{
	const char *p = pb_analysis_string(a, f->aliases);
	int ret = raw_and_demangled(pb_func_name(a, f), demangle, fn, arg);

	while (!ret && f->aliases && *p) {
		size_t len = strcspn(p, "\n");
		char *name = strndup(p, len);

		if (name)
			ret = raw_and_demangled(name, demangle, fn, arg);
		free(name);
		p += len + (p[len] == '\n');
	}
	return ret;
}

/* --- matching ------------------------------------------------------------ */

bool pb_control_match_type(const char *text, enum pb_match *match)
{
	static const char *const names[] = {
		[PB_MATCH_GLOB] = "glob", [PB_MATCH_REGEX] = "regex", [PB_MATCH_SIMPLE] = "simple",
	};

	for (unsigned i = 0; i < pb_array_size(names); i++)
		if (!strcmp(text, names[i])) {
			*match = (enum pb_match)i;
			return true;
		}
	return false;
}

struct matcher {
	enum pb_match match;
	const char *text;
	regex_t regex;
};

static bool matches(const struct matcher *m, const char *name)
{
	switch (m->match) {
	case PB_MATCH_REGEX:
		return !regexec(&m->regex, name, 0, NULL, 0);
	case PB_MATCH_SIMPLE:
		return !strcmp(m->text, name);
	default:
		return pb_glob_match(m->text, name);
	}
}

static int match_name(void *arg, const char *name, enum pb_name_kind kind)
{
	return matches(arg, name);
}

/* A parsed pattern, and the function that is called for each match. */
struct job {
	struct matcher matcher;
	char *copy;
	const char *module;		/* the pattern's part after :mod:, or NULL */
	bool demangle, module_known;
	void (*fn)(void *arg, unsigned module, uint32_t func);
	void *arg;
	unsigned matched;
};

void pb_names_open_lists(char *text)
{
	for (char *p = text; (p = strstr(p, "<...>")); p += 3) {
		p[1] = '*';
		memmove(p + 2, p + 4, strlen(p + 4) + 1);
	}
}

static int job_init(struct job *j, enum pb_match match, const char *pattern, char *err,
		    size_t errlen)
{
	char *text, *mod;
	int ret;

	*j = (struct job){ .copy = strdup(pattern) };
	snprintf(err, errlen, "out of memory");
	if (!j->copy)
		return -ENOMEM;
	text = j->copy + (*pattern == '!');
	mod = (char *)pb_glob_command(text, strlen(text), PB_GLOB_MODULE);
	if (mod) {
		*mod = 0;
		j->module = mod + strlen(PB_GLOB_MODULE);
	}
	j->module_known = !mod;
	if (!*text)
		match = PB_MATCH_GLOB;
	if (match == PB_MATCH_GLOB)
		pb_names_open_lists(text);
	j->matcher = (struct matcher){ .match = match, .text = *text ? text : "*" };
	if (match != PB_MATCH_REGEX)
		return 0;
	ret = regcomp(&j->matcher.regex, text, REG_EXTENDED | REG_NOSUB);
	if (!ret)
		return 0;
	regerror(ret, &j->matcher.regex, err, errlen);
	free(j->copy);
	return -EINVAL;
}

static void job_free(struct job *j)
{
	if (j->matcher.match == PB_MATCH_REGEX)
		regfree(&j->matcher.regex);
	free(j->copy);
}

static void run_once(struct job *j, const struct pb_analysis *const *modules, unsigned nr)
{
	for (unsigned m = 0; m < nr; m++) {
		const struct pb_analysis *a = modules[m];

		if (j->module && !pb_glob_match_module(j->module, pb_analysis_string(a, a->soname)))
			continue;
		j->module_known = true;
		for (uint32_t i = 0; i < a->nr_funcs; i++) {
			if (!pb_names_each(a, pb_analysis_funcs(a) + i, j->demangle, match_name,
					   &j->matcher))
				continue;
			j->matched++;
			j->fn(j->arg, m, i);
		}
	}
}

/* Compares the pattern with the names of the symbol table. If no name matches, compares the pattern
 * with demangled names, too. A regular expression is compared with both kinds of names at once. */
static void job_run(struct job *j, const struct pb_analysis *const *modules, unsigned nr)
{
	j->demangle = j->matcher.match == PB_MATCH_REGEX;
	run_once(j, modules, nr);
	if (!j->matched && !j->demangle) {
		j->demangle = true;
		run_once(j, modules, nr);
	}
}

int pb_control_match(const struct pb_analysis *const *modules, unsigned nr, enum pb_match match,
		     const char *pattern, void (*fn)(void *arg, unsigned module, uint32_t func),
		     void *arg, char *err, size_t errlen)
{
	struct job j;
	int ret = job_init(&j, match, pattern, err, errlen);

	if (ret)
		return ret;
	j.fn = fn;
	j.arg = arg;
	job_run(&j, modules, nr);
	job_free(&j);
	return j.matched < INT_MAX ? (int)j.matched : INT_MAX;
}

void pb_names_put_exact(FILE *f, const char *name, const char *prefix, const char *module)
{
	fputs(prefix, f);
	for (; *name; name++) {
		if (strchr("*?[\\", *name))
			putc('\\', f);
		putc(*name, f);
	}
	if (module)
		fprintf(f, ":mod:%s", module);
	putc(' ', f);
}

struct resolving {
	const struct pb_analysis *const *modules;
	const struct job *job;
	const char *prefix;		/* "!" or "" */
	struct pb_resolved *out;
	FILE *exact;
};

static void resolve_one(void *arg, unsigned module, uint32_t func)
{
	struct resolving *r = arg;
	const struct pb_analysis *a = r->modules[module];
	const struct pb_func *f = pb_analysis_funcs(a) + func;

	if (f->refused == PB_REFUSED_NOT)
		r->out->usable++;
	else
		r->out->refused = f->refused;
	pb_names_put_exact(r->exact, pb_func_name(a, f), r->prefix, r->job->module);
}

int pb_control_resolve(const struct pb_analysis *const *modules, unsigned nr,
		       enum pb_match match, const char *pattern, struct pb_resolved *out,
		       char *err, size_t errlen)
{
	struct job j;
	struct resolving r = { modules, &j, *pattern == '!' ? "!" : "", out };
	char *value = NULL;
	size_t len;
	bool as_it_is;
	int ret = job_init(&j, match, pattern, err, errlen);

	*out = (struct pb_resolved){ 0 };
	if (ret)
		return ret;
	r.exact = open_memstream(&value, &len);
	if (!r.exact) {
		job_free(&j);
		return -ENOMEM;
	}
	j.fn = resolve_one;
	j.arg = &r;
	job_run(&j, modules, nr);
	out->matched = j.matched;
	out->module_known = j.module_known;
	if (fclose(r.exact))
		ret = -ENOMEM;
	/* If the agent can match the pattern itself, the agent gets it unchanged. So the pattern
	 * also applies to modules that are loaded later. */
	as_it_is = match == PB_MATCH_GLOB && (!j.demangle || !j.matched);
	out->listed = !as_it_is;
	job_free(&j);
	if (as_it_is) {
		free(value);
		value = strdup(pattern);
	} else if (len && !ret) {
		value[len - 1] = 0;
	}
	out->value = value;
	return ret ? ret : value ? 0 : -ENOMEM;
}
