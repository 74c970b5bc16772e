/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Prints messages to the terminal. Messages contain untrusted text: names of processes and
 * functions, paths, texts from agents. All messages are printed by these functions, which clean
 * each whole message (base/clean_text.h). So no caller can forget to clean a message. Context: the
 * observer.
 */
#ifndef PB_READER_SAY_H
#define PB_READER_SAY_H
#include <stdarg.h>
#include <stdio.h>

/* Writes "patchbay COMMAND: text" and a newline to stderr, or "patchbay: text" if there is no
 * command. */
void pb_say(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void pb_say_v(const char *command, const char *fmt,
	      va_list ap) __attribute__((format(printf, 2, 0)));
/* If a resource limit can cause the error, returns a hint at the limit, for example
 * " (see ulimit -n)". Otherwise returns "". err: an errno, may be negative. EFBIG has no hint,
 * because it also means that an analysis is too large. */
const char *pb_say_limit(int err);
#endif
