/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control/resolve.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/analysis_access.h"
#include "base/base.h"
#include "base/glob.h"
#include "control/names.h"
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
		char name[512];
		size_t len = strcspn(p, "\n");

		if (len < sizeof(name)) {
			memcpy(name, p, len);
			name[len] = 0;
			ret = raw_and_demangled(name, demangle, fn, arg);
		}
		p += len + (p[len] == '\n');
	}
	return ret;
}

/* --- matching ------------------------------------------------------------ */

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

/* A word that names just this function, quoted against the agent's glob. */
static void put_exact(FILE *f, const char *name, const char *prefix, const char *module)
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

struct job {
	struct matcher matcher;
	const char *prefix, *module;	/* "!" or ""; behind :mod: */
	struct pb_resolved *out;
	FILE *exact;
	bool demangle;
};

static void resolve_module(struct job *j, const struct pb_analysis *a)
{
	for (uint32_t i = 0; i < a->nr_funcs; i++) {
		const struct pb_func *f = pb_analysis_funcs(a) + i;
		bool found = pb_names_each(a, f, j->demangle, match_name, &j->matcher);

		if (!found)
			continue;
		j->out->matched++;
		if (f->refused == PB_REFUSED_NOT)
			j->out->usable++;
		else
			j->out->refused = f->refused;
		put_exact(j->exact, pb_func_name(a, f), j->prefix, j->module);
	}
}

static void resolve_all(struct job *j, const struct pb_analysis *const *modules, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		const char *soname = pb_analysis_string(modules[i], modules[i]->soname);

		if (j->module && !pb_glob_match(j->module, soname))
			continue;
		j->out->module_known = true;
		resolve_module(j, modules[i]);
	}
}

static int compile(struct matcher *m, char *err, size_t errlen)
{
	if (m->match != PB_MATCH_REGEX)
		return 0;
	int ret = regcomp(&m->regex, m->text, REG_EXTENDED | REG_NOSUB);
	if (!ret)
		return 0;
	regerror(ret, &m->regex, err, errlen);
	return -EINVAL;
}

int pb_control_resolve(const struct pb_analysis *const *modules, unsigned nr,
		       enum pb_match match, const char *pattern, struct pb_resolved *out,
		       char *err, size_t errlen)
{
	char *copy = strdup(pattern), *value = NULL, *text = copy, *mod;
	struct job j = { .out = out, .prefix = *pattern == '!' ? "!" : "" };
	size_t len;
	int ret;

	*out = (struct pb_resolved){ 0 };
	snprintf(err, errlen, "out of memory");
	j.exact = copy ? open_memstream(&value, &len) : NULL;
	if (!j.exact) {
		free(copy);
		return -ENOMEM;
	}
	text += *text == '!';
	mod = strstr(text, ":mod:");
	if (mod) {
		*mod = 0;
		j.module = mod + 5;
	}
	out->module_known = !mod;
	if (!*text)
		match = PB_MATCH_GLOB;
	j.matcher = (struct matcher){ .match = match, .text = *text ? text : "*" };
	ret = compile(&j.matcher, err, errlen);
	/* demangled names count where the symbol table's don't match */
	j.demangle = match == PB_MATCH_REGEX;
	if (!ret)
		resolve_all(&j, modules, nr);
	if (!ret && !out->matched && !j.demangle) {
		j.demangle = true;
		resolve_all(&j, modules, nr);
	}
	if (!ret && match == PB_MATCH_REGEX)
		regfree(&j.matcher.regex);
	if (fclose(j.exact) && !ret)
		ret = -ENOMEM;
	free(copy);
	/* what the agent can match by itself goes as it is: it then also holds
	 * for modules that arrive later */
	if (match == PB_MATCH_GLOB && (!j.demangle || !out->matched)) {
		free(value);
		value = strdup(pattern);
	} else if (len && !ret) {
		value[len - 1] = 0;
	}
	out->value = value;
	return ret ? ret : value ? 0 : -ENOMEM;
}
