/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cleans a message, and writes it in one piece. */
#include "reader/say.h"

#include <stdlib.h>

#include "base/clean_text.h"

void pb_say_v(const char *command, const char *fmt, va_list ap)
{
	char *text;

	if (vasprintf(&text, fmt, ap) < 0) {
		fputs("patchbay: out of memory\n", stderr);
		return;
	}
	pb_text_clean(text, ' ', 0);
	fprintf(stderr, "patchbay%s%s: %s\n", command ? " " : "", command ? command : "", text);
	free(text);
}

void pb_say(const char *command, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	pb_say_v(command, fmt, ap);
	va_end(ap);
}
