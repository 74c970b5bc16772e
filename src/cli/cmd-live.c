/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `patchbay live` and `patchbay top`: record into a temporary directory, and show calls (`live`) or
 * sums of calls (`top`) while the program runs. Ten times a second, the recorder copies new records
 * to the directory, and then calls follow_round(). This function reads the new events. `live`
 * prints them; `top` adds them to its sums, and prints a table when one is due.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/messages.h"
#include "base/base.h"
#include "base/clean_text.h"
#include "base/sys.h"
#include "cli/cli.h"
#include "cli/give_up.h"
#include "cli/record_options.h"
#include "control/control.h"
#include "module/demangle.h"
#include "reader/drain.h"
#include "reader/follow.h"
#include "reader/open_chunks.h"
#include "reader/say.h"
#include "recorder/settings.h"
#include "recorder/texts.h"
#include "view/live_text.h"
#include "view/screen.h"
#include "view/top.h"

#define DELAY_NS	500000000	/* limit of a thread's delay (reader/follow.h) */
#define LINES		1000		/* default limit of the lines in a second on a terminal */
#define GIVE_BACK	(1u << 20)	/* shown data is given back to the file system in
					 * pieces of at least this size */

#define ROUND_NS	100000000u	/* time between two rounds */
#define SAMPLE_NS	1000000000u	/* if decoding all records would take too much processor
					 * time, they wait at most this long; then only a sample of
					 * them is decoded (reader/sample.h) */

#define INTERVAL_MIN	100000000ull
#define INTERVAL_MAX	3600000000000ull

enum {
	OPT_DEMANGLE = 0x2000, OPT_NO_PAGER, OPT_LINES, OPT_TOP, OPT_SORT, OPT_INTERVAL, OPT_COUNT,
	OPT_THREADS, OPT_CPU,
};

struct live {
	const char *command;		/* for messages */
	struct record_options record;
	unsigned flags;			/* PB_FG_* */
	enum pb_demangle demangle;
	const char *output;
	uint64_t lines;
	bool lines_given;
	bool top;
	const char *top_option;		/* an option that needs --top, or NULL */
	uint64_t interval, count;	/* interval: in ns; count: limit of the number of tables, 0:
					 * no limit */

	struct pb_out out;
	struct pb_live_text text;
	struct pb_top tables;
	uint64_t sampled_ns;
	bool key;			/* a key has changed the table */
	bool copied;			/* the round begins with a copy of the open chunks */
	uint64_t next_ns, printed;	/* next_ns: when the next table is due; printed: number of
					 * tables so far */
	struct pb_follow *follow;
	unsigned skipped;		/* number of rounds that couldn't open the recording */
	uint64_t given_back;
	int error;
};

static const struct argp_option options[] = {
	{ "option", 'O', "NAME", 0, "A trace option for the output (see patchbay replay)", 4 },
	{ "demangle", OPT_DEMANGLE, "HOW", 0, "Names: simple, full (with parameters) or no", 4 },
	{ "output", 'o', "FILE", 0, "Write to FILE instead of standard output", 4 },
	{ "lines", OPT_LINES, "N", 0,
		"Show at most N lines in a second, and say how many calls are left out (1000 on "
		"a terminal, otherwise 0: all)", 4 },
	{ 0, 0, 0, 0, "Instead of the calls, a table of the functions:", 5 },
	{ "top", OPT_TOP, NULL, 0,
		"Show functions by calls, total time and self time, again and again", 5 },
	{ "sort", OPT_SORT, "KEY", 0, "Order: self (default), total, calls or name", 5 },
	{ "interval", OPT_INTERVAL, "TIME", 0, "Time between two tables (1s)", 5 },
	{ "count", OPT_COUNT, "N", 0, "End after N tables; the processes run on", 5 },
	{ "threads", OPT_THREADS, NULL, 0, "A table for each thread", 5 },
	{ "cpu", OPT_CPU, "PERCENT", 0,
		"While no processor is idle, use at most this percentage of the program's "
		"processor time to read its records (0.5). If that isn't enough, numbers are "
		"estimates. 100: no limit", 5 },
	{ "no-pager", OPT_NO_PAGER, NULL, OPTION_HIDDEN, NULL, 4 },
	{ 0 }
};

static bool set_sort(struct live *l, const char *key)
{
	static const struct { const char *name; enum pb_report_sort sort; } keys[] = {
		{ "self", PB_SORT_SELF }, { "total", PB_SORT_TOTAL }, { "calls", PB_SORT_CALLS },
		{ "name", PB_SORT_FUNC },
	};

	for (size_t i = 0; i < pb_array_size(keys); i++)
		if (!strcmp(key, keys[i].name)) {
			l->tables.sort = keys[i].sort;
			return true;
		}
	return false;
}

static bool set_cpu(struct live *l, const char *text)
{
	char *end;
	double percent = strtod(text, &end);

	l->tables.sample.share = percent / 100;
	return end != text && !*end && percent >= 0.01 && percent <= 100;
}

static error_t parse_top(struct live *l, int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case OPT_TOP:
		l->top = true;
		return 0;
	case OPT_SORT:
		l->top_option = "--sort";
		if (!set_sort(l, arg))
			argp_failure(state, 2, 0, "--sort=%s: choose self, total, calls or name",
				     arg);
		return 0;
	case OPT_INTERVAL:
		l->top_option = "--interval";
		if (pb_control_parse_duration(arg, &l->interval) || l->interval < INTERVAL_MIN ||
		    l->interval > INTERVAL_MAX)
			argp_failure(state, 2, 0, "--interval=%s: give a time from 100ms to 3600s, "
				     "for example 500ms or 2s", arg);
		return 0;
	case OPT_COUNT:
		l->top_option = "--count";
		if (pb_control_parse_u64(arg, UINT32_MAX, &l->count) || !l->count)
			argp_failure(state, 2, 0, "--count=%s: not a number of tables", arg);
		return 0;
	case OPT_CPU:
		l->top_option = "--cpu";
		if (!set_cpu(l, arg))
			argp_failure(state, 2, 0, "--cpu=%s: give a percentage from 0.01 to 100, "
				     "for example 0.5", arg);
		return 0;
	case OPT_THREADS:
		l->top_option = "--threads";
		l->tables.threads = true;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

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
	case ARGP_KEY_END:
		if (l->top_option && !l->top)
			argp_failure(state, 2, 0, "%s: only with --top", l->top_option);
		if (l->lines_given && l->top)
			argp_failure(state, 2, 0, "--lines: not with --top, which shows no calls");
		return 0;
	}
	return parse_top(l, key, arg, state);
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

/* Gives the space of shown data back to the file system, so that a long session doesn't fill the
 * file system. After an error, no more data is shown. */
static void give_back(struct live *l, struct pb_drain *d)
{
	uint64_t done = l->error ? d->bytes : pb_follow_done(l->follow);

	done &= ~(uint64_t)(GIVE_BACK - 1);
	if (done <= l->given_back || fallocate(d->datadir->chunks_fd,
					       FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					       (off_t)l->given_back,
					       (off_t)(done - l->given_back)))
		return;
	l->given_back = done;
	d->done = done;
}

/* Handles all keys that were pressed. Returns true if a key was pressed. The caller must then show
 * a new table. */
static bool handle_keys(struct live *l)
{
	bool changed = false;
	char key;

	while ((key = pb_screen_key())) {
		changed = true;
		switch (key) {
		case 'c':
			l->tables.sort = PB_SORT_CALLS;
			break;
		case 't':
			l->tables.sort = PB_SORT_TOTAL;
			break;
		case 's':
			l->tables.sort = PB_SORT_SELF;
			break;
		case 'n':
			l->tables.sort = PB_SORT_FUNC;
			break;
		case 'q':
			l->record.leave = true;
			break;
		}
	}
	return changed;
}

/* Returns the time of the next round in which records that wait are sampled. */
static uint64_t due_ns(const struct live *l)
{
	uint64_t sample = l->sampled_ns + SAMPLE_NS;

	return l->next_ns && l->next_ns < sample ? l->next_ns : sample;
}

static int show_top(struct live *l, const struct pb_open_chunks *o, bool due, bool print)
{
	uint64_t now = pb_now_ns();
	int ret = pb_top_round(&l->tables, l->follow, due);

	if (due)
		l->sampled_ns = now;
	if (ret || !o)
		return ret;
	/* The first table's interval begins at the last round before the process is traced, not at
	 * the start: on a busy machine, an attach may take longer than several intervals. */
	if (!l->tables.begun || !pb_follow_is_traced(l->follow))
		l->tables.begun = l->tables.last = o->clock;
	if (!l->next_ns) {
		if (!pb_follow_is_traced(l->follow))
			return 0;
		l->next_ns = now + l->interval;
		l->tables.screen = pb_screen_open(&l->out, l->record.pid != 0);
	}
	if (!print || l->record.leave)
		return 0;
	l->next_ns = now - l->next_ns > l->interval ? now + l->interval :
		     l->next_ns + l->interval;
	ret = pb_top_print(&l->tables, l->follow, o->clock);
	if (++l->printed == l->count)
		l->record.leave = true;
	return ret;
}

/* Makes a round of --top. If records wait, there is nothing to do before they are due, and open
 * chunks need not be copied until shortly before that time. */
static int update_top(struct live *l, const struct pb_open_chunks *o)
{
	uint64_t now = pb_now_ns();
	bool print, due;
	int ret = 0;

	l->key |= l->next_ns && handle_keys(l);
	print = l->copied && l->next_ns && (l->key || now >= l->next_ns);
	due = !o || print || (l->copied && now >= due_ns(l));
	if (due || !l->tables.sample.holds) {
		ret = pb_follow_update(l->follow, o, l->tables.by_time);
		if (ret == PB_FOLLOW_SKIPPED)
			return 0;
		ret = ret ? ret : show_top(l, o, due, print);
		l->key = false;
	}
	l->copied = l->key || !l->tables.sample.holds || now + 2 * ROUND_NS > due_ns(l);
	return ret;
}

static int update_calls(struct live *l, const struct pb_open_chunks *o)
{
	int ret = pb_follow_update(l->follow, o, true);

	if (ret == PB_FOLLOW_SKIPPED)
		return 0;
	return ret ? ret : pb_live_text_round(&l->text, l->follow);
}

/* Ends the display. The line mustn't be on the table's screen, which is gone after the end. */
static void fail(struct live *l, const char *text)
{
	pb_screen_close(&l->out);
	l->tables.screen = false;
	l->error = pb_error(l->command, "%s", text);
}

/* Opens the recording. If this process is short of descriptors or memory for a moment, the next
 * round tries again, as after PB_FOLLOW_SKIPPED. */
static void open_recording(struct live *l, const char *dir, bool ended)
{
	char err[4600];

	l->follow = pb_follow_open(dir, l->demangle, DELAY_NS, err, sizeof(err));
	if (l->follow)
		return;
	if (ended || !pb_data_may_pass(-errno) || l->skipped++ >= PB_FOLLOW_SKIPS_MAX)
		fail(l, err);
}

static void show_new(struct live *l, const char *dir, const struct pb_open_chunks *o)
{
	char err[300];

	if (!l->error && !l->follow)
		open_recording(l, dir, !o);
	if (l->error || !l->follow)
		return;
	int ret = l->top ? update_top(l, o) : update_calls(l, o);

	if (!ret)
		return;
	snprintf(err, sizeof(err), "%s%s", strerror(-ret), pb_say_limit(ret));
	fail(l, err);
}

static bool follow_round(void *arg, const struct pb_open_chunks *o)
{
	struct live *l = arg;

	cli_give_up_writer();
	show_new(l, l->record.dir, o);
	if (l->follow || l->error)
		give_back(l, o->drain);
	/* if no more can be shown, or the output can't be written, for example because the pipe was
	 * closed, end the recording of the attached process */
	if ((l->out.error || l->error) && l->record.pid)
		l->record.leave = true;
	return l->copied;
}

/* The recording has ended. If the output's reader doesn't read, a further signal ends the wait. */
static void on_end(void *arg)
{
	struct live *l = arg;

	cli_give_up_begin(&l->out);
}

static int show_end(void *arg, const char *dir)
{
	struct live *l = arg;
	int ret;

	cli_give_up_writer();
	pb_screen_close(&l->out);
	show_new(l, dir, NULL);
	/* the recorder could perhaps not write what it has discarded either */
	if (l->follow && l->record.write_error && !pb_follow_data(l->follow)->discard_error)
		pb_follow_data(l->follow)->discard_error = (uint32_t)-l->record.write_error;
	l->tables.screen = false;
	if (!l->error && l->top)
		pb_top_print_all(&l->tables, l->follow, pb_cpu_counter());
	else if (!l->error)
		pb_live_text_end(&l->text, l->follow);
	ret = pb_out_close(&l->out);
	if (ret == -ECANCELED)
		return pb_error(l->command, "the rest of the output is given up: a signal came "
				"while its reader didn't read");
	if (ret)
		return pb_error(l->command, "can't write the output: %s", strerror(-ret));
	return l->error;
}

static int open_output(struct live *l)
{
	int fd = STDOUT_FILENO;

	if (l->output)
		fd = open(l->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return pb_error(l->command, "--output=%s: %s", l->output, strerror(errno));
	pb_out_open(&l->out, l->command, false);
	/* pb_out_open() has made this process ignore SIGPIPE. The program inherits how SIGPIPE is
	 * handled, so this is undone. The recorder ignores SIGPIPE itself. */
	signal(SIGPIPE, l->out.old_pipe);
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

/* Prepares --top: sets the table's name, and makes the agent stay connected, so that the recorder
 * can ask it to detach. */
static void prepare_top(struct live *l)
{
	static char name[64];

	l->tables.out = &l->out;
	if (l->record.pid)
		snprintf(name, sizeof(name), "process %d", (int)l->record.pid);
	else
		snprintf(name, sizeof(name), "%s", l->record.argv[0]);
	pb_text_clean(name, '?', 0);
	l->tables.name = name;
	l->record.serve = true;
	l->record.welcome_flags |= PB_WELCOME_SERVE;
}

static int run(int argc, char **argv, bool top)
{
	static struct live l = {
		.flags = PB_FG_DEFAULT, .interval = 1000000000, .tables.sort = PB_SORT_SELF,
		.tables.sample.share = 0.005, .copied = true,
	};
	int ret;

	l.top = top;
	l.command = top ? "top" : "live";
	record_say_as(l.command);
	record_options_init(&l.record);
	l.record.temporary = true;
	ret = argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &l) ||
	      l.record.usage_error ? 2 : 0;
	if (!ret)
		ret = open_output(&l);
	if (!ret && l.top)
		prepare_top(&l);
	l.record.round = follow_round;
	l.record.round_arg = &l;
	l.record.on_end = on_end;
	if (!ret)
		ret = record_temporary(&l.record, l.command, show_end, &l);
	cli_give_up_end();
	pb_screen_close(&l.out);
	pb_live_text_free(&l.text);
	pb_top_free(&l.tables);
	pb_follow_close(l.follow);
	record_options_free(&l.record);
	return ret;
}

static int live_run(int argc, char **argv)
{
	return run(argc, argv, false);
}

static int top_run(int argc, char **argv)
{
	return run(argc, argv, true);
}

const struct pb_command pb_command_live = {
	.name = "live",
	.summary = "Show the calls of a program or of a running process while they happen",
	.argp = &argp,
	.run = live_run,
};

const struct pb_command pb_command_top = {
	.name = "top",
	.summary = "The same as live --top: a table of the functions that run now",
	.argp = &argp,
	.run = top_run,
};
