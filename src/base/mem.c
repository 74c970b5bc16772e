/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Defines the functions of mem.h. Built into the agent only, with -ffreestanding and
 * -fno-tree-loop-distribute-patterns, so that no function becomes a call of itself. */
#include "base/mem.h"
#include "arch/machine.h"

typedef uint64_t word __attribute__((may_alias, aligned(1)));

#define LARGE	512	/* from this size on, the processor's copy instruction is faster */

static void *copy_large(void *dst, const void *src, size_t n)
{
	pb_cpu_copy(dst, src, n);
	return dst;
}

/* Most copies have a few words, for example a stub's code or a window's bytes. */
void *memcpy(void *restrict dst, const void *restrict src, size_t n)
{
	uint8_t *d = dst;
	const uint8_t *s = src;

	if (n >= LARGE)
		return copy_large(dst, src, n);
	for (; n >= 8; n -= 8, d += 8, s += 8)
		*(word *)d = *(const word *)s;
	while (n--)
		*d++ = *s++;
	return dst;
}

void *memmove(void *dst, const void *src, size_t n)
{
	unsigned char *d = dst;
	const unsigned char *s = src;

	if (d <= s || d >= s + n)
		return copy_large(dst, src, n);
	while (n--)
		d[n] = s[n];
	return dst;
}

void *memset(void *dst, int c, size_t n)
{
	pb_cpu_fill(dst, c, n);
	return dst;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *p = a, *q = b;

	for (; n >= 8 && *(const word *)p == *(const word *)q; n -= 8)
		p += 8, q += 8;
	for (; n; n--, p++, q++)
		if (*p != *q)
			return *p - *q;
	return 0;
}

size_t strlen(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

int strcmp(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return (unsigned char)*a - (unsigned char)*b;
}

int64_t pb_parse_u64(const char *s, size_t len)
{
	uint64_t v = 0;

	if (!len)
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9' || v > (INT64_MAX - 9) / 10)
			return -1;
		v = v * 10 + (uint64_t)(s[i] - '0');
	}
	return (int64_t)v;
}

void pb_put_str(char *buf, size_t size, size_t *at, const char *s)
{
	while (*s && *at + 1 < size)
		buf[(*at)++] = *s++;
	if (size)
		buf[*at < size ? *at : size - 1] = 0;
}

void pb_put_u64(char *buf, size_t size, size_t *at, uint64_t v)
{
	char digits[24];
	int i = sizeof(digits) - 1;

	digits[i] = 0;
	do
		digits[--i] = (char)('0' + v % 10);
	while (v /= 10);
	pb_put_str(buf, size, at, digits + i);
}
