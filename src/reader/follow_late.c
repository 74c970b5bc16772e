/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Late records of a recording that is followed (follow.h). A signal handler may interrupt code that
 * writes a record. If the handler fills the chunk, the chunk becomes HELD (doc/design/writer.md),
 * and the interrupted record is a hole in it. The thread's cursor reads the records before the
 * hole. The cursor doesn't wait for the rest of the chunk, but goes on with the thread's next
 * chunk. When the chunk is complete, this file reads the rest: the records that the cursor didn't
 * read.
 *
 * The thread's cursor can't go back, because its stacks are those of a later time. So another
 * cursor, with stacks of its own, decodes the whole chunk. Its events before the rest are dropped,
 * because the thread's cursor has returned them. If a call was already open before the rest, the
 * call's end is dropped, too: the thread's cursor has ended this call, or will end it.
 */
#include <errno.h>
#include <stdlib.h>

#include "reader/follow_priv.h"

int pb_follow_late_add(struct pb_follow *f, size_t index, const struct pb_chunk_ref *ref,
		       uint32_t read)
{
	struct late_chunk *late = realloc(f->late, (f->nr_late + 1) * sizeof(*late));

	if (!late)
		return -ENOMEM;
	f->late = late;
	late[f->nr_late++] = (struct late_chunk){ *ref, f->followers[index].thread, read };
	return 0;
}

static void end_chunk(struct pb_follow *f)
{
	pb_cursor_free(&f->late_cursor);
	pb_stacks_free(f->late_stacks);
	f->late_stacks = NULL;
}

void pb_follow_late_drop(struct pb_follow *f)
{
	if (f->late_stacks)
		end_chunk(f);
	free(f->late);
	f->late = NULL;
	f->nr_late = f->late_done = 0;
}

/* If no late chunk is being read, begins the next one. Returns whether a late chunk is now being
 * read. */
static bool begin_chunk(struct pb_follow *f)
{
	struct pb_cursor *c = &f->late_cursor;
	struct late_chunk *l;

	if (f->late_stacks)
		return true;
	if (f->late_done == f->nr_late)
		return false;
	l = &f->late[f->late_done++];
	f->late_stacks = pb_stacks_new();
	if (!f->late_stacks)
		return false;
	if (pb_cursor_init(c, f->data, f->late_stacks, l->thread, PB_CHUNK_SIZE)) {
		pb_stacks_free(f->late_stacks);
		f->late_stacks = NULL;
		return false;
	}
	c->refs = &l->ref;
	c->nr_refs = 1;
	c->more = true;		/* the thread doesn't end with this chunk */
	f->late_begun = false;
	return true;
}

/* Returns whether the late cursor's next record belongs to the rest. */
static bool in_rest(const struct pb_follow *f)
{
	const struct pb_cursor *c = &f->late_cursor;

	return c->in_chunk && c->chunk.used - c->file_left - (c->end - c->pos) * 8ull >=
			      f->late[f->late_done - 1].read;
}

/* Marks the calls that are open before the rest, so that is_new() drops their ends. */
static void mark_calls(struct pb_follow *f)
{
	const struct pb_call_stack *s;

	for (size_t i = 0; (s = pb_stacks_nth(f->late_stacks, i)); i++)
		for (uint32_t n = 0; n < s->depth; n++)
			s->calls[n].elsewhere = true;
	f->late_begun = true;
}

static bool is_new(const struct pb_event *ev)
{
	switch (ev->kind) {
	case PB_EV_LEAF: case PB_EV_ENTRY: case PB_EV_CALL: case PB_EV_FUNC:
		return true;
	case PB_EV_EXIT: case PB_EV_END:
		return ev->call && !ev->call->elsewhere;
	default:
		return false;
	}
}

bool pb_follow_late_next(struct pb_follow *f, struct pb_event *ev)
{
	while (begin_chunk(f)) {
		if (!f->late_begun && in_rest(f))
			mark_calls(f);
		if (!pb_cursor_next(&f->late_cursor, ev)) {
			end_chunk(f);
		} else if (f->late_begun && is_new(ev)) {
			ev->flags |= PB_EV_LATE;
			return true;
		}
	}
	return false;
}
