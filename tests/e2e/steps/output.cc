/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Prints the output of the program "steps". The output is collected in memory, and is written many
 * lines at a time.
 */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include "steps.h"

namespace steps {

static char text[1 << 20];
static size_t used;

void print_out(void)
{
	for (size_t n = 0; n < used; ) {
		ssize_t w = write(1, text + n, used - n);

		if (w <= 0)
			_exit(4);
		n += (size_t)w;
	}
	used = 0;
}

void forget_text(void)
{
	used = 0;
}

void print(const char *format, ...)
{
	va_list args;

	/* writes only whole lines, since a child may print before the rest is written */
	if (used > sizeof(text) - 65536 && text[used - 1] == '\n')
		print_out();
	va_start(args, format);
	used += (size_t)vsnprintf(text + used, sizeof(text) - used, format, args);
	va_end(args);
}

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "steps: %s %s %s, step %ld: ", act_names[act], function ? function : "",
		state ? state : "", step);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	_exit(3);
}

}
