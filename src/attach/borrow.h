/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Chooses the thread that calls pthread_create() for the injector, and stops it. The thread must
 * hold none of the locks that pthread_create() takes (doc/design/borrowed-thread.md). Context: the
 * injector's thread.
 */
#ifndef PB_ATTACH_BORROW_H
#define PB_ATTACH_BORROW_H
#include "attach/libc_map.h"
#include "attach/remote.h"
#include "attach/subject.h"

/* Stops a thread that can be borrowed, and saves its state. *stopped_ns is the time when the
 * stopping began. Returns 0, or -errno with the user's line. After an error no thread is held,
 * except after -ETIMEDOUT: then a thread may still be traced (attach_remote_stop(),
 * attach_remote_release()). */
int attach_borrow(struct attach_subject *s, const struct attach_libc *l, struct attach_remote *t,
		  struct attach_state *state, uint64_t *stopped_ns);
/* Lets a thread go that attach_remote_stop() has stopped and that hasn't run since. If the stop has
 * interrupted a system call, the thread repeats the call, so the program doesn't see the
 * interruption. Returns -ETIMEDOUT if the thread is still traced (attach_remote_release()). */
int attach_borrow_undo(struct attach_remote *t);
#endif
