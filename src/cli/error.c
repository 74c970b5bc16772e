/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdarg.h>
#include <stdio.h>

#include "cli/cli.h"

int pb_error(const char *command, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "patchbay%s%s: ", command ? " " : "", command ? command : "");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	putc('\n', stderr);
	return 1;
}
