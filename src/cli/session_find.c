/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds a session: tries the socket of each session of this user. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/session_find.h"
#include "control/control.h"
#include "recorder/session_dir.h"

struct found {
	uint32_t pid;
	struct pb_control *first;
	unsigned nr;
	bool silent;		/* a session doesn't answer that may trace the process */
	char err[600];		/* if `silent` is set, the first such session's error; else the
				 * first error of a session without a process that is ready */
};

bool cli_session_ended(int err)
{
	return err == -ENOENT || err == -ECONNREFUSED || err == -ECONNRESET || err == -EPIPE;
}

static bool try_session(void *arg, const char *path)
{
	struct found *f = arg;
	struct pb_control *next;
	char err[sizeof(f->err)];
	int ret = pb_control_open(&next, path, f->pid, err, sizeof(err));

	/* -ESRCH for a PID: the session traces other processes. Without a PID: its process isn't
	 * ready */
	if (ret) {
		bool silent = ret != -ESRCH && !cli_session_ended(ret);

		if (silent ? !f->silent : ret == -ESRCH && !f->pid && !*f->err)
			memcpy(f->err, err, sizeof(err));
		f->silent |= silent;
		return false;
	}
	if (!f->nr++)
		f->first = next;
	else
		pb_control_close(next);
	return false;
}

int cli_session_find(const char *command, uint32_t pid, struct pb_control **c)
{
	struct found f = { .pid = pid };

	record_session_each(try_session, &f);
	*c = f.first;
	if (f.nr == 1 && (pid || !f.silent))
		return 0;
	pb_control_close(f.first);
	if (f.nr > 1)
		return pb_error(command, "%u sessions run; choose one with -p PID", f.nr);
	if (f.nr)
		return pb_error(command, "two sessions run; choose one with -p PID; %s", f.err);
	if (*f.err && pid)
		return pb_error(command, "%u: no session that answers traces this process; %s", pid,
				f.err);
	if (*f.err)
		return pb_error(command, "no session with a process answers; %s", f.err);
	if (pid)
		return pb_error(command, "%u: neither attached nor run by `patchbay record "
				"--serve'", pid);
	return pb_error(command, "no process is attached, and no `patchbay record --serve' runs");
}

uint32_t cli_session_recorder(uint32_t pid)
{
	struct found f = { .pid = pid };
	uint32_t recorder;

	record_session_each(try_session, &f);
	recorder = f.first ? pb_control_recorder(f.first) : 0;
	pb_control_close(f.first);
	return recorder;
}

int cli_session_pid(const char *command, const char *arg, uint32_t *pid)
{
	uint64_t n;

	if (pb_control_parse_u64(arg, INT32_MAX, &n) || !n) {
		pb_error(command, "%s: not a process number; patchbay ps lists the processes", arg);
		return EINVAL;
	}
	if (*pid) {
		pb_error(command, "%s: one process at a time", arg);
		return EINVAL;
	}
	*pid = (uint32_t)n;
	return 0;
}
