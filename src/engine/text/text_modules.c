/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of modules, and look-ups in it by address and by site number. text.c changes the table.
 * Look-ups take no lock. */
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

		if (m->present && address - m->bias - m->analysis->image_start <
				  m->analysis->image_end - m->analysis->image_start)
			return m;
	}
	return NULL;
}

struct pb_site *pb_site_by_id(uint32_t id)
{
	for (uint32_t i = 0; i < pb_nr_modules; i++) {
		struct pb_module *m = &pb_modules[i];

		if (m->present && m->first_site && id - m->first_site < m->analysis->nr_funcs)
			return &m->sites[id - m->first_site];
	}
	return NULL;
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
