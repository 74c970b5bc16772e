/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of modules, and look-ups in it by address and by site number. text.c changes the table.
 *
 * Look-ups take no lock, because hits and signal handlers make them. Meanwhile another thread may
 * free a row and fill it again. So a look-up reads only the row, not the analysis. The look-ups of
 * an address in an image and of a site number read the beginning of a range, then the size, then
 * the beginning again. If the row was filled again in between, the beginning has changed, or the
 * new range begins where the old one did, and the answer is right for one of the two. While a row
 * is free, its sizes are 0.
 *
 * A thread may be about to read the site that a look-up by number has found, when another thread
 * removes the module. The memory of its sites is unmapped only when no thread can do so any more
 * (pb_look_begin() in graph/thread.h).
 */
#include "engine/text/text_priv.h"
#include "arch/arch.h"

struct pb_module pb_modules[PB_MAX_MODULES];
uint32_t pb_nr_modules;

struct pb_module *pb_site_module(const struct pb_site *s)
{
	for (uint32_t i = 0; i < pb_nr_modules; i++) {
		struct pb_module *m = &pb_modules[i];

		if (m->sites && (uint64_t)s - m->region < m->region_size)
			return m;
	}
	return NULL;
}

struct pb_module *pb_module_at(uint64_t address)
{
	for (uint32_t i = 0; i < pb_nr_modules; i++) {
		struct pb_module *m = &pb_modules[i];
		uint64_t from = __atomic_load_n(&m->image, __ATOMIC_ACQUIRE);

		if (address - from < __atomic_load_n(&m->image_size, __ATOMIC_ACQUIRE) &&
		    from == __atomic_load_n(&m->image, __ATOMIC_ACQUIRE))
			return m;
	}
	return NULL;
}

/* Finds the module that has the site. *nr gets the site's number in the module. */
static struct pb_module *module_of_site(uint32_t id, uint32_t *nr)
{
	for (uint32_t i = 0; i < pb_nr_modules; i++) {
		struct pb_module *m = &pb_modules[i];
		uint32_t first = __atomic_load_n(&m->first_site, __ATOMIC_ACQUIRE);

		if (first && id - first < __atomic_load_n(&m->nr_funcs, __ATOMIC_ACQUIRE) &&
		    first == __atomic_load_n(&m->first_site, __ATOMIC_ACQUIRE)) {
			*nr = id - first;
			return m;
		}
	}
	return NULL;
}

struct pb_site *pb_site_by_id(uint32_t id)
{
	uint32_t nr;
	const struct pb_module *m = module_of_site(id, &nr);
	struct pb_site *sites = m ? __atomic_load_n(&m->sites, __ATOMIC_ACQUIRE) : NULL;

	return sites ? &sites[nr] : NULL;
}

bool pb_site_is_of_libc(uint32_t id)
{
	uint32_t nr;
	const struct pb_module *m = module_of_site(id, &nr);

	return !m || m->libc;
}

bool pb_data_is_lasting(uint64_t from, size_t n)
{
	for (uint32_t i = 0; i < pb_nr_modules; i++) {
		const struct pb_module *m = &pb_modules[i];

		if (m->present && m->lasting && n <= m->data_size &&
		    from - m->data <= m->data_size - n)
			return true;
	}
	return false;
}

uint64_t pb_text_near(const struct pb_module *m, uint64_t handler)
{
	return m->near ? pb_near_of(m->stubs, handler) : handler;
}

uint64_t pb_text_not_near(uint64_t pc)
{
	uint64_t to = 0;

	for (uint32_t i = 0; i < pb_nr_modules && !to; i++)
		if (pb_modules[i].sites && pb_modules[i].near)
			to = pb_near_original(pb_modules[i].stubs, pc);
	return to;
}

uint64_t pb_site_idle(const struct pb_module *m, const struct pb_site *s)
{
	return (uint64_t)m->stubs + s->stub + PB_STUB_IDLE;
}
