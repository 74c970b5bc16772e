/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Looks at the text of a place (a site, or a window of exits): which of its jumps are there, and
 * whether its bytes are still those of the file. */
#include "engine/text/text_priv.h"

/* Returns whether the text is unpatched: it has the bytes of the file, or these bytes with nops in
 * place of the calls of mcount or __fentry__ that the compiler has inserted. */
static bool displaces(const struct pb_recipe *r, uint64_t text)
{
	return !memcmp((const void *)text, pb_recipe_rest(r), r->window_len) ||
	       !memcmp((const void *)text, pb_recipe_orig(r), r->window_len);
}

bool pb_place_as_in_file(const struct pb_module *m, const struct pb_place *p)
{
	if (!displaces(p->recipe, m->bias + p->window))
		return false;
	if (p->second)
		return displaces(p->second, m->bias + pb_place_second(p));
	return !p->via || !pb_slot_is_patched(m, p);
}

unsigned pb_place_look(const struct pb_module *m, const struct pb_place *p)
{
	return (pb_window_is_patched(m, p) ? PB_HAS_WINDOW : 0) |
	       (p->via && pb_slot_is_patched(m, p) ? PB_HAS_SLOT : 0);
}
