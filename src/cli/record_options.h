/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The options of `patchbay record`, also those of `live` and `bpf trace`; and what they do. */
#ifndef PB_CLI_RECORD_OPTIONS_H
#define PB_CLI_RECORD_OPTIONS_H
#include <argp.h>
#include "recorder/settings.h"

extern const struct argp record_argp;
/* Without those that say where the data goes; its input is record_options. */
extern const struct argp record_common_argp;
#define RECORD_HELP_END \
	"A pattern may end in :mod:GLOB to mean functions of that module only. " \
	"The exit status is the program's, 128 + N where signal N killed it."

void record_options_init(struct record_options *o);

/* 0, or the exit status after one line (or after --help). */
int record_options_parse(struct record_options *o, int argc, char **argv);
/* One more --map. 0 or ENOMEM. */
int record_options_map(struct record_options *o, const char *text);
/* One more --global. 0 or ENOMEM. */
int record_options_global(struct record_options *o, const char *text);
void record_options_free(struct record_options *o);

/* All of it, from the program's name to the closing line; the exit status. */
int record_with(struct record_options *o);
/* The same into a directory that is removed at the end. show, which may be NULL, is called
 * with the data if there is any. What of both isn't 0, record's first. */
int record_temporary(struct record_options *o, const char *command,
		     int (*show)(void *arg, const char *data), void *arg);
#endif
