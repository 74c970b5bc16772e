/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Prints messages to the terminal. Messages contain untrusted text: names of processes and
 * functions, paths, texts from agents. All messages are printed here, and each is cleaned as a
 * whole (base/clean_text.h), so that no caller can forget it. Context: the observer.
 */
#ifndef PB_READER_SAY_H
#define PB_READER_SAY_H
#include <stdarg.h>
#include <stdio.h>

/* "patchbay COMMAND: text" and a newline on stderr; "patchbay: text" without a command. */
void pb_say(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void pb_say_v(const char *command, const char *fmt,
	      va_list ap) __attribute__((format(printf, 2, 0)));
#endif
