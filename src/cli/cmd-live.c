/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `patchbay live`: records into a temporary directory, and shows the calls while they happen. The
 * recorder copies what the threads have recorded to the directory ten times in a second, and after
 * each copy calls follow_round(), which prints what is new.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/record_options.h"
#include "control/control.h"
#include "module/demangle.h"
#include "reader/drain.h"
#include "reader/follow.h"
#include "reader/open_chunks.h"
#include "recorder/settings.h"
#include "view/live_text.h"

#define DELAY_NS	500000000	/* how long the output waits for a thread (reader/follow.h) */
#define LINES		1000		/* a terminal shows so many lines in a second */
#define GIVE_BACK	(1u << 20)	/* shown data is given back to the file system in pieces of
					 * at least this size */

enum { OPT_DEMANGLE = 0x2000, OPT_NO_PAGER, OPT_LINES };

struct live {
	struct record_options record;
	unsigned flags;			/* PB_FG_* */
	enum pb_demangle demangle;
	const char *output;
	uint64_t lines;
	bool lines_given;

	struct pb_out out;
	struct pb_live_text text;
	struct pb_follow *follow;
	uint64_t given_back;
	int error;
};

static const struct argp_option options[] = {
	{ "option", 'O', "NAME", 0, "A trace option for the output (see patchbay replay)", 4 },
	{ "demangle", OPT_DEMANGLE, "HOW", 0, "Names: simple, full (with parameters) or no", 4 },
	{ "output", 'o', "FILE", 0, "Write to FILE instead of standard output", 4 },
	{ "lines", OPT_LINES, "N", 0,
		"Show at most N lines in a second, and say how many calls are left out (1000 on a "
		"terminal, otherwise 0: all)", 4 },
	{ "no-pager", OPT_NO_PAGER, NULL, OPTION_HIDDEN, NULL, 4 },
	{ 0 }
};

static error_t live_parse(int key, char *arg, struct argp_state *state)
{
	struct live *l = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &l->record;
		return 0;
	case 'O':
		if (!pb_fg_set(&l->flags, arg))
			argp_failure(state, 2, 0, "--option=%s: no such trace option", arg);
		return 0;
	case OPT_DEMANGLE:
		if (!pb_demangle_style(arg, &l->demangle))
			argp_failure(state, 2, 0, "--demangle=%s: choose simple, full or no", arg);
		return 0;
	case 'o':
		l->output = arg;
		return 0;
	case OPT_LINES:
		if (pb_control_parse_u64(arg, 1000000, &l->lines))
			argp_failure(state, 2, 0, "--lines=%s: give a number up to 1000000; 0: all",
				     arg);
		l->lines_given = true;
		return 0;
	case OPT_NO_PAGER:
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child children[] = { { &record_common_argp }, { 0 } };
static const struct argp argp = {
	.options = options,
	.parser = live_parse,
	.args_doc = "[--] PROG [ARGS]\n-p PID",
	.doc = "Run PROG and show its calls while it runs, or show the calls of the process PID. "
	       "No data is kept.\v" RECORD_HELP_END,
	.children = children,
};

/* Gives the memory of shown data back to the file system. Without this, the data of a long session
 * would fill it. */
static void give_back(struct live *l, struct pb_drain *d)
{
	uint64_t done = pb_follow_done(l->follow) & ~(uint64_t)(GIVE_BACK - 1);

	if (done <= l->given_back || fallocate(d->datadir->chunks_fd,
					       FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					       (off_t)l->given_back,
					       (off_t)(done - l->given_back)))
		return;
	l->given_back = done;
	d->done = done;
}

static void show_new(struct live *l, const char *dir, const struct pb_open_chunks *o)
{
	char err[4600];

	if (l->error)
		return;
	if (!l->follow) {
		l->follow = pb_follow_open(dir, l->demangle, DELAY_NS, err, sizeof(err));
		l->error = l->follow ? 0 : pb_error("live", "%s", err);
	}
	if (l->error)
		return;
	int ret = pb_follow_update(l->follow, o, true);

	if (!ret)
		ret = pb_live_text_round(&l->text, l->follow);
	if (ret)
		l->error = pb_error("live", "%s", strerror(-ret));
}

static void follow_round(void *arg, const struct pb_open_chunks *o)
{
	struct live *l = arg;

	show_new(l, l->record.dir, o);
	if (l->follow)
		give_back(l, o->drain);
	/* nobody reads the output any more */
	if (l->out.error && l->record.pid)
		l->record.leave = true;
}

static int show_end(void *arg, const char *dir)
{
	struct live *l = arg;
	int ret;

	show_new(l, dir, NULL);
	if (!l->error)
		pb_live_text_end(&l->text, l->follow);
	ret = pb_out_close(&l->out);
	if (ret)
		return pb_error("live", "can't write the output: %s", strerror(-ret));
	return l->error;
}

static int open_output(struct live *l)
{
	int fd = STDOUT_FILENO;

	if (l->output)
		fd = open(l->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return pb_error("live", "--output=%s: %s", l->output, strerror(errno));
	pb_out_open(&l->out, "live", false);
	l->out.fd = fd;
	l->out.colour &= isatty(fd);
	l->out.progress_next = 0;
	if (!l->lines_given)
		l->lines = isatty(fd) ? LINES : 0;
	l->text = (struct pb_live_text){
		.out = &l->out, .flags = l->flags, .lines = (uint32_t)l->lines,
	};
	return 0;
}

static int live_run(int argc, char **argv)
{
	static struct live l = { .flags = PB_FG_DEFAULT };
	int ret;

	record_options_init(&l.record);
	ret = argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &l) ||
	      l.record.usage_error ? 2 : 0;
	if (!ret)
		ret = open_output(&l);
	l.record.round = follow_round;
	l.record.round_arg = &l;
	if (!ret)
		ret = record_temporary(&l.record, "live", show_end, &l);
	pb_live_text_free(&l.text);
	pb_follow_close(l.follow);
	record_options_free(&l.record);
	return ret;
}

const struct pb_command pb_command_live = {
	.name = "live",
	.summary = "Show the calls of a program or of a running process while they happen",
	.argp = &argp,
	.run = live_run,
};
