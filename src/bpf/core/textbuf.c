/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Formatted text in a buffer. Supports only the few conversions of printf that are needed. */
#include "bpf/core/textbuf.h"

#include "base/mem.h"

/* Drops the oldest half of the text, up to the end of a line. Returns false if nothing was dropped:
 * `tail` isn't set, so the oldest lines must stay, or the buffer is tiny. */
static bool forget_oldest(struct pb_bpf_text *t)
{
	uint32_t from = t->len / 2 + 1;

	if (!t->tail || t->size < 4)
		return false;
	while (from < t->len && t->buf[from - 1] != '\n')
		from++;
	/* if the last line is longer than half of the text, cut inside this line */
	if (from == t->len)
		from = t->len / 2 + 1;
	memmove(t->buf, t->buf + from, t->len - from);
	t->len -= from;
	t->gone += from;
	return true;
}

static void put(struct pb_bpf_text *t, char c)
{
	if (!t->buf || t->len + 1 >= t->size) {
		t->cut = true;
		if (!t->buf || !forget_oldest(t))
			return;
	}
	t->buf[t->len++] = c;
	t->buf[t->len] = 0;
}

static void puts_text(struct pb_bpf_text *t, const char *s)
{
	while (*s)
		put(t, *s++);
}

struct spec {
	bool plus, zero, prefix;
	unsigned width, longs;
};

static const char *read_spec(const char *f, struct spec *s)
{
	*s = (struct spec){ 0 };
	for (;; f++) {
		if (*f == '+')
			s->plus = true;
		else if (*f == '#')
			s->prefix = true;
		else if (*f == '0')
			s->zero = true;
		else
			break;
	}
	for (; *f >= '0' && *f <= '9'; f++)
		s->width = s->width * 10 + (unsigned)(*f - '0');
	for (; *f == 'l'; f++)
		s->longs++;
	return f;
}

static void put_number(struct pb_bpf_text *t, const struct spec *s, const char *sign, uint64_t v,
		       unsigned base)
{
	char digits[24];
	unsigned n = 0, signs = *sign ? 1 : 0;

	do
		digits[n++] = "0123456789abcdef"[v % base];
	while (v /= base);
	for (unsigned i = n + signs; i < s->width && !s->zero; i++)
		put(t, ' ');
	puts_text(t, sign);
	for (unsigned i = n + signs; i < s->width && s->zero; i++)
		put(t, '0');
	while (n)
		put(t, digits[--n]);
}

static void put_signed(struct pb_bpf_text *t, const struct spec *s, int64_t v)
{
	put_number(t, s, v < 0 ? "-" : s->plus ? "+" : "", v < 0 ? -(uint64_t)v : (uint64_t)v, 10);
}

void pb_bpf_text_back(struct pb_bpf_text *t, uint64_t at)
{
	if (at < t->gone) {
		t->len = 0;
		t->gone = at;
	} else {
		t->len = (uint32_t)(at - t->gone);
	}
	if (t->tail)
		t->cut = t->gone;
	if (t->buf && t->size)
		t->buf[t->len] = 0;
}

void pb_bpf_vprintf(struct pb_bpf_text *t, const char *f, va_list ap)
{
	struct spec s;

	for (; *f; f++) {
		if (*f != '%') {
			put(t, *f);
			continue;
		}
		f = read_spec(f + 1, &s);
		switch (*f) {
		case 's':
			puts_text(t, va_arg(ap, const char *));
			break;
		case 'c':
			put(t, (char)va_arg(ap, int));
			break;
		case 'd':
			put_signed(t, &s, s.longs ? va_arg(ap, long) : va_arg(ap, int));
			break;
		case 'u': case 'x':
			if (s.prefix)
				puts_text(t, "0x");
			put_number(t, &s, "", s.longs ? va_arg(ap, unsigned long) :
				   va_arg(ap, unsigned), *f == 'x' ? 16 : 10);
			break;
		case 0:
			return;
		default:
			put(t, *f);
		}
	}
}

void pb_bpf_printf(struct pb_bpf_text *t, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	pb_bpf_vprintf(t, format, ap);
	va_end(ap);
}
