/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Why a recording shows less than was expected; said after all images are gone. Context: the
 * main thread. */
#ifndef PB_RECORDER_HINTS_H
#define PB_RECORDER_HINTS_H
#include <stddef.h>
#include <stdint.h>

struct record_modules;
struct record_server;

/* Each --module that matched nothing: one line, and a note in the data. */
void record_hint_modules(const struct record_server *s);
/* Names the runtimes among the modules, and what of each is traced. */
void record_hint_runtimes(const struct record_server *s);
/* The library that was loaded whose name is next to that one; "": none. */
void record_hint_library(const struct record_modules *m, const char *name, char *near, size_t len);
/* One line if the program's work is in libraries that weren't traced. */
void record_hint_launcher(const struct record_server *s, uint64_t calls);
#endif
