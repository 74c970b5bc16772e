/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The one way of a message to the terminal. Messages hold text from outside: names of
 * processes and functions, paths, what an agent says. So each is cleaned as a whole
 * (base/clean_text.h), and no message can forget it. Context: the observer's side.
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
