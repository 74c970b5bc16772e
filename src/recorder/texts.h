/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints the recorder's messages; parses and prints numbers. Errors for the user go through
 * record_error(), which prints one line and returns 1. Context: any thread. */
#ifndef PB_RECORDER_TEXTS_H
#define PB_RECORDER_TEXTS_H
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* From now on, the lines of record_error() begin with this command's name instead of record's.
 * Context: the main thread, before other threads start. */
void record_say_as(const char *command);
const char *record_said_by(void);		/* the command's name in these lines */
int record_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *record_base_name(const char *path);
void record_format_number(uint64_t n, char *buf, size_t len);	/* 1,234,567 */
void record_format_bytes(uint64_t n, char *buf, size_t len);	/* 9.9 MB */
/* Prints arg with the quotes that a shell needs. */
void record_print_quoted(FILE *f, const char *arg);
/* Parses a size with an optional K, M, G or T. Returns 0 or -EINVAL. */
int record_parse_size(const char *text, uint64_t *size);
/* Returns the text that says why a function isn't traced. `reason` is PB_REFUSED_*. */
const char *record_refused_text(int reason);
#endif
