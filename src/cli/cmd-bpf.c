/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay bpf`: the eBPF machine from the command line. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/bpf/bpf_common.h"

static const struct pb_command *const subs[] = {
	&bpf_command_load, &bpf_command_verify, &bpf_command_run, &bpf_command_dump,
	&bpf_command_prog, &bpf_command_map, &bpf_command_pin, &bpf_command_stats,
	&bpf_command_trace, NULL
};

static int bpf_help(void)
{
	puts("Usage: patchbay bpf COMMAND [OPTION...] [ARGS]\n"
	     "Verifies, compiles and runs eBPF programs without the kernel.\n");
	for (size_t i = 0; subs[i]; i++)
		printf("  %-10s  %s\n", subs[i]->name, subs[i]->summary);
	puts("\npatchbay bpf COMMAND --help lists a command's options; "
	     "man patchbay-bpf explains them.");
	return 0;
}

static int bpf_run(int argc, char **argv)
{
	static char name[64];

	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-?") ||
	    !strcmp(argv[1], "help"))
		return argc < 2 ? bpf_help(), 2 : bpf_help();
	for (size_t i = 0; subs[i]; i++)
		if (!strcmp(subs[i]->name, argv[1])) {
			snprintf(name, sizeof(name), "%s %s", argv[0], argv[1]);
			argv[1] = name;
			return subs[i]->run(argc - 1, argv + 1);
		}
	pb_error("bpf", "%s: no such command; see patchbay bpf --help", argv[1]);
	return 2;
}

const struct pb_command pb_command_bpf = {
	.name = "bpf",
	.summary = "Verify, run and look at eBPF programs",
	.subs = subs,
	.run = bpf_run,
};
