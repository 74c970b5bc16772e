/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Definitions for the traced programs. */
#ifndef TOOLS_OWN_H
#define TOOLS_OWN_H
#include <stdio.h>
#include <stdlib.h>

/* The compiler may not inline or specialize an ALONE function, and may not drop a call of the
 * function. */
#define ALONE __attribute__((noipa))

/* If $OUTPUT is set, the program writes its counts to the file $OUTPUT. The buffer is large enough
 * for all counts, so a single write at exit writes the counts. */
static inline void own_output(void)
{
	static char buffer[1 << 20];
	const char *path = getenv("OUTPUT");

	if (path && !freopen(path, "w", stdout))
		exit(9);
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
}
#endif
