/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the traced programs share. */
#ifndef TOOLS_OWN_H
#define TOOLS_OWN_H
#include <stdio.h>
#include <stdlib.h>

/* The compiler may neither inline nor specialize such a function, nor drop a call of it. */
#define ALONE __attribute__((noipa))

/* The program's counts go to a separate file, by one write at the end. */
static inline void own_output(void)
{
	static char buffer[1 << 20];
	const char *path = getenv("OUTPUT");

	if (path && !freopen(path, "w", stdout))
		exit(9);
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
}
#endif
