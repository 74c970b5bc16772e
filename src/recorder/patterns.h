/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Resolves patterns before the program runs. Context: the main thread. */
#ifndef PB_RECORDER_PATTERNS_H
#define PB_RECORDER_PATTERNS_H

struct record_modules;
struct record_options;
struct record_target;

/* Checks and resolves the patterns of o against the program and the libraries that it is linked
 * with. Puts the control writes that all options need into o->writes. 0, or 1 after one line of
 * error. */
int record_filters_resolve(struct record_options *o, const struct record_target *t,
			   struct record_modules *m);
#endif
