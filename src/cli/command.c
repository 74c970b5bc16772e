/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Searches the table of subcommands. main.c has the table, which refers to all commands. A command
 * may not refer to main.c in turn. So main() stores the table's address here for the commands. */
#include <string.h>

#include "cli/cli.h"

const struct pb_command *const *pb_commands;

const struct pb_command *pb_command_find(const char *name)
{
	for (const struct pb_command *const *c = pb_commands; *c; c++)
		if (!strcmp((*c)->name, name))
			return *c;
	return NULL;
}

const struct pb_command *pb_command_each(const struct pb_command *previous)
{
	const struct pb_command *const *c = pb_commands;

	if (!previous)
		return *c;
	while (*c && *c != previous)
		c++;
	return *c ? c[1] : NULL;
}
