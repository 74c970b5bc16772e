/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The options of `patchbay record`, also those of `live`. */
#ifndef PB_RECORD_OPTIONS_H
#define PB_RECORD_OPTIONS_H
#include <argp.h>
#include "cli/record.h"

extern const struct argp record_argp;

/* 0, or the exit status after one line (or after --help). */
int record_options_parse(struct record_options *o, int argc, char **argv);
void record_options_free(struct record_options *o);
#endif
