/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command line's table of subcommands. Each cmd-NAME.c defines
 * `const struct pb_command pb_command_NAME`; main.c lists them; help and
 * completion are generated from that table.
 */
#ifndef PB_CLI_H
#define PB_CLI_H
#include <argp.h>
#include <stdbool.h>

#include "abi/datadir.h"

struct pb_command {
	const char *name;
	const char *summary;		/* one line, no full stop */
	const struct argp *argp;	/* its options, for completion */
	const struct pb_command *const *subs;	/* its subcommands, ended by NULL; or NULL */
	int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit
					    * status */
};

extern const struct pb_command pb_command_record, pb_command_live, pb_command_doctor,
	pb_command_control, pb_command_completion;
extern const struct pb_command pb_command_replay, pb_command_report, pb_command_graph,
	pb_command_dump, pb_command_info, pb_command_list, pb_command_bpf;

/* One line on stderr: "patchbay COMMAND: what: why; what to do". Returns 1, to
 * be returned as the exit status. */
int pb_error(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Does replay know the trace option ("funcgraph-tail", "nofuncgraph-tail")? */
bool pb_replay_option(const char *name);
/* The i-th format of dump; NULL after the last. */
const char *pb_dump_format(size_t i);

/* The table entry of that name, or NULL. */
const struct pb_command *pb_command_find(const char *name);
/* The entry of the table after `previous`, or the first one if `previous` is NULL. Returns NULL
 * after the last. */
const struct pb_command *pb_command_each(const struct pb_command *previous);
#endif
