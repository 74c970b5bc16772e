/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The driver for libFuzzer. Implements libFuzzer's hooks with the functions of driver.h and
 * support.h. */
#include <stdlib.h>
#include <string.h>

#include "support.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	if (*argc == 3 && !strcmp((*argv)[1], "--seeds")) {
		fuzz_write_seeds((*argv)[2]);
		exit(0);
	}
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	if (fuzz_mutate && seed % 4 < 2)
		return fuzz_mutate(data, size, max, seed / 4);
	return LLVMFuzzerMutate(data, size, max);
}
