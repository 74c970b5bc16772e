/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeps the agent's mappings apart from the program's when a program dumps, locks or scans all of
 * its memory:
 *
 *   core files        MADV_DONTDUMP, except for memory that a debugger needs to unwind
 *   mlockall          the agent keeps a list of its mappings. If the program calls
 *                     mlockall(), the mappings on the list stay unlocked
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

/* mmap(2) and munmap(2) for the agent's own mappings. pb_pages_map() adds the mapping to the list.
 * pb_pages_unmap() removes the mapping. */
long pb_pages_map(uint64_t at, uint64_t size, int prot, int flags, int fd, uint64_t offset);
void pb_pages_unmap(uint64_t at, uint64_t size);
/* Unmaps [from, end), the upper part of a mapping. The list may have several mappings that contain
 * `from`, because a mapping may lie inside another one. Each of them keeps its lower part. */
void pb_pages_cut(uint64_t from, uint64_t end);
/* mremap(2) with MREMAP_MAYMOVE, for a whole private mapping from pb_pages_map(). Like the old
 * mapping, the new mapping stays out of core files, and isn't locked. Returns the new address, or
 * -errno. After an error, the mapping is as before. */
long pb_pages_remap(uint64_t at, uint64_t size, uint64_t new_size);
/* Adds to the list a mapping that wasn't made by pb_pages_map(). */
void pb_pages_add(uint64_t at, uint64_t size);
/* Adds the agent's image to the list. Maps the whole pages of the image's .bss with PROT_WRITE
 * only, like the agent's other state. */
void pb_pages_add_image(const void *ehdr, uint64_t end);
/* Includes this range of the agent's memory in core files. */
void pb_pages_dump(uint64_t at, uint64_t size);

/* Finds the next piece of [*from, end) that isn't the agent's. Sets *from to the piece's start, and
 * *piece_end to its end. Returns false if there is no such piece. */
bool pb_pages_foreign(uint64_t *from, uint64_t end, uint64_t *piece_end);
/* Finds the mapping with this number; numbers begin at 0. Returns false if there are no more
 * mappings. The caller must skip mappings of size 0. */
bool pb_pages_get(uint32_t number, uint64_t *at, uint64_t *size);

/* If this isn't 0, and the caller of pb_pages_map() gives no address, the mapping is placed from
 * here on. The kernel itself might place it where the program has just unmapped something and
 * expects that nothing is mapped. */
extern uint64_t pb_pages_next;

/* True if the program locks all mappings that it makes (MCL_FUTURE). The agent then unlocks its own
 * new mappings before any of their pages is present. */
extern bool pb_pages_future;
#endif
