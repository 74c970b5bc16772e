/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Replaces functions of the program and of libc, for the other files of this folder. A replaced
 * function keeps its site, and the site's handler runs as for each traced function. The handler
 * then jumps to site->body. In the site of a function that isn't replaced, `body` is the copy of
 * the displaced instructions. In the site of a replaced function, `body` is a thunk of replaced.S.
 * The thunk calls the replacement, and then records the end of the call. (A replacement that ends
 * by a jump to the original needs no thunk.) A call of the original begins at the copy of the
 * original's displaced instructions.
 */
#include "engine/process/replace.h"
#include "engine/text/ftrace.h"

/* Thunk i of pb_replaced_thunks calls pb_replacements[i]. */
extern void *pb_replacements[PB_MAX_REPLACED];

void *pb_replacements[PB_MAX_REPLACED];

/* Returns the thunk of a replacement; each replacement has one thunk. NULL: there are too many
 * replacements. */
static const uint8_t *thunk_of(void *replacement)
{
	for (unsigned i = 0; i < PB_MAX_REPLACED; i++) {
		if (!pb_replacements[i])
			pb_replacements[i] = replacement;
		if (pb_replacements[i] == replacement)
			return pb_replaced_thunks + i * PB_THUNK_SIZE;
	}
	return NULL;
}

uint64_t pb_replace_at(struct pb_module *m, uint64_t address, void *replacement)
{
	const uint8_t *thunk = thunk_of(replacement);

	if (!thunk)
		return pb_ftrace_replace_at(m, address, replacement, 0);
	return pb_ftrace_replace_at(m, address, thunk, FTRACE_FL_ENDS);
}

static bool keep(void *original, uint64_t body)
{
	if (body)
		__atomic_store_n((uint64_t *)original, body, __ATOMIC_RELEASE);
	return body;
}

bool pb_replace(struct pb_module *m, const char *name, void *replacement, void *original)
{
	uint64_t address = pb_function_named(m, name);

	return address && keep(original, pb_replace_at(m, address, replacement));
}

bool pb_replace_passing(struct pb_module *m, const char *name, void *replacement, void *original)
{
	uint64_t address = pb_function_named(m, name);

	return address &&
	       keep(original, pb_ftrace_replace_at(m, address, replacement, FTRACE_FL_PASSES));
}
