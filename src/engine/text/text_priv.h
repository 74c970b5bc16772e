/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Declarations that the sources of this folder share. A place (struct pb_place) is the window of a
 * function's entry, or a window of exits (text_batch.c). */
#ifndef PB_ENGINE_TEXT_TEXT_PRIV_H
#define PB_ENGINE_TEXT_TEXT_PRIV_H
#include "abi/analysis_place.h"
#include "base/mem.h"
#include "engine/text/text.h"

static inline bool pb_window_is_patched(const struct pb_module *m, const struct pb_place *p)
{
	return memcmp((const void *)(m->bias + p->window), pb_recipe_rest(p->recipe),
		      pb_place_jump_len(p));
}

/* To be called only for a place with a slot (p->via). */
static inline bool pb_slot_is_patched(const struct pb_module *m, const struct pb_place *p)
{
	if (pb_place_in_code(p))
		return memcmp((const void *)(m->bias + pb_place_second(p)),
			      pb_recipe_rest(p->second), PB_CODE_SLOT_LEN);
	return memcmp((const void *)(m->bias + pb_place_slot(p)), pb_recipe_slot(p->recipe),
		      PB_JUMP_LEN);
}

static inline struct pb_exit_site *pb_exit_of(const struct pb_module *m,
					      const struct pb_exit_window *w)
{
	return &m->exits[w - pb_analysis_windows(m->analysis)];
}

/* --- text_exits.c --- */

/* Makes the window's stub. False: the text differs from the file, or there is no room. */
bool pb_exit_make_stub(struct pb_module *m, uint32_t window, const struct pb_place *p);
/* If the jump of the exit right before the site's entry shares bytes with the entry's jump, makes
 * that exit's stub and the targets of the two jumps. Called once the site has its stub. False:
 * there is no such exit, or the exit is refused. */
bool pb_shared_first_make(struct pb_module *m, const struct pb_site *s);
/* Whether the text has the jump of an exit that shares bytes with the entry's jump. */
bool pb_shared_first_is_on(const struct pb_module *m, const struct pb_site *s);

/* text_stubs.c: these two functions make the stub of a site, or of a window of exits. They return
 * the stub's offset; 0: the stub can't be made. */
uint32_t pb_stub_of_site(struct pb_module *m, const struct pb_site *s, const struct pb_place *p);
uint32_t pb_stub_of_exits(struct pb_module *m, uint32_t window, const struct pb_place *p);
/* Makes the stubs executable in each module that uses a stub. Returns 0 or -errno. -ENOEXEC: the
 * kernel doesn't allow this for a module, whose functions are refused from now on. */
int pb_stubs_seal(void);
void pb_stubs_unmap(const struct pb_module *m);

/* text_pc.c: finds the place whose slot is at pc. */
bool pb_slot_owner(const struct pb_module *m, uint64_t pc, struct pb_place *p);

/* These flags say which jumps of a place are in the text, or will be there after the batch. */
#define PB_HAS_WINDOW	1u
#define PB_HAS_SLOT	2u

/* --- text_batch.c --- */

/* Adds to the batch the jump of a place to its stub. The body of that stub is at `body`. Updates
 * *has, which is PB_HAS_* of the place. Returns 0 or -ERANGE. */
int pb_batch_on(struct pb_module *m, const struct pb_place *p, uint64_t stub, uint64_t body,
		unsigned *has);
/* Adds to the batch a change that restores the program's bytes of a place. Clears *has, which is
 * PB_HAS_* of the place. If memory is short, the flags of the jumps that stay remain set. */
void pb_batch_off(struct pb_module *m, const struct pb_place *p, unsigned *has);

/* --- text_places.c --- */

/* Returns PB_HAS_* of a place, as found in the text. */
unsigned pb_place_look(const struct pb_module *m, const struct pb_place *p);
/* Returns whether the bytes of the place in memory are the same as in the file. */
bool pb_place_as_in_file(const struct pb_module *m, const struct pb_place *p);

/* text_shared.c: two shared jumps. The first jump, at `first`, has one byte of its own. The second
 * jump comes right after that byte; its first four bytes are the displacement of the first jump.
 * Finds addresses to which the two jumps can lead, and writes jumps to `to` and `second_to` at
 * these addresses. False: the two jumps can't be made. */
bool pb_shared_make(const struct pb_module *m, uint64_t first, uint64_t to, uint64_t second_to);
/* The target of the second jump at this address, or 0. */
uint64_t pb_shared_target(uint64_t second);
/* The address of the shared jump, first or second, that goes to pc; 0: none. */
uint64_t pb_shared_at(uint64_t pc);
void pb_shared_remove(const struct pb_module *m);

/* text_jit.c: these two functions report all stubs of m to debuggers, and take the report back.
 * Context: as in text.h. */
void pb_jit_announce(struct pb_module *m);
void pb_jit_withdraw(struct pb_module *m);
#endif
