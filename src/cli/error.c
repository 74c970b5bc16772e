/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints a command's error on one line. Returns 1, for use as exit status. */
#include "cli/cli.h"
#include "reader/say.h"

int pb_error(const char *command, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	pb_say_v(command, fmt, ap);
	va_end(ap);
	return 1;
}
