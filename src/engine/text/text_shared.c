/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared jumps, for functions and exits of one byte. That byte holds the opcode of the first jump.
 * The displacement of the first jump is the first four bytes of the second jump (abi/analysis.h).
 *
 *   first    e9			jmp rel32, to its target
 *   second   e9 d0 d1 d2 d3	jmp rel32, to its target
 *
 *   at first + 5 + d2d1d0e9, first's target:	jmp stub of the first
 *   at second + 5 + d3d2d1d0, second's target:	jmp stub of the second
 *
 * The bytes d0 to d3 determine both targets, so the two targets can't be chosen independently. d2
 * is the highest byte of the first displacement, and d3 is the highest byte of the second. So these
 * two bytes determine how far the targets are from the module. The targets lie below the module.
 * Only the loader maps memory there, so most of these addresses are free (abi/stubs.h). If there is
 * no room below the module, the targets lie far above it.
 *
 * Areas. The targets of one module are as far apart as the module's functions. So the targets need
 * many mappings, which are called areas. An area is an aligned megabyte, or a page if no megabyte
 * is free. It costs address space, but memory only for its pages with jumps. Areas belong to the
 * holder of the text's lock. They are executable from the start and never writable. An area is
 * unmapped when its last jump is removed.
 */
#include <sys/mman.h>
#include "engine/text/text_priv.h"
#include "arch/arch.h"
#include "base/base.h"
#include "base/pages.h"
#include "base/sys.h"

#define PAGE		4096ul
#define AREA		0x100000ul
#define MAX_SHARED	16384
#define CELL		8ul		/* targets are indexed by their addresses divided by this */
#define LOW_IMAGE	0x90000000ul	/* a module below this address has no room below it */
/* The distance between a module and its targets, in units of 16 MiB. For targets above the module,
 * d2 and d3 have this value. For targets below it, they have 0x100 minus this value. */
#define NEAREST		0x10u
#define FARTHEST	0x7eu

static struct shared {
	const struct pb_module *m;	/* NULL: this entry is free */
	uint64_t first;			/* address of the first jump; the second is at the next
					 * byte */
	uint64_t target[2];		/* the targets of the first and of the second jump */
} table[MAX_SHARED];
static uint32_t nr_shared, nr_free;	/* nr_free: number of free entries below nr_shared */

/* The index of the targets in `table`: chains of targets whose cells have the same hash. An element
 * is 0, or 1 + 2 * the entry's index + the target's index. Belongs to the holder of the text's
 * lock. */
static uint16_t heads[8192], next[2 * MAX_SHARED];
_Static_assert(2 * MAX_SHARED <= UINT16_MAX, "an element has 16 bits");

static struct area {
	uint64_t at, size;
	uint32_t nr_jumps;		/* 0: this element is free */
} areas[2 * MAX_SHARED], *last_area = areas;
static uint32_t nr_areas;

/* ---- areas ----------------------------------------------------------------- */

static bool holds(const struct area *a, uint64_t target)
{
	return a->nr_jumps && target - a->at < a->size;
}

static bool map_area(struct area *a, uint64_t target, uint64_t size)
{
	uint64_t at = target & ~(size - 1);
	long p;

	if (at < 0x10000 || at >> 47 || pb_module_at(at) || pb_module_at(at + size - 1))
		return false;
	p = pb_pages_map(at, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS |
			 MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (pb_sys_failed(p))
		return false;
	if ((uint64_t)p != at) {
		/* the kernel doesn't know MAP_FIXED_NOREPLACE */
		pb_pages_unmap((uint64_t)p, size);
		return false;
	}
	pb_pages_dump(at, size);
	*a = (struct area){ .at = at, .size = size };
	return true;
}

static struct area *area_of(uint64_t target)
{
	if (holds(last_area, target))
		return last_area;
	for (struct area *a = areas; a < areas + nr_areas; a++)
		if (holds(a, target))
			return a;
	return NULL;
}

static struct area *free_area(void)
{
	for (struct area *a = areas; a < areas + nr_areas; a++)
		if (!a->nr_jumps)
			return a;
	return nr_areas < pb_array_size(areas) ? &areas[nr_areas++] : NULL;
}

/* Adds a jump at `target` to its area. If there is no such area, maps one of `size` bytes. */
static bool enter_area(uint64_t target, uint64_t size)
{
	struct area *a = area_of(target);

	if (!a) {
		a = free_area();
		if (!a || !map_area(a, target, size))
			return false;
	}
	last_area = a;
	a->nr_jumps++;
	return true;
}

static void leave_area(uint64_t target)
{
	struct area *a = area_of(target);

	if (!--a->nr_jumps)
		pb_pages_unmap(a->at, a->size);
}

/* ---- the index of the targets ------------------------------------------------ */

static uint64_t target_of(uint16_t n)
{
	return table[(n - 1) / 2].target[(n - 1) % 2];
}

static uint16_t *head_of(uint64_t cell)
{
	return &heads[cell * 0x9e3779b97f4a7c15 >> (64 - 13)];
}

static void index_targets(const struct shared *r)
{
	for (unsigned i = 0; i < 2; i++) {
		uint16_t n = (uint16_t)(1 + 2 * (r - table) + i);
		uint16_t *head = head_of(r->target[i] / CELL);

		next[n - 1] = *head;
		*head = n;
	}
}

static void unindex_targets(const struct shared *r)
{
	for (unsigned i = 0; i < 2; i++) {
		uint16_t n = (uint16_t)(1 + 2 * (r - table) + i);
		uint16_t *at = head_of(r->target[i] / CELL);

		while (*at != n)
			at = &next[*at - 1];
		*at = next[n - 1];
	}
}

/* ---- choosing targets -------------------------------------------------------- */

/* Whether a jump at `target` lies in one page and overlaps no other target's jump. */
static bool is_free(uint64_t target)
{
	uint64_t last = target + PB_JUMP_LEN - 1;

	for (uint64_t cell = (target - PB_JUMP_LEN + 1) / CELL; cell <= last / CELL; cell++)
		for (uint16_t n = *head_of(cell); n; n = next[n - 1])
			if (target - target_of(n) + PB_JUMP_LEN - 1 < 2 * PB_JUMP_LEN - 1)
				return false;
	return target / PAGE == last / PAGE;
}

/* Chooses the displacement of the second jump: d3 and d2 both are d, d1 is 0. Tries values of d0
 * until both targets are free (is_free()). False: no value of d0 fits. */
static bool place(struct shared *r, uint64_t first, uint32_t d)
{
	for (uint32_t d0 = 0; d0 < 16; d0++) {
		pb_shared_targets(first, d << 24 | d << 16 | d0, r->target);
		if (is_free(r->target[0]) && is_free(r->target[1]))
			return true;
	}
	return false;
}

static bool enter_areas(const struct shared *r, uint64_t size)
{
	if (!enter_area(r->target[0], size))
		return false;
	if (enter_area(r->target[1], size))
		return true;
	leave_area(r->target[0]);
	return false;
}

static void leave_areas(const struct shared *r)
{
	leave_area(r->target[0]);
	leave_area(r->target[1]);
}

/* The search begins at the distance that was found for the module's last pair, because the
 * distances that were tried before it usually fail again. */
static bool find_targets(struct shared *r, const struct pb_module *m, uint64_t first, uint64_t size)
{
	static const struct pb_module *of;
	static uint32_t start;
	bool up = first < LOW_IMAGE;

	if (of != m)
		start = NEAREST;
	of = m;
	for (uint32_t n = NEAREST, i = start; n <= FARTHEST; n++, i++) {
		i = i > FARTHEST ? NEAREST : i;
		if (!place(r, first, up ? FARTHEST + NEAREST - i : 0x100 - i) ||
		    !enter_areas(r, size))
			continue;
		start = i;
		return true;
	}
	return false;
}

static bool write_jump(uint64_t at, uint64_t to)
{
	uint8_t jump[PB_JUMP_LEN];

	return !pb_jump_emit(jump, at, to) && !pb_text_write(at, jump, sizeof(jump));
}

static struct shared *free_shared(void)
{
	for (uint32_t i = 0; nr_free && i < nr_shared; i++)
		if (!table[i].m)
			return &table[i];
	if (nr_shared == MAX_SHARED)
		return NULL;
	nr_free++;
	__atomic_store_n(&nr_shared, nr_shared + 1, __ATOMIC_RELEASE);
	return &table[nr_shared - 1];
}

bool pb_shared_make(const struct pb_module *m, uint64_t first, uint64_t to, uint64_t second_to)
{
	struct shared *r = free_shared();

	/* if no free megabyte is found, tries areas of one page */
	if (!r || (!find_targets(r, m, first, AREA) && !find_targets(r, m, first, PAGE)))
		return false;
	if (!write_jump(r->target[0], to) || !write_jump(r->target[1], second_to)) {
		leave_areas(r);
		return false;
	}
	index_targets(r);
	nr_free--;
	r->first = first;
	__atomic_store_n(&r->m, m, __ATOMIC_RELEASE);
	return true;
}

/* Searches the newest pair first, because the caller usually needs the pair that was made last. */
uint64_t pb_shared_target(uint64_t second)
{
	for (uint32_t i = nr_shared; i--;)
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
		unindex_targets(&table[i]);
		nr_free++;
		leave_areas(&table[i]);
	}
}
