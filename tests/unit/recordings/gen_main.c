/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gen_data SCENARIO DIR [N]: writes a scenario of gen_scenarios.c into the directory DIR. N: the
 * number of calls in scenarios for benchmarks. */
#include <err.h>
#include <stdlib.h>

#include "gen_data.h"

int main(int argc, char **argv)
{
	if (argc < 3)
		errx(2, "usage: gen_data SCENARIO DIR [N]");
	if (gen_scenario(argv[1], argv[2], argc > 3 ? strtoull(argv[3], NULL, 10) : 1000))
		errx(2, "%s: no such scenario", argv[1]);
	return 0;
}
