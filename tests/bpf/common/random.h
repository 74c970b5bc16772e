/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Random numbers for generators of programs. The same state gives the same numbers. */
#ifndef TESTS_BPF_RANDOM_H
#define TESTS_BPF_RANDOM_H
#include <stdint.h>

/* splitmix64. Any number may be the first *state. */
static inline uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}
#endif
