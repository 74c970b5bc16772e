/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command line's table of subcommands. Each cmd-NAME.c defines one
 * struct pb_command; main.c lists them; help, completion and the man page's
 * list are generated from that table.
 */
#ifndef PB_CLI_H
#define PB_CLI_H
#include <argp.h>
#include <stdbool.h>

struct pb_command {
	const char *name;
	const char *summary;		/* one line, no full stop */
	const struct argp *argp;	/* its options, for completion */
	int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit status */
};

#define PB_DEFAULT_DIR "patchbay.data"

/* One line on stderr: "patchbay COMMAND: what: why; what to do". Returns 1, to
 * be returned as the exit status. */
int pb_error(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#endif
