/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether the patterns match anything, before anything runs; and why a function is not traced.
 * Context: the main thread. */
#ifndef PB_RECORDER_PATTERNS_H
#define PB_RECORDER_PATTERNS_H

struct record_modules;
struct record_options;
struct record_target;

/* Checks and resolves the patterns of o against the program and the libraries
 * that it is linked with, and makes o->writes of all options. 0, or 1 after one
 * line. */
int record_filters_resolve(struct record_options *o, const struct record_target *t,
			   struct record_modules *m);
#endif
