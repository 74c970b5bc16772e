/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The argp tables with the options of recording commands, and the parsers that turn the options
 * into settings (struct record_options). */
#include "cli/record_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/messages.h"
#include "abi/ring.h"
#include "abi/snapshot_word.h"
#include "base/base.h"
#include "cli/cli.h"
#include "module/module.h"
#include "recorder/bpf_hooks.h"
#include "recorder/marks.h"
#include "recorder/texts.h"

#define DEFAULT_BUFFER	 (64ull << 20)
#define DEFAULT_MAX_SIZE (4ull << 30)

enum {
	OPT_TRACER = 256, OPT_MATCH, OPT_CLOCK, OPT_NO_LOSS, OPT_OVERWRITE, OPT_NO_FORK,
		OPT_NO_EXEC,
	OPT_MODULE, OPT_ALL, OPT_ALL_SITES, OPT_MAX_SIZE, OPT_SERVE, OPT_BPF, OPT_MAP, OPT_GLOBAL,
		OPT_BTF,
	OPT_SET, OPT_FOR, OPT_CHILDREN,
};

/* Options of all commands that record: `record`, `flight`, `live`, `top`, `attach`, `bpf trace`. */
static const struct argp_option common[] = {
	{ "tracer", OPT_TRACER, "NAME", 0, "function_graph (default), function or nop", 1 },
	{ "pid", 'p', "PID", 0,
		"Attach to the process PID, until ^C or until it ends; it runs on afterwards", 1 },
	{ "for", OPT_FOR, "TIME", 0, "With -p: detach after this time (500ms, 10s, 2m)", 1 },
	{ "children", OPT_CHILDREN, 0, 0,
		"With -p: trace the children that the process makes from now on, too", 1 },
	{ 0, 0, 0, 0, "What is recorded (FUNC is a pattern; options may be repeated):", 2 },
	{ "filter", 'F', "FUNC", 0, "Record FUNC and what it calls, nothing else", 2 },
	{ "notrace", 'N', "FUNC", 0, "Leave out FUNC and what it calls", 2 },
	{ "caller-filter", 'C', "FUNC", 0, "Record FUNC and its callers only", 2 },
	{ "patch", 'P', "FUNC", 0, "Patch FUNC only; other functions stay as they are", 2 },
	{ "unpatch", 'U', "FUNC", 0, "Do not patch FUNC", 2 },
	{ "size-filter", 'Z', "BYTES", 0, "Only functions of at least BYTES bytes of code", 2 },
	{ "match", OPT_MATCH, "TYPE", 0, "Patterns are glob (default), regex or simple", 2 },
	{ "depth", 'D', "N", 0, "Record N levels of calls only", 2 },
	{ "time-filter", 't', "TIME", 0,
		"Record only calls of at least TIME: 5us, 1.5ms, 2s; 100 is in ns, 0.1 in s", 2 },
	{ "module", OPT_MODULE, "GLOB", 0,
		"Trace the libraries that match too, for example 'libssl.so*'", 2 },
	{ "all", OPT_ALL, 0, 0, "Trace all libraries too, including libc and ld.so", 2 },
	{ "all-sites", OPT_ALL_SITES, 0, 0,
		"In a program built with -pg or the like, also trace functions "
	  "that the compiler did not instrument", 2 },
	{ "no-fork", OPT_NO_FORK, 0, 0, "Do not trace child processes", 2 },
	{ "no-exec", OPT_NO_EXEC, 0, 0, "Do not trace programs that PROG executes", 2 },
	{ 0, 0, 0, 0, "How it is recorded:", 3 },
	{ "buffer", 'b', "SIZE", 0, "Size of the ring buffer (64M)", 3 },
	{ "max-size", OPT_MAX_SIZE, "SIZE", 0,
		"Stop recording at SIZE of data (4G; 0: no limit). With --overwrite, the newest "
	  "SIZE of data is kept", 3 },
	{ "no-loss", OPT_NO_LOSS, 0, 0,
		"Make the program wait when the buffer is full, instead of losing calls", 3 },
	{ "overwrite", OPT_OVERWRITE, 0, 0, "Keep the newest records only (flight recorder)", 3 },
	{ "clock", OPT_CLOCK, "NAME", 0,
		"Trace clock (x86-tsc): local, global, perf, mono, mono_raw, boot, "
	  "uptime or none", 3 },
	{ "serve", OPT_SERVE, 0, 0, "Let `patchbay control' change the running program's tracing",
		3 },
	{ "set", OPT_SET, "FILE=VALUE", 0,
		"Write VALUE to the control file (see `patchbay control list') before "
	  "the program begins", 3 },
	{ 0 }
};

/* Further options of `record` and `flight`. */
static const struct argp_option own[] = {
	{ "directory", 'd', "DIR", 0,
		"Data directory (" PB_DEFAULT_DIR "); an existing recording is "
	  "renamed to DIR.old", 1 },
	{ "data", 0, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 0 },
	{ "bpf", OPT_BPF, "OBJECT", 0,
		"Attach the object's eBPF programs to functions; if a program returns 0 at a "
	  "function's entry, the call isn't recorded", 2 },
	{ "map", OPT_MAP, "NAME:SIZES", 0,
		"With --bpf: set sizes of the object's map NAME: max_entries=N, "
	  "value_size=N, key_size=N, separated by commas", 2 },
	{ "global", OPT_GLOBAL, "NAME=VALUE", 0,
		"With --bpf: set the object's variable NAME to VALUE", 2 },
	{ "btf", OPT_BTF, "FILE", 0,
		"With --bpf: CO-RE looks for types in FILE first, then among the kernel's", 2 },
	{ "quiet", 'q', 0, 0, "No progress, no closing line", 3 },
	{ 0 }
};

static void usage_error(struct argp_state *state, const char *fmt, const char *arg)
{
	char text[600];

	snprintf(text, sizeof(text), fmt, arg);
	record_error("%s", text);
	((struct record_options *)state->input)->usage_error = true;
}

static void no_program(struct argp_state *state)
{
	const char *command = record_said_by();
	const char *object = strncmp(command, "bpf", 3) ? "" : "OBJECT ";
	char text[200];

	snprintf(text, sizeof(text), "%s %sPROG [ARGS], or %s %s-p PID", command, object, command,
		 object);
	usage_error(state, "no program to run; say patchbay %s", text);
}

static int add_pattern(struct record_options *o, int key, const char *arg)
{
	struct record_pattern *list = realloc(o->patterns, (o->nr_patterns + 1) * sizeof(*list));

	if (!list)
		return ENOMEM;
	o->patterns = list;
	list[o->nr_patterns++] = (struct record_pattern){ (char)key, arg, 0 };
	return 0;
}

static int add_module(struct record_options *o, const char *glob)
{
	const char **list = realloc(o->modules, (o->nr_modules + 1) * sizeof(*list));

	if (list)
		o->modules = list;
	bool *matched = realloc(o->module_matched, (o->nr_modules + 1) * sizeof(*matched));
	if (matched)
		o->module_matched = matched;
	if (!list || !matched)
		return ENOMEM;
	matched[o->nr_modules] = false;
	list[o->nr_modules++] = glob;
	return 0;
}

static int add_text(const char ***list, unsigned *nr, const char *text)
{
	const char **more = realloc(*list, (*nr + 1) * sizeof(*more));

	if (!more)
		return ENOMEM;
	*list = more;
	more[(*nr)++] = text;
	return 0;
}

int record_options_map(struct record_options *o, const char *text)
{
	return add_text(&o->map_sizes, &o->nr_map_sizes, text);
}

int record_options_global(struct record_options *o, const char *text)
{
	return add_text(&o->globals, &o->nr_globals, text);
}

static const char *one_of(const char *arg, const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(arg, *names))
			return *names;
	return NULL;
}

/* Reads the time of -t. Without a unit, a whole number is in ns, as in uftrace. A number with a
 * point is in seconds, as in the views. (The control file tracing_thresh differs: a number without
 * a unit is in us, as in the kernel.) */
static int parse_time(const char *arg, uint64_t *ns)
{
	char seconds[64];
	int len;

	if (strspn(arg, "0123456789") == strlen(arg))
		return pb_control_parse_u64(arg, INT64_MAX, ns);
	if (strspn(arg, "0123456789.") < strlen(arg))
		return pb_control_parse_duration(arg, ns);
	len = snprintf(seconds, sizeof(seconds), "%ss", arg);
	return len < (int)sizeof(seconds) ? pb_control_parse_duration(seconds, ns) : -EINVAL;
}

static void set_mode(struct record_options *o, uint32_t mode, struct argp_state *state)
{
	if (o->mode != PB_RING_DISCARD && o->mode != mode)
		usage_error(state, "--overwrite and --no-loss exclude each other%s", "");
	o->mode = mode;
}

static error_t parse_filter(int key, char *arg, struct argp_state *state)
{
	struct record_options *o = state->input;
	uint64_t n;

	switch (key) {
	case 'F': case 'N': case 'C': case 'P': case 'U':
		return add_pattern(o, key, arg);
	case 'Z':
		if (pb_control_parse_u64(arg, UINT32_MAX, &n))
			usage_error(state, "-Z %s: not a number of bytes; give for example -Z 64",
				    arg);
		o->size = arg;
		return 0;
	case 'D':
		if (pb_control_parse_u64(arg, INT32_MAX, &n))
			usage_error(state, "-D %s: not a depth; give a number, for example -D 3",
				    arg);
		o->depth = arg;
		return 0;
	case 't':
		if (parse_time(arg, &n))
			usage_error(state,
				    "-t %s: not a time; give for example 500, 10us, 1.5ms or 2s",
				    arg);
		else
			pb_control_format_us(n, o->thresh, sizeof(o->thresh));
		return 0;
	case OPT_MATCH:
		if (!pb_control_match_type(arg, &o->match))
			usage_error(state, "--match=%s: choose glob, regex or simple", arg);
		return 0;
	case OPT_MODULE:
		return add_module(o, arg);
	case OPT_ALL:
		o->all = true;
		return 0;
	case OPT_ALL_SITES:
		o->all_sites = true;
		return 0;
	case OPT_NO_FORK:
		o->welcome_flags |= PB_WELCOME_NO_FORK;
		return 0;
	case OPT_NO_EXEC:
		o->welcome_flags |= PB_WELCOME_NO_EXEC;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

int record_options_snapshot_on(struct record_options *o, char *arg)
{
	char *time = pb_snapshot_time(arg);
	uint64_t ns = 0;

	if (time && (parse_time(time + 1, &ns) || !ns))
		return EINVAL;
	if (time)
		*time = 0;
	if (add_pattern(o, RECORD_SNAPSHOT_ON, arg))
		return ENOMEM;
	o->patterns[o->nr_patterns - 1].ns = ns;
	return 0;
}

static int add_set(struct record_options *o, const char *arg, struct argp_state *state)
{
	struct record_set *list = realloc(o->sets, (o->nr_sets + 1) * sizeof(*list));
	const char *value = strchr(arg, '=');
	char name[64], err[300];
	enum pb_control_file file;

	if (!list)
		return ENOMEM;
	o->sets = list;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(arg, "="), arg);
	file = pb_control_find(name);
	if (!value) {
		usage_error(state, "--set=%s: say FILE=VALUE", arg);
	} else if (file == PB_NR_CONTROL_FILES) {
		usage_error(state, "--set=%s: no such file; see patchbay control list", arg);
	} else if (pb_control_info(file)->owner == PB_OWNER_OBSERVER ||
		   file == PB_CF_CURRENT_TRACER || file == PB_CF_TRACE_CLOCK) {
		usage_error(state, "--set=%s: can't be set here; use -b, --tracer or --clock", arg);
	} else if (pb_control_validate(file, value + 1, false, err, sizeof(err))) {
		/* `name` becomes the format for usage_error() */
		snprintf(name, sizeof(name), "--set: %.40s: %%s", pb_control_info(file)->path);
		usage_error(state, name, err);
	} else {
		list[o->nr_sets++] = (struct record_set){ file, value + 1 };
	}
	return 0;
}

/* Reports an error if --set=snapshot_on is used, but no snapshots are taken. Snapshots are taken
 * only in overwrite mode, and are written beside the data directory. */
static void check_snapshots(struct record_options *o, struct argp_state *state)
{
	for (uint32_t i = 0; i < o->nr_sets && !o->usage_error; i++) {
		if (o->sets[i].file != PB_CF_SNAPSHOT_ON)
			continue;
		if (o->temporary)
			usage_error(state, "--set=snapshot_on: only if data is kept; %s",
				    o->attach_only ? "add --data DIR" :
				    "say patchbay flight --snapshot-on FUNC");
		else if (o->mode != PB_RING_OVERWRITE)
			usage_error(state, "--set=snapshot_on: only with --overwrite; or say "
				    "patchbay flight --snapshot-on FUNC%s", "");
	}
}

/* Checks that the user has named either a program or a running process (-p). With -p, children
 * aren't traced unless the user asks for it: if the recorder is killed, forked children can't be
 * detached, because they have no connection to it. */
static void check_program(struct record_options *o, struct argp_state *state)
{
	if (o->usage_error)
		return;
	/* attach keeps the newest records, if the user doesn't choose another mode */
	if (o->attach_only && o->mode == PB_RING_DISCARD)
		o->mode = PB_RING_OVERWRITE;
	if (o->pid && o->argv)
		usage_error(state, "%s: give a program or -p PID, not both", o->argv[0]);
	else if (o->for_ns && !o->pid)
		usage_error(state, "--for: only with -p PID; timeout(1) ends a program after a "
			    "time%s", "");
	else if (o->children && !o->pid)
		usage_error(state, "--children: only with -p PID; the children of a program that "
			    "record starts are traced without it%s", "");
	else if (o->children && o->welcome_flags & PB_WELCOME_NO_FORK)
		usage_error(state, "--children and --no-fork exclude each other%s", "");
	else if (o->attach_only && (o->argv || !o->pid))
		usage_error(state, "no process; say patchbay attach -p PID%s", "");
	else if (!o->pid && !o->argv)
		no_program(state);
	check_snapshots(o, state);
	if (!o->pid)
		return;
	o->serve = true;
	o->welcome_flags |= PB_WELCOME_SERVE;
	if (!o->children)
		o->welcome_flags |= PB_WELCOME_NO_FORK | PB_WELCOME_NO_EXEC;
}

static void parse_pid(struct record_options *o, const char *arg, struct argp_state *state)
{
	uint64_t n;

	if (o->pid)
		usage_error(state, "%s: one process at a time", arg);
	else if (pb_control_parse_u64(arg, INT32_MAX, &n) || !n)
		usage_error(state, "-p %s: not a process number; pgrep(1) finds the number of a "
			    "name", arg);
	else
		o->pid = (pid_t)n;
}

/* Reads the time of --for. A recording may last minutes or hours, so these units are allowed here.
 * The number must have a unit. */
static void parse_for(struct record_options *o, const char *arg, struct argp_state *state)
{
	size_t len = strlen(arg);
	char unit = len ? arg[len - 1] : 0, text[64];
	uint64_t scale = unit == 'm' ? 60 : unit == 'h' ? 3600 : 1;

	snprintf(text, sizeof(text), "%.*s%s", (int)(scale > 1 ? len - 1 : len), arg,
		 scale > 1 ? "s" : "");
	if (len > 50 || !strchr("smh", unit) || pb_control_parse_duration(text, &o->for_ns) ||
	    !o->for_ns || __builtin_mul_overflow(o->for_ns, scale, &o->for_ns))
		usage_error(state, "--for %s: not a time; give for example 500ms, 10s or 2m", arg);
}

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
	static const char *const tracers[] = { "function_graph", "function", "nop", NULL };
	struct record_options *o = state->input;
	char err[300];

	switch (key) {
	case OPT_TRACER:
		o->tracer = one_of(arg, tracers);
		if (!o->tracer)
			usage_error(state, "--tracer=%s: choose function_graph, function or nop",
				    arg);
		return 0;
	case 'b':
		if (record_parse_size(arg, &o->buffer))
			usage_error(state, "-b %s: not a size; give for example 512K, 64M or 2G",
				    arg);
		return 0;
	case OPT_MAX_SIZE:
		if (record_parse_size(arg, &o->max_size))
			usage_error(state,
				    "--max-size=%s: not a size; give for example 500M or 10G", arg);
		return 0;
	case OPT_NO_LOSS:
		set_mode(o, PB_RING_WAIT, state);
		return 0;
	case OPT_OVERWRITE:
		set_mode(o, PB_RING_OVERWRITE, state);
		return 0;
	case OPT_CLOCK:
		if (pb_control_validate(PB_CF_TRACE_CLOCK, arg, false, err, sizeof(err)))
			usage_error(state, "--clock: %s", err);
		o->clock = arg;
		return 0;
	case 'p':
		parse_pid(o, arg, state);
		return 0;
	case OPT_FOR:
		parse_for(o, arg, state);
		return 0;
	case OPT_CHILDREN:
		o->children = true;
		return 0;
	case OPT_SET:
		return add_set(o, arg, state);
	case OPT_SERVE:
		o->serve = true;
		o->welcome_flags |= PB_WELCOME_SERVE;
		return 0;
	case ARGP_KEY_ARG:
		/* the program; all words after it are its arguments */
		o->argv = state->argv + state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		check_program(o, state);
		return 0;
	}
	return parse_filter(key, arg, state);
}

static error_t parse_own(int key, char *arg, struct argp_state *state)
{
	struct record_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = o;
		return 0;
	case 'd':
		o->dir = arg;
		return 0;
	case 'q':
		o->quiet = true;
		return 0;
	case OPT_BPF:
		if (o->bpf_object)
			usage_error(state, "--bpf %s: one object at a time", arg);
		o->bpf_object = arg;
		return 0;
	case OPT_MAP:
		return record_options_map(o, arg);
	case OPT_GLOBAL:
		return record_options_global(o, arg);
	case OPT_BTF:
		o->btf = arg;
		return 0;
	case ARGP_KEY_END:
		if (o->nr_map_sizes && !o->bpf_object)
			usage_error(state, "--map %s: there are no maps without --bpf",
				    o->map_sizes[0]);
		if (o->nr_globals && !o->bpf_object)
			usage_error(state, "--global %s: there are no variables without --bpf",
				    o->globals[0]);
		if (o->btf && !o->bpf_object)
			usage_error(state,
				    "--btf %s: has no effect without --bpf; add --bpf OBJECT",
				    o->btf);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* argp appends a child's texts (doc, args_doc) to those of its parent. record_own_argp is also a
 * child of the parser of `flight`, so it has no texts. The texts of `record` are in record_argp,
 * which passes all options on to record_own_argp. */
static error_t pass_input(int key, char *arg, struct argp_state *state)
{
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	state->child_inputs[0] = state->input;
	return 0;
}

const struct argp record_common_argp = { .options = common, .parser = parse_common };

static const struct argp_child common_child[] = { { &record_common_argp }, { 0 } };
const struct argp record_own_argp = {
	.options = own, .parser = parse_own, .children = common_child,
};

static const struct argp_child children[] = { { &record_own_argp, 0, NULL, 0 }, { 0 } };
const struct argp record_argp = {
	.parser = pass_input,
	.args_doc = "[--] PROG [ARGS]\n-p PID",
	.doc = "Run PROG and record its calls into " PB_DEFAULT_DIR ", or record the process PID."
	       "\v" RECORD_HELP_END,
	.children = children,
};

void record_options_init(struct record_options *o)
{
	*o = (struct record_options){
		.dir = PB_DEFAULT_DIR,
		.buffer = DEFAULT_BUFFER,
		.max_size = DEFAULT_MAX_SIZE,
		.tracer = "function_graph",
		.most_snapshots = 10,
	};
}

int record_options_parse(struct record_options *o, int argc, char **argv)
{
	record_options_init(o);
	int ret = argp_parse(&record_argp, argc, argv, ARGP_IN_ORDER, NULL, o);

	if (ret)
		return record_error("%s", strerror(ret));
	return o->usage_error ? 2 : 0;
}

void record_options_free(struct record_options *o)
{
	free(o->patterns);
	record_hooks_free(o);
	free(o->sets);
	free(o->map_sizes);
	free(o->globals);
	free(o->modules);
	free(o->module_matched);
	record_marks_free(o);
	pb_control_writes_free(&o->writes);
}
