/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Gives hints at the end of a recording, for a user who may have expected more calls. There are
 * hints for four cases: a --module matched no library, a runtime is traced only in part, most of a
 * module's code is in no known function, or the program is a small launcher. A launcher's work is
 * done by libraries, which aren't traced by default.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/agent_name.h"
#include "abi/analysis_access.h"
#include "base/base.h"
#include "base/clean_text.h"
#include "module/elf/runtimes.h"
#include "recorder/hints.h"
#include "recorder/modules.h"
#include "recorder/recording.h"
#include "recorder/settings.h"
#include "recorder/texts.h"

#define FEW_CALLS	1000	/* a launcher itself makes fewer calls than this */
#define LAUNCHER	10	/* a program is a launcher if its libraries have more than LAUNCHER
				 * times as many functions as the program */
#define NAMED		3	/* a hint names at most this many libraries */

static const char *soname(const struct record_module *m)
{
	return pb_analysis_string(m->map, m->map->soname);
}

static bool is_ours(const struct record_module *m)
{
	return pb_is_agent_name(soname(m)) || !strncmp(soname(m), "linux-vdso.so", 13);
}

/* --- a --module that matched nothing ------------------------------------- */

/* Writes to `near` the names of libraries that are similar to the glob. If a library's name begins
 * with the glob's text before its first wildcard, and then has a dot, only this library is
 * suggested: "libc" means libc.so.6, not libcrypto. If `globs` is true, may also suggest a glob. */
static void list_near(const struct record_modules *m, const char *glob, bool globs, char *near,
		      size_t len)
{
	size_t n = strcspn(glob, "*?[");
	char *names = NULL, *first = NULL;
	size_t size;
	FILE *f = open_memstream(&names, &size);

	*near = 0;
	if (!f)
		return;
	for (uint32_t i = 0; i < m->nr; i++) {
		const char *name = soname(m->list[i]);

		if (is_ours(m->list[i]))
			continue;
		if (!first && n && !strncmp(name, glob, n) && name[n] == '.')
			first = strdup(name);
		fprintf(f, "%s\n", name);
	}
	if (!fclose(f) && !first)
		pb_control_nearest_name(names, glob, near, len);
	if (first && globs && !strncmp(first + n, ".so", 3))
		snprintf(near, len, "%s or '%.*s.so*'", first, (int)n, glob);
	else if (first)
		snprintf(near, len, "%s", first);
	free(first);
	free(names);
}

void record_hint_modules(const struct record_server *s)
{
	const struct record_options *o = s->options;
	char near[400], text[800];

	for (unsigned i = 0; i < o->nr_modules; i++) {
		if (o->module_matched[i])
			continue;
		list_near(s->modules, o->modules[i], true, near, sizeof(near));
		snprintf(text, sizeof(text),
			 "--module %.200s: no library that matches was loaded; %s%s%s",
			 o->modules[i], *near ? "did you mean " :
			 "patchbay info lists the libraries that were loaded", near,
			 *near ? "?" : "");
		pb_text_clean(text, '?', 0);
		record_error("%s", text);
		pb_datadir_note(s->datadir, text);
	}
}

void record_hint_library(const struct record_modules *m, const char *name, char *near, size_t len)
{
	list_near(m, name, false, near, len);
}

/* --- runtimes ------------------------------------------------------------ */

void record_hint_runtimes(const struct record_server *s)
{
	const struct record_modules *m = s->modules;

	for (unsigned bit = 0; pb_runtime_name(bit); bit++) {
		const struct record_module *in = NULL;
		char text[600];

		for (uint32_t i = 0; i < m->nr && !in; i++)
			if (m->list[i]->map && m->list[i]->map->runtimes >> bit & 1)
				in = m->list[i];
		if (!in)
			continue;
		snprintf(text, sizeof(text), "%s in %.100s: %s", pb_runtime_name(bit), soname(in),
			 pb_runtime_policy(bit));
		pb_text_clean(text, '?', 0);
		if (!s->options->quiet)
			record_error("%s", text);
		pb_datadir_note(s->datadir, text);
	}
}

/* --- modules without unwind tables and symbols ---------------------------- */

void record_hint_unknown(const struct record_server *s)
{
	const struct record_modules *m = s->modules;
	unsigned printed = 0;

	for (uint32_t i = 0; i < m->nr; i++) {
		const struct pb_analysis *a = m->list[i]->map;
		char text[600], kib[32];

		if (!m->list[i]->traced || !a->unknown_kib)
			continue;
		record_format_number(a->unknown_kib, kib, sizeof(kib));
		snprintf(text, sizeof(text), "%.100s: %s KiB of its code is in no function, "
			 "because neither unwind tables nor symbols describe it; calls there "
			 "aren't recorded", soname(m->list[i]), kib);
		pb_text_clean(text, '?', 0);
		if (!s->options->quiet && printed++ < NAMED)
			record_error("%s", text);
		pb_datadir_note(s->datadir, text);
	}
}

/* --- a launcher ---------------------------------------------------------- */

/* True if the module is a library that most programs load and few users want to trace. */
static bool is_runtime(const struct record_module *m)
{
	static const char *const names[] = {
		"libc.so.", "ld-linux", "libm.so.", "libdl.so.", "libpthread.so.", "librt.so.",
		"libstdc++.so.", "libgcc_s.so.", "libresolv.so.", "libnss_",
	};

	for (unsigned i = 0; i < pb_array_size(names); i++)
		if (!strncmp(soname(m), names[i], strlen(names[i])))
			return true;
	return is_ours(m);
}

static int by_functions(const void *a, const void *b)
{
	const struct record_module *const *x = a, *const *y = b;

	if ((*x)->map->nr_funcs != (*y)->map->nr_funcs)
		return (*x)->map->nr_funcs > (*y)->map->nr_funcs ? -1 : 1;
	return (*x)->number < (*y)->number ? -1 : 1;
}

static void name_libraries(struct record_module **list, unsigned nr)
{
	char names[600] = "", functions[32];

	for (unsigned i = 0; i < nr && i < NAMED; i++) {
		record_format_number(list[i]->map->nr_funcs, functions, sizeof(functions));
		snprintf(names + strlen(names), sizeof(names) - strlen(names),
			 "%s%.100s (%s function%s)", i ? ", " : "", soname(list[i]), functions,
			 pb_plural(list[i]->map->nr_funcs));
	}
	pb_text_clean(names, '?', 0);
	record_error("few calls in the program itself: its libraries weren't traced, %s%s; trace "
		     "one library with --module '%.100s', or all with --all", names,
		     nr > NAMED ? ", ..." : "", soname(list[0]));
}

void record_hint_launcher(const struct record_server *s, uint64_t calls)
{
	const struct record_options *o = s->options;
	const struct record_modules *m = s->modules;
	struct record_module **list = calloc(m->nr + 1ul, sizeof(struct record_module *));
	uint64_t traced = 0, others = 0;
	unsigned nr = 0;

	for (uint32_t i = 0; list && i < m->nr; i++) {
		struct record_module *e = m->list[i];

		if (e->traced) {
			traced += e->map->nr_funcs;
		} else if (!is_runtime(e) && !e->no_numbers) {
			others += e->map->nr_funcs;
			list[nr++] = e;
		}
	}
	/* no hint if the user selected functions, because few calls are then expected */
	if (nr && calls < FEW_CALLS && others > LAUNCHER * traced && !o->nr_patterns &&
	    !o->nr_hooks && !o->size && !o->depth && !o->thresh[0] && strcmp(o->tracer, "nop")) {
		qsort(list, nr, sizeof(*list), by_functions);
		name_libraries(list, nr);
	}
	free(list);
}
