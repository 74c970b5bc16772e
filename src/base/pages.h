/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The agent's mappings in a program, kept out of the way of what programs do
 * with all of their memory:
 *
 *   core files        MADV_DONTDUMP, but for what a debugger needs to unwind
 *   mlockall          the list of mappings says what the program's own are
 *   /proc/PID/maps    state is mapped with PROT_WRITE only. The processor has no
 *                     such pages, so the agent reads them; a memory test, or a
 *                     collector that looks for roots, skips what isn't "rw"
 *
 * Context: not on a hit; any thread, also a vfork child. Nothing waits.
 */
#ifndef PB_PAGES_H
#define PB_PAGES_H
#include <stdbool.h>
#include <stdint.h>

/* As mmap(2) and munmap(2). */
long pb_pages_map(uint64_t at, uint64_t size, int prot, int flags, int fd, uint64_t offset);
void pb_pages_unmap(uint64_t at, uint64_t size);
/* Enters a mapping that was made otherwise. */
void pb_pages_add(uint64_t at, uint64_t size);
/* The same for the agent's image; its variables become state as above. */
void pb_pages_add_image(const void *ehdr, uint64_t end);
/* Stands in core files after all. */
void pb_pages_dump(uint64_t at, uint64_t size);

/* The next piece of [*from, end) that isn't the agent's: from *from, which moves
 * up, to the result. False: there is none. */
bool pb_pages_foreign(uint64_t *from, uint64_t end, uint64_t *piece_end);
/* The mappings, by number from 0; false: no more. An empty one is passed over
 * by its caller. */
bool pb_pages_get(uint32_t number, uint64_t *at, uint64_t *size);

/* The program locks what it maps from now on (MCL_FUTURE): the agent's new
 * mappings are unlocked before a page of them is there. */
extern bool pb_pages_future;
#endif
