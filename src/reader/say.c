/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cleans a message, and writes it in one piece. Names limits that cause errors. */
#include "reader/say.h"

#include <errno.h>
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
	/* the output of eBPF programs gives stderr a buffer (cli/bpf/bpf_output.c) */
	fflush(stderr);
	free(text);
}

void pb_say(const char *command, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	pb_say_v(command, fmt, ap);
	va_end(ap);
}

const char *pb_say_limit(int err)
{
	switch (err < 0 ? -err : err) {
	case EMFILE:
		return " (see ulimit -n)";
	case ENFILE:
		return " (see sysctl fs.file-max)";
	case ENOMEM:
		return " (see ulimit -v)";
	case EAGAIN:	/* no thread, or no process */
		return " (see ulimit -u and ulimit -v)";
	default:
		return "";
	}
}
