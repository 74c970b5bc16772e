/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the programs share that tools are run on. */
#ifndef TOOLS_OWN_H
#define TOOLS_OWN_H
#include <stdio.h>
#include <stdlib.h>

/* A call of such a function is a call, whatever the compiler knows of it. */
#define ALONE __attribute__((noipa))

/* What is counted goes to a file of its own, by one write at the end. */
static inline void own_output(void)
{
	static char buffer[1 << 20];
	const char *path = getenv("OUTPUT");

	if (path && !freopen(path, "w", stdout))
		exit(9);
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
}
#endif
