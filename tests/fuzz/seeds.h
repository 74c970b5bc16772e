/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Seeds from ELF files of this machine and of this build. */
#ifndef FUZZ_SEEDS_H
#define FUZZ_SEEDS_H
#include <stddef.h>
#include <stdint.h>

/* Calls fn with each file of at most max bytes. `data` is freed when fn returns. */
void fuzz_each_elf(size_t max, void (*fn)(const char *path, const uint8_t *data, size_t size));
/* Adds the section `name` of each file as a seed. If the section is long, adds only its start. */
void fuzz_seed_sections(const char *name);
#endif
