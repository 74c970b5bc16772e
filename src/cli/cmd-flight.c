/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay flight`: records in overwrite mode, and takes snapshots on request. */
#include <signal.h>
#include <string.h>

#include "abi/messages.h"
#include "abi/ring.h"
#include "cli/cli.h"
#include "cli/record_options.h"
#include "control/control.h"
#include "recorder/texts.h"

enum { OPT_SNAPSHOT_ON = 0x2000, OPT_SIGNAL, OPT_SNAPSHOTS };

static const struct argp_option options[] = {
	{ 0, 0, 0, 0, "When a snapshot is taken, besides `patchbay snapshot':", 5 },
	{ "snapshot-on", OPT_SNAPSHOT_ON, "FUNC", 0,
		"When FUNC is called. FUNC>TIME: when a call of FUNC took at least TIME, for "
	  "example 'parse>20ms'; quote it for the shell", 5 },
	{ "signal", OPT_SIGNAL, "SIG", 0, "When this command gets the signal USR1 or USR2", 5 },
	{ "snapshots", OPT_SNAPSHOTS, "N", 0, "At most N of these snapshots (10)", 5 },
	{ 0 }
};

static int bad_option(struct record_options *o, const char *what, const char *arg, const char *why)
{
	record_error("%s%s: %s", what, arg, why);
	o->usage_error = true;
	return 0;
}

static error_t flight_parse(int key, char *arg, struct argp_state *state)
{
	struct record_options *o = state->input;
	uint64_t n;
	int ret;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = o;
		return 0;
	case OPT_SNAPSHOT_ON:
		ret = record_options_snapshot_on(o, arg);
		return ret != EINVAL ? ret :
		       bad_option(o, "--snapshot-on ", arg, "not a time after >; give for example "
				  "20ms");
	case OPT_SIGNAL:
		if (!strncmp(arg, "SIG", 3))
			arg += 3;
		o->snapshot_signal = !strcmp(arg, "USR1") ? SIGUSR1 :
				     !strcmp(arg, "USR2") ? SIGUSR2 : 0;
		return o->snapshot_signal ? 0 : bad_option(o, "--signal ", arg,
							   "choose USR1 or USR2");
	case OPT_SNAPSHOTS:
		if (pb_control_parse_u64(arg, 1000000, &n) || !n)
			return bad_option(o, "--snapshots ", arg, "not a number of snapshots");
		o->most_snapshots = (unsigned)n;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child children[] = { { &record_own_argp, 0, NULL, 0 }, { 0 } };
static const struct argp argp = {
	.options = options,
	.parser = flight_parse,
	.args_doc = "[--] PROG [ARGS]\n-p PID",
	.doc = "Record PROG or the process PID into a buffer that keeps the newest records. What "
	       "it has at the end, also after a crash, goes to " PB_DEFAULT_DIR "; snapshots go to "
	       PB_DEFAULT_DIR ".1, " PB_DEFAULT_DIR ".2 and so on.\v" RECORD_HELP_END,
	.children = children,
};

static int flight_run(int argc, char **argv)
{
	struct record_options o;
	int ret;

	record_say_as("flight");
	record_options_init(&o);
	o.mode = PB_RING_OVERWRITE;
	o.serve = true;
	o.welcome_flags = PB_WELCOME_SERVE;
	ret = argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &o) || o.usage_error ? 2 :
	      record_with_programs(&o, "flight");
	record_options_free(&o);
	return ret;
}

const struct pb_command pb_command_flight = {
	.name = "flight",
	.summary = "Keep the newest records; write them when something happens",
	.argp = &argp,
	.run = flight_run,
};
