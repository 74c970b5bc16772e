/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `patchbay attach`: starts a recorder in the background for a process that runs already. The
 * process can then be controlled by `patchbay control`. Nothing is traced until a tracer is set.
 *
 * The recorder is a child of this command, in a session of its own. Until the process is attached,
 * the recorder uses this command's standard error, so the user sees the recorder's messages. When
 * the process is attached, the recorder prints one line that says so, and replaces its standard
 * streams by /dev/null. Then it writes a byte to a pipe, and this command ends. If the recorder
 * ends before it writes the byte, the attach has failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/ring.h"
#include "base/base.h"
#include "base/clean_text.h"
#include "cli/cli.h"
#include "cli/record_options.h"
#include "recorder/texts.h"

#define REPORT_FD	3	/* the recorder's end of the pipe */

struct attach {
	struct record_options record;
	char *dir;		/* the absolute path of --data; NULL: not given */
};

static const struct argp_option options[] = {
	{ "data", 'd', "DIR", 0, "At the detach, write the newest records to DIR", 1 },
	{ 0 }
};

static error_t parse_data(struct attach *a, const char *arg)
{
	char cwd[PATH_MAX];

	/* make the path absolute, because the recorder changes its directory to / */
	free(a->dir);
	if (*arg == '/')
		a->dir = strdup(arg);
	else if (!getcwd(cwd, sizeof(cwd)) || asprintf(&a->dir, "%s/%s", cwd, arg) < 0)
		a->dir = NULL;
	a->record.dir = a->dir;
	a->record.temporary = false;
	return a->dir ? 0 : ENOMEM;
}

static error_t attach_parse(int key, char *arg, struct argp_state *state)
{
	struct attach *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->record;
		return 0;
	case 'd':
		return parse_data(a, arg);
	case ARGP_KEY_ARG:
		/* a PID without the option -p */
		return record_common_argp.parser('p', arg, &(struct argp_state){
				.input = &a->record });
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child children[] = { { &record_common_argp }, { 0 } };
static const struct argp attach_argp = {
	.options = options,
	.parser = attach_parse,
	.args_doc = "[-p] PID",
	.doc = "Bring the agent into a running process, for `patchbay control'.\v"
	       "No tracer is set, unless --tracer is given. The newest records are kept in memory. "
	       "`patchbay detach' leaves the process as it was.",
	.children = children,
};

/* The recorder calls this function when the process is attached. */
static void attached(struct record_options *o, const char *name, unsigned sites, uint64_t ns)
{
	char clean[64];
	int null = open("/dev/null", O_RDWR);

	snprintf(clean, sizeof(clean), "%s", name);
	pb_text_clean(clean, '?', 0);
	printf("%s (%d) is attached: %u function%s can be traced, after %llu ms; next: patchbay "
	       "control -p %d current_tracer function_graph\n", clean, (int)o->pid, sites,
	       pb_plural(sites), (unsigned long long)(ns / 1000000), (int)o->pid);
	fflush(stdout);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
	/* If write() fails, this command was killed, so the user doesn't want the process to stay
	 * attached */
	if (chdir("/") || write(REPORT_FD, "", 1) != 1)
		o->leave = true;
	close(REPORT_FD);
}

/* Runs the recorder in the child process. Never returns. Closes the descriptors that this command
 * has inherited from its caller, so that the recorder doesn't keep them open. */
static void run_recorder(struct attach *a, int report_fd)
{
	int ret;

	setsid();
	if (dup2(report_fd, REPORT_FD) != REPORT_FD)
		_exit(pb_error("attach", "%s", strerror(errno)));
	fcntl(REPORT_FD, F_SETFD, FD_CLOEXEC);
	close_range(REPORT_FD + 1, ~0u, 0);
	a->record.quiet = true;
	a->record.on_ready = attached;
	if (!a->dir && a->record.mode == PB_RING_OVERWRITE)
		a->record.max_size = PB_CHUNK_SIZE;	/* a small file is enough, because the data
							 * is removed at the end */
	ret = a->dir ? record_with(&a->record) :
	      record_temporary(&a->record, "attach", NULL, NULL);
	_exit(ret ? ret : 1);
}

static int start(struct attach *a)
{
	int fds[2], status;
	char done;

	if (pipe2(fds, O_CLOEXEC))
		return pb_error("attach", "%s", strerror(errno));
	fflush(stdout);
	pid_t pid = fork();
	if (!pid)
		run_recorder(a, fds[1]);
	close(fds[1]);
	if (pid < 0)
		return pb_error("attach", "%s", strerror(errno));
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
	struct attach a = { .dir = NULL };
	int ret;

	record_say_as("attach");
	record_options_init(&a.record);
	a.record.tracer = "nop";
	a.record.attach_only = a.record.temporary = true;	/* temporary until --data is seen */
	ret = argp_parse(&attach_argp, argc, argv, ARGP_IN_ORDER, NULL, &a) ||
	      a.record.usage_error ? 2 : 0;
	if (!ret)
		ret = start(&a);
	record_options_free(&a.record);
	free(a.dir);
	return ret;
}

const struct pb_command pb_command_attach = {
	.name = "attach",
	.summary = "Bring the agent into a running process",
	.argp = &attach_argp,
	.run = attach_run,
};
