/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory and strings for the agent, which may call nothing of libc. Even without a call in the
 * source, the compiler emits calls of memcpy() and similar functions. So mem.c defines these
 * functions, with hidden visibility. Context: any.
 */
#ifndef PB_MEM_H
#define PB_MEM_H
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

void *memcpy(void *restrict dst, const void *restrict src, size_t n);
void *memmove(void *dst, const void *src, size_t n);
void *memset(void *dst, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);

static inline bool pb_streq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static inline bool pb_has_prefix(const char *s, const char *prefix)
{
	/* memcmp() could read beyond the end of s */
	while (*prefix)
		if (*s++ != *prefix++)
			return false;
	return true;
}

/* Parses a decimal number, which must have only digits. Returns -1 if s is something else, or if
 * the number is near 2^63 or larger. */
int64_t pb_parse_u64(const char *s, size_t len);
/* The next two functions append to buf at *at, but never beyond size - 1. They move *at, and always
 * NUL-terminate buf. */
void pb_put_str(char *buf, size_t size, size_t *at, const char *s);
void pb_put_u64(char *buf, size_t size, size_t *at, uint64_t v);
#endif
