/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program may give a child of clone() a TLS of its own (CLONE_SETTLS) that libc hasn't filled.
 * Chromium's sandbox does this to protect its own TLS from a child that shares its memory. In such
 * a TLS the word that leads to the thread's state (pb_tls) may have any value, so a hit in the
 * child could crash. So before the child runs the program's function, this word is set to the
 * address of a state of zeros (pb_foreign_thread), and each hit takes the slow path. This state is
 * never filled, because a state belongs to a TCB of libc, and the child has none. The child's calls
 * are counted as lost.
 *
 * The word lies a little below the TLS, as libc's own variables do, for example errno. If the
 * program has other data there, 40 bytes of it are overwritten. A program must expect this of a
 * child that calls libc.
 *
 * A child that is made by a raw system call isn't noticed. pthread_create() calls clone(), too, but
 * with a TLS that libc has filled.
 */
#include "engine/process/clone.h"
#include "arch/arch.h"
#include "engine/process/replace.h"

void *pb_original_clone;	/* for pb_our_clone() */

void pb_clone_hook(struct pb_module *m)
{
	if (!pb_original_clone)
		pb_replace_passing(m, "clone", pb_our_clone, &pb_original_clone);
}
