/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports why a recording may show less than was expected, after all images are gone. Context:
 * the main thread. */
#ifndef PB_RECORDER_HINTS_H
#define PB_RECORDER_HINTS_H
#include <stddef.h>
#include <stdint.h>

struct record_modules;
struct record_server;

/* Reports each --module that matched nothing, by a line for the user and a note in the data
 * directory. */
void record_hint_modules(const struct record_server *s);
/* Reports the runtimes among the modules, and what is traced of each. */
void record_hint_runtimes(const struct record_server *s);
/* Writes to `near` the name of the loaded library that is most similar to `name`, or "". */
void record_hint_library(const struct record_modules *m, const char *name, char *near, size_t len);
/* Prints one line if the program's work is in libraries that weren't traced. */
void record_hint_launcher(const struct record_server *s, uint64_t calls);
#endif
