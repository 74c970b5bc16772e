/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `patchbay control`: reads and writes control files of a process that was attached, or that runs
 * under `patchbay record --serve`.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/control_files.h"
#include "base/base.h"
#include "base/clean_text.h"
#include "cli/cli.h"
#include "cli/session_find.h"
#include "control/control.h"
#include "control/resolve.h"

struct control_options {
	uint32_t pid;			/* 0: any */
	const char *session;		/* the socket's path, or its directory */
	bool append, usage_error;
	char *words[4];
	unsigned nr_words;
};

static const struct argp_option options[] = {
	{ "pid", 'p', "PID", 0, "The traced process (needed only where there are several)", 0 },
	{ "session", 's', "PATH", 0, "The session's directory or socket", 0 },
	{ "append", 'a', 0, 0, "Add to what the file holds (>>) instead of replacing it", 0 },
	{ 0 }
};

static void add_word(struct control_options *o, char *arg)
{
	if (o->nr_words < pb_array_size(o->words)) {
		o->words[o->nr_words++] = arg;
		return;
	}
	pb_error("control", "%s: too many words; quote the value", arg);
	o->usage_error = true;
}

static bool is_negative(const char *arg)
{
	return arg[0] == '-' && arg[1] >= '0' && arg[1] <= '9';
}

static error_t control_parse(int key, char *arg, struct argp_state *state)
{
	struct control_options *o = state->input;

	switch (key) {
	case 'p':
		return cli_session_pid("control", arg, &o->pid);
	case 's':
		o->session = arg;
		return 0;
	case 'a':
		o->append = true;
		return 0;
	case ARGP_KEY_ARG:
		add_word(o, arg);
		/* -1 is a wrong value, not an option */
		while (state->next < state->argc && is_negative(state->argv[state->next]))
			add_word(o, state->argv[state->next++]);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp control_argp = {
	.options = options,
	.parser = control_parse,
	.args_doc = "[PID] list\n[PID] [read] FILE\n[PID] [write] FILE VALUE",
	.doc = "Read and write the control files of a program that runs under "
	       "`patchbay record --serve', or that was attached.\v"
	       "FILE is a file of tracing/: current_tracer, set_ftrace_filter, tracing_on, ... "
	       "A VALUE of - is read from standard input.",
};

/* --- the session ---------------------------------------------------------- */

static int open_session(struct control_options *o, struct pb_control **c)
{
	char path[200], err[600];

	if (!o->session)
		return cli_session_find("control", o->pid, c);
	snprintf(path, sizeof(path), "%.190s", o->session);
	if (strlen(path) < 8 || strcmp(path + strlen(path) - 8, "/control"))
		strcat(path, "/control");
	if (pb_control_open(c, path, o->pid, err, sizeof(err)))
		return pb_error("control", "%s", err);
	return 0;
}

/* --- commands ------------------------------------------------------------- */

static int list_files(void)
{
	static const char *const modes[] = { "", "r", "w", "rw" };

	for (unsigned i = 0; i < PB_NR_CONTROL_FILES; i++) {
		const struct pb_control_info *f = pb_control_info((enum pb_control_file)i);

		printf("%-28s %-2s  %s\n", f->path, modes[f->mode], f->summary);
	}
	return 0;
}

/* Prints text from the program. Replaces control characters, since the program may be hostile. */
static void print_clean(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		size_t n = text[i] == '\n' || text[i] == '\t' ? 0 : pb_text_control(text + i);

		for (size_t k = 0; k < n && i + k < len; k++)
			text[i + k] = '?';
	}
	fwrite(text, 1, len, stdout);
}

static int read_file(struct control_options *o, const char *path)
{
	struct pb_control *c;
	char err[600], *text;
	size_t len;
	int ret = open_session(o, &c);

	if (ret)
		return ret;
	ret = pb_control_read(c, path, &text, &len, err, sizeof(err));
	pb_control_close(c);
	if (ret)
		return pb_error("control", "%s", err);
	print_clean(text, len);
	free(text);
	return 0;
}

static char *value_of(char *arg)
{
	char *text = NULL;
	size_t cap = 0;

	if (strcmp(arg, "-"))
		return strdup(arg);
	if (getdelim(&text, &cap, 0, stdin) < 0) {
		free(text);
		return strdup("");
	}
	return text;
}

static bool takes_patterns(enum pb_control_file file)
{
	return file == PB_CF_SET_FTRACE_FILTER || file == PB_CF_SET_FTRACE_NOTRACE ||
	       file == PB_CF_SET_GRAPH_FUNCTION || file == PB_CF_SET_GRAPH_NOTRACE ||
	       file == PB_CF_GRAPH_CALLERS;
}

/* The process has refused a value. Tries a list of patterns again with demangled names. If that is
 * of no use, reports the error. If the value is one pattern, suggests names of functions that are
 * like the pattern. */
static int write_again(struct pb_control *c, enum pb_control_file file, const char *value,
		       bool append, char *why, size_t len)
{
	const char *path = pb_control_info(file)->path;
	char near[4 * PB_EDIT_MAX] = "", err[600], *names, *list;
	size_t size;
	int ret = 1;

	if (takes_patterns(file) &&
	    !pb_control_read(c, "available_filter_functions", &names, &size, err, sizeof(err))) {
		list = pb_control_by_demangled(names, value);
		if (list)
			ret = pb_control_write(c, path, list, append, why, len);
		else if (!value[strcspn(value, " \t\n")])
			pb_control_nearest_name(names, value, near, sizeof(near));
		free(list);
		free(names);
	}
	return ret ? pb_error("control", "%s%s%s%s", why, *near ? "; did you mean " : "", near,
			      *near ? "?" : "") : 0;
}

static int write_file(struct control_options *o, enum pb_control_file file, const char *path,
		      char *arg)
{
	struct pb_control *c;
	char err[600], plain[64], *value = value_of(arg);
	int ret;

	if (!value)
		return pb_error("control", "out of memory");
	if (pb_control_validate(file, value, o->append, err, sizeof(err)))
		ret = pb_error("control", "%s: %s", path, err);
	else
		ret = open_session(o, &c);
	if (!ret) {
		ret = pb_control_write(c, path, pb_control_plain(file, value, plain, sizeof(plain)),
				       o->append, err, sizeof(err));
		/* other errors say nothing about the value */
		if (ret == -EINVAL)
			ret = write_again(c, file, value, o->append, err, sizeof(err));
		else if (ret)
			ret = pb_error("control", "%s", err);
		pb_control_close(c);
	}
	free(value);
	return ret;
}

static int usage(const char *why)
{
	pb_error("control", "%s; say patchbay control [PID] read FILE, or write FILE VALUE", why);
	return 2;
}

static int control_run(int argc, char **argv)
{
	struct control_options o = { 0 };
	enum pb_control_file file;
	uint64_t n;

	if (argp_parse(&control_argp, argc, argv, ARGP_IN_ORDER, NULL, &o) || o.usage_error)
		return 2;
	char **w = o.words;
	if (o.nr_words && !pb_control_parse_u64(w[0], INT32_MAX, &n)) {
		if (cli_session_pid("control", w[0], &o.pid))
			return 2;
		w++;
		o.nr_words--;
	}
	if (!o.nr_words)
		return usage("nothing to do");
	if (!strcmp(w[0], "list"))
		return list_files();
	/* the verb may be left out: one word means read, two words mean write */
	bool verb = !strcmp(w[0], "read") || !strcmp(w[0], "write");
	if (!verb && o.nr_words > 2)
		return usage("too many arguments; give FILE, or FILE and a value");
	bool write = verb ? *w[0] == 'w' : o.nr_words == 2;
	w += verb;
	if (o.nr_words != 1u + verb + write)
		return usage(write ? "a write takes a file and a value" : "a read takes a file");
	file = pb_control_find(w[0]);
	if (file == PB_NR_CONTROL_FILES)
		return pb_error("control", "%s: no such file; see patchbay control list", w[0]);
	const char *path = pb_control_info(file)->path;
	return write ? write_file(&o, file, path, w[1]) : read_file(&o, path);
}

const struct pb_command pb_command_control = {
	.name = "control",
	.summary = "Read and write the control files of a running program",
	.argp = &control_argp,
	.run = control_run,
};
