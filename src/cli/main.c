/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of subcommands. main() uses the table to find the subcommand and to print help. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "control/resolve.h"
#include "recorder/start_program.h"

const char *argp_program_version = "patchbay " PB_VERSION;

#define COMMANDS(X) \
	X(record) X(flight) X(live) X(top) X(replay) X(report) X(graph) X(dump) X(info) X(list) \
	X(attach) X(detach) X(ps) X(stack) X(snapshot) X(control) X(doctor) X(bpf) X(completion)

static const struct pb_command *const commands[] = {
#define X(name) &pb_command_##name,
	COMMANDS(X)
#undef X
	NULL
};

static int main_help(void)
{
	const struct pb_command *c = NULL;

	puts("Usage: patchbay COMMAND [OPTION...] [ARGS]\n"
	     "Trace the functions of a program: no recompiling, no root, no kernel support.\n");
	while ((c = pb_command_each(c)))
		printf("  %-10s  %s\n", c->name, c->summary);
	puts("\nExamples:\n"
	     "  patchbay record ./prog arg           record all calls of prog\n"
	     "  patchbay report                      which functions took the time\n"
	     "  patchbay replay                      every call, as function_graph shows it\n"
	     "  patchbay live -F parse -D 4 ./prog   just parse() and three levels below\n"
	     "  patchbay record -p 1234 --for 10s    a process that runs already\n\n"
	     "patchbay COMMAND --help lists a command's options; "
	     "man patchbay-COMMAND explains them.");
	return 0;
}

static int unknown(const char *name)
{
	const struct pb_command *c = NULL, *best = NULL;
	unsigned least = strlen(name) > 3 ? 3 : 2;

	while ((c = pb_command_each(c))) {
		unsigned d = pb_edit_distance(name, c->name, 2);

		if (d < least) {
			least = d;
			best = c;
		}
	}
	if (best)
		pb_error(NULL, "%s: no such command; did you mean %s?", name, best->name);
	else
		pb_error(NULL, "%s: no such command; see patchbay --help", name);
	return 2;
}

/* For --help, sets an environment variable that makes argp leave out its general note on options.
 * The note would be a tenth of each help text. --help ends the process, so no child inherits the
 * variable. */
static void shorten_help(int argc, char **argv)
{
	for (int i = 2; i < argc && *argv[i] == '-'; i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-?"))
			setenv("ARGP_HELP_FMT", "no-dup-args-note", 0);
}

/* Runs at each exit, so it covers the help that argp prints, too. If output is missing, no command
 * ends with 0. */
static void finish_output(int status, void *arg)
{
	(void)arg;
	if (!fflush(stdout) && !ferror(stdout))
		return;
	pb_error(NULL, "can't write the output: %s", strerror(errno));
	if (!status)
		_exit(1);
}

/* If a standard descriptor is closed, a file that is opened later would get its number, and
 * messages would be written into this file. So its number is taken by a descriptor with O_PATH,
 * which gives EBADF for each read and write, as a closed one does. The traced program doesn't
 * inherit it. */
static void hold_closed(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/", O_PATH | O_CLOEXEC);	/* gets the lowest free number */
}

int main(int argc, char **argv)
{
	static char name[64];
	const struct pb_command *c;

	hold_closed();
	record_signals_prepare();
	on_exit(finish_output, NULL);
	argp_err_exit_status = 2;
	pb_commands = commands;
	if (argc < 2) {
		pb_error(NULL, "no command; see patchbay --help");
		return 2;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		return puts(argp_program_version) < 0;
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-?") || !strcmp(argv[1], "-h"))
		return main_help();
	if (!strcmp(argv[1], "help")) {
		c = argc > 2 ? pb_command_find(argv[2]) : NULL;
		if (!c)
			return argc > 2 ? unknown(argv[2]) : main_help();
		argv[2] = "--help";
		argc = 3;
	} else {
		c = pb_command_find(argv[1]);
	}
	if (!c)
		return unknown(argv[1]);
	/* argp prints argv[0] in its messages, so put the command's name there */
	snprintf(name, sizeof(name), "patchbay %s", c->name);
	argv[1] = name;
	shorten_help(argc, argv);
	return c->run(argc - 1, argv + 1);
}
