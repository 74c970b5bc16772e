/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps memory for the agent, and keeps the list of these mappings (pages.h). The list is an array
 * without a lock. An exec in a vfork child may add to the list while other threads of the parent
 * add to it. A cmpxchg of `at` from 0 takes an element. When `size` is set, the element is valid.
 * To free an element, `size` is cleared first, then `at`.
 */
#include <elf.h>
#include <stddef.h>
#include <sys/mman.h>
#include "base/base.h"
#include "base/pages.h"
#include "base/sys.h"

#define PAGE		4096ul
#define MAX_MAPPINGS	16384

static struct mapping {
	uint64_t at, size;
} mappings[MAX_MAPPINGS];
static uint32_t nr_mappings;	/* count of the elements that were ever taken */
bool pb_pages_future;
uint64_t pb_pages_next;

static bool take(struct mapping *m, uint64_t at)
{
	uint64_t free = 0;

	/* the load spares a locked instruction for each of thousands of taken elements */
	return !__atomic_load_n(&m->at, __ATOMIC_RELAXED) &&
	       __atomic_compare_exchange_n(&m->at, &free, at, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static void enter(uint64_t at, uint64_t size)
{
	for (uint32_t i = 0; i < MAX_MAPPINGS; i++) {
		uint32_t nr = __atomic_load_n(&nr_mappings, __ATOMIC_RELAXED);

		if (!take(&mappings[i], at))
			continue;
		while (nr <= i && !__atomic_compare_exchange_n(&nr_mappings, &nr, i + 1, false,
							       __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			;
		__atomic_store_n(&mappings[i].size, size, __ATOMIC_RELEASE);
		return;
	}
}

static uint64_t whole_pages(uint64_t size)
{
	return pb_align_up(size, PAGE);
}

void pb_pages_add(uint64_t at, uint64_t size)
{
	enter(at, whole_pages(size));
	pb_sys(SYS_madvise, at, whole_pages(size), MADV_DONTDUMP);
}

static int as_state(int prot)
{
	return prot == (PROT_READ | PROT_WRITE) ? PROT_WRITE : prot;
}

long pb_pages_map(uint64_t at, uint64_t size, int prot, int flags, int fd, uint64_t offset)
{
	bool future = pb_pages_future, empty = future && !(prot & PROT_EXEC);
	long p;

	prot = as_state(prot);
	if (!at && pb_pages_next)
		at = __atomic_fetch_add(&pb_pages_next, whole_pages(size) + PAGE, __ATOMIC_RELAXED);
	p = pb_sys(SYS_mmap, at, size, empty ? PROT_NONE : prot, flags, fd, offset);
	if (pb_sys_failed(p))
		return p;
	/* With PROT_NONE, mmap has made no page present: the mapping is unlocked while it is empty.
	 * Code isn't mapped in two steps, because the kernel may forbid the second step
	 * (PR_SET_MDWE). */
	if (future)
		pb_sys(SYS_munlock, p, size);
	if (empty)
		pb_sys(SYS_mprotect, p, size, prot);
	pb_pages_add((uint64_t)p, size);
	return p;
}

/* Removes from the list each mapping that begins inside the range. */
static void leave(uint64_t at, uint64_t size)
{
	uint32_t nr = __atomic_load_n(&nr_mappings, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < nr; i++) {
		struct mapping *m = &mappings[i];

		if (!m->at || m->at - at >= size)
			continue;
		__atomic_store_n(&m->size, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&m->at, 0, __ATOMIC_RELEASE);
	}
}

void pb_pages_cut(uint64_t from, uint64_t end)
{
	uint32_t nr = __atomic_load_n(&nr_mappings, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < nr; i++) {
		struct mapping *m = &mappings[i];

		if (from > m->at && from - m->at < m->size)
			__atomic_store_n(&m->size, from - m->at, __ATOMIC_RELEASE);
	}
	pb_sys(SYS_munmap, from, end - from);
}

void pb_pages_unmap(uint64_t at, uint64_t size)
{
	/* before munmap: right after it, another thread may get the same addresses */
	leave(at, size);
	pb_sys(SYS_munmap, at, size);
}

long pb_pages_remap(uint64_t at, uint64_t size, uint64_t new_size)
{
	long p;

	leave(at, size);
	p = pb_sys(SYS_mremap, at, size, new_size, MREMAP_MAYMOVE);
	enter(pb_sys_failed(p) ? at : (uint64_t)p, whole_pages(pb_sys_failed(p) ? size : new_size));
	return p;
}

void pb_pages_dump(uint64_t at, uint64_t size)
{
	uint64_t from = at & ~(PAGE - 1);

	pb_sys(SYS_madvise, from, whole_pages(at + size) - from, MADV_DODUMP);
}

void pb_pages_add_image(const void *image, uint64_t end)
{
	const Elf64_Ehdr *ehdr = image;
	const Elf64_Phdr *ph = (const void *)((const char *)image + ehdr->e_phoff);
	uint64_t base = (uint64_t)image;

	enter(base, whole_pages(end - base));
	for (int i = 0; i < ehdr->e_phnum; i++) {
		uint64_t lo = whole_pages(base + ph[i].p_vaddr + ph[i].p_filesz);
		uint64_t hi = whole_pages(base + ph[i].p_vaddr + ph[i].p_memsz);

		if (ph[i].p_type != PT_LOAD || !(ph[i].p_flags & PF_W) || lo >= hi)
			continue;
		pb_sys(SYS_mprotect, lo, hi - lo, PROT_WRITE);
		pb_sys(SYS_madvise, lo, hi - lo, MADV_DONTDUMP);
	}
}

bool pb_pages_foreign(uint64_t *from, uint64_t end, uint64_t *piece_end)
{
	uint32_t nr = __atomic_load_n(&nr_mappings, __ATOMIC_ACQUIRE);
	uint64_t at = *from, stop = end;
	bool moved;

	do {
		moved = false;
		for (uint32_t i = 0; i < nr; i++) {
			uint64_t start = mappings[i].at;

			if (at - start < __atomic_load_n(&mappings[i].size, __ATOMIC_ACQUIRE)) {
				at = start + mappings[i].size;
				moved = true;
			}
		}
	} while (moved && at < end);
	for (uint32_t i = 0; i < nr; i++)
		if (mappings[i].at > at && mappings[i].at < stop && mappings[i].size)
			stop = mappings[i].at;
	*from = at;
	*piece_end = stop;
	return at < end;
}

bool pb_pages_get(uint32_t number, uint64_t *at, uint64_t *size)
{
	if (number >= __atomic_load_n(&nr_mappings, __ATOMIC_ACQUIRE))
		return false;
	*size = __atomic_load_n(&mappings[number].size, __ATOMIC_ACQUIRE);
	*at = mappings[number].at;
	return true;
}
