/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds functions of a running process by their demangled names. The agent can compare a pattern
 * only with the names of the symbol table, so it gets the exact names of the matching functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/glob.h"
#include "control/function_names.h"
#include "control/resolve.h"
#include "module/demangle.h"

/* A word of the value: [!]FUNC[:mod:[!]GLOB] */
struct word {
	char *func, *module;		/* module: NULL if there is none */
	const char *prefix;		/* "!" or "" */
};

static bool parse(struct word *w, const char *text, size_t len)
{
	bool removes = *text == '!';
	char *mod;

	w->prefix = removes ? "!" : "";
	w->module = NULL;
	w->func = strndup(text + removes, len - removes);
	if (!w->func)
		return false;
	mod = (char *)pb_glob_command(w->func, strlen(w->func), PB_GLOB_MODULE);
	if (mod) {
		*mod = 0;
		w->module = mod + strlen(PB_GLOB_MODULE);
	}
	pb_names_open_lists(w->func);
	return true;
}

static bool matches_demangled(const char *pattern, const char *name)
{
	static const enum pb_demangle forms[] = {
		PB_DEMANGLE_SHORT, PB_DEMANGLE_SIMPLE, PB_DEMANGLE_FULL,
	};
	bool found = false;

	for (size_t i = 0; i < pb_array_size(forms) && !found; i++) {
		char *text = pb_demangle(name, forms[i]);

		found = text && pb_glob_match(pattern, text);
		free(text);
	}
	return found;
}

/* Writes the functions that the word matches. A line of `names` is "NAME [MODULE]". Returns their
 * number. If `to` is NULL, compares the word with the names as they are. */
static unsigned find(const struct word *w, const char *names, FILE *to)
{
	unsigned found = 0;
	size_t bytes;

	for (; *names; names += bytes + (names[bytes] == '\n')) {
		char name[4096], module[256] = "";

		bytes = strcspn(names, "\n");
		if (bytes >= sizeof(name) ||
		    sscanf(names, "%4095[^ \n] [%255[^]\n]", name, module) < 1)
			continue;
		if (w->module && !pb_glob_match_module(w->module, module))
			continue;
		if (!(to ? matches_demangled : pb_glob_match)(w->func, name))
			continue;
		found++;
		if (to)
			pb_names_put_exact(to, name, w->prefix, w->module);
	}
	return found;
}

char *pb_control_by_demangled(const char *names, const char *value)
{
	char *text = NULL;
	size_t len, word;
	unsigned replaced = 0;
	FILE *to = open_memstream(&text, &len);

	for (; to && *(value += strspn(value, " \t\n")); value += word) {
		struct word w;
		unsigned found = 0;

		word = strcspn(value, " \t\n");
		if (!parse(&w, value, word))
			break;
		if (*w.func && !find(&w, names, NULL))
			found = find(&w, names, to);
		if (!found)
			fprintf(to, "%.*s ", (int)word, value);
		replaced += found;
		free(w.func);
	}
	if (!to || fclose(to) || *value || !replaced) {
		free(text);
		return NULL;
	}
	return text;
}
