/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay live`: record into a directory that nobody keeps, then replay. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/record.h"
#include "cli/record_options.h"

static int replay(const char *dir)
{
	const struct pb_command *c = pb_command_find("replay");
	char name[] = "patchbay replay", option[] = "-d";
	char *argv[] = { name, option, (char *)dir, NULL };

	return c ? c->run(3, argv) : pb_error("live", "this build has no replay");
}

static int run_live(int argc, char **argv)
{
	const char *tmp = getenv("TMPDIR");
	char dir[PATH_MAX], data[PATH_MAX + 8];
	struct record_options o;
	int ret = record_options_parse(&o, argc, argv);

	if (ret) {
		record_options_free(&o);
		return ret;
	}
	if ((size_t)snprintf(dir, sizeof(dir), "%s/patchbay-live-XXXXXX", tmp && *tmp ? tmp : "/tmp") >=
	    sizeof(dir) || !mkdtemp(dir)) {
		record_options_free(&o);
		return pb_error("live", "%s: %s", dir, strerror(errno));
	}
	snprintf(data, sizeof(data), "%s/data", dir);
	o.dir = data;
	o.quiet = true;
	o.recorded = false;
	ret = record_with(&o);
	if (o.recorded) {
		int shown = replay(data);

		ret = ret ? ret : shown;
	}
	pb_datadir_remove(data);
	rmdir(dir);
	record_options_free(&o);
	return ret;
}

const struct pb_command pb_command_live = {
	.name = "live",
	.summary = "Run a program and show its calls at once",
	.argp = &record_argp,
	.run = run_live,
};
