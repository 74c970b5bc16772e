/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Matches globs without recursion. After a mismatch, only the last '*' has to be tried again. */
#include "base/glob.h"

/* Matches a bracket class. *pp is right after the '['. Returns whether c is in the class, and moves
 * *pp past the closing ']'. If there is no closing ']', the '[' is an ordinary character. In this
 * case *literal is set, and *pp doesn't move. */
static bool match_class(const char **pp, char c, bool *literal)
{
	const char *p = *pp;
	bool inverted = *p == '!', match = false;

	if (inverted)
		p++;
	const char *first = p;
	do {
		unsigned char a = (unsigned char)*p++, b = a;

		if (!a) {
			*literal = true;
			return c == '[';
		}
		if (p[0] == '-' && p[1] && p[1] != ']') {
			b = (unsigned char)p[1];
			p += 2;
		}
		match |= a <= (unsigned char)c && (unsigned char)c <= b;
	} while (*p != ']' || p == first);
	*pp = p + 1;
	*literal = false;
	return match != inverted;
}

/* `end` is the end of the string, or NULL if the string ends with a zero. */
static bool match(const char *pat, const char *str, const char *end)
{
	/* back_pat: right after the last '*' of the pattern. back_str: where the last try to match
	 * the rest of the pattern began in the string. A retry begins one character further */
	const char *back_pat = 0, *back_str = 0;

	for (;;) {
		char c = str == end ? 0 : *str, d = *pat++;
		bool ok, literal;

		str++;
		switch (d) {
		case '?':
			ok = c != 0;
			break;
		case '*':
			if (!*pat)
				return true;
			back_pat = pat;
			back_str = --str;
			continue;
		case '[':
			ok = match_class(&pat, c, &literal) && c;
			break;
		case '\\':
			if (*pat)
				d = *pat++;
			/* fall through */
		default:
			ok = c == d;
			if (ok && !d)
				return true;
		}
		if (ok)
			continue;
		if (!c || !back_pat)
			return false;
		pat = back_pat;
		str = ++back_str;
	}
}

static bool begins(const char *s, const char *end, const char *with)
{
	while (*with)
		if (s == end || *s++ != *with++)
			return false;
	return true;
}

const char *pb_glob_command(const char *pattern, size_t n, const char *command)
{
	const char *end = pattern + n;

	for (const char *p = pattern; p < end; p++) {
		if (*p != ':')
			continue;
		if (p + 1 < end && p[1] == ':')
			p++;
		else if (begins(p, end, command))
			return p;
	}
	return NULL;
}

bool pb_glob_match(const char *pattern, const char *str)
{
	return match(pattern, str, NULL);
}

bool pb_glob_match_n(const char *pattern, const char *str, size_t n)
{
	return match(pattern, str, str + n);
}

bool pb_glob_match_module(const char *pattern, const char *module)
{
	bool inverted = *pattern == '!';

	return pb_glob_match(pattern + inverted, module) != inverted;
}
