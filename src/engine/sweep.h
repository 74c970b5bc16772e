/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Entries of calls that will never return: whose slots don't hold their gates
 * any more, or whose stacks are gone. doc/design/fgraph.md, "Collection".
 * Context: hit path, the thread that owns them.
 */
#ifndef PB_ENGINE_SWEEP_H
#define PB_ENGINE_SWEEP_H
#include <stdbool.h>
#include "engine/thread.h"
#include "engine/uaccess.h"

/* An entry claimed for the hit's slot; NULL: none is to be had. */
struct pb_entry *pb_claim(struct pb_thread *t, const struct pb_hit *h);
/* t->want is set. */
void pb_sweep_wanted(struct pb_thread *t, const struct pb_hit *h);
/* A call that is closed: its entry is freed if that is certain, and t's. */
void pb_free_if_dead(struct pb_thread *t, const struct pb_hit *h, struct pb_entry *e);
/* All calls that are open on s, where no thread runs, are over: END for each. */
void pb_close_stack(struct pb_thread *t, const struct pb_hit *h, struct pb_stack *s);
#endif
