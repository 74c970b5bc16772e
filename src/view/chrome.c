/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Trace Event JSON, for chrome://tracing and Perfetto. Each call is one complete event ("X"), which
 * is written when the call ends. If a call is open at the end of the data, the call is shown as if
 * it ended at the last event of its process. Lost records are instant events.
 *
 * Events of one track must nest. But a call on one stack may outlast calls on another stack. So
 * each stack that a program switches to has its own track.
 *
 * If processes have the same PID, because they are in different PID namespaces, all but the first
 * of them are shown with a number in place of the PID.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "view/same_pids.h"
#include "view/select.h"

#define TRACK_BASE	0x40000000u	/* greater than all thread numbers of Linux. After it come
					 * the numbers of processes, then those of tracks */

typedef unsigned long long ull;

/* The time of the last event of a program image in a process. */
struct lifetime {
	uint32_t pid;
	size_t image;
	uint64_t latest;
};

struct chrome {
	const struct pb_view *v;
	struct pb_out *o;
	bool any;
	uint32_t processes;		/* how many processes have a number in place of a PID */
	uint32_t *numbers;		/* for each thread, its process' number, or 0 */
	uint32_t tracks;		/* number of tracks that were made for stacks */
	struct lifetime *lives;		/* an element for each thread; the elements are merged and
					 * sorted at the end */
	size_t nr_lives;
};

static void print_us(struct chrome *c, const char *name, uint64_t ns)
{
	pb_out_fmt(c->o, ",\"%s\":%llu.%03llu", name, (ull)(ns / 1000), (ull)(ns % 1000));
}

/* Returns the number that is shown as the PID of a thread's process. `serial` is the thread's. */
static uint32_t shown_pid(const struct chrome *c, uint32_t serial, uint32_t pid)
{
	const struct pb_data *d = c->v->data;
	const struct pb_thread *t = c->processes ? pb_data_thread(d, serial) : NULL;

	return t && c->numbers[t - d->threads] ? TRACK_BASE + c->numbers[t - d->threads] : pid;
}

static uint32_t stack_pid(const struct chrome *c, const struct pb_call_stack *s)
{
	return shown_pid(c, s->serial, s->pid);
}

static void begin(struct chrome *c, char phase, uint32_t pid, uint32_t tid)
{
	pb_out_str(c->o, c->any ? ",\n{" : "{");
	c->any = true;
	pb_out_fmt(c->o, "\"ph\":\"%c\",\"pid\":%u,\"tid\":%u", phase, pid, tid);
}

static void print_function(struct chrome *c, size_t image, uint32_t site)
{
	struct pb_function f = pb_symbols_site(c->v->data->symbols, image, site);

	pb_out_str(c->o, ",\"name\":");
	pb_out_json(c->o, f.name);
	pb_out_str(c->o, ",\"cat\":");
	pb_out_json(c->o, f.module);
}

static void print_name(struct chrome *c, const char *what, uint32_t pid, uint32_t tid,
		       const char *name)
{
	begin(c, 'M', pid, tid);
	pb_out_fmt(c->o, ",\"name\":\"%s\",\"args\":{\"name\":", what);
	pb_out_json(c->o, name);
	pb_out_str(c->o, "}}");
}

static uint32_t track(struct chrome *c, struct pb_call_stack *s, uint32_t tid)
{
	char name[32];

	if (pb_stack_is_own(s))
		return tid;
	if (!s->user) {
		s->user = c->processes + ++c->tracks;
		snprintf(name, sizeof(name), "stack %#llx", (ull)s->id);
		print_name(c, "thread_name", stack_pid(c, s), TRACK_BASE + s->user, name);
	}
	return TRACK_BASE + s->user;
}

enum how { WHOLE, NO_RETURN, INHERITED, TAIL };

static void print_call(struct chrome *c, struct pb_call_stack *s, uint32_t tid, size_t image,
		       uint32_t site, uint64_t start, uint64_t end, enum how how)
{
	static const char *const args[] = {
		"}", ",\"args\":{\"no_return\":true}}", ",\"args\":{\"inherited\":true}}",
		",\"args\":{\"tail_call\":true}}",
	};
	const struct pb_clock *clock = &c->v->data->clock;
	uint64_t ns = pb_clock_ns(clock, start);

	tid = track(c, s, tid);
	begin(c, 'X', stack_pid(c, s), tid);
	print_us(c, "ts", ns);
	print_us(c, "dur", pb_clock_ns(clock, end) - ns);
	print_function(c, image, site);
	pb_out_str(c->o, args[how]);
}

/* True if the data has the call's beginning on another stack, where the call is shown. `call` is
 * NULL, or an open call. */
static bool is_elsewhere(const struct pb_open_call *call, uint32_t flags)
{
	return call ? call->elsewhere && !call->aux :
	       (flags & PB_EV_COUNTED) == PB_EV_ELSEWHERE;
}

static void call(struct chrome *c, const struct pb_event *ev, uint32_t select, bool no_return)
{
	bool inherited = (ev->call && ev->call->aux) || ev->flags & PB_EV_INHERITED;
	uint64_t start = ev->call && ev->call->aux ? ev->call->aux : ev->start ? ev->start :
			 ev->time;
	uint64_t end = ev->time > start ? ev->time : start;

	if (is_elsewhere(ev->call, ev->flags))
		return;
	/* with -t, a call whose duration isn't known is left out, as in report */
	if (select & PB_SEL_VISIBLE && !(no_return && c->v->min_ns) &&
	    pb_select_long(c->v, start, end) &&
	    pb_select_clip(c->v, &start, &end))
		print_call(c, ev->stack, ev->tid, ev->image, ev->site, start, end,
			   inherited ? INHERITED : no_return ? NO_RETURN :
			   ev->flags & PB_EV_TAIL ? TAIL : WHOLE);
}

static void lost(struct chrome *c, const struct pb_event *ev)
{
	begin(c, 'i', shown_pid(c, ev->thread->serial, ev->pid), ev->tid);
	print_us(c, "ts", pb_clock_ns(&c->v->data->clock, ev->time));
	pb_out_fmt(c->o, ",\"s\":\"t\",\"name\":\"lost records\",\"args\":{\"count\":%llu}}",
		   (ull)ev->value);
}

static void on_event(struct chrome *c, const struct pb_event *ev)
{
	struct lifetime *life = &c->lives[ev->thread - c->v->data->threads];
	uint32_t select = pb_select(c->v, ev);

	life->pid = shown_pid(c, ev->thread->serial, ev->pid);
	life->image = ev->image;
	if (ev->time > life->latest)
		life->latest = ev->time;
	switch (ev->kind) {
	case PB_EV_LEAF: case PB_EV_FUNC: case PB_EV_EXIT:
		call(c, ev, select, false);
		break;
	case PB_EV_CALL: case PB_EV_END:
		call(c, ev, select, true);
		break;
	case PB_EV_LOST:
		if (pb_view_in_range(c->v, ev->time))
			lost(c, ev);
		break;
	case PB_EV_OPEN:
		/* if a child inherited the call by fork, the call is shown from the fork on */
		if (ev->call && ev->flags & PB_EV_INHERITED)
			ev->call->aux = ev->time;
		break;
	default:
		break;
	}
}

static int by_image(const void *a, const void *b)
{
	const struct lifetime *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->image < y->image ? -1 : x->image > y->image;
}

static void merge_lives(struct chrome *c)
{
	size_t to = 0;

	qsort(c->lives, c->nr_lives, sizeof(*c->lives), by_image);
	for (size_t i = 0; i < c->nr_lives; i++) {
		if (!to || by_image(&c->lives[to - 1], &c->lives[i]))
			c->lives[to++] = c->lives[i];
		else if (c->lives[to - 1].latest < c->lives[i].latest)
			c->lives[to - 1].latest = c->lives[i].latest;
	}
	c->nr_lives = to;
}

static void open_call(struct chrome *c, struct pb_call_stack *s, uint32_t select, uint32_t site,
		      uint64_t start, bool inherited)
{
	struct lifetime key = { .pid = stack_pid(c, s), .image = s->image };
	const struct lifetime *life = bsearch(&key, c->lives, c->nr_lives, sizeof(key), by_image);
	uint64_t end = life && life->latest > start ? life->latest : start;

	if (pb_select_open(c->v, select, start, end) && pb_select_clip(c->v, &start, &end))
		print_call(c, s, s->tid, s->image, site, start, end, inherited ? INHERITED :
			   NO_RETURN);
}

static void open_calls(struct chrome *c, struct pb_stream *stream)
{
	struct pb_call_stack *s;

	merge_lives(c);
	for (size_t i = 0; (s = pb_stacks_nth(stream->stacks, i)); i++) {
		for (uint32_t n = 0; n < s->depth; n++) {
			const struct pb_open_call *call = &s->calls[n];

			if (!is_elsewhere(call, 0))
				open_call(c, s, call->select, call->site,
					  call->aux ? call->aux : call->start, call->aux != 0);
		}
		if (s->leaf_site)
			open_call(c, s, s->leaf_select, s->leaf_site, s->leaf_start,
				  s->leaf_inherited);
	}
}

struct named {
	uint32_t pid;			/* as it is shown */
	const struct pb_thread *thread;
};

static int by_tid(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->thread->tid != y->thread->tid)
		return x->thread->tid < y->thread->tid ? -1 : 1;
	return x->thread->serial < y->thread->serial ? -1 : x->thread->serial > y->thread->serial;
}

static void print_process_name(struct chrome *c, const struct named *n)
{
	const char *comm = pb_view_comm(n->thread);
	char name[64];

	if (n->pid == n->thread->pid)
		snprintf(name, sizeof(name), "%s", comm);
	else
		snprintf(name, sizeof(name), "%s (PID %u)", comm, n->thread->pid);
	print_name(c, "process_name", n->pid, n->thread->tid, name);
}

/* Prints the last name of each thread. A process gets the name of its main thread. If a thread has
 * called exec, data->threads has several entries for the thread. Only the last entry is printed. */
static void print_names(struct chrome *c)
{
	const struct pb_data *d = c->v->data;
	struct named *list = calloc(d->nr_threads + 1, sizeof(*list));

	if (!list)
		return;
	for (size_t i = 0; i < d->nr_threads; i++) {
		const struct pb_thread *t = &d->threads[i];

		list[i] = (struct named){ shown_pid(c, t->serial, t->pid), t };
	}
	qsort(list, d->nr_threads, sizeof(*list), by_tid);
	for (size_t i = 0; i < d->nr_threads; i++) {
		const struct named *n = &list[i];

		if (i + 1 < d->nr_threads && n->thread->tid == n[1].thread->tid &&
		    n->pid == n[1].pid)
			continue;
		if (n->thread->tid == n->thread->pid)
			print_process_name(c, n);
		print_name(c, "thread_name", n->pid, n->thread->tid, pb_view_comm(n->thread));
	}
	free(list);
}

static int open_chrome(struct chrome *c, struct pb_stream *s)
{
	const struct pb_view *v = c->v;
	struct pb_data *d = v->data;
	int ret = -ENOMEM;

	c->nr_lives = d->nr_threads;
	c->lives = calloc(d->nr_threads + 1, sizeof(*c->lives));
	c->numbers = calloc(d->nr_threads + 1, sizeof(*c->numbers));
	if (c->lives && c->numbers)
		ret = pb_same_pids(d, c->numbers, &c->processes);
	return ret ? ret : pb_stream_open(s, d, true, v->tids, v->nr_tids);
}

int pb_view_chrome(const struct pb_view *v)
{
	struct chrome c = { .v = v, .o = v->out };
	const struct pb_data *d = v->data;
	struct pb_stream s;
	struct pb_event ev;
	int ret = open_chrome(&c, &s);

	if (ret) {
		free(c.numbers);
		free(c.lives);
		return ret;
	}
	pb_out_str(v->out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
	print_names(&c);
	while (!v->out->error && pb_stream_next(&s, &ev))
		on_event(&c, &ev);
	open_calls(&c, &s);
	pb_out_str(v->out, "\n],\"otherData\":{");
	pb_out_fmt(v->out, "\"lost\":\"%llu\",\"no_return\":\"%llu\",\"clock\":",
		   (ull)pb_stream_totals(&s)->lost, (ull)pb_stream_totals(&s)->no_return);
	pb_out_json(v->out, d->clock.name);
	pb_out_str(v->out, "}}\n");
	pb_stream_close(&s);
	free(c.numbers);
	free(c.lives);
	return 0;
}
