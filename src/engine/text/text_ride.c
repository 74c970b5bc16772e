/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions of one byte, and exits, whose jump goes on in the next one's
 * (abi/analysis.h).
 *
 *   rider    e9			to its landing
 *   carrier  e9 d0 d1 d2 d3	to its landing
 *
 *   carrier's landing = carrier + 5 + d3d2d1d0	jmp stub of the carrier
 *   rider's landing   = rider + 5 + d2d1d0e9	jmp stub of the rider
 *
 * Landings are pages of their own, as far from the module as d3 and d2 say. As
 * in map_near(): below it, where only the loader puts things, or at the far end
 * above it, where there is nothing below.
 */
#include <sys/mman.h>
#include "engine/text/text_priv.h"
#include "arch/x86_64/stub.h"
#include "base/pages.h"
#include "base/sys.h"

#define PAGE		4096ul
#define MAX_RIDES	2048
#define LOW_IMAGE	0x90000000ul	/* nothing as far below as it is far above */
#define NEAREST		0x10u		/* of d3, d2: a quarter of a gigabyte */
#define FARTHEST	0x7eu

static struct ride {
	const struct pb_module *m;	/* NULL: free */
	uint64_t rider;			/* its address; the carrier's is the next */
	uint64_t landing[2];		/* the rider's, the carrier's */
} table[MAX_RIDES];
static uint32_t nr_rides;

static uint64_t page_of(uint64_t a)
{
	return a & ~(PAGE - 1);
}

static bool in_one_page(uint64_t at)
{
	return page_of(at) == page_of(at + PB_JUMP_LEN - 1);
}

/* The carrier's displacement whose higher bytes are both d. */
static bool place(struct ride *r, uint64_t rider, uint32_t d)
{
	for (uint32_t d0 = 0; d0 < 16; d0++) {
		uint32_t rel = d << 24 | d << 16 | d0;

		r->landing[0] = rider + PB_JUMP_LEN + (uint64_t)(int64_t)(int32_t)(rel << 8 | 0xe9);
		r->landing[1] = rider + 1 + PB_JUMP_LEN + (uint64_t)(int64_t)(int32_t)rel;
		if (in_one_page(r->landing[0]) && in_one_page(r->landing[1]))
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
		pb_pages_unmap((uint64_t)p, PAGE);	/* a kernel without NOREPLACE */
	return (uint64_t)p == at;
}

static bool map_both(const struct ride *r)
{
	if (!map_page(r->landing[0]))
		return false;
	if (map_page(r->landing[1]))
		return true;
	pb_pages_unmap((uint64_t)page_of(r->landing[0]), PAGE);
	return false;
}

static bool write_jump(uint64_t at, uint64_t to)
{
	return !pb_jump_emit((uint8_t *)at, at, to) &&
	       !pb_sys(SYS_mprotect, page_of(at), PAGE, PROT_READ | PROT_EXEC);
}

static void unmap_both(const struct ride *r)
{
	pb_pages_unmap((uint64_t)page_of(r->landing[0]), PAGE);
	pb_pages_unmap((uint64_t)page_of(r->landing[1]), PAGE);
}

static bool find_landings(struct ride *r, uint64_t rider)
{
	bool up = rider < LOW_IMAGE;

	for (uint32_t i = NEAREST; i <= FARTHEST; i++)
		if (place(r, rider, up ? FARTHEST + NEAREST - i : 0x100 - i) && map_both(r))
			return true;
	return false;
}

static struct ride *free_ride(void)
{
	for (uint32_t i = 0; i < nr_rides; i++)
		if (!table[i].m)
			return &table[i];
	if (nr_rides == MAX_RIDES)
		return NULL;
	__atomic_store_n(&nr_rides, nr_rides + 1, __ATOMIC_RELEASE);
	return &table[nr_rides - 1];
}

bool pb_ride_make(const struct pb_module *m, uint64_t rider, uint64_t to, uint64_t carrier_to)
{
	struct ride *r = free_ride();

	if (!r || !find_landings(r, rider))
		return false;
	if (!write_jump(r->landing[0], to) || !write_jump(r->landing[1], carrier_to)) {
		unmap_both(r);
		return false;
	}
	r->rider = rider;
	__atomic_store_n(&r->m, m, __ATOMIC_RELEASE);
	return true;
}

uint64_t pb_ride_target(uint64_t carrier)
{
	for (uint32_t i = 0; i < nr_rides; i++)
		if (table[i].m && table[i].rider + PB_JUMP_RIDE == carrier)
			return table[i].landing[1];
	return 0;
}

uint64_t pb_ride_at(uint64_t pc)
{
	uint32_t nr = __atomic_load_n(&nr_rides, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < nr; i++) {
		if (!__atomic_load_n(&table[i].m, __ATOMIC_ACQUIRE))
			continue;
		if (pc == table[i].landing[0])
			return table[i].rider;
		if (pc == table[i].landing[1])
			return table[i].rider + PB_JUMP_RIDE;
	}
	return 0;
}

void pb_ride_remove(const struct pb_module *m)
{
	for (uint32_t i = 0; i < nr_rides; i++) {
		if (table[i].m != m)
			continue;
		__atomic_store_n(&table[i].m, NULL, __ATOMIC_RELEASE);
		unmap_both(&table[i]);
	}
}
