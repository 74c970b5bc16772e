/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds names that are like a pattern, to suggest them if the pattern matches nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/analysis_access.h"
#include "base/base.h"
#include "base/glob.h"
#include "control/function_names.h"
#include "control/resolve.h"

#define NEAREST 3

unsigned pb_edit_distance(const char *a, const char *b, unsigned max)
{
	unsigned rows[3][PB_EDIT_MAX + 1];
	unsigned *prev2 = rows[0], *prev = rows[1], *row = rows[2];
	size_t la = strlen(a), lb = strlen(b);

	if (la > PB_EDIT_MAX || lb > PB_EDIT_MAX || (la > lb ? la - lb : lb - la) > max)
		return max + 1;
	/* row[j]: the fewest edits that turn the first i characters of a into the first j of b.
	 * Each row is made from the two rows before it, because a swap consumes two characters of
	 * each text. */
	for (size_t j = 0; j <= lb; j++)
		prev[j] = (unsigned)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned least = row[0] = (unsigned)i;

		for (size_t j = 1; j <= lb; j++) {
			unsigned d = prev[j - 1] + (a[i - 1] != b[j - 1]);

			d = d < prev[j] + 1 ? d : prev[j] + 1;
			d = d < row[j - 1] + 1 ? d : row[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    d > prev2[j - 2] + 1)
				d = prev2[j - 2] + 1;
			row[j] = d;
			least = d < least ? d : least;
		}
		if (least > max)
			return max + 1;
		unsigned *free_row = prev2;
		prev2 = prev;
		prev = row;
		row = free_row;
	}
	return prev[lb] > max ? max + 1 : prev[lb];
}

struct nearest {
	const char *pattern;		/* as the user wrote it, without a leading '!' */
	size_t len;			/* of the pattern without :mod: */
	char text[PB_EDIT_MAX + 1];	/* the pattern without its wildcards */
	unsigned max, nr;
	unsigned distance[NEAREST];
	char name[NEAREST][PB_EDIT_MAX + 1];
};

/* Keeps the name if it is one of the nearest names. If the text has at least 3 characters, a name
 * that contains the text counts as near, even if the name has many other characters. The part of
 * the pattern before :mod: is no suggestion. */
static void consider(struct nearest *n, const char *name)
{
	unsigned d = pb_edit_distance(n->text, name, n->max), i;

	if (d > n->max && strlen(n->text) >= 3 && strcasestr(name, n->text))
		d = n->max;
	if (d > n->max || strlen(name) > PB_EDIT_MAX ||
	    (!strncmp(name, n->pattern, n->len) && !name[n->len]))
		return;
	for (i = 0; i < n->nr; i++)
		if (!strcmp(n->name[i], name))
			return;
	for (i = n->nr < NEAREST ? n->nr++ : NEAREST - 1; i && n->distance[i - 1] > d; i--) {
		n->distance[i] = n->distance[i - 1];
		memcpy(n->name[i], n->name[i - 1], sizeof(n->name[i]));
	}
	if (i == NEAREST - 1 && n->nr == NEAREST && n->name[i][0] && n->distance[i] <= d)
		return;
	n->distance[i] = d;
	snprintf(n->name[i], sizeof(n->name[i]), "%s", name);
}

/* Considers a name. Leaves out mangled names, since no user types them. Leaves out names with
 * parameters, since parameters only add to the distance. */
static int each_name(void *arg, const char *name, enum pb_name_kind kind)
{
	bool mangled = name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');

	if (kind == PB_NAME_SHORT || (kind == PB_NAME_RAW && !mangled))
		consider(arg, name);
	return 0;
}

/* Takes the pattern's text, without wildcards and :mod:. Returns false if the remaining text is too
 * short. */
static bool begin(struct nearest *n, const char *pattern)
{
	const char *end = pb_glob_command(pattern, strlen(pattern), PB_GLOB_MODULE);
	size_t k = 0;

	*n = (struct nearest){ .pattern = pattern + (*pattern == '!') };
	n->len = end ? (size_t)(end - n->pattern) : strlen(n->pattern);
	for (const char *p = n->pattern; *p && p != end && k < PB_EDIT_MAX; p++)
		if (!strchr("*?[]^$\\", *p))
			n->text[k++] = *p;
	n->max = k > 12 ? 4 : (unsigned)k / 3;
	return k && n->max;
}

static void print(const struct nearest *n, char *out, size_t len)
{
	*out = 0;
	for (unsigned i = 0; i < n->nr; i++) {
		size_t at = strlen(out);

		snprintf(out + at, len - at, "%s%s",
			 !i ? "" : i + 1 == n->nr ? " or " : ", ", n->name[i]);
	}
}

void pb_control_nearest_function(const struct pb_analysis *const *modules, unsigned nr,
				 const char *pattern, char *out, size_t len)
{
	struct nearest n;

	nr = begin(&n, pattern) ? nr : 0;
	for (unsigned m = 0; m < nr; m++)
		for (uint32_t i = 0; i < modules[m]->nr_funcs; i++)
			pb_names_each(modules[m], pb_analysis_funcs(modules[m]) + i, true,
				      each_name, &n);
	print(&n, out, len);
}

void pb_control_nearest_name(const char *names, const char *pattern, char *out, size_t len)
{
	char name[PB_EDIT_MAX + 1];
	struct nearest n;
	size_t bytes;

	if (!begin(&n, pattern))
		names = "";
	for (; *names; names += bytes + (names[bytes] == '\n')) {
		bytes = strcspn(names, "\n");
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(names, " \n"), names);
		consider(&n, name);
	}
	print(&n, out, len);
}
