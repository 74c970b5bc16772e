/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints the recorder's messages, parses and prints numbers, quotes arguments, and has the reasons
 * why functions are refused. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "abi/analysis.h"
#include "base/base.h"
#include "base/clean_text.h"
#include "reader/say.h"
#include "recorder/texts.h"

static const char *said_by = "record";

void record_say_as(const char *command)
{
	said_by = command;
}

const char *record_said_by(void)
{
	return said_by;
}

int record_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	pb_say_v(said_by, fmt, ap);
	va_end(ap);
	return 1;
}

const char *record_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

void record_format_number(uint64_t n, char *buf, size_t len)
{
	char digits[24], out[32], *p = out;
	int nr = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);

	for (int i = 0; i < nr; i++) {
		if (i && (nr - i) % 3 == 0)
			*p++ = ',';
		*p++ = digits[i];
	}
	*p = 0;
	snprintf(buf, len, "%s", out);
}

void record_format_bytes(uint64_t n, char *buf, size_t len)
{
	static const char *const units[] = { "", "kB", "MB", "GB", "TB", "PB", "EB" };
	double v = (double)n;
	unsigned u = 0;

	while (v >= 999.95 && u + 1 < pb_array_size(units)) {
		v /= 1000;
		u++;
	}
	if (u)
		snprintf(buf, len, "%.1f %s", v, units[u]);
	else
		snprintf(buf, len, "%u byte%s", (unsigned)n, pb_plural(n));
}

void record_print_quoted(FILE *f, const char *arg)
{
	if (*arg && !arg[strspn(arg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789_-+=.,/:@%")]) {
		fputs(arg, f);
		return;
	}
	putc('\'', f);
	for (const char *from = arg; *arg; arg++) {
		if (*arg == '\'')
			fputs("'\\''", f);
		else if (*arg == '\n')
			fputs("'$'\\n''", f);
		/* in UTF-8, some control characters have two bytes; *arg may be the second byte */
		else if (pb_text_control(arg) || (arg > from && pb_text_control(arg - 1) > 1))
			fprintf(f, "'$'\\%03o''", (unsigned char)*arg);
		else
			putc(*arg, f);
	}
	putc('\'', f);
}

int record_parse_size(const char *text, uint64_t *size)
{
	uint64_t n = 0;
	unsigned shift = 0;
	const char *p = text;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
			return -EINVAL;
	if (*p) {
		const char *units = "KMGT", *u = strchr(units, *p & ~0x20);

		if (!u || !*u)
			return -EINVAL;
		shift = 10 * (unsigned)(u - units + 1);
		p++;
		if (*p == 'i')
			p++;
		if (*p == 'B' || *p == 'b')
			p++;
	}
	if (*p || n > UINT64_MAX >> shift)
		return -EINVAL;
	*size = n << shift;
	return 0;
}

const char *record_refused_text(int reason)
{
	static const char *const texts[] = {
#define X(name, text) text,
		PB_REFUSED_LIST(X)
#undef X
	};

	return reason > 0 && reason < PB_NR_REFUSED ? texts[reason] : "unknown";
}
