/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program dies by a real SIGSEGV in a leaf, with calls open.
 * @status -11
 * @markers 10 main
 */
#include <sys/resource.h>
#include "../hostile.h"

static KEEP int fatal(int *p) { return *(volatile int *)p; }
static KEEP int above(int *p) { return opaque(fatal(p)) + 1; }

int main(void)
{
	struct rlimit none = { 0, 0 };
	int n;

	setrlimit(RLIMIT_CORE, &none);
	for (n = 0; n < 10; n++)
		marker_begin(n);
	puts("about to die");
	fflush(stdout);
	return above(opaque((int *)0));
}
