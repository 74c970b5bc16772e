/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cleans text from files and from other processes before it reaches a terminal. It
 * overwrites control characters: those of ASCII, and U+0080..9F in UTF-8 (U+009B begins
 * an escape sequence). Context: any.
 */
#ifndef PB_BASE_CLEAN_TEXT_H
#define PB_BASE_CLEAN_TEXT_H
#include <stdbool.h>
#include <stddef.h>

/* The size in bytes of the control character at p; 0: there is none. */
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

/* Puts `with` over each byte of each control character, except the character `keep`
 * (0: no exception). s may be NULL. */
static inline void pb_text_clean(char *s, char with, char keep)
{
	for (; s && *s; s++)
		for (size_t n = *s == keep ? 0 : pb_text_control(s); n; n--)
			s[n - 1] = with;
}
#endif
