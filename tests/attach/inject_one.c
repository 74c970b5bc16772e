/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls pb_inject() from the command line, for run_inject.
 *
 *	inject_one PID AGENT SESSION
 *
 * Prints the borrowed thread and the times in nanoseconds. After a failure, prints the line for the
 * user, and exits with status 1.
 */
#include <stdio.h>
#include <stdlib.h>
#include "attach/inject.h"

int main(int argc, char **argv)
{
	struct pb_injected out;
	char err[1024];

	if (argc != 4)
		return 2;
	struct pb_inject in = { .pid = atoi(argv[1]), .agent = argv[2], .session = argv[3] };
	int ret = pb_inject(&in, &out, err, sizeof(err));

	if (ret) {
		printf("%d %s\n", ret, err);
		return 1;
	}
	printf("borrowed %d stop_ns %lu total_ns %lu\n", (int)out.borrowed,
	       (unsigned long)out.stop_ns, (unsigned long)out.total_ns);
	return 0;
}
