/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Searches the table of subcommands. The table is in main.c, and refers to all commands. If a
 * command referred to main.c, the references would form a cycle. So main() stores the table's
 * address here, where commands find it. */
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
