/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports why a recording may have fewer calls than the user expected. The functions must be called
 * after all images are gone. Context: the main thread. */
#ifndef PB_RECORDER_HINTS_H
#define PB_RECORDER_HINTS_H
#include <stddef.h>
#include <stdint.h>

struct record_modules;
struct record_server;

/* Reports each --module that matched nothing. The user gets a line, and the data directory gets a
 * note. */
void record_hint_modules(const struct record_server *s);
/* Reports the runtimes among the modules, and which part of each is traced. */
void record_hint_runtimes(const struct record_server *s);
/* Reports each traced module most of whose code is in no function. The user gets a line for the
 * first three, and the data directory gets a note for each. */
void record_hint_unknown(const struct record_server *s);
/* Writes to `near` up to three names of libraries that are similar to `name`, as "a, b or c". If
 * there is no such library, writes "". */
void record_hint_library(const struct record_modules *m, const char *name, char *near, size_t len);
/* Prints one line if the program is probably a launcher (hints.c): it made few calls, and its
 * libraries, which weren't traced, have most of the functions. `calls` is the number of recorded
 * calls. */
void record_hint_launcher(const struct record_server *s, uint64_t calls);
#endif
