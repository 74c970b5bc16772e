/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks and prints the format strings of programs. As in the kernel, there are two passes. The
 * first pass checks the whole format, and copies the arguments, also the strings that they point
 * to. The second pass prints. So the output may overwrite the arguments. A format may be in a map,
 * where other threads change it at any time. So the second pass reads no conversion again, and no
 * pass reads beyond the format's end as the first pass found it.
 */
#include <asm/errno.h>
#include <stdbool.h>
#include "base/mem.h"
#include "bpf/core/format.h"
#include "bpf/core/host.h"

#define ARGS_ROOM	512	/* MAX_BPRINTF_BIN_ARGS */

enum kind { INT, CHAR, TEXT, POINTER, SYMBOL, IP };

struct spec {
	uint8_t kind;			/* enum kind */
	bool left, plus, space, zero, upper, is_signed, has_width;
	uint8_t base;
	uint8_t size;			/* bytes of a number: 4 or 8 */
	char how[2];			/* letters after %p */
	uint32_t width;
};

struct out {
	char *to;
	uint32_t size;
	uint64_t len;
};

/* A conversion of the format, and its argument. */
struct piece {
	struct spec spec;
	uint32_t from, to;		/* offsets in the format: of the %, and after the last
					 * letter */
	union {
		uint64_t value;
		struct {
			uint32_t at, len;
		} text;			/* TEXT, IP: place and length in `texts` */
	};
};

#define IP_TEXT		40		/* the longest text of an IP address, with its 0 */

struct args {
	uint32_t room;			/* remaining bytes for arguments, counted as the kernel
					 * counts them */
	uint32_t nr, used;		/* used: bytes of `texts` */
	struct piece pieces[PB_BPF_FORMAT_ARGS];
	char texts[ARGS_ROOM + IP_TEXT];
};

/* Returns the character at f. Returns 0 at the format's end. */
static char at(const char *f, const char *end)
{
	return f < end ? *f : 0;
}

/* is_space(), is_alnum() and is_punct() follow the kernel's table of characters, which is for
 * Latin-1. */
static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r') || (uint8_t)c == 0xa0;
}

static bool is_alnum(char ch)
{
	uint8_t c = (uint8_t)ch;

	if (c < 0x80)
		return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
	return c >= 0xc0 && c != 0xd7 && c != 0xf7;
}

static bool is_punct(char ch)
{
	uint8_t c = (uint8_t)ch;

	return ((c > ' ' && c < 0x7f) || c > 0xa0) && !is_alnum(ch);
}

static bool ends_word(char c)
{
	return !c || is_space(c) || is_punct(c);
}

/* f points at the p of "%p". Returns the address after the letters that choose the conversion.
 * NULL: the conversion isn't allowed. */
static const char *read_letters(const char *f, const char *end, struct spec *s)
{
	char first = at(f + 1, end), second = first ? at(f + 2, end) : 0;

	if (ends_word(first))
		return f + 1;
	if ((first == 'k' || first == 'u') && second == 's') {
		s->kind = TEXT;
		return ends_word(at(f + 3, end)) ? f + 3 : NULL;
	}
	s->how[0] = first;
	switch (first) {
	case 'K': case 'x':
		return f + 2;
	case 's': case 'S': case 'B':
		s->kind = SYMBOL;
		return f + 2;
	case 'i': case 'I':
		s->kind = IP;
		s->how[1] = second;
		return second == '4' || second == '6' ? f + 3 : NULL;
	}
	return NULL;
}

/* The same, but returns the address after all letters and digits. As in the kernel, none of them is
 * printed, also if the conversion doesn't need them. The width counts only if the kernel converts
 * the pointer in its second pass. */
static const char *read_pointer(const char *f, const char *end, struct spec *s)
{
	s->kind = POINTER;
	s->size = 8;
	f = read_letters(f, end, s);
	if (s->kind == TEXT || s->kind == IP || s->how[0] == 'B')
		s->width = 0;
	while (f && is_alnum(at(f, end)))
		f++;
	return f;
}

static const char *read_number(const char *f, const char *end, struct spec *s)
{
	char last;

	s->kind = INT;
	s->size = 4;
	for (int i = 0; i < 2 && at(f, end) == 'l'; i++, f++)
		s->size = 8;
	last = at(f, end);
	s->base = last == 'x' || last == 'X' ? 16 : 10;
	s->upper = last == 'X';
	s->is_signed = last == 'd' || last == 'i';
	return s->is_signed || s->base == 16 || last == 'u' ? f + 1 : NULL;
}

/* Reads a flag of a conversion. Returns false if c is none. */
static bool read_flag(char c, struct spec *s)
{
	s->zero |= c == '0';
	s->plus |= c == '+';
	s->left |= c == '-';
	s->space |= c == ' ';
	return c == '0' || c == '+' || c == '-' || c == ' ';
}

/* f points after the %. Returns the address after the conversion's last letter. NULL: the
 * conversion isn't allowed. */
static const char *read_spec(const char *f, const char *end, struct spec *s)
{
	char c;

	*s = (struct spec){ 0 };
	while (read_flag(at(f, end), s))
		f++;
	for (; (c = at(f, end)) >= '0' && c <= '9'; f++) {
		s->has_width = true;
		s->width = s->width > 0xffff ? s->width : s->width * 10 + (unsigned)(c - '0');
	}
	if (s->left)
		s->zero = false;
	switch (c) {
	case 'p':
		return read_pointer(f, end, s);
	case 's':
		s->kind = TEXT;
		return ends_word(at(f + 1, end)) ? f + 1 : NULL;
	case 'c':
		s->kind = CHAR;
		return f + 1;
	}
	return read_number(f, end, s);
}

/* Returns whether a format may contain c. Of the control characters, only white space is allowed.
 * Bytes from 0x80 on are allowed, too. */
static bool may_stand(char c)
{
	return (uint8_t)c >= ' ' ? c != 0x7f : is_space(c);
}

/* Returns the address of the format's 0. NULL: there is none within size bytes. */
static const char *end_of(const char *format, uint32_t size)
{
	for (uint32_t n = 0; n < size; n++)
		if (!format[n])
			return format + n;
	return NULL;
}

/* Finds the next conversion from *f on. Returns 1: *from is its %, and *f is after its last letter.
 * 0: there is none. -EINVAL: the format has a character or a conversion that isn't allowed. */
static int next_spec(const char **f, const char *end, const char **from, struct spec *s)
{
	for (; *f < end; ++*f) {
		char c = **f;

		if (!may_stand(c))
			return -EINVAL;
		if (c != '%')
			continue;
		if (at(*f + 1, end) == '%') {
			++*f;
			continue;
		}
		*from = *f;
		*f = read_spec(*f + 1, end, s);
		return *f ? 1 : -EINVAL;
	}
	return 0;
}

int pb_bpf_format_check(const char *format, uint32_t size, uint32_t nr_args)
{
	const char *f = format, *end = end_of(format, size), *from;
	uint32_t used = 0;
	struct spec s;
	int found = end ? 1 : -EINVAL;

	while (found > 0) {
		found = next_spec(&f, end, &from, &s);
		if (found > 0 && used++ >= nr_args)
			return -EINVAL;
	}
	return found;
}

/* ---- arguments ------------------------------------------------------------------------------ */

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

/* Copies an IP address as text. %pI4 writes 1.2.3.4, and %pi4 writes 001.002.003.004. %pI6 writes
 * an address with colons, %pi6 without colons. */
static int take_ip(struct pb_bpf_run *run, struct args *a, struct piece *p, uint64_t addr)
{
	const struct spec *s = &p->spec;
	uint32_t bytes = s->how[1] == '4' ? 4 : 16, n = 0;
	char *text = a->texts + a->used;
	uint8_t ip[16];

	if (a->room < bytes)
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
	a->room -= n + 1 < a->room ? n + 1 : a->room;
	p->text.len = n;
	return 0;
}

static int take_string(struct pb_bpf_run *run, struct args *a, struct piece *p, uint64_t addr)
{
	int64_t n;

	if (!a->room)
		return -ENOSPC;
	n = run->host->read_str(run, a->texts + a->used, addr, a->room);
	if (n <= 0)
		n = 1;
	a->room -= (uint32_t)n;
	p->text.len = (uint32_t)n - 1;
	return 0;
}

static int take_room(struct args *a, uint32_t size)
{
	a->room &= ~3u;			/* numbers are aligned */
	if (a->room < size)
		return -ENOSPC;
	a->room -= size;
	return 0;
}

/* Copies the argument v of a conversion. */
static int take_arg(struct pb_bpf_run *run, struct args *a, struct piece *p, uint64_t v)
{
	int err;

	switch (p->spec.kind) {
	case TEXT:
	case IP:
		p->text.at = a->used;
		err = (p->spec.kind == IP ? take_ip : take_string)(run, a, p, v);
		a->used += err ? 0 : p->text.len;
		return err;
	case CHAR:
		p->value = v;
		if (!a->room)
			return -ENOSPC;
		a->room--;
		return 0;
	default:
		p->value = v;
		return take_room(a, p->spec.size);
	}
}

/* The first pass. */
static int take_args(struct pb_bpf_run *run, struct args *a, const char *format, const char *end,
		     const uint64_t *args, uint32_t nr_args)
{
	const char *f = format, *from;
	int found, err;

	for (;;) {
		struct piece *p = &a->pieces[a->nr];
		struct spec s;

		found = next_spec(&f, end, &from, &s);
		if (found <= 0)
			return found;
		if (a->nr >= nr_args || a->nr >= PB_BPF_FORMAT_ARGS)
			return -EINVAL;
		p->spec = s;
		p->from = (uint32_t)(from - format);
		p->to = (uint32_t)(f - format);
		err = take_arg(run, a, p, args[a->nr++]);
		if (err)
			return err;
	}
}

/* ---- output --------------------------------------------------------------------------------- */

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

static void put_pointer(struct out *o, const struct spec *s, uint64_t v)
{
	struct spec hex = *s;

	hex.base = 16;
	if (!s->has_width) {
		hex.width = 16;
		hex.zero = !s->left;
	}
	put_number(o, &hex, v);
}

static void put_symbol(struct pb_bpf_run *run, struct out *o, const struct spec *s, uint64_t v)
{
	char text[256];
	struct out hex = { .to = text, .size = sizeof(text) };
	uint32_t n = 0;

	/* For %pB, v is a return address. The symbol must be that of the call before v, so look up
	 * v - 1. */
	if (run->host->symbol)
		n = run->host->symbol(run, text, sizeof(text), v - (s->how[0] == 'B'),
				      s->how[0] != 's');
	if (!n) {
		put(&hex, '0');
		put(&hex, 'x');
		put_number(&hex, &(struct spec){ .base = 16 }, v);
		n = (uint32_t)hex.len;
	}
	put_text(o, s, text, n);
}

static void put_piece(struct pb_bpf_run *run, struct out *o, const struct args *a,
		      const struct piece *p)
{
	const struct spec *s = &p->spec;
	uint64_t v = p->value;

	switch (s->kind) {
	case TEXT:
	case IP:
		put_text(o, s, a->texts + p->text.at, p->text.len);
		return;
	case CHAR:
		put_text(o, s, (const char[]){ (char)v }, 1);
		return;
	case POINTER:
		put_pointer(o, s, v);
		return;
	case SYMBOL:
		put_symbol(run, o, s, v);
		return;
	case INT:
		put_number(o, s, s->size == 8 ? v : s->is_signed ? (uint64_t)(int32_t)v :
			   (uint32_t)v);
	}
}

/* Prints the text between two conversions, in which %% stands for %. */
static void put_literal(struct out *o, const char *f, const char *end)
{
	for (; f < end; f++) {
		char c = *f;

		put(o, c);
		if (c == '%')
			f++;
	}
}

int64_t pb_bpf_format(struct pb_bpf_run *run, char *to, uint32_t size, const char *format,
		      uint32_t format_size, const uint64_t *args, uint32_t nr_args)
{
	const char *f = format, *end = end_of(format, format_size);
	struct out o = { .to = to, .size = size };
	struct args a;
	int err;

	a.room = ARGS_ROOM;
	a.nr = a.used = 0;
	err = end ? take_args(run, &a, format, end, args, nr_args) : -EINVAL;
	if (err)
		return err;
	for (uint32_t i = 0; i < a.nr; i++) {
		put_literal(&o, f, format + a.pieces[i].from);
		put_piece(run, &o, &a, &a.pieces[i]);
		f = format + a.pieces[i].to;
	}
	put_literal(&o, f, end);
	if (size)
		to[o.len < size ? o.len : size - 1] = 0;
	return (int64_t)o.len;
}
