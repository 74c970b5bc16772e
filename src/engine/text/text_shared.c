/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared jumps, for functions and exits of one byte. That byte holds the opcode of the first jump.
 * The displacement of the first jump is the first four bytes of the second jump (abi/analysis.h).
 *
 *   first    e9			jmp rel32, to its target
 *   second   e9 d0 d1 d2 d3	jmp rel32, to its target
 *
 *   first's target  = first + 5 + d2d1d0e9	jmp stub of the first
 *   second's target = second + 5 + d3d2d1d0	jmp stub of the second
 *
 * The bytes d0 to d3 determine both targets, so the two targets can't be chosen independently. The
 * targets are far from each other, so each target gets a page of its own. d3 and d2 give the
 * distance of the targets from the module. As in map_near() (text_stubs.c), the targets lie below
 * the module, where only the loader maps files. If there is no room below the module, the targets
 * lie far above it.
 */
#include <sys/mman.h>
#include "engine/text/text_priv.h"
#include "arch/arch.h"
#include "base/pages.h"
#include "base/sys.h"

#define PAGE		4096ul
#define MAX_SHARED	2048
#define LOW_IMAGE	0x90000000ul	/* a module below this address has no room below it */
#define NEAREST		0x10u		/* the value of d3 and of d2 for the nearest targets, which
					 * are a quarter of a gigabyte above the module. For targets
					 * below the module, both bytes have the negative value */
#define FARTHEST	0x7eu

static struct shared {
	const struct pb_module *m;	/* NULL: this entry is free */
	uint64_t first;			/* address of the first jump; the second is at the next
					 * byte */
	uint64_t target[2];		/* the targets of the first and of the second jump */
} table[MAX_SHARED];
static uint32_t nr_shared;

static uint64_t page_of(uint64_t a)
{
	return a & ~(PAGE - 1);
}

static bool in_one_page(uint64_t at)
{
	return page_of(at) == page_of(at + PB_JUMP_LEN - 1);
}

/* Chooses the displacement of the second jump: d3 and d2 both are d, d1 is 0. Tries values of d0
 * until neither target crosses the end of a page. False: no value of d0 fits. */
static bool place(struct shared *r, uint64_t first, uint32_t d)
{
	for (uint32_t d0 = 0; d0 < 16; d0++) {
		pb_shared_targets(first, d << 24 | d << 16 | d0, r->target);
		if (in_one_page(r->target[0]) && in_one_page(r->target[1]))
			return true;
	}
	return false;
}

static bool map_page(uint64_t at)
{
	long p;

	if (at < 0x10000 || at >> 47 || pb_module_at(at))
		return false;
	at = page_of(at);
	p = pb_pages_map(at, PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if ((uint64_t)p == at)
		pb_pages_dump(at, PAGE);
	else if (!pb_sys_failed(p))
		pb_pages_unmap((uint64_t)p, PAGE);	/* the kernel doesn't know
							 * MAP_FIXED_NOREPLACE */
	return (uint64_t)p == at;
}

static bool map_both(const struct shared *r)
{
	if (!map_page(r->target[0]))
		return false;
	if (map_page(r->target[1]))
		return true;
	pb_pages_unmap((uint64_t)page_of(r->target[0]), PAGE);
	return false;
}

static bool write_jump(uint64_t at, uint64_t to)
{
	return !pb_jump_emit((uint8_t *)at, at, to) &&
	       !pb_sys(SYS_mprotect, page_of(at), PAGE, PROT_READ | PROT_EXEC);
}

static void unmap_both(const struct shared *r)
{
	pb_pages_unmap((uint64_t)page_of(r->target[0]), PAGE);
	pb_pages_unmap((uint64_t)page_of(r->target[1]), PAGE);
}

static bool find_targets(struct shared *r, uint64_t first)
{
	bool up = first < LOW_IMAGE;

	for (uint32_t i = NEAREST; i <= FARTHEST; i++)
		if (place(r, first, up ? FARTHEST + NEAREST - i : 0x100 - i) && map_both(r))
			return true;
	return false;
}

static struct shared *free_shared(void)
{
	for (uint32_t i = 0; i < nr_shared; i++)
		if (!table[i].m)
			return &table[i];
	if (nr_shared == MAX_SHARED)
		return NULL;
	__atomic_store_n(&nr_shared, nr_shared + 1, __ATOMIC_RELEASE);
	return &table[nr_shared - 1];
}

bool pb_shared_make(const struct pb_module *m, uint64_t first, uint64_t to, uint64_t second_to)
{
	struct shared *r = free_shared();

	if (!r || !find_targets(r, first))
		return false;
	if (!write_jump(r->target[0], to) || !write_jump(r->target[1], second_to)) {
		unmap_both(r);
		return false;
	}
	r->first = first;
	__atomic_store_n(&r->m, m, __ATOMIC_RELEASE);
	return true;
}

uint64_t pb_shared_target(uint64_t second)
{
	for (uint32_t i = 0; i < nr_shared; i++)
		if (table[i].m && table[i].first + PB_JUMP_SHARED == second)
			return table[i].target[1];
	return 0;
}

uint64_t pb_shared_at(uint64_t pc)
{
	uint32_t nr = __atomic_load_n(&nr_shared, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < nr; i++) {
		if (!__atomic_load_n(&table[i].m, __ATOMIC_ACQUIRE))
			continue;
		if (pc == table[i].target[0])
			return table[i].first;
		if (pc == table[i].target[1])
			return table[i].first + PB_JUMP_SHARED;
	}
	return 0;
}

void pb_shared_remove(const struct pb_module *m)
{
	for (uint32_t i = 0; i < nr_shared; i++) {
		if (table[i].m != m)
			continue;
		__atomic_store_n(&table[i].m, NULL, __ATOMIC_RELEASE);
		unmap_both(&table[i]);
	}
}
