/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The options of `patchbay record`, also those of `live`. */
#ifndef PB_RECORD_OPTIONS_H
#define PB_RECORD_OPTIONS_H
#include <argp.h>
#include "cli/record.h"

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
#endif
