/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control tree: every file with its owner, its mode and its meaning. Most names and meanings
 * are the kernel's: see Documentation/trace/ftrace.rst. (graph_callers, set_ftrace_size and
 * snapshot_on are Patchbay's own. The names that contain bpf are those of the kernel's sysctls.)
 * Paths are relative to tracing/.
 *
 * X(path, id, owner, mode, type, most, summary)
 *   owner  AGENT: the agent holds the state, and observers forward reads and writes.
 *          OBSERVER: the observer makes the file's text from the ring and the recorded data
 *   mode   R, W or RW
 *   type   what may be written to the file. The observer checks a value before it sends the value:
 *            NUMBER    from 0 to `most`. In the agent a file of this type is one word;
 *                      engine/files.c reads, checks and writes the word
 *            PATTERNS  patterns of functions
 *            TIME      microseconds, with decimals
 *            TRACER, CLOCK  one of the names below
 *            TEXT      only the owner checks the value
 */
#ifndef PB_ABI_CONTROL_FILES_H
#define PB_ABI_CONTROL_FILES_H

#define PB_CONTROL_FILES(X) \
	X("available_tracers", AVAILABLE_TRACERS, AGENT, R, TEXT, 0, \
	  "tracers that current_tracer takes") \
	X("current_tracer", CURRENT_TRACER, AGENT, RW, TRACER, 0, \
	  "nop, function or function_graph") \
	X("available_filter_functions", AVAILABLE_FILTER_FUNCTIONS, AGENT, R, TEXT, 0, \
	  "functions that can be traced") \
	X("enabled_functions", ENABLED_FUNCTIONS, AGENT, R, TEXT, 0, \
	  "functions that have callbacks, with the callbacks") \
	X("dyn_ftrace_total_info", DYN_FTRACE_TOTAL_INFO, AGENT, R, TEXT, 0, \
	  "numbers of sites, patched functions and refused functions") \
	X("set_ftrace_filter", SET_FTRACE_FILTER, AGENT, RW, PATTERNS, 0, \
	  "trace only these functions") \
	X("set_ftrace_notrace", SET_FTRACE_NOTRACE, AGENT, RW, PATTERNS, 0, \
	  "don't trace these functions") \
	X("set_graph_function", SET_GRAPH_FUNCTION, AGENT, RW, PATTERNS, 0, \
	  "trace only these functions and the functions that they call") \
	X("set_graph_notrace", SET_GRAPH_NOTRACE, AGENT, RW, PATTERNS, 0, \
	  "don't trace these functions nor the functions that they call") \
	X("max_graph_depth", MAX_GRAPH_DEPTH, AGENT, RW, NUMBER, 0x7fffffff, \
	  "the greatest depth that is traced; 0: no limit") \
	X("tracing_on", TRACING_ON, AGENT, RW, NUMBER, 1, \
	  "0 stops recording, and restores the text of all functions") \
	X("tracing_thresh", TRACING_THRESH, AGENT, RW, TIME, 0, \
	  "trace only calls that take at least this many microseconds") \
	X("trace_options", TRACE_OPTIONS, AGENT, RW, TEXT, 0, \
	  "options, one per line; 'no' before an option clears it") \
	X("trace_clock", TRACE_CLOCK, AGENT, RW, CLOCK, 0, "clocks; brackets show the one in use") \
	X("buffer_size_kb", BUFFER_SIZE_KB, OBSERVER, RW, NUMBER, 0xffffffff, "the ring's size") \
	X("graph_callers", GRAPH_CALLERS, AGENT, RW, PATTERNS, 0, \
	  "trace only these functions and their callers (-C)") \
	X("set_ftrace_size", SET_FTRACE_SIZE, AGENT, RW, NUMBER, 0xffffffff, \
	  "only functions of at least this many bytes (-Z)") \
	X("snapshot", SNAPSHOT, OBSERVER, RW, NUMBER, 1, \
	  "1 takes a snapshot of the ring; reads name the last one") \
	X("snapshot_on", SNAPSHOT_ON, AGENT, RW, TEXT, 0, \
	  "FUNC: a call of it takes a snapshot; FUNC>MICROSECONDS: a longer call does") \
	X("bpf_jit_enable", BPF_JIT_ENABLE, AGENT, RW, NUMBER, 2, \
	  "native code for eBPF: 0: no, 1: yes, 2: yes, and show it") \
	X("bpf_jit_harden", BPF_JIT_HARDEN, AGENT, RW, NUMBER, 2, \
	  "blind constants in native code: 1: of unprivileged programs, 2: of all") \
	X("bpf_stats_enabled", BPF_STATS_ENABLED, AGENT, RW, NUMBER, 1, \
	  "1: count eBPF programs' runs and their time") \
	X("unprivileged_bpf_disabled", UNPRIVILEGED_BPF_DISABLED, AGENT, RW, NUMBER, 2, \
	  "1, 2: privileged eBPF only")

/* The clocks. With "none", all times are equal. With any other clock, records have TSC times, which
 * readers convert. */
#define PB_TRACE_CLOCKS(X) \
	X("x86-tsc") X("local") X("global") X("perf") X("mono") X("mono_raw") X("boot") \
	X("uptime") X("none")
#define PB_TRACERS(X) X("nop") X("function") X("function_graph")

enum pb_control_type {
	PB_CONTROL_TEXT, PB_CONTROL_NUMBER, PB_CONTROL_PATTERNS, PB_CONTROL_TIME,
	PB_CONTROL_TRACER, PB_CONTROL_CLOCK,
};

enum pb_control_file {
#define X(path, id, ...) PB_CF_##id,
	PB_CONTROL_FILES(X)
#undef X
	PB_NR_CONTROL_FILES
};
#endif
