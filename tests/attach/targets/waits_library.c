/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A library whose constructor waits for ever. Before, it writes to the descriptor in READY. */
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void begin(void)
{
	if (write(atoi(getenv("READY")), "x", 1) == 1)
		for (;;)
			pause();
}
