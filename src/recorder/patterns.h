/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Resolves patterns before the program runs. Context: the main thread. */
#ifndef PB_RECORDER_PATTERNS_H
#define PB_RECORDER_PATTERNS_H

struct record_modules;
struct record_options;
struct record_target;

/* Checks the patterns of o, and resolves them against the program and the libraries that it is
 * linked with. Adds to o->writes the control writes that put the options into effect. Returns 0. On
 * an error, prints one line and returns 1. */
int record_filters_resolve(struct record_options *o, const struct record_target *t,
			   struct record_modules *m);
#endif
