/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks and prints the format strings of programs. Checks the whole format before it prints the
 * first piece. */
#include <asm/errno.h>
#include <stdbool.h>
#include "base/mem.h"
#include "bpf/core/format.h"
#include "bpf/core/host.h"

#define ARGS_ROOM	512	/* MAX_BPRINTF_BIN_ARGS */

enum kind { INT, CHAR, TEXT, POINTER, SYMBOL, IP };

struct spec {
	enum kind kind;
	bool left, plus, space, zero, upper, is_signed;
	unsigned width, base;
	bool has_width;
	uint8_t size;			/* bytes of a number: 4 or 8 */
	char how[2];			/* letters after %p */
};

struct out {
	char *to;
	uint32_t size, room;		/* room: remaining bytes for arguments, counted as the
					 * kernel counts them */
	uint64_t len;
};

/* is_space() and is_punct() follow the kernel's table of characters, which is for Latin-1. */
static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r') || (uint8_t)c == 0xa0;
}

static bool is_punct(char ch)
{
	uint8_t c = (uint8_t)ch;

	if (c < 0x80)
		return c > ' ' && c < 0x7f && !(c >= '0' && c <= '9') &&
		!((c | 32) >= 'a' && (c | 32) <= 'z');
	return (c > 0xa0 && c < 0xc0) || c == 0xd7 || c == 0xf7;
}

static bool ends_word(char c)
{
	return !c || is_space(c) || is_punct(c);
}

/* f points at the p of "%p". Returns the address of the conversion's last letter. NULL: the
 * conversion isn't allowed. */
static const char *read_pointer(const char *f, struct spec *s)
{
	s->kind = POINTER;
	s->size = 8;
	if (ends_word(f[1]))
		return f;
	if ((f[1] == 'k' || f[1] == 'u') && f[2] == 's') {
		s->kind = TEXT;
		return ends_word(f[3]) ? f + 2 : NULL;
	}
	s->how[0] = f[1];
	switch (f[1]) {
	case 'K': case 'x':
		return f + 1;
	case 's': case 'S': case 'B':
		s->kind = SYMBOL;
		return f + 1;
	case 'i': case 'I':
		s->kind = IP;
		s->how[1] = f[2];
		return f[2] == '4' || f[2] == '6' ? f + 2 : NULL;
	}
	return NULL;
}

static const char *read_number(const char *f, struct spec *s)
{
	s->kind = INT;
	s->size = 4;
	for (int i = 0; i < 2 && *f == 'l'; i++, f++)
		s->size = 8;
	s->base = *f == 'x' || *f == 'X' ? 16 : 10;
	s->upper = *f == 'X';
	s->is_signed = *f == 'd' || *f == 'i';
	return s->is_signed || s->base == 16 || *f == 'u' ? f : NULL;
}

/* f points after the %. Returns the address of the conversion's last letter. NULL: the conversion
 * isn't allowed. */
static const char *read_spec(const char *f, struct spec *s)
{
	*s = (struct spec){ 0 };
	for (; *f == '0' || *f == '+' || *f == '-' || *f == ' '; f++) {
		s->zero |= *f == '0';
		s->plus |= *f == '+';
		s->left |= *f == '-';
		s->space |= *f == ' ';
	}
	s->has_width = *f >= '1' && *f <= '9';
	for (; *f >= '0' && *f <= '9'; f++)
		s->width = s->width > 0xffff ? s->width : s->width * 10 + (unsigned)(*f - '0');
	if (s->left)
		s->zero = false;
	switch (*f) {
	case 'p':
		return read_pointer(f, s);
	case 's':
		s->kind = TEXT;
		return ends_word(f[1]) ? f : NULL;
	case 'c':
		s->kind = CHAR;
		return f;
	}
	return read_number(f, s);
}

/* Returns whether a format may contain c. Of the control characters, only white space is allowed.
 * Bytes from 0x80 on are allowed, too. */
static bool may_stand(char c)
{
	return (uint8_t)c >= ' ' ? c != 0x7f : is_space(c);
}

int pb_bpf_format_check(const char *format, uint32_t size, uint32_t nr_args)
{
	const char *f = format;
	uint32_t used = 0, end = 0;
	struct spec s;

	while (end < size && format[end])
		end++;
	if (end == size)
		return -EINVAL;
	for (; *f; f++) {
		if (!may_stand(*f))
			return -EINVAL;
		if (*f != '%')
			continue;
		if (f[1] == '%') {
			f++;
			continue;
		}
		if (used++ >= nr_args || !(f = read_spec(f + 1, &s)))
			return -EINVAL;
	}
	return 0;
}

static void put(struct out *o, char c)
{
	if (o->len + 1 < o->size)
		o->to[o->len] = c;
	o->len++;
}

static void pad(struct out *o, char c, unsigned n)
{
	while (n--)
		put(o, c);
}

static void put_text(struct out *o, const struct spec *s, const char *text, uint32_t n)
{
	unsigned fill = s->width > n ? s->width - n : 0;

	if (!s->left)
		pad(o, ' ', fill);
	for (uint32_t i = 0; i < n; i++)
		put(o, text[i]);
	if (s->left)
		pad(o, ' ', fill);
}

static void put_number(struct out *o, const struct spec *s, uint64_t v)
{
	const char *digit = s->upper ? "0123456789ABCDEF" : "0123456789abcdef";
	bool minus = s->is_signed && (int64_t)v < 0;
	char sign = minus ? '-' : s->is_signed && s->plus ? '+' : s->is_signed &&
		    s->space ? ' ' : 0;
	char digits[24];
	unsigned n = 0, fill;

	v = minus ? -v : v;
	do
		digits[n++] = digit[v % s->base];
	while (v /= s->base);
	fill = s->width > n + !!sign ? s->width - n - !!sign : 0;
	if (!s->left && !s->zero)
		pad(o, ' ', fill);
	if (sign)
		put(o, sign);
	if (s->zero)
		pad(o, '0', fill);
	while (n)
		put(o, digits[--n]);
	if (s->left)
		pad(o, ' ', fill);
}

static uint32_t append(char *to, uint32_t n, uint32_t value, unsigned base, unsigned least)
{
	char digits[12];
	unsigned k = 0;

	do
		digits[k++] = "0123456789abcdef"[value % base];
	while ((value /= base) || k < least);
	while (k)
		to[n++] = digits[--k];
	return n;
}

static uint32_t ip6_text(char *to, const uint8_t *ip, bool colons)
{
	uint32_t n = 0;

	for (int i = 0; i < 8; i++) {
		n = append(to, n, (uint32_t)(ip[2 * i] << 8 | ip[2 * i + 1]), 16, 4);
		if (colons && i < 7)
			to[n++] = ':';
	}
	return n;
}

/* Writes an IP address. %pI4 writes 1.2.3.4, and %pi4 writes 001.002.003.004. %pI6 writes an
 * address with colons, %pi6 without colons. */
static int put_ip(struct pb_bpf_run *run, struct out *o, const struct spec *s, uint64_t addr)
{
	uint32_t bytes = s->how[1] == '4' ? 4 : 16, n = 0;
	uint8_t ip[16];
	char text[48];

	if (o->room < bytes)
		return -ENOSPC;
	if (run->host->read(run, ip, addr, bytes))
		memset(ip, 0, sizeof(ip));
	for (uint32_t i = 0; bytes == 4 && i < 4; i++) {
		n = append(text, n, ip[i], 10, s->how[0] == 'i' ? 3 : 1);
		if (i < 3)
			text[n++] = '.';
	}
	if (bytes == 16)
		n = ip6_text(text, ip, s->how[0] == 'I');
	o->room -= n + 1 < o->room ? n + 1 : o->room;
	put_text(o, s, text, n);
	return 0;
}

static int put_string(struct pb_bpf_run *run, struct out *o, const struct spec *s, uint64_t addr)
{
	char text[ARGS_ROOM];
	int64_t n;

	if (!o->room)
		return -ENOSPC;
	n = run->host->read_str(run, text, addr, o->room);
	if (n <= 0) {
		text[0] = 0;
		n = 1;
	}
	o->room -= (uint32_t)n;
	put_text(o, s, text, (uint32_t)n - 1);
	return 0;
}

static void put_pointer(struct out *o, const struct spec *s, uint64_t v)
{
	struct spec hex = *s;

	hex.base = 16;
	if (!s->has_width) {
		hex.width = 16;
		hex.zero = true;
	}
	put_number(o, &hex, v);
}

static void put_symbol(struct pb_bpf_run *run, struct out *o, const struct spec *s, uint64_t v)
{
	char text[256];
	uint32_t n = 0;

	/* For %pB, v is a return address. The symbol must be that of the call before v, so look up
	 * v - 1. */
	if (run->host->symbol)
		n = run->host->symbol(run, text, sizeof(text), v - (s->how[0] == 'B'),
				      s->how[0] != 's');
	if (n)
		put_text(o, s, text, n);
	else {
		put(o, '0');
		put(o, 'x');
		put_number(o, &(struct spec){ .base = 16 }, v);
	}
}

static int take_room(struct out *o, uint32_t size)
{
	o->room &= ~3u;			/* numbers are aligned */
	if (o->room < size)
		return -ENOSPC;
	o->room -= size;
	return 0;
}

static int put_arg(struct pb_bpf_run *run, struct out *o, const struct spec *s, uint64_t v)
{
	int err;

	switch (s->kind) {
	case TEXT:
		return put_string(run, o, s, v);
	case IP:
		return put_ip(run, o, s, v);
	case CHAR:
		if (!o->room)
			return -ENOSPC;
		o->room--;
		put_text(o, s, (const char[]){ (char)v }, 1);
		return 0;
	default:
		err = take_room(o, s->size);
		if (err)
			return err;
	}
	if (s->kind == POINTER)
		put_pointer(o, s, v);
	else if (s->kind == SYMBOL)
		put_symbol(run, o, s, v);
	else
		put_number(o, s, s->size == 8 ? v : s->is_signed ? (uint64_t)(int32_t)v :
			   (uint32_t)v);
	return 0;
}

int64_t pb_bpf_format(struct pb_bpf_run *run, char *to, uint32_t size, const char *format,
		      uint32_t format_size, const uint64_t *args, uint32_t nr_args)
{
	struct out o = { .to = to, .size = size, .room = ARGS_ROOM };
	int err = pb_bpf_format_check(format, format_size, nr_args);
	struct spec s;

	for (const char *f = format; !err && *f; f++) {
		if (*f != '%') {
			put(&o, *f);
		} else if (f[1] == '%') {
			put(&o, *++f);
		} else {
			f = read_spec(f + 1, &s);
			err = put_arg(run, &o, &s, *args++);
		}
	}
	if (err)
		return err;
	if (size)
		to[o.len < size ? o.len : size - 1] = 0;
	return (int64_t)o.len;
}
