/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A small ELF file around one section, for the readers of that section. */
#ifndef FUZZ_MINI_ELF_H
#define FUZZ_MINI_ELF_H
#include <stddef.h>
#include <stdint.h>

#define MINI_BASE	0x400000ull	/* where the file is mapped, whole and executable */
#define MINI_CODE	(MINI_BASE + 0x1000)
#define MINI_CODE_SIZE	0x2000u		/* nops */
#define MINI_SECTION	(MINI_CODE + MINI_CODE_SIZE)

/* malloc'd; .text at MINI_CODE, and the section of that name at MINI_SECTION. */
uint8_t *mini_elf(const char *section, const void *data, size_t size, size_t *file_size);
#endif
