/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "module/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES	4096	/* longer names are shown as they are */
#define LIST_MAX	32	/* characters of a template's arguments that are shown */

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

/* The characters of an operator's name that would count as brackets: of
 * "operator<<", "operator->", ... behind the word. */
static size_t operator_length(const char *start, const char *p)
{
	if (p - start < 8 || strncmp(p - 8, "operator", 8) || (p - start > 8 && word_char(p[-9])))
		return 0;
	return strspn(p, "<>=-*");
}

/* Behind the bracket that closes the one at p; NULL: there is none. */
static const char *list_end(const char *start, const char *p)
{
	unsigned depth = 0;

	for (; *p; p++) {
		size_t n = operator_length(start, p);

		if (n) {
			p += n - 1;
		} else if (*p == '<') {
			depth++;
		} else if (*p == '>' && p[-1] != '-' && !--depth) {
			return p + 1;
		}
	}
	return NULL;
}

/* A list of template arguments stands behind a word, Rust's "::", or an
 * operator and a blank. A bracket elsewhere is Rust's <Type as Trait>, which
 * stays. */
static bool begins_list(const char *start, const char *p)
{
	if (*p != '<' || p == start)
		return false;
	if (word_char(p[-1]))
		return true;
	return p - start > 1 && ((p[-1] == ':' && p[-2] == ':') ||
				 (p[-1] == ' ' && strchr("<>=-", p[-2])));
}

static void leave_lists_out(char *name)
{
	const char *p = name, *end;
	char *to = name;

	while (*p) {
		size_t n = operator_length(name, p);

		if (n) {
			memmove(to, p, n);
			to += n;
			p += n;
		} else if (begins_list(name, p) && (end = list_end(name, p)) && end - p > LIST_MAX + 2) {
			memcpy(to, "<...>", 5);
			to += 5;
			p = end;
		} else {
			*to++ = *p++;
		}
	}
	*to = 0;
}

/* Behind a name without parameters there is no "[clone .part.0]": as C's
 * functions have it, it becomes ".part.0". */
static char *add_clone(char *text, const char *name)
{
	char *full = strchr(name, '.') ? cplus_demangle(name, DMGL_AUTO | DMGL_PARAMS) : NULL;
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

char *pb_demangle(const char *name, enum pb_demangle how)
{
	char *text;

	/* C++ and Rust names only: the rest is what it is */
	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R') || how == PB_DEMANGLE_NO ||
	    strnlen(name, NAME_MAX_BYTES) == NAME_MAX_BYTES)
		return NULL;
	text = cplus_demangle(name, how == PB_DEMANGLE_FULL ? DMGL_AUTO | DMGL_PARAMS | DMGL_ANSI :
							     DMGL_AUTO);
	if (text && how != PB_DEMANGLE_FULL)
		text = add_clone(text, name);
	if (text && how == PB_DEMANGLE_SIMPLE)
		leave_lists_out(text);
	return text;
}
