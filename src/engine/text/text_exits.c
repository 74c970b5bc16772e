/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes the stubs of windows of exits. If an exit's jump shares bytes with another jump, also makes
 * the jumps to which the two shared jumps lead (text_shared.c). */
#include "engine/text/text_priv.h"

bool pb_exit_make_stub(struct pb_module *m, uint32_t window, const struct pb_place *p)
{
	uint32_t stub = pb_place_as_in_file(m, p) ? pb_stub_of_exits(m, window, p) : 0;
	uint64_t at = (uint64_t)m->stubs + stub;

	if (!stub || (pb_place_with_second(p) &&
		      !pb_shared_make(m, m->bias + p->window, at, at + pb_body_second(p))))
		return false;
	m->stubs_used = true;
	__atomic_store_n(&m->exits[window].stub, stub, __ATOMIC_RELEASE);
	return true;
}

bool pb_shared_first_make(struct pb_module *m, const struct pb_site *s)
{
	const struct pb_exit_window *w = pb_func_before(m->analysis, pb_site_func(m, s));
	struct pb_exit_site *e;
	struct pb_place p;

	if (!m->exits || !w)
		return false;
	e = pb_exit_of(m, w);
	p = pb_window_place(m->analysis, w);
	if (!pb_exit_make_stub(m, (uint32_t)(e - m->exits), &p) ||
	    !pb_shared_make(m, m->bias + p.window, (uint64_t)m->stubs + e->stub,
			    (uint64_t)m->stubs + s->stub)) {
		e->flags |= PB_EXIT_FL_REFUSED;
		return false;
	}
	return true;
}

bool pb_shared_first_is_on(const struct pb_module *m, const struct pb_site *s)
{
	const struct pb_exit_window *w = m->exits ?
					 pb_func_before(m->analysis, pb_site_func(m, s)) : NULL;

	return w && pb_exit_of(m, w)->flags & PB_HAS_WINDOW;
}
