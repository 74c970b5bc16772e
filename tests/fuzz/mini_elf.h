/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes a small ELF file with one given section, to test that section's reader. */
#ifndef FUZZ_MINI_ELF_H
#define FUZZ_MINI_ELF_H
#include <stddef.h>
#include <stdint.h>

#define MINI_BASE	0x400000ull	/* address of the only segment, which is executable */
#define MINI_CODE	(MINI_BASE + 0x1000)
#define MINI_CODE_SIZE	0x2000u		/* bytes of nops */
#define MINI_SECTION	(MINI_CODE + MINI_CODE_SIZE)

/* Returns the file, which the caller frees. .text is at MINI_CODE, and the given section at
 * MINI_SECTION. */
uint8_t *mini_elf(const char *section, const void *data, size_t size, size_t *file_size);
#endif
