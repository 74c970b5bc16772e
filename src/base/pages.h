/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeps the agent's mappings out of the way when a program does something with
 * all of its memory:
 *
 *   core files        MADV_DONTDUMP, except what a debugger needs to unwind
 *   mlockall          the agent's mappings are listed, and those on the list aren't locked
 *   /proc/PID/maps    the agent's state is mapped with PROT_WRITE only. The processor
 *                     can't forbid reading such pages, so the agent can read them. A
 *                     memory test, or a garbage collector that searches for roots,
 *                     skips mappings that aren't "rw"
 *
 * Context: not on a hit; any thread, also a vfork child. No function waits.
 */
#ifndef PB_PAGES_H
#define PB_PAGES_H
#include <stdbool.h>
#include <stdint.h>

/* mmap(2) and munmap(2) for the agent's own mappings. pb_pages_map() adds the mapping to the list,
 * pb_pages_unmap() removes it. */
long pb_pages_map(uint64_t at, uint64_t size, int prot, int flags, int fd, uint64_t offset);
void pb_pages_unmap(uint64_t at, uint64_t size);
/* Adds to the list a mapping that wasn't made by pb_pages_map(). */
void pb_pages_add(uint64_t at, uint64_t size);
/* Adds the agent's image to the list. Its .bss becomes state, mapped with PROT_WRITE only. */
void pb_pages_add_image(const void *ehdr, uint64_t end);
/* Lets core files contain this range after all. */
void pb_pages_dump(uint64_t at, uint64_t size);

/* Finds the next piece of [*from, end) that isn't the agent's. Moves *from up to its
 * start, and stores its end. False: there is none. */
bool pb_pages_foreign(uint64_t *from, uint64_t end, uint64_t *piece_end);
/* The mapping of that number, from 0. False: there are no more. The caller skips
 * mappings of size 0. */
bool pb_pages_get(uint32_t number, uint64_t *at, uint64_t *size);

/* The program has locked all mappings that it makes from now on (MCL_FUTURE). The
 * agent unlocks its own new mappings before any page of them is present. */
extern bool pb_pages_future;
#endif
