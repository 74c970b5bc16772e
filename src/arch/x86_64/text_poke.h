/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writing program text. Context: start (one thread), the loader's hook (text
 * that nobody runs yet), or the stop-the-world helper. Not on a hit.
 */
#ifndef PB_ARCH_TEXT_POKE_H
#define PB_ARCH_TEXT_POKE_H
#include <stddef.h>
#include <stdint.h>

struct pb_patch {
	uint64_t addr;
	uint8_t len;		/* 1..10 */
	uint8_t slot;		/* a thread at its first byte is inside of it, too */
	uint8_t bytes[10];
	uint8_t old[12];	/* what stood there, for who wants to take it back */
};

/* Sorted by address, not overlapping. Page-wise through /proc/self/mem, which
 * `mem_fd` is open on (-1: opened here); where that is not to be had, through
 * mprotect. Returns 0, or -errno with nothing or whole patches written. */
int pb_text_poke(const struct pb_patch *p, size_t nr, int mem_fd);
int pb_text_poke_open(void);
/* Any bytes, in memory that may be executable already but that nobody runs. */
int pb_text_write(uint64_t addr, const void *bytes, size_t len);
#endif
