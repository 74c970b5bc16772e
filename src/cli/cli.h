/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command line's table of subcommands. Each cmd-NAME.c defines `const struct pb_command
 * pb_command_NAME`, and main.c lists them in a table. Help and completion are made from this table.
 */
#ifndef PB_CLI_H
#define PB_CLI_H
#include <argp.h>
#include <stdbool.h>

#include "abi/datadir.h"

struct pb_command {
	const char *name;
	const char *summary;		/* one line, no full stop */
	const struct argp *argp;	/* the command's options, for completion */
	const struct pb_command *const *subs;	/* the command's subcommands, ended by NULL; or
						 * NULL */
	int (*run)(int argc, char **argv); /* argv[0] is the command's name. Returns the exit
					    * status. */
};

extern const struct pb_command pb_command_record, pb_command_live, pb_command_top,
	pb_command_doctor, pb_command_control, pb_command_completion;
extern const struct pb_command pb_command_replay, pb_command_report, pb_command_graph,
	pb_command_dump, pb_command_info, pb_command_list, pb_command_bpf, pb_command_attach,
	pb_command_detach, pb_command_ps, pb_command_stack, pb_command_snapshot,
	pb_command_flight;

/* Prints one line on stderr: "patchbay COMMAND: what: why; what to do". Returns 1, which callers
 * use as exit status. */
int pb_error(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* True if replay knows the trace option, for example "funcgraph-tail" or "nofuncgraph-tail". */
bool pb_replay_option(const char *name);
/* Returns the name of dump's i-th format that is documented; NULL after the last. */
const char *pb_dump_format(size_t i);

/* The table of subcommands, ended by NULL. main() sets it first of all. */
extern const struct pb_command *const *pb_commands;
/* Returns the table's entry with this name, or NULL. */
const struct pb_command *pb_command_find(const char *name);
/* Returns the table's entry after `previous`, or the first entry if `previous` is NULL. Returns
 * NULL after the last entry. */
const struct pb_command *pb_command_each(const struct pb_command *previous);
#endif
