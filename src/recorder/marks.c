/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Matches patterns that an agent can't match: an agent has only the names of the symbol table,
 * doesn't demangle them, and doesn't know regular expressions. When an agent requests a module's
 * analysis, the recorder adds an alias to each function that matches a pattern. This alias is the
 * pattern's mark ("=ns::*", PB_ALIAS_MARK). The control file gets the mark in place of the pattern.
 * So any number of functions may match, and the pattern also applies to modules that are loaded
 * later.
 *
 * The analysis with marks is a copy for agents. The data directory gets the original.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/analysis_access.h"
#include "abi/analysis_check.h"
#include "base/base.h"
#include "base/glob.h"
#include "recorder/marks.h"
#include "recorder/modules.h"
#include "recorder/settings.h"

#define MARKS_MAX 64		/* limit of the marks, because a uint64_t has a bit for each mark */

static bool is_known(const struct record_options *o, const char *text)
{
	for (unsigned i = 0; i < o->nr_marks; i++)
		if (!strcmp(o->marks[i].text, text))
			return true;
	return false;
}

/* Makes the mark's text, a word for the control file. It has no blanks and no command, and no other
 * mark has the same text. A colon at its end isn't kept (if a long pattern was cut off there):
 * together with the colon of a command, it would look like the "::" of a name. */
static void make_text(const struct record_options *o, struct record_mark *m)
{
	int len = snprintf(m->text, sizeof(m->text), "%c%.160s", PB_ALIAS_MARK, m->pattern);

	for (char *p = m->text; *p; p++)
		if ((unsigned char)*p <= ' ' || (*p == ':' && p == m->text + len - 1))
			*p = '_';
	if (is_known(o, m->text))
		snprintf(m->text + strlen(m->text), sizeof(m->text) - strlen(m->text), "'%u",
			 o->nr_marks);
}

char *record_marks_add(struct record_options *o, enum pb_match match, const char *pattern)
{
	bool removes = *pattern == '!';
	const char *mod = pb_glob_command(pattern, strlen(pattern), PB_GLOB_MODULE);
	struct record_mark *list = realloc(o->marks, (o->nr_marks + 1) * sizeof(*list)), *m;
	char *value;

	if (!list)
		return NULL;
	o->marks = list;
	if (o->nr_marks == MARKS_MAX) {
		errno = E2BIG;
		return NULL;
	}
	m = &list[o->nr_marks];
	*m = (struct record_mark){ .match = match, .pattern = strdup(pattern + removes) };
	if (!m->pattern)
		return NULL;
	if (mod) {
		char *cut = m->pattern + (mod - pattern - removes);

		*cut = 0;
		m->module = cut + strlen(PB_GLOB_MODULE);
	}
	make_text(o, m);
	o->nr_marks++;
	return asprintf(&value, "%s%s%s", removes ? "!" : "", m->text, mod ? mod : "") < 0 ? NULL :
	       value;
}

void record_marks_free(struct record_options *o)
{
	for (unsigned i = 0; i < o->nr_marks; i++)
		free(o->marks[i].pattern);
	free(o->marks);
}

/* --- the marks of a module ----------------------------------------------- */

struct marking {
	uint64_t *marks;	/* for each function: a bit for each element of o->marks */
	uint64_t bit;
};

static void mark(void *arg, unsigned module, uint32_t func)
{
	struct marking *k = arg;

	k->marks[func] |= k->bit;
}

static bool find(const struct record_options *o, const struct record_module *m, uint64_t *marks)
{
	struct marking k = { .marks = marks };
	char err[256];
	int found = 0;

	for (unsigned i = 0; i < o->nr_marks && found >= 0; i++) {
		const char *module = o->marks[i].module;
		int ret;

		if (module && !pb_glob_match_module(module, pb_analysis_string(m->map,
									       m->map->soname)))
			continue;
		k.bit = 1ull << i;
		ret = pb_control_match(&m->map, 1, o->marks[i].match, o->marks[i].pattern, mark, &k,
				       err, sizeof(err));
		found = ret < 0 ? ret : found + (ret > 0);
	}
	return found > 0;
}

/* Writes the new alias strings, "a\nb\n". A string has a function's aliases and the texts of its
 * marks. Functions without aliases often have the same marks. If two successive marked functions
 * without aliases have the same marks, they share one string. */
static bool put_aliases(FILE *f, const struct record_options *o, const struct pb_analysis *a,
			struct pb_func *funcs, const uint64_t *marks)
{
	uint64_t last = 0;
	uint32_t last_at = 0;

	for (uint32_t i = 0; i < a->nr_funcs; i++) {
		const char *own = pb_analysis_string(a, funcs[i].aliases);
		bool shares = !funcs[i].aliases;
		long at = ftell(f);

		if (!marks[i])
			continue;
		if (at < 0 || at > INT32_MAX)
			return false;
		if (shares && marks[i] == last) {
			funcs[i].aliases = last_at;
			continue;
		}
		fputs(shares ? "" : own, f);
		if (!shares && *own && own[strlen(own) - 1] != '\n')
			putc('\n', f);
		for (unsigned k = 0; k < o->nr_marks; k++)
			if (marks[i] >> k & 1)
				fprintf(f, "%s\n", o->marks[k].text);
		putc(0, f);
		funcs[i].aliases = (uint32_t)at;
		if (shares) {
			last = marks[i];
			last_at = (uint32_t)at;
		}
	}
	return true;
}

/* Returns a copy of the analysis with the new alias strings. The table of all strings moves to the
 * copy's end, because it has become longer. The caller frees the copy. */
static struct pb_analysis *marked_copy(const struct record_options *o,
				       const struct record_module *m, const uint64_t *marks)
{
	const struct pb_analysis *a = m->map;
	size_t nr = (size_t)a->nr_funcs * sizeof(struct pb_func), len = 0;
	struct pb_func *funcs = malloc(nr);
	struct pb_analysis *copy = NULL;
	char *strings = NULL;
	FILE *f = open_memstream(&strings, &len);
	bool ok = funcs && f;

	if (ok) {
		memcpy(funcs, pb_analysis_funcs(a), nr);
		fwrite(pb_analysis_string(a, 0), a->strings_size, 1, f);
		ok = put_aliases(f, o, a, funcs, marks);
	}
	if (f && fclose(f))
		ok = false;
	copy = ok ? malloc(a->size + len) : NULL;
	if (copy) {
		memcpy(copy, a, a->size);
		memcpy((char *)copy + a->funcs_offset, funcs, nr);
		memcpy((char *)copy + a->size, strings, len);
		copy->strings_offset = a->size;
		copy->strings_size = len;
		copy->size = a->size + len;
	}
	free(strings);
	free(funcs);
	return copy;
}

/* Makes a sealed memory file of the analysis, so that agents can't change it. */
static int publish(const struct pb_analysis *a)
{
	int fd = memfd_create("patchbay-analysis", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t done = 0;

	while (fd >= 0 && done < a->size) {
		ssize_t n = write(fd, (const char *)a + done, a->size - done);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (fd >= 0 && (done < a->size ||
			fcntl(fd, F_ADD_SEALS,
			      F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int record_marks_apply(const struct record_options *o, struct record_module *m)
{
	uint64_t *marks;
	int ret = 0;

	if (!o->nr_marks || m->marked)
		return 0;
	m->marked = true;
	marks = calloc(m->map->nr_funcs + 1ul, sizeof(*marks));
	if (!marks)
		return -ENOMEM;
	if (find(o, m, marks)) {
		struct pb_analysis *copy = marked_copy(o, m, marks);

		ret = !copy ? -ENOMEM : pb_analysis_check(copy, copy->size);
		if (!ret) {
			m->marked_fd = publish(copy);
			m->marked_size = copy->size;
			ret = m->marked_fd < 0 ? -ENOMEM : 0;
		}
		free(copy);
	}
	free(marks);
	return ret;
}
