/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `patchbay attach`: starts a recorder in the background for a process that runs already. The
 * process then has its control files. Nothing is traced until a tracer is set.
 *
 * The background process is this one's child, with no terminal. It reports through a pipe when the
 * process is attached; if it ends before, the attach has failed, and its message was printed.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/ring.h"
#include "cli/cli.h"
#include "cli/record_options.h"

enum { OPT_DATA = 0x3000 };

struct attach {
	struct record_options record;
	bool keep;		/* --data was given */
};

static int report_fd;

static const struct argp_option options[] = {
	{ "data", OPT_DATA, "DIR", 0, "Keep what is traced in DIR, at the detach", 1 },
	{ 0 }
};

static error_t attach_parse(int key, char *arg, struct argp_state *state)
{
	struct attach *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->record;
		return 0;
	case OPT_DATA:
		a->record.dir = arg;
		a->keep = true;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child children[] = { { &record_common_argp }, { 0 } };
static const struct argp attach_argp = {
	.options = options,
	.parser = attach_parse,
	.args_doc = "-p PID",
	.doc = "Bring the agent into a running process, for `patchbay control'.\v"
	       "No tracer is set, unless --tracer is given. `patchbay detach' leaves the process as "
	       "it was.",
	.children = children,
};

/* Called when the agent is ready. */
static void attached(const struct record_options *o, unsigned sites)
{
	int null = open("/dev/null", O_RDWR);

	printf("%d is attached: %u functions can be traced; see patchbay control list\n",
	       (int)o->pid, sites);
	fflush(stdout);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	close(null);
	if (write(report_fd, "", 1) != 1)
		_exit(1);
	close(report_fd);
}

static int run_in_background(struct attach *a)
{
	setsid();
	a->record.quiet = true;
	a->record.on_ready = attached;
	return a->keep ? record_with(&a->record) : record_temporary(&a->record, "attach", NULL, NULL);
}

static int start(struct attach *a)
{
	int fds[2], status;
	char done;

	if (pipe2(fds, O_CLOEXEC))
		return pb_error("attach", "out of descriptors");
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		close(fds[0]);
		report_fd = fds[1];
		int ret = run_in_background(a);
		_exit(ret ? ret : 1);
	}
	close(fds[1]);
	if (pid < 0)
		return pb_error("attach", "no process could be started");
	ssize_t n = read(fds[0], &done, 1);
	close(fds[0]);
	if (n == 1)
		return 0;
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return pb_error("attach", "the recorder died");
	return WEXITSTATUS(status);
}

static int attach_run(int argc, char **argv)
{
	struct attach a = { .keep = false };
	int ret;

	record_options_init(&a.record);
	a.record.tracer = "nop";
	a.record.mode = PB_RING_OVERWRITE;
	ret = argp_parse(&attach_argp, argc, argv, ARGP_IN_ORDER, NULL, &a) || a.record.usage_error ? 2 : 0;
	if (!ret && !a.record.pid)
		ret = 2 * pb_error("attach", "no process; say patchbay attach -p PID");
	if (!ret)
		ret = start(&a);
	record_options_free(&a.record);
	return ret;
}

const struct pb_command pb_command_attach = {
	.name = "attach",
	.summary = "Bring the agent into a running process",
	.argp = &attach_argp,
	.run = attach_run,
};
