/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of subcommands. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"

const char *argp_program_version = "patchbay " PB_VERSION;

#define COMMANDS(X) \
	X(record) X(live) X(replay) X(report) X(graph) X(dump) X(info) X(list) X(control) X(doctor) \
	X(completion)

/* Weak: a build without a command's file has a table without it. */
#define X(name) extern const struct pb_command pb_command_##name __attribute__((weak));
COMMANDS(X)
#undef X

static const struct pb_command *const commands[] = {
#define X(name) &pb_command_##name,
	COMMANDS(X)
#undef X
};

const struct pb_command *pb_command_find(const char *name)
{
	for (size_t i = 0; i < pb_array_size(commands); i++)
		if (commands[i] && !strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

int main(int argc, char **argv)
{
	static char name[64];
	const struct pb_command *c;

	argp_err_exit_status = 2;
	if (argc < 2)
		return pb_error(NULL, "no command; see patchbay --help") + 1;
	c = pb_command_find(argv[1]);
	if (!c)
		return pb_error(NULL, "%s: no such command; see patchbay --help", argv[1]) + 1;
	snprintf(name, sizeof(name), "patchbay %s", c->name);
	argv[1] = name;
	return c->run(argc - 1, argv + 1);
}
