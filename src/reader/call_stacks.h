/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The open calls of each stack, as the decoder has followed them. A stack whose id is 0 or has bit
 * 63 set is a thread's own stack. Any other stack belongs to a process, and may move between the
 * threads of that process. Context: the observer, one thread.
 */
#ifndef PB_READER_CALL_STACKS_H
#define PB_READER_CALL_STACKS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_open_call {
	uint64_t start;		/* when the call began, in ticks of the records' clock */
	uint64_t child;		/* for the view: the time that the call spent in traced callees */
	uint64_t aux;		/* for the view. call_walk.h sets it to the time of the fork if the
				 * call was inherited by fork */
	uint64_t nested;	/* for the view (sums.c: the known time of calls of the same
				 * function inside this call) */
	uint32_t outer;		/* for the view (sums.c: next outer call of the same function) */
	uint32_t site;
	uint32_t view;		/* for the view. It is 0 when the call is pushed */
	uint32_t select;	/* for the view: the result of pb_select() */
	bool elsewhere;		/* the call is counted elsewhere. A chunk's list of open calls has
				 * named the call, and the call is counted at its ENTRY in another
				 * chunk; or another cursor counts the call (follow_late.c) */
};

/* True if the call counts on this stack. If the process inherited the call by fork (aux is set),
 * the call counts in the parent process. */
static inline bool pb_open_call_counts(const struct pb_open_call *call)
{
	return !call->aux && !call->elsewhere;
}

struct pb_sums;

struct pb_call_stack {
	struct pb_open_call *calls;
	uint32_t depth, room;
	uint32_t base;		/* number of open calls that are outer calls of calls[0]. Only their
				 * number is known, so they aren't in `calls` */
	bool base_inherited;	/* the calls in `base` began in the process that forked this one */
	uint32_t user;		/* for the view (graph_text.c: the index of the first call whose
				 * entry is not shown yet) */
	uint32_t counted;	/* for the view (sums.c: the index of the first call that it
				 * counts) */
	struct pb_sums *sums;	/* for the view (sums.c: the sums whose current stack this is) */
	uint32_t shift;		/* for the view (select.h: a number that is added to the depth of
				 * the stack's calls) */
	uint32_t inherited;	/* for the view (select.h: the selection that the thread brought
				 * to the stack when it entered it) */
	uint32_t pid, serial;	/* serial: serial of the last thread that used the stack */
	uint64_t id;
	/* The stack that the thread left to enter this stack. The innermost call of `from` waits
	 * until the code on this stack ends. NULL for a thread's own stack. `from` doesn't change
	 * when the thread comes back to this stack from an inner stack. */
	struct pb_call_stack *from;
	bool entered;		/* `from` was set; the view clears it */
	uint64_t budget;	/* steps that pb_stack_find() may still spend on failed searches */
	size_t image;		/* index in data->images */
	uint32_t key_image;	/* the image's number in the records */
	/* The leaf: a call without traced callees that still runs on this stack when the data
	 * ends. */
	uint64_t leaf_start;
	uint32_t leaf_site;	/* 0: none */
	uint32_t leaf_select;	/* for the view */
	bool leaf_inherited;	/* the leaf began in the process that forked this one */
	uint32_t tid;		/* TID of the last thread that used the stack */
};

struct pb_stacks;

struct pb_stacks *pb_stacks_new(void);
void pb_stacks_free(struct pb_stacks *s);
/* Finds or makes a stack: by serial if id is 0, otherwise by pid, image and id. `image` is the
 * image's number in the records. Returns NULL if there is no memory. After a million stacks, no
 * more are made, and the first stack is returned instead. */
struct pb_call_stack *pb_stacks_get(struct pb_stacks *s, uint32_t pid, uint32_t serial,
				    uint32_t image, uint64_t id);
/* Returns the n-th stack in the order in which the stacks first appeared. Returns NULL after the
 * last. */
struct pb_call_stack *pb_stacks_nth(struct pb_stacks *s, size_t n);

/* True if this is a thread's own stack. False if it is a stack that the program switches to. */
bool pb_stack_is_own(const struct pb_call_stack *s);

/* The thread leaves stack `prev` and continues on stack `to`. */
void pb_stack_switch(struct pb_call_stack *prev, struct pb_call_stack *to);

/* Makes room for more calls when the array is full. If the stack is too deep or there is no memory,
 * returns NULL, and the new call isn't followed. */
struct pb_open_call *pb_stack_push_slow(struct pb_call_stack *s);

static inline struct pb_open_call *pb_stack_push(struct pb_call_stack *s, uint32_t site,
						 uint64_t start)
{
	struct pb_open_call *c;

	if (__builtin_expect(s->depth == s->room, 0)) {
		c = pb_stack_push_slow(s);
		if (!c)
			return NULL;
	}
	c = &s->calls[s->depth++];
	*c = (struct pb_open_call){ .start = start, .site = site };
	return c;
}

/* Returns the index of the innermost open call of that site, or -1. When failed searches have used
 * up the stack's budget, only the innermost calls are searched. */
int64_t pb_stack_find(struct pb_call_stack *s, uint32_t site);
#endif
