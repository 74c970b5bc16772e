/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The function_graph tracer's text, in the format of the kernel's trace file, with
 * the thread in place of the processor:
 *
 *   # tracer: function_graph
 *   #
 *   # TID     DURATION                  FUNCTION CALLS
 *   # |        |   |                     |   |   |   |
 *    1234)               |  main() {
 *    1234)   0.123 us    |    leaf();
 *    1234) + 12.345 us   |  }
 *
 * Some calls have a comment that the kernel doesn't have: "no return seen" (exception, longjmp, a
 * return that isn't hooked), "return lost" (its record was lost), "still open" (at the end of the
 * data). Calls with one of these comments have no duration. If a call ends by a tail call, it has a
 * comment and a duration. The duration ends with the tail call. In `patchbay live`, the comment
 * "shown late" means that later events were printed before this line.
 *
 * Calls on another stack (a signal handler's, a coroutine's) are indented below the call that waits
 * for the other stack. So each line is shown inside the right call (view/select.h).
 *
 * With -t, the line of an entry waits until a later record shows that the call has lasted long
 * enough. `stack->user` is the index of the first entry that waits.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "view/select.h"

#define INDENT		2
#define INDENT_LEVELS	256	/* calls of deeper levels have the indentation of this level */
#define COMM_WIDTH	7
#define PROC_WIDTH	14

/* pb_open_call.view */
#define V_SHOWN		1u	/* the line of the call's entry was printed */
#define V_OPENED	2u	/* the line of the call's entry is never printed, because the call's
				 * beginning isn't in the data */

struct pb_graph_text {
	const struct pb_view *v;
	struct pb_out *o;
	const struct pb_clock *clock;	/* for durations */
	unsigned flags;
	unsigned tid_width;
	uint32_t last_tid;
	const struct pb_thread *last_thread;
};

static void print_proc(struct pb_graph_text *p, const struct pb_thread *t, uint32_t tid)
{
	char text[64];
	int len, spaces;

	len = snprintf(text, sizeof(text), "%.*s-%u", COMM_WIDTH, pb_view_comm(t), tid);
	spaces = len < PROC_WIDTH ? PROC_WIDTH - len : 0;
	pb_out_spaces(p->o, (size_t)spaces / 2);
	pb_out_str(p->o, text);
	pb_out_spaces(p->o, (size_t)(spaces - spaces / 2));
}

static void print_tid(struct pb_graph_text *p, uint32_t tid)
{
	pb_out_char(p->o, ' ');
	pb_out_u64(p->o, tid, p->tid_width, ' ');
	pb_out_str(p->o, ") ");
}

/* Prints the separator if the thread has changed. */
static void print_switch(struct pb_graph_text *p, const struct pb_event *ev)
{
	static const char rule[] = " ------------------------------------------\n";

	if (p->last_thread == ev->thread && p->last_tid == ev->tid)
		return;
	if (p->last_thread) {
		pb_out_str(p->o, rule);
		print_tid(p, ev->tid);
		print_proc(p, p->last_thread, p->last_tid);
		pb_out_str(p->o, " => ");
		print_proc(p, ev->thread, ev->tid);
		pb_out_char(p->o, '\n');
		pb_out_str(p->o, rule);
		pb_out_char(p->o, '\n');
	}
	p->last_thread = ev->thread;
	p->last_tid = ev->tid;
}

static void print_prologue(struct pb_graph_text *p, const struct pb_event *ev, uint64_t time)
{
	print_switch(p, ev);
	if (p->flags & PB_FG_ABSTIME) {
		uint64_t ns = pb_view_line_ns(p->v, time);

		pb_out_u64(p->o, ns / 1000000000, 5, ' ');
		pb_out_char(p->o, '.');
		pb_out_u64(p->o, ns % 1000000000 / 1000, 6, '0');
		pb_out_str(p->o, " |  ");
	}
	if (p->flags & PB_FG_TID)
		print_tid(p, ev->tid);
	if (p->flags & PB_FG_PROC) {
		print_proc(p, ev->thread, ev->tid);
		pb_out_str(p->o, " | ");
	}
}

static char overhead_mark(uint64_t ns)
{
	static const struct { uint64_t ns; char mark; } marks[] = {
		{ 1000000000, '$' }, { 100000000, '@' }, { 10000000, '*' },
		{ 1000000, '#' }, { 100000, '!' }, { 10000, '+' },
	};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (ns > marks[i].ns)
			return marks[i].mark;
	return ' ';
}

static void print_mark(struct pb_graph_text *p, char mark)
{
	bool colour = p->o->colour && mark != ' ';

	if (colour)
		pb_out_str(p->o, mark == '+' ? "\033[33m" : "\033[31m");
	pb_out_char(p->o, mark);
	if (colour)
		pb_out_str(p->o, "\033[0m");
	pb_out_char(p->o, ' ');
}

static void print_no_duration(struct pb_graph_text *p)
{
	if (p->flags & PB_FG_DURATION)
		pb_out_str(p->o, "              |  ");
}

/* Prints microseconds with up to three decimals. If the number would have more than seven digits,
 * prints fewer decimals. */
static void print_duration(struct pb_graph_text *p, uint64_t ns)
{
	uint64_t us = ns / 1000, nsecs = ns % 1000;
	unsigned len = 1, decimals;

	if (!(p->flags & PB_FG_DURATION))
		return;
	if (p->clock->none) {
		print_no_duration(p);
		return;
	}
	print_mark(p, p->flags & PB_FG_OVERHEAD ? overhead_mark(ns) : ' ');
	for (uint64_t rest = us; rest >= 10; rest /= 10)
		len++;
	pb_out_u64(p->o, us, 0, ' ');
	decimals = len < 7 ? 7 - len : 0;
	if (decimals) {
		pb_out_char(p->o, '.');
		if (decimals >= 3)
			decimals = 3;
		else
			nsecs /= decimals == 2 ? 10 : 100;
		pb_out_u64(p->o, nsecs, decimals, '0');
		len += decimals + 1;
	}
	pb_out_mem(p->o, " us ", 4);
	for (; len < 8; len++)
		pb_out_char(p->o, ' ');
	pb_out_mem(p->o, "|  ", 3);
}

/* Returns the text after a name: "()", or "" if the demangled name has its parameters. */
static const char *parentheses(const char *name)
{
	static const char call[] = "operator()";
	const char *last = strrchr(name, ')');

	if (!last || (last - name >= 9 && !last[1] && !memcmp(last - 9, call, sizeof(call) - 1)))
		return "()";
	return !last[1] || !strncmp(last, ") const", 7) ||
	       !strncmp(last, ") [clone", 8) ? "" : "()";
}

static const char *print_name(struct pb_graph_text *p, uint32_t depth, const char *before,
			      size_t image, uint32_t site)
{
	const char *name = pb_symbols_site(p->v->data->symbols, image, site).name;

	pb_out_spaces(p->o, (size_t)INDENT * (depth < INDENT_LEVELS ? depth : INDENT_LEVELS));
	pb_out_str(p->o, before);
	pb_out_str(p->o, name);
	return name;
}

static uint64_t duration_of(struct pb_graph_text *p, const struct pb_event *ev)
{
	uint64_t start = pb_clock_ns(p->clock, ev->start), end = pb_clock_ns(p->clock, ev->time);

	return end > start ? end - start : 0;
}

static const char tail[] = "ended in a tail call", late[] = "shown late";

/* Returns the comment on a call that has a duration, or NULL. */
static const char *note_on(const struct pb_event *ev)
{
	return ev->flags & PB_EV_TAIL ? tail : ev->flags & PB_EV_LATE ? late : NULL;
}

/* Prints "func();". If `comment` is NULL, also prints the call's duration. Otherwise prints no
 * duration, and puts `comment` at the end of the line. */
static void print_leaf(struct pb_graph_text *p, const struct pb_event *ev, uint32_t depth,
		       const char *comment)
{
	print_prologue(p, ev, ev->start ? ev->start : ev->time);
	if (comment)
		print_no_duration(p);
	else
		print_duration(p, duration_of(p, ev));
	depth += ev->stack->shift;
	pb_out_str(p->o, parentheses(print_name(p, depth, "", ev->image, ev->site)));
	pb_out_char(p->o, ';');
	if (!comment)
		comment = note_on(ev);
	if (comment) {
		pb_out_str(p->o, " /* ");
		pb_out_str(p->o, comment);
		pb_out_str(p->o, " */");
	}
	pb_out_char(p->o, '\n');
}

static void print_entry(struct pb_graph_text *p, const struct pb_event *ev,
			struct pb_open_call *call, uint32_t depth)
{
	print_prologue(p, ev, call->start);
	print_no_duration(p);
	depth += ev->stack->shift;
	pb_out_str(p->o, parentheses(print_name(p, depth, "", ev->image, call->site)));
	pb_out_str(p->o, " {");
	if (ev->flags & PB_EV_LATE) {
		pb_out_str(p->o, " /* ");
		pb_out_str(p->o, late);
		pb_out_str(p->o, " */");
	}
	pb_out_char(p->o, '\n');
	call->view |= V_SHOWN;
}

static void print_end(struct pb_graph_text *p, const struct pb_event *ev, uint32_t depth,
		      const char *comment)
{
	bool shown = ev->call && ev->call->view & V_SHOWN;

	depth += ev->stack->shift;
	print_prologue(p, ev, ev->time);
	if (comment || !ev->start)
		print_no_duration(p);
	else
		print_duration(p, duration_of(p, ev));
	if (!comment)
		comment = note_on(ev);
	if (shown && !comment && !(p->flags & PB_FG_TAIL)) {
		pb_out_spaces(p->o,
			      (size_t)INDENT * (depth < INDENT_LEVELS ? depth : INDENT_LEVELS));
		pb_out_str(p->o, "}\n");
		return;
	}
	print_name(p, depth, "} /* ", ev->image, ev->site);
	if (comment) {
		pb_out_str(p->o, ": ");
		pb_out_str(p->o, comment);
	}
	pb_out_str(p->o, " */\n");
}

/* Prints a call that ran on another stack. The call's end was noticed on the event's stack. The
 * call is not a callee of the calls that are open on the event's stack. */
static void print_elsewhere(struct pb_graph_text *p, const struct pb_event *ev, uint32_t depth,
			    const char *comment)
{
	print_prologue(p, ev, ev->time);
	print_no_duration(p);
	print_name(p, depth + ev->stack->shift, "/* ", ev->image, ev->site);
	pb_out_str(p->o, ", on another stack: ");
	pb_out_str(p->o, comment);
	pb_out_str(p->o, " */\n");
}

/* Prints the waiting entries whose calls have lasted long enough. A call has lasted longer than its
 * callees. So the search ends at the first call that is still too short. */
static void flush_waiting(struct pb_graph_text *p, const struct pb_event *ev)
{
	struct pb_call_stack *s = ev->stack;
	uint32_t end = s->depth - (ev->kind == PB_EV_ENTRY && ev->call ? 1 : 0);

	if (s->user > end)
		s->user = end;
	for (; s->user < end; s->user++) {
		struct pb_open_call *call = &s->calls[s->user];

		if (!pb_select_long(p->v, call->start, ev->time))
			return;
		if (call->select & PB_SEL_VISIBLE && !(call->view & (V_SHOWN | V_OPENED)) &&
		    pb_view_in_range(p->v, call->start))
			print_entry(p, ev, call, pb_select_depth(call->select));
	}
}

static void on_begin(struct pb_graph_text *p, const struct pb_event *ev, uint32_t select)
{
	if (!ev->call || ev->kind == PB_EV_OPEN || p->v->min_ns)
		return;
	if (select & PB_SEL_VISIBLE && pb_view_in_range(p->v, ev->time))
		print_entry(p, ev, ev->call, pb_select_depth(select));
}

static void on_end(struct pb_graph_text *p, const struct pb_event *ev, uint32_t select)
{
	const char *comment = ev->kind == PB_EV_EXIT ? NULL :
		ev->flags & PB_EV_GAP ? "return lost" : "no return seen";
	uint32_t depth = pb_select_depth(select);
	bool shown = ev->call && ev->call->view & V_SHOWN;

	if (!(select & PB_SEL_VISIBLE) || !pb_view_in_range(p->v, ev->time))
		return;
	if (!ev->call && ev->kind == PB_EV_END) {
		if (p->v->min_ns)
			return;
		if (ev->flags & PB_EV_ELSEWHERE)
			print_elsewhere(p, ev, depth, comment);
		else
			print_leaf(p, ev, depth, comment);
		return;
	}
	if (p->v->min_ns && !shown) {
		/* the call's entry was never printed, because no event in the call came after the
		 * call had lasted long enough */
		if (!ev->start || comment || !pb_select_long(p->v, ev->start, ev->time))
			return;
		if (!ev->call || !(ev->call->view & V_OPENED)) {
			print_leaf(p, ev, depth, NULL);
			return;
		}
	}
	print_end(p, ev, depth, comment);
}

static void on_leaf(struct pb_graph_text *p, const struct pb_event *ev, uint32_t select,
		    const char *comment)
{
	if (!(select & PB_SEL_VISIBLE) || !pb_view_in_range(p->v, ev->start) ||
	    (comment ? p->v->min_ns != 0 : !pb_select_long(p->v, ev->start, ev->time)))
		return;
	print_leaf(p, ev, pb_select_depth(select), comment);
}

static void on_lost(struct pb_graph_text *p, const struct pb_event *ev)
{
	if (!pb_view_in_range(p->v, ev->time))
		return;
	if (ev->flags & PB_EV_GAP && !ev->value)
		pb_out_fmt(p->o, "TID:%u [LOST EVENTS]\n", ev->tid);
	else
		pb_out_fmt(p->o, "TID:%u [LOST %llu EVENTS]\n", ev->tid,
			   (unsigned long long)ev->value);
}

static void print_event(struct pb_graph_text *p, const struct pb_event *ev)
{
	uint32_t select = pb_select(p->v, ev);

	if (ev->kind == PB_EV_OPEN && ev->call)
		ev->call->view = V_OPENED;
	/* a jump or an exception may have left a call long before its END, and the calls around it,
	 * too. So an END doesn't show that a call was still open then */
	if (p->v->min_ns && ev->kind != PB_EV_END)
		flush_waiting(p, ev);
	switch (ev->kind) {
	case PB_EV_LEAF:
		on_leaf(p, ev, select, NULL);
		break;
	case PB_EV_CALL: case PB_EV_FUNC:
		on_leaf(p, ev, select, "no return seen");
		break;
	case PB_EV_LEAF_OPEN:
		if (!(ev->flags & PB_EV_INHERITED))
			on_leaf(p, ev, select, "still open");
		break;
	case PB_EV_ENTRY: case PB_EV_OPEN:
		on_begin(p, ev, select);
		break;
	case PB_EV_EXIT: case PB_EV_END:
		on_end(p, ev, select);
		break;
	case PB_EV_LOST:
		on_lost(p, ev);
		break;
	default:
		break;
	}
}

static void print_header(struct pb_graph_text *p)
{
	unsigned pad = p->tid_width + 3 > 4 ? p->tid_width + 3 - 4 : 0;
	struct pb_out *o = p->o;

	pb_out_str(o, "# tracer: function_graph\n#\n#");
	if (p->flags & PB_FG_ABSTIME)
		pb_out_str(o, "     TIME       ");
	if (p->flags & PB_FG_TID) {
		pb_out_str(o, " TID");
		pb_out_spaces(o, pad);
	}
	if (p->flags & PB_FG_PROC)
		pb_out_str(o, "  TASK/PID       ");
	if (p->flags & PB_FG_DURATION)
		pb_out_str(o, "  DURATION   ");
	pb_out_str(o, "               FUNCTION CALLS\n#");
	if (p->flags & PB_FG_ABSTIME)
		pb_out_str(o, "      |         ");
	if (p->flags & PB_FG_TID) {
		pb_out_str(o, " |  ");
		pb_out_spaces(o, pad);
	}
	if (p->flags & PB_FG_PROC)
		pb_out_str(o, "   |    |        ");
	if (p->flags & PB_FG_DURATION)
		pb_out_str(o, "   |   |      ");
	pb_out_str(o, "               |   |   |   |\n");
}

static const struct {
	const char *name;		/* a name that switches the option off; the name without
					 * "no" switches it on */
	unsigned flag;
} options[] = {
#define X(flag, bit, name) { "nofuncgraph-" name, PB_FG_##flag },
	PB_FG_OPTIONS(X)
#undef X
	{ "nofuncgraph-cpu", PB_FG_TID },	/* the kernel's name for this option; the
						 * kernel's column has the processor, and this
						 * column has the thread */
};

bool pb_fg_set(unsigned *flags, const char *name)
{
	bool on = strncmp(name, "no", 2) != 0;

	for (size_t i = 0; i < pb_array_size(options); i++)
		if (!strcmp(name, options[i].name + (on ? 2 : 0))) {
			*flags = on ? *flags | options[i].flag : *flags & ~options[i].flag;
			return true;
		}
	return false;
}

const char *pb_fg_name(size_t i)
{
	if (i >= pb_array_size(options))
		return NULL;
	return options[i].name + (options[i].flag & PB_FG_DEFAULT ? 0 : 2);
}

/* Returns the width of the column of thread numbers. The column has room for the numbers in the
 * data and for `known`. */
static unsigned tid_width(const struct pb_data *d, uint32_t known)
{
	uint32_t highest = known;
	unsigned width = 1;

	for (size_t i = 0; i < d->nr_threads; i++)
		if (d->threads[i].tid > highest)
			highest = d->threads[i].tid;
	for (; highest >= 10; highest /= 10)
		width++;
	return width;
}

static void init(struct pb_graph_text *p, const struct pb_view *v, unsigned flags,
		 uint32_t tid)
{
	*p = (struct pb_graph_text){
		.v = v, .o = v->out, .clock = &v->data->clock, .flags = flags,
		.tid_width = tid_width(v->data, tid),
	};
	if (p->clock->none)
		p->flags &= ~(unsigned)(PB_FG_ABSTIME);
	print_header(p);
}

struct pb_graph_text *pb_graph_text_new(const struct pb_view *v, unsigned flags)
{
	struct pb_graph_text *p = malloc(sizeof(*p));

	/* The data may have no threads yet. This process's PID probably has as many digits as the
	 * numbers of later threads. */
	if (p)
		init(p, v, flags, (uint32_t)getpid());
	return p;
}

void pb_graph_text_event(struct pb_graph_text *p, const struct pb_event *ev, bool show)
{
	if (show) {
		print_event(p, ev);
		return;
	}
	pb_select(p->v, ev);
	if (ev->kind == PB_EV_OPEN && ev->call)
		ev->call->view = V_OPENED;
}

bool pb_graph_text_has(const struct pb_open_call *call)
{
	return call->view & V_SHOWN;
}

int pb_view_graph_text(const struct pb_view *v, unsigned flags)
{
	struct pb_graph_text p;
	struct pb_stream s;
	struct pb_event ev;
	int ret = pb_stream_open(&s, v->data, true, v->tids, v->nr_tids);

	if (ret)
		return ret;
	init(&p, v, flags, 0);
	while (!v->out->error && pb_stream_next(&s, &ev))
		print_event(&p, &ev);
	if (!v->out->error) {
		pb_view_open_calls(v, &s, "# ");
		pb_view_losses(v, pb_stream_totals(&s), "# ");
	}
	pb_stream_close(&s);
	return 0;
}
