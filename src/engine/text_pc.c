/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From program counters in stubs, holes and displaced instructions to those
 * that they stand for, and back. */
#include "engine/text_priv.h"
#include "arch/x86_64/stub.h"

/* The site whose jump stands in a hole at pc, or NULL. */
static struct pb_site *site_of_hole(struct pb_module *m, uint64_t pc)
{
	const struct pb_func *f = m && m->sites ?
				  pb_analysis_hole_at(m->analysis, pc - m->bias) : NULL;
	struct pb_place p;

	if (!f)
		return NULL;
	p = pb_func_place(m->analysis, f);
	return pb_hole_is_patched(m, &p) ? &m->sites[f - pb_analysis_funcs(m->analysis)] : NULL;
}

/* The instruction that stands at `off` in the stub, or the entry. */
static uint64_t original(const struct pb_module *m, const struct pb_func *f, uint64_t off, bool *own)
{
	struct pb_place p = pb_func_place(m->analysis, f);

	*own = off < PB_STUB_COPY;
	return m->bias + (*own ? p.window : pb_body_original(&p, (unsigned)(off - PB_STUB_COPY), own));
}

uint64_t pb_text_original_pc(uint64_t pc, bool *own)
{
	struct pb_module *in = pb_module_at(pc);
	const struct pb_module *rides;
	const struct pb_site *hole;
	const struct pb_func *f;

	for (uint32_t i = 0; i < pb_nr_modules; i++) {
		struct pb_module *m = &pb_modules[i];
		const uint8_t *at;
		uint64_t off = pc - (uint64_t)m->stubs;

		if (!m->sites || off >= m->stubs_used)
			continue;
		for (at = m->stubs + (off & ~15ul); at > m->stubs; at -= 16) {
			const struct pb_site *s = pb_stub_site(at);

			if (s < m->sites || s >= m->sites + m->analysis->nr_funcs ||
			    !pb_stub_is(at, s))
				continue;
			return original(m, pb_site_func(m, s), pc - (uint64_t)at, own);
		}
	}
	*own = false;
	hole = site_of_hole(in, pc);
	if (hole)
		return in->bias + pb_func_window(pb_site_func(in, hole));
	f = pb_ride_at(pc, &rides);
	return f ? rides->bias + pb_func_window(f) : 0;
}

/* pc is at an instruction that the function's jumps displace, or the answer is 0. */
static uint64_t copy_in_stub(const struct pb_module *m, const struct pb_func *f, uint64_t pc)
{
	const struct pb_site *s = &m->sites[f - pb_analysis_funcs(m->analysis)];
	struct pb_place p = pb_func_place(m->analysis, f);
	int copy = s->stub ? pb_body_copy(&p, pc - m->bias) : -1;

	return copy < 0 ? 0 : (uint64_t)m->stubs + s->stub + PB_STUB_COPY + (uint64_t)copy;
}

/* The function into whose dig's jumps pc leads, strictly, or NULL. */
static const struct pb_func *dug_away(const struct pb_module *m, uint64_t pc)
{
	uint64_t addr = pc - m->bias;
	const struct pb_func *f = pb_analysis_hole_in(m->analysis, addr - (PB_DIG_LEN - PB_JUMP_LEN),
						      addr + PB_JUMP_LEN - 1);

	return f && f->flags & PB_FUNC_DUG ? f : NULL;
}

uint64_t pb_text_moved_pc(uint64_t pc)
{
	struct pb_module *m = pb_module_at(pc);
	const struct pb_site *s = site_of_hole(m, pc);
	const struct pb_func *f;
	uint64_t off;
	int64_t i;

	if (!m || !m->sites)
		return 0;
	if (s)
		return (uint64_t)m->stubs + s->stub;
	i = pb_analysis_lower(m->analysis, pc - m->bias);
	if (i < 0)
		return 0;
	f = pb_analysis_funcs(m->analysis) + i;
	off = pc - m->bias - pb_func_window(f);
	if (f->refused != PB_REFUSED_NOT || !off || off >= pb_func_jump_len(f))
		f = dug_away(m, pc);
	return f ? copy_in_stub(m, f, pc) : 0;
}
