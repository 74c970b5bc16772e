/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cleans text from files and from other processes before it reaches a terminal. Overwrites control
 * characters: ASCII's, and U+0080..9F in UTF-8, since U+009B begins an escape sequence. Context:
 * any.
 */
#ifndef PB_BASE_CLEAN_TEXT_H
#define PB_BASE_CLEAN_TEXT_H
#include <stdbool.h>
#include <stddef.h>

/* Returns the size in bytes of the control character at p. 0: there is no control character at
 * p. */
static inline size_t pb_text_control(const char *p)
{
	const unsigned char *c = (const unsigned char *)p;

	if (c[0] < ' ' || c[0] == 0x7f)
		return c[0] != 0;
	return c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0 ? 2 : 0;
}

static inline bool pb_text_printable(const char *s)
{
	while (*s && !pb_text_control(s))
		s++;
	return !*s;
}

/* Overwrites each byte of each control character with `with`. If `keep` isn't 0, leaves the
 * character `keep` alone. s may be NULL. */
static inline void pb_text_clean(char *s, char with, char keep)
{
	for (; s && *s; s++)
		for (size_t n = *s == keep ? 0 : pb_text_control(s); n; n--)
			s[n - 1] = with;
}
#endif
