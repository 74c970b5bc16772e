/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Inputs from the ELF files of this machine and of this build. */
#ifndef FUZZ_SEEDS_H
#define FUZZ_SEEDS_H
#include <stddef.h>
#include <stdint.h>

/* Calls fn with each file; the bytes go afterwards. */
void fuzz_each_elf(size_t max, void (*fn)(const char *path, const uint8_t *data, size_t size));
/* Each one's section of that name as a seed; long ones are cut. */
void fuzz_seed_sections(const char *name);
#endif
