/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Demangles names with libiberty, within a limit of memory, and shortens the result for the views.
 * Long lists of template arguments are left out, and " [clone .part.0]" becomes ".part.0".
 */
#include "module/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean_text.h"

#define NAME_MAX_BYTES	4096	/* longer names are shown as they are */
#define TEXT_MAX_BYTES	65536	/* names whose demangled text would be longer are shown as they
				 * are */
#define LIST_MAX	32	/* a list of template arguments is long if it has more characters
				 * than this */
#define DEPTH_MAX	16	/* limit on the levels of nested long lists that are shown */

bool pb_demangle_style(const char *text, enum pb_demangle *how)
{
	static const struct { const char *name; enum pb_demangle how; } styles[] = {
		{ "simple", PB_DEMANGLE_SIMPLE }, { "full", PB_DEMANGLE_FULL },
		{ "no", PB_DEMANGLE_NO },
	};

	for (size_t i = 0; i < sizeof(styles) / sizeof(styles[0]); i++)
		if (!strcmp(text, styles[i].name)) {
			*how = styles[i].how;
			return true;
		}
	return false;
}

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Returns how many characters at p belong to an operator's name ("operator<<", "operator->", ...).
 * These characters are not brackets. */
static size_t operator_length(const char *start, const char *p)
{
	if (p - start < 8 || strncmp(p - 8, "operator", 8) || (p - start > 8 && word_char(p[-9])))
		return 0;
	return strspn(p, "<>=-*");
}

/* Returns an array with an element for each character. For a '<' that is not part of an operator's
 * name, the element is the index after the '>' that closes it. The element of any other character
 * is 0. The element of a '<' that is never closed is 0, too. The caller frees the array. */
static uint32_t *list_ends(const char *text)
{
	uint32_t *ends = calloc(strlen(text) + 1, sizeof(*ends));
	/* The index of the innermost open list, plus 1; 0: no list is open. While a list is open,
	 * its element of ends[] holds the index of the list around it, plus 1. */
	uint32_t open = 0, outer;

	for (const char *p = text; ends && *p; p++) {
		size_t n = operator_length(text, p);

		if (n) {
			p += n - 1;
		} else if (*p == '<') {
			ends[p - text] = open;
			open = (uint32_t)(p - text) + 1;
		} else if (*p == '>' && p > text && p[-1] != '-' && open) {
			outer = ends[open - 1];
			ends[open - 1] = (uint32_t)(p - text) + 1;
			open = outer;
		}
	}
	for (; ends && open; open = outer) {
		outer = ends[open - 1];
		ends[open - 1] = 0;
	}
	return ends;
}

/* True if a list of template arguments begins at p: after a word, after Rust's "::", or after an
 * operator and a blank. Any other bracket belongs to Rust's <Type as Trait>, which isn't left
 * out. */
static bool begins_list(const char *start, const char *p)
{
	if (*p != '<' || p == start)
		return false;
	if (word_char(p[-1]))
		return true;
	return p - start > 1 && ((p[-1] == ':' && p[-2] == ':') ||
				 (p[-1] == ' ' && strchr("<>=-", p[-2])));
}

static void leave_lists_out(char *name, unsigned depth)
{
	uint32_t *ends = list_ends(name), open[DEPTH_MAX];
	unsigned nr_open = 0;
	const char *p = name;
	char *to = name;

	while (ends && *p) {
		uint32_t at = (uint32_t)(p - name);
		size_t n = operator_length(name, p);
		bool is_long = !n && begins_list(name, p) && ends[at] &&
			       ends[at] - at > LIST_MAX + 2;

		while (nr_open && at >= open[nr_open - 1])
			nr_open--;
		if (n) {
			memmove(to, p, n);
			to += n;
			p += n;
		} else if (is_long && nr_open == depth) {
			memcpy(to, "<...>", 5);
			to += 5;
			p = name + ends[at];
		} else {
			if (is_long)
				open[nr_open++] = ends[at];
			*to++ = *p++;
		}
	}
	if (ends)
		*to = 0;
	free(ends);
}

struct text {
	char *v;
	size_t len;
	jmp_buf too_long;
};

/* Called by the demangler. If longjmp() leaves the demangler, some memory may be lost, but only for
 * Rust names with punycode. For all other names, the demangler allocates no memory. */
static void add_text(const char *s, size_t n, void *arg)
{
	struct text *t = arg;

	if (n >= TEXT_MAX_BYTES - t->len)
		longjmp(t->too_long, 1);
	if (n)		/* s may be NULL if n is 0 */
		memcpy(t->v + t->len, s, n);
	t->len += n;
}

/* Does what cplus_demangle() does, but with a limit: some names of a hundred bytes demangle to
 * terabytes, because their substitutions double at each step. */
static char *demangle(const char *name, int options)
{
	struct text *t = malloc(sizeof(*t));
	char *v = malloc(TEXT_MAX_BYTES), *text = NULL;

	if (t && v) {
		t->v = v;
		t->len = 0;
		if (!setjmp(t->too_long)) {
			bool done = rust_demangle_callback(name, options, add_text, t);

			if (!done) {
				t->len = 0;
				done = cplus_demangle_v3_callback(name, options, add_text, t);
			}
			v[t->len] = 0;
			/* the text may go to a terminal, so an unprintable name stays mangled */
			text = done && pb_text_printable(v) ? strdup(v) : NULL;
		}
	}
	free(v);
	free(t);
	return text;
}

/* Demangling without parameters drops " [clone .part.0]". This function appends ".part.0" instead,
 * because the names of clones of C functions end in the same way. */
static char *add_clone(char *text, const char *name)
{
	char *full = strchr(name, '.') ? demangle(name, DMGL_AUTO | DMGL_PARAMS) : NULL;
	const char *p = full ? strstr(full, " [clone ") : NULL;
	char *longer = p ? realloc(text, strlen(text) + strlen(p) + 1) : NULL;
	char *to;

	if (longer) {
		text = longer;
		to = text + strlen(text);
		for (; !strncmp(p, " [clone ", 8); p += *p == ']')
			for (p += 8; *p && *p != ']'; p++)
				*to++ = *p;
		*to = 0;
	}
	free(full);
	return text;
}

static char *demangle_name(const char *name, enum pb_demangle how)
{
	char *text;

	/* only C++ and Rust names */
	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R') || how == PB_DEMANGLE_NO ||
	    strnlen(name, NAME_MAX_BYTES) == NAME_MAX_BYTES)
		return NULL;
	text = demangle(name, how == PB_DEMANGLE_FULL ? DMGL_AUTO | DMGL_PARAMS | DMGL_ANSI :
							DMGL_AUTO);
	if (text && how != PB_DEMANGLE_FULL)
		text = add_clone(text, name);
	return text;
}

char *pb_demangle_depth(const char *name, enum pb_demangle how, unsigned depth)
{
	char *text = demangle_name(name, how);

	if (text)
		leave_lists_out(text, depth < DEPTH_MAX ? depth : DEPTH_MAX);
	return text;
}

char *pb_demangle(const char *name, enum pb_demangle how)
{
	return how == PB_DEMANGLE_SIMPLE ? pb_demangle_depth(name, PB_DEMANGLE_SHORT, 0) :
					   demangle_name(name, how);
}
