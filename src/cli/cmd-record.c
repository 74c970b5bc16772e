/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay record`: calls the steps of a recording in their order. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach/inject.h"
#include "base/base.h"
#include "cli/bpf/bpf_attach.h"
#include "cli/cli.h"
#include "cli/record_options.h"
#include "cli/temporary.h"
#include "cli/session_find.h"
#include "reader/say.h"
#include "recorder/analyse_ahead.h"
#include "recorder/modules.h"
#include "recorder/patterns.h"
#include "recorder/ring_memory.h"
#include "recorder/running.h"
#include "recorder/run.h"
#include "recorder/session_dir.h"
#include "recorder/settings.h"
#include "recorder/start_program.h"
#include "recorder/target.h"
#include "recorder/texts.h"

static int attach(const struct record_options *o, const char *agent, const char *session,
		  uint64_t *stop_ns)
{
	struct pb_inject in = {
		.pid = o->pid, .agent = agent, .session = session, .children = o->children,
	};
	struct pb_injected out;
	char err[700];

	int ret = pb_inject(&in, &out, err, sizeof(err));

	*stop_ns = out.stop_ns;
	return ret ? record_error("%s", err) : 0;
}

static int let_go(const struct record_let_go *l, char *err, size_t size)
{
	struct pb_inject in = {
		.pid = l->pid, .agent = l->agent, .session = l->session, .leave = true,
		.until = l->until, .limit = l->limit,
	};
	struct pb_injected out;
	int ret = pb_inject(&in, &out, err, size);

	return ret == -ETIMEDOUT && out.called ? -EINPROGRESS : ret;
}

static void attached(struct record_options *o, const char *name, unsigned sites, uint64_t ns)
{
	if (!o->quiet)
		pb_say(NULL, "%s (%d) is attached: %u function%s can be traced; ^C ends the "
		       "recording", name, (int)o->pid, sites, pb_plural(sites));
}

static int find_process(struct record_options *o, struct record_target *target)
{
	uint32_t recorder;

	o->argv = record_running_target(target, o->pid);
	if (!o->argv)
		return 1;
	recorder = cli_session_recorder((uint32_t)o->pid);
	if (recorder)
		return record_error("%s (%d) is already being recorded by process %u; to end that, "
				    "run `patchbay detach -p %d'", target->name, (int)o->pid,
				    recorder, (int)o->pid);
	o->attach = attach;
	if (!o->on_ready)
		o->on_ready = attached;
	return 0;
}

/* Finds the program to start, or the running process to attach to. */
static int find_target(struct record_options *o, struct record_target *target)
{
	return o->pid ? find_process(o, target) : record_target_resolve(target, o->argv[0]);
}

static void free_target(struct record_options *o, struct record_target *target)
{
	if (o->pid)
		record_running_close(target);
	if (o->pid && o->argv) {
		free(o->argv[0]);
		free(o->argv);
	}
	free(target);
}

int record_with(struct record_options *o)
{
	struct record_target *target = calloc(1, sizeof(*target));
	struct record_modules modules = { .options = o };
	struct record_session session;
	struct record_signals signals;
	struct record_ring ring;
	int ret;

	if (!target)
		return record_error("out of memory");
	ret = find_target(o, target);
	if (!ret)
		modules.ahead = record_ahead_start(o, target);
	if (!ret && o->bpf)
		ret = bpf_attach_open(o->bpf, o);
	if (!ret)
		ret = record_filters_resolve(o, target, &modules);
	if (!ret && o->bpf)
		ret = bpf_attach_publish(o->bpf, o);
	if (ret)
		goto out;
	record_ahead_wait(modules.ahead);
	record_signals_take(&signals);
	ret = record_session_open(&session, o->serve);
	if (ret)
		goto out;
	ret = record_session_find_agent(&session);
	if (!ret)
		ret = record_ring_create(&ring, o->buffer, o->mode);
	if (!ret) {
		o->let_go = let_go;
		ring.attached = o->pid;
		if (o->bpf)
			bpf_attach_ring(o->bpf, &ring);
		ret = record_run(o, target, &session, &ring, &modules, &signals);
		munmap(ring.map, ring.geometry.size);
		close(ring.fd);
	}
	record_session_close(&session);
out:
	/* First, because a process that record_ahead_start() is just spawning has the descriptors
	 * of maps until it executes its program. bpf_attach_close() would find the maps in use. */
	record_modules_free(&modules);
	if (o->bpf)
		bpf_attach_close(o->bpf, o);
	free_target(o, target);
	return ret;
}

int record_temporary(struct record_options *o, const char *command,
		     int (*show)(void *arg, const char *data), void *arg)
{
	char data[CLI_TEMPORARY];
	int ret, shown = 0;

	if (cli_temporary_make(command, data))
		return 1;
	o->dir = data;
	o->quiet = o->temporary = true;
	ret = record_with(o);
	if (show && o->recorded)
		shown = show(arg, data);
	cli_temporary_remove(data);
	return ret ? ret : shown;
}

int record_with_programs(struct record_options *o, const char *command)
{
	static struct bpf_attach attach;

	if (o->bpf_object) {
		attach.command = command;
		attach.path = o->bpf_object;
		attach.to = stderr;
		o->bpf = &attach;
	}
	return record_with(o);
}

static int record_command_run(int argc, char **argv)
{
	struct record_options o;
	int ret = record_options_parse(&o, argc, argv);

	if (!ret)
		ret = record_with_programs(&o, "record");
	record_options_free(&o);
	return ret;
}

const struct pb_command pb_command_record = {
	.name = "record",
	.summary = "Record the calls of a program or of a running process",
	.argp = &record_argp,
	.run = record_command_run,
};
