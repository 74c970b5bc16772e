/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The options of the commands that record (`record`, `flight`, `live`, `top`, `attach`, `bpf
 * trace`), and functions that record as the options say. */
#ifndef PB_CLI_RECORD_OPTIONS_H
#define PB_CLI_RECORD_OPTIONS_H
#include <argp.h>
#include "recorder/settings.h"

extern const struct argp record_argp;
/* The options of `record` and `flight`, without a text about the command. */
extern const struct argp record_own_argp;
/* The options that all of these commands have. --directory, --quiet, --bpf and the options that
 * need --bpf aren't among them: record_own_argp has them. The input is a struct record_options. */
extern const struct argp record_common_argp;
#define RECORD_HELP_END \
	"A pattern may end in :mod:GLOB to mean functions of that module only, or in :mod:!GLOB " \
	"to mean functions of other modules. " \
	"The exit status is the program's, or 128 + N if signal N killed the program."

void record_options_init(struct record_options *o);

/* Parses the command line. Prints one line for each error. Returns 0, or the exit status after an
 * error. */
int record_options_parse(struct record_options *o, int argc, char **argv);
/* Adds a --map option. Returns 0 or ENOMEM. */
int record_options_map(struct record_options *o, const char *text);
/* Adds a --global option. Returns 0 or ENOMEM. */
int record_options_global(struct record_options *o, const char *text);
/* Adds a --snapshot-on option: FUNC, or FUNC>TIME. Changes `arg`. Returns 0, EINVAL if the time is
 * malformed, or ENOMEM. */
int record_options_snapshot_on(struct record_options *o, char *arg);
void record_options_free(struct record_options *o);

/* Does a whole recording, from the search for the program to the closing line. Returns the exit
 * status. */
int record_with(struct record_options *o);
/* Like record_with(), with the eBPF programs of --bpf. */
int record_with_programs(struct record_options *o, const char *command);
/* Like record_with(), but records into a temporary directory. The directory is removed at the end.
 * If data was recorded and `show` is not NULL, calls show() with the directory. Returns the
 * recording's exit status. If this is 0 and show() was called, returns the result of show(). */
int record_temporary(struct record_options *o, const char *command,
		     int (*show)(void *arg, const char *data), void *arg);
#endif
