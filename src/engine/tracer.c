/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The two tracers, function and function_graph, and the control files of tracing. The control files
 * select the tracer that runs, its functions, its limits of depth, time and size, and its clock. A
 * write sets a variable or a filter. If sites' text or handlers depend on it, the write then
 * updates all sites once.
 */
#include <asm/errno.h>
#include "engine/tracer.h"
#include "engine/graph/calls.h"
#include "engine/clock.h"
#include "engine/graph/enter.h"
#include "engine/files.h"
#include "engine/text/ftrace.h"
#include "engine/latch.h"
#include "engine/graph/period.h"
#include "engine/graph/thread_words.h"
#include "engine/prog/prog.h"
#include "abi/analysis_access.h"
#include "arch/arch.h"
#include "base/base.h"
#include "base/mem.h"
#include "base/sys.h"

static struct ftrace_hash graph_functions, graph_notrace, graph_callers;
static uint32_t max_depth;		/* max_graph_depth; 0: no limit */
static uint32_t tracing_on = 1;
static uint64_t thresh_ns;
static const char *trace_clock = "x86-tsc";
static bool snapshots;			/* snapshot_on has functions, whose entries need C code even
					 * without a tracer */

/* ---- the two ops --------------------------------------------------------- */

static uint32_t func_of(const struct pb_module *m, const struct pb_site *s)
{
	return (uint32_t)(s - m->sites);
}

static void function_func(struct pb_site *site, uint64_t parent_ip, struct ftrace_ops *op)
{
	pb_record_function(site, parent_ip);
}

static uint64_t function_trampoline(struct pb_module *m, struct pb_site *site)
{
	return (uint64_t)pb_function;
}

/* Whether the ends of the site's calls are seen. For functions built with -finstrument-functions,
 * the compiler's hooks report the ends. */
static bool returns_are_hooked(struct pb_module *m, const struct pb_site *site)
{
	if (!pb_site_exits_itself(site))
		return site->flags & FTRACE_FL_ENDS;
	return pb_site_func(m, site)->kind == PB_SITE_CYG || pb_site_returns(m, site);
}

static bool graph_caller(const struct pb_module *m, uint32_t func)
{
	return pb_callers_only && pb_hash_has(&graph_callers, m, func);
}

static unsigned graph_mode(struct pb_module *m, struct pb_site *site)
{
	uint32_t func = func_of(m, site);
	unsigned mode = 0;

	if (!pb_hash_empty(&graph_notrace) && pb_hash_has(&graph_notrace, m, func))
		return PB_ENTER_SILENT;
	if (!pb_hash_empty(&graph_functions) && !pb_hash_has(&graph_functions, m, func))
		mode |= PB_ENTER_NESTED;
	/* a function of graph_callers is recorded however long its calls take, so its entry need
	 * not wait for its exit */
	if (pb_thresh || (pb_callers_only && !(site->flags & FTRACE_FL_CALLER)))
		mode |= PB_ENTER_LAZY;
	return returns_are_hooked(m, site) ? mode : mode | PB_ENTER_CALL;
}

static uint64_t graph_trampoline(struct pb_module *m, struct pb_site *site)
{
	return pb_graph_handler(graph_mode(m, site),
				pb_no_clock == PB_CLOCK_NONE && tracing_on && !max_depth);
}

static struct ftrace_ops function_ops = {
	.name = "function", .func = function_func, .trampoline = function_trampoline,
};
static struct ftrace_ops graph_ops = {
	.name = "function_graph", .trampoline = graph_trampoline, .graph_mode = graph_mode,
	.caller = graph_caller,
};
static struct ftrace_ops *current;
static struct ftrace_ops *installed;	/* the tracer whose sites are patched: `current`, or NULL
					 * while tracing_on is 0 */
static bool returns_hooked;		/* the stubs of exits lead to code that isn't idle */

static const struct { const char *name; struct ftrace_ops *ops; } tracers[] = {
	{ "function_graph", &graph_ops },
	{ "function", &function_ops },
	{ "nop", NULL },
};

/* Sets where the exits' stubs lead. They lead to idle code while neither the graph tracer nor an
 * eBPF program nor snapshot_on uses returns. Called before entries begin to open calls, or after
 * they have stopped. */
static void apply_returns(const struct ftrace_ops *tracer)
{
	bool none = pb_no_clock == PB_CLOCK_NONE, was = returns_hooked;
	bool traced = pb_call_ended || (tracing_on && tracer == &graph_ops);

	returns_hooked = pb_prog_returns || traced;
	if (!returns_hooked) {
		pb_text_returns((uint64_t)pb_exit_ret_idle, (uint64_t)pb_exit_jump_idle);
		return;
	}
	if (!was)
		pb_period_begin();
	pb_text_returns((uint64_t)(!traced ? pb_watch_ret : none ? pb_open_ret_none : pb_open_ret),
			(uint64_t)(none ? pb_open_jump_none : pb_open_jump));
}

static void apply_depth(const struct ftrace_ops *tracer)
{
	bool off = !tracing_on || !(tracer || snapshots) || pb_latched;
	uint32_t depth = off ? 0 : max_depth ? max_depth : PB_NO_MAX_DEPTH;

	__atomic_store_n(&pb_max_depth, depth, __ATOMIC_SEQ_CST);
	/* pb_latch() sets pb_latched, then stores 0. Perhaps this 0 has just been overwritten. */
	if (__atomic_load_n(&pb_latched, __ATOMIC_SEQ_CST))
		__atomic_store_n(&pb_max_depth, 0, __ATOMIC_SEQ_CST);
	pb_thread_words_changed();
}

void pb_tracer_returns(void)
{
	pb_thread_words_changed();	/* pb_calls_watching */
	apply_returns(current);
}

void pb_tracer_snapshots(bool on)
{
	snapshots = on;
	apply_depth(current);
	apply_returns(current);
}

/* ---- files ---------------------------------------------------------------- */

static void read_available_tracers(struct pb_seq *s)
{
	for (size_t i = 0; i < pb_array_size(tracers); i++) {
		pb_seq_puts(s, i ? " " : "");
		pb_seq_puts(s, tracers[i].name);
	}
	pb_seq_puts(s, "\n");
}

static void read_current_tracer(struct pb_seq *s)
{
	pb_seq_puts(s, current ? current->name : "nop");
	pb_seq_puts(s, "\n");
}

int pb_tracer_explained(int err)
{
	static char text[160];
	size_t at = 0;

	if (err == -ENOEXEC || err == -EACCES)
		pb_file_error = pb_text_why(err);
	if (err != -EAGAIN)
		return err;
	pb_put_str(text, sizeof(text), &at,
		   pb_stop_why ? pb_stop_why : "the program could not be stopped");
	pb_put_str(text, sizeof(text), &at, "; nothing was changed: repeat the write");
	pb_file_error = text;
	return err;
}

/* Patches the sites of the tracer `ops`, in place of those of the tracer that is installed. */
static int install(struct ftrace_ops *ops, bool live)
{
	int err = ops == installed ? pb_ftrace_update(live) :
				     pb_ftrace_exchange(installed, ops, live);

	if (!err)
		installed = ops;
	return err;
}

static int write_current_tracer(char *text, bool append, bool live)
{
	for (size_t i = 0; i < pb_array_size(tracers); i++) {
		int err;

		if (!pb_streq(tracers[i].name, text))
			continue;
		/* returns stay hooked as long as the old or the new tracer opens calls */
		if (tracers[i].ops == &graph_ops || current != &graph_ops)
			apply_returns(tracers[i].ops);
		apply_depth(tracers[i].ops ? tracers[i].ops : current);
		err = install(tracing_on ? tracers[i].ops : NULL, live);
		if (!err)
			current = tracers[i].ops;
		apply_depth(current);
		apply_returns(current);
		return pb_tracer_explained(err);
	}
	pb_file_error = "no such tracer (see available_tracers)";
	return -EINVAL;
}

/* read_filter() and read_notrace() read set_ftrace_filter and set_ftrace_notrace. Both tracers have
 * the same filters, so it is enough to show the graph tracer's. */
static void read_filter(struct pb_seq *s)
{
	pb_hash_show(&graph_ops.filter, s, "#### all functions enabled ####\n");
}

static void read_notrace(struct pb_seq *s)
{
	pb_hash_show(&graph_ops.notrace, s, "#### no functions disabled ####\n");
}

static int update_if_tracing(bool live)
{
	return current ? pb_ftrace_update(live) : 0;
}

/* Called after a hash has changed. The function tracer gets the filters of the graph tracer, and
 * pb_callers_only is set. */
static void share_hashes(void)
{
	function_ops.filter = graph_ops.filter;
	function_ops.notrace = graph_ops.notrace;
	pb_callers_only = !pb_hash_empty(&graph_callers);
}

static int write_hash(struct ftrace_hash *h, char *text, bool append, bool live)
{
	struct ftrace_hash before = *h;
	int err = pb_hash_write(h, text, append, live);

	if (err)
		return err;
	share_hashes();
	err = update_if_tracing(live);
	if (err) {
		pb_hash_restore(h, before);
		share_hashes();
		update_if_tracing(live);
	}
	return pb_tracer_explained(err);
}

static int write_filter(char *text, bool append, bool live)
{
	return write_hash(&graph_ops.filter, text, append, live);
}

static int write_notrace(char *text, bool append, bool live)
{
	return write_hash(&graph_ops.notrace, text, append, live);
}

static void read_graph_function(struct pb_seq *s)
{
	pb_hash_show(&graph_functions, s, "#### all functions enabled ####\n");
}

static void read_graph_notrace(struct pb_seq *s)
{
	pb_hash_show(&graph_notrace, s, "#### no functions disabled ####\n");
}

static void read_graph_callers(struct pb_seq *s)
{
	pb_hash_show(&graph_callers, s, "#### all functions enabled ####\n");
}

static int write_graph_function(char *text, bool append, bool live)
{
	return write_hash(&graph_functions, text, append, live);
}

static int write_graph_notrace(char *text, bool append, bool live)
{
	return write_hash(&graph_notrace, text, append, live);
}

static int write_graph_callers(char *text, bool append, bool live)
{
	return write_hash(&graph_callers, text, append, live);
}

/* Called when the limit of depth has changed. With --clock=none and without a limit, sites have
 * handlers that don't look at pb_max_depth. So a change of the limit may need other handlers. */
static int change_handlers(bool live)
{
	return pb_no_clock == PB_CLOCK_NONE ? update_if_tracing(live) : 0;
}

static int depth_changed(uint32_t before, bool live)
{
	apply_depth(current);
	return pb_tracer_explained(change_handlers(live));
}

/* While tracing is off, the text of the tracer's sites is restored, so that calls cost nothing.
 * (Sites of eBPF programs and of snapshot_on stay patched. With the trace option keep-patched, all
 * sites do.) If the program can't be stopped, all sites stay patched. But their handlers no longer
 * record anything, because pb_max_depth is 0. */
static int tracing_on_changed(uint32_t before, bool live)
{
	if (tracing_on) {
		apply_returns(current);
		apply_depth(current);
		/* after an error, files.c restores tracing_on, and calls this function again */
		return pb_tracer_explained(install(current, live));
	}
	apply_depth(current);
	install(NULL, live);
	apply_returns(current);
	return 0;
}

static int size_changed(uint32_t before, bool live)
{
	return pb_tracer_explained(update_if_tracing(live));
}

static void read_thresh(struct pb_seq *s)
{
	pb_seq_us(s, thresh_ns);
	pb_seq_puts(s, "\n");
}

static int set_thresh(uint64_t ns, bool live)
{
	thresh_ns = ns;
	pb_thresh = ns ? pb_clock_ticks_of(ns, pb_clock_per_ms()) : 0;
	pb_thread_words_changed();
	return update_if_tracing(live);
}

static int write_thresh(char *text, bool append, bool live)
{
	uint64_t ns, before = thresh_ns;
	int err = pb_parse_us(text, &ns);

	if (err)
		return err;
	err = set_thresh(ns, live);
	if (err)
		set_thresh(before, live);
	return pb_tracer_explained(err);
}

/* With every clock but "none", the times in records are values of the TSC. Readers convert them. */
static const char *const clocks[] = {
	"x86-tsc", "local", "global", "perf", "mono", "mono_raw", "boot", "uptime", "none",
};

static void read_clock(struct pb_seq *s)
{
	for (size_t i = 0; i < pb_array_size(clocks); i++) {
		bool on = pb_streq(clocks[i], trace_clock);

		pb_seq_puts(s, i ? " " : "");
		pb_seq_puts(s, on ? "[" : "");
		pb_seq_puts(s, clocks[i]);
		pb_seq_puts(s, on ? "]" : "");
	}
	pb_seq_puts(s, "\n");
}

static int set_clock(const char *clock, bool live)
{
	trace_clock = clock;
	pb_clock_set(pb_streq(clock, "none"), live);
	pb_thread_words_changed();
	apply_returns(current);
	return update_if_tracing(live);
}

static int write_clock(char *text, bool append, bool live)
{
	for (size_t i = 0; i < pb_array_size(clocks); i++) {
		const char *before = trace_clock;
		int err;

		if (!pb_streq(clocks[i], text))
			continue;
		err = set_clock(clocks[i], live);
		if (err)
			set_clock(before, live);
		return pb_tracer_explained(err);
	}
	pb_file_error = "no such clock (see trace_clock)";
	return -EINVAL;
}

/* The rows of trace_options. An option's `changed` runs after a write to `on`. If it returns an
 * error, set_option() restores `on`, and calls `changed` again. */
static const struct option {
	const char *name;
	bool *on;
	int (*changed)(bool live);
} options[] = {
	{ "keep-patched", &pb_keep_patched, pb_ftrace_update },
};

static void read_options(struct pb_seq *s)
{
	for (size_t i = 0; i < pb_array_size(options); i++) {
		pb_seq_puts(s, *options[i].on ? "" : "no");
		pb_seq_puts(s, options[i].name);
		pb_seq_puts(s, "\n");
	}
}

static int set_option(const struct option *o, bool on, bool live)
{
	bool before = *o->on;
	int err;

	*o->on = on;
	err = o->changed(live);
	if (err) {
		*o->on = before;
		o->changed(live);
	}
	return pb_tracer_explained(err);
}

static int write_option(char *word, void *live)
{
	for (size_t i = 0; i < pb_array_size(options); i++) {
		const struct option *o = &options[i];

		if (pb_streq(word, o->name))
			return set_option(o, true, *(bool *)live);
		if (pb_has_prefix(word, "no") && pb_streq(word + 2, o->name))
			return set_option(o, false, *(bool *)live);
	}
	pb_file_error = "no such option (see trace_options)";
	return -EINVAL;
}

static int write_options(char *text, bool append, bool live)
{
	return pb_each_word(text, write_option, &live);
}

static const struct { enum pb_control_file id; struct pb_file file; } files[] = {
	{ PB_CF_AVAILABLE_TRACERS, { read_available_tracers, NULL } },
	{ PB_CF_CURRENT_TRACER, { read_current_tracer, write_current_tracer } },
	{ PB_CF_SET_FTRACE_FILTER, { read_filter, write_filter } },
	{ PB_CF_SET_FTRACE_NOTRACE, { read_notrace, write_notrace } },
	{ PB_CF_SET_GRAPH_FUNCTION, { read_graph_function, write_graph_function } },
	{ PB_CF_SET_GRAPH_NOTRACE, { read_graph_notrace, write_graph_notrace } },
	{ PB_CF_GRAPH_CALLERS, { read_graph_callers, write_graph_callers } },
	{ PB_CF_MAX_GRAPH_DEPTH, { .word = &max_depth, .changed = depth_changed } },
	{ PB_CF_TRACING_ON, { .word = &tracing_on, .changed = tracing_on_changed } },
	{ PB_CF_TRACING_THRESH, { read_thresh, write_thresh } },
	{ PB_CF_TRACE_OPTIONS, { read_options, write_options } },
	{ PB_CF_TRACE_CLOCK, { read_clock, write_clock } },
	{ PB_CF_SET_FTRACE_SIZE, { .word = &pb_min_size, .changed = size_changed } },
};

void pb_tracer_register_files(void)
{
	for (size_t i = 0; i < pb_array_size(files); i++)
		pb_file_register(files[i].id, &files[i].file);
}
