/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay bpf trace`: runs a program with eBPF programs attached to its functions. */
#include "base/base.h"
#include "cli/bpf/bpf_attach.h"
#include "cli/record_options.h"
#include "reader/say.h"
#include "recorder/texts.h"

struct trace {
	struct record_options record;
	struct bpf_attach attach;
};

enum { OPT_GLOBAL = 0x3000, OPT_BTF, OPT_HEX };

static const struct argp_option options[] = {
	{ "map", 'm', "NAME:SIZES", 0,
		"Set sizes of the object's map NAME: max_entries=N, value_size=N, "
	  "key_size=N, separated by commas", 2 },
	{ "global", OPT_GLOBAL, "NAME=VALUE", 0,
		"Set the object's variable NAME to VALUE: a number, true, false, or "
	  "text for an array of characters", 2 },
	{ "btf", OPT_BTF, "FILE", 0,
		"CO-RE looks for types in FILE first, then among the kernel's. FILE is PROG "
	  "itself, if it has BTF (gcc -gbtf), or a file of only BTF", 2 },
	{ "hex", OPT_HEX, 0, 0, "Print the maps as bytes, not by their types", 4 },
	{ "quiet", 'q', 0, 0, "Print neither the maps at the end nor, with -p, that the programs "
	  "are attached", 4 },
	{ 0 }
};

static error_t bpf_trace_parse(int key, char *arg, struct argp_state *state)
{
	struct trace *t = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &t->record;
		return 0;
	case 'm':
		return record_options_map(&t->record, arg);
	case OPT_GLOBAL:
		return record_options_global(&t->record, arg);
	case OPT_BTF:
		t->record.btf = arg;
		return 0;
	case OPT_HEX:
		t->attach.bytes = true;
		return 0;
	case 'q':
		t->record.quiet = true;
		return 0;
	case ARGP_KEY_ARG:
		if (t->attach.path)
			return ARGP_ERR_UNKNOWN;	/* this word is PROG, which record's parser
							 * takes */
		t->attach.path = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child children[] = { { &record_common_argp }, { 0 } };
static const struct argp argp = {
	.options = options,
	.parser = bpf_trace_parse,
	.args_doc = "OBJECT [--] PROG [ARGS]\nOBJECT -p PID",
	.doc = "Runs PROG with the object's programs attached to the functions that their sections "
	       "name. Prints their output, and the maps at the end. Nothing else is recorded.\v"
	       "Sections of programs:\n"
	       "  kprobe/FUNCTION          at its entry, in any module\n"
	       "  uprobe/PATH:FUNCTION     in one module: a file, or a name like libc.so.6\n"
	       "  kprobe.multi/GLOB        all functions that match; uprobe.multi/PATH:GLOB\n"
	       "  kretprobe, uretprobe     at the return\n\n"
	       RECORD_HELP_END,
	.children = children,
};

/* The recorder calls this function when the programs are attached to the process. By now
 * record_temporary() has set o->quiet, so attach.show tells whether the user gave --quiet. */
static void attached(struct record_options *o, const char *name, unsigned sites, uint64_t ns)
{
	const struct trace *t = pb_container_of(o, struct trace, record);

	if (t->attach.show)
		pb_say(NULL, "programs are attached to %s (%d); ^C ends the trace", name,
		       (int)o->pid);
}

static int trace(struct trace *t)
{
	t->attach.show = !t->record.quiet;
	t->record.on_ready = attached;
	t->record.bpf = &t->attach;
	return record_temporary(&t->record, t->attach.command, NULL, NULL);
}

static int bpf_trace_run(int argc, char **argv)
{
	static struct trace t;
	int ret;

	record_say_as("bpf trace");
	record_options_init(&t.record);
	t.record.temporary = true;
	t.record.tracer = "nop";
	t.attach.command = "bpf trace";
	t.attach.to = stdout;
	ret = argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &t) ||
	      t.record.usage_error ? 2 : 0;
	if (!ret)
		ret = trace(&t);
	record_options_free(&t.record);
	return ret;
}

const struct pb_command bpf_command_trace = {
	.name = "trace", .summary = "Run a program with programs attached to its functions",
	.argp = &argp, .run = bpf_trace_run,
};
