/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The entries of data->threads with the same PID belong to one process or to several. After an
 * exec, a process has new entries, whose times come after those of the old entries. So two entries
 * of main threads belong to different processes if their times overlap. If the recorder knew the
 * PIDs of the two images in its own namespace, these PIDs decide. (The image of a forked child that
 * has made no exec is its parent's, so it has no such PID.) The other threads belong to the process
 * whose main thread has the same image.
 *
 * Forked children that make no exec have the same image. If the main threads of several such
 * processes were there together with a thread, the thread belongs to one in which no other thread
 * had its TID at the same time. Which one this is, isn't known. Then the processes are taken in the
 * order of their starts.
 *
 * The time of a thread's last event isn't in its chunks' headers. So if a PID has several entries
 * of main threads, the last chunk of each of its threads is decoded.
 */
#include "view/same_pids.h"

#include <errno.h>
#include <stdlib.h>

#include "abi/ring.h"
#include "base/base.h"
#include "reader/decode.h"

#define PROCESSES	64	/* limit of the processes with one PID; they fit in a bit mask */
#define TRIES		64	/* limit of the main threads with one image that are compared */

struct entry {
	const struct pb_thread *thread;
	uint64_t start, end;		/* time of the thread's first chunk and of its last event */
	size_t image;			/* index in data->images */
	uint32_t process;		/* index in `processes` below */
};

struct process {
	uint64_t end;
	uint32_t outer_pid;		/* as in struct pb_image; 0: unknown */
};

static bool is_main(const struct entry *e)
{
	return e->thread->tid == e->thread->pid;
}

static int by_pid(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->thread->pid != y->thread->pid)
		return x->thread->pid < y->thread->pid ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->thread->serial < y->thread->serial ? -1 : 1;
}

/* Puts the main threads first. Both parts are sorted by image, TID and start. */
static int by_image(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (is_main(x) != is_main(y))
		return is_main(x) ? -1 : 1;
	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	if (x->thread->tid != y->thread->tid)
		return x->thread->tid < y->thread->tid ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* Decodes the thread's last chunk. */
static int read_end(struct pb_data *d, struct entry *e)
{
	struct pb_thread last = *e->thread;
	struct pb_stacks *stacks = pb_stacks_new();
	struct pb_cursor c;
	struct pb_event ev;

	if (last.nr) {
		last.first += last.nr - 1;
		last.nr = 1;
	}
	if (!stacks || pb_cursor_init(&c, d, stacks, &last, PB_CHUNK_SIZE)) {
		pb_stacks_free(stacks);
		return -ENOMEM;
	}
	while (pb_cursor_next(&c, &ev)) {
		e->end = ev.time > e->end ? ev.time : e->end;
		e->image = ev.image;
	}
	pb_cursor_free(&c);
	pb_stacks_free(stacks);
	return 0;
}

/* True if a main thread may belong to the process. */
static bool may_belong(const struct process *p, const struct entry *e, uint32_t outer_pid)
{
	if (p->outer_pid && outer_pid)
		return p->outer_pid == outer_pid;
	return p->end <= e->start;
}

/* Finds the process of a main thread, or makes one. */
static void add_main(const struct pb_data *d, struct entry *e, struct process *processes,
		     uint32_t *nr)
{
	const struct pb_image *im = &d->images[e->image];
	uint32_t outer_pid = im->pid == e->thread->pid ? im->outer_pid : 0, at = *nr;

	for (uint32_t i = 0; i < *nr; i++)
		if (may_belong(&processes[i], e, outer_pid) &&
		    (at == *nr || processes[i].end > processes[at].end))
			at = i;
	if (at == *nr && at == PROCESSES)
		at--;
	else if (at == *nr)
		processes[(*nr)++] = (struct process){ 0 };
	e->process = at;
	if (e->end > processes[at].end)
		processes[at].end = e->end;
	if (!processes[at].outer_pid)
		processes[at].outer_pid = outer_pid;
}

static bool overlap(const struct entry *a, const struct entry *b)
{
	return a->start <= b->end && b->start <= a->end;
}

/* Returns the processes in which another thread had the TID of *e at the same time, as a bit mask.
 * `first` is the first entry that isn't a main thread's. The processes of the entries before *e are
 * known. */
static uint64_t taken(const struct entry *first, const struct entry *e)
{
	uint64_t mask = 0;

	for (const struct entry *o = e - 1; o >= first && e - o <= TRIES; o--) {
		if (o->image != e->image || o->thread->tid != e->thread->tid)
			break;
		if (overlap(o, e))
			mask |= 1ull << o->process;
	}
	return mask;
}

/* Finds the process of a thread that isn't a main thread. `mains` are sorted by image, and the
 * other entries come after them. */
static void find_process(const struct entry *mains, size_t nr, struct entry *e)
{
	uint64_t others = taken(mains + nr, e);
	bool found = false;
	size_t at = pb_bisect(i, 0, nr, mains[i].image < e->image), end = at + TRIES;

	if (at < nr && mains[at].image == e->image)
		e->process = mains[at].process;
	for (; at < nr && at < end && mains[at].image == e->image; at++) {
		bool is_free = !(others >> mains[at].process & 1);

		if (!overlap(&mains[at], e) || (found && !is_free))
			continue;
		e->process = mains[at].process;
		found = true;
		if (is_free)
			return;
	}
}

/* Tells the processes of one PID apart. The entries are sorted by start. */
static int separate(struct pb_data *d, struct entry *e, size_t nr, uint32_t *numbers,
		    uint32_t *total)
{
	struct process processes[PROCESSES];
	uint32_t nr_processes = 0;
	size_t mains = 0;

	for (size_t i = 0; i < nr; i++) {
		if (read_end(d, &e[i]))
			return -ENOMEM;
		if (is_main(&e[i]))
			add_main(d, &e[i], processes, &nr_processes);
		mains += is_main(&e[i]);
	}
	qsort(e, nr, sizeof(*e), by_image);
	for (size_t i = 0; i < nr; i++) {
		if (i >= mains)
			find_process(e, mains, &e[i]);
		if (e[i].process)
			numbers[e[i].thread - d->threads] = *total + e[i].process;
	}
	*total += nr_processes - 1;
	return 0;
}

int pb_same_pids(struct pb_data *d, uint32_t *numbers, uint32_t *nr)
{
	struct entry *list = calloc(d->nr_threads + 1, sizeof(*list));
	int ret = list ? 0 : -ENOMEM;

	for (size_t i = 0; list && i < d->nr_threads; i++) {
		const struct pb_thread *t = &d->threads[i];
		uint64_t start = t->nr ? d->chunks[t->first].start : t->start;

		list[i] = (struct entry){ .thread = t, .start = start, .end = start };
	}
	if (list)
		qsort(list, d->nr_threads, sizeof(*list), by_pid);
	for (size_t i = 0, end; !ret && i < d->nr_threads; i = end) {
		size_t mains = 0;

		for (end = i; end < d->nr_threads && list[end].thread->pid == list[i].thread->pid;
		     end++)
			mains += is_main(&list[end]);
		if (mains > 1)
			ret = separate(d, &list[i], end - i, numbers, nr);
	}
	free(list);
	return ret;
}
