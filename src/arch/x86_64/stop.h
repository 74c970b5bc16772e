/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Changing text that other threads may be running: a helper that shares the
 * memory but is no thread of the process stops them all with ptrace, moves
 * program counters out of the displaced bytes, writes, and lets them go.
 * Context: the agent's thread (any thread that holds no lock that a stopped
 * thread could want). doc/design/text.md.
 */
#ifndef PB_ARCH_STOP_H
#define PB_ARCH_STOP_H
#include <stdbool.h>
#include "arch/x86_64/text_poke.h"

extern uint32_t pb_agent_tid;		/* not to be stopped; 0: none */
extern uint32_t pb_observer_pid;	/* reaps its children; 0: unknown */
extern uint64_t pb_stop_longest_ns;
extern const char *pb_stop_why;		/* of the last -EAGAIN, for people */

/* Where a stopped thread stands, or will when a signal handler that it is in
 * returns. */
struct pb_stopped {
	uint64_t pc, sp;
};

struct pb_stop {
	const struct pb_patch *p;	/* sorted; large numbers take several stops */
	size_t nr;
	size_t done;		/* how many of them were written, perhaps (the last group failed) */
	/* Where a thread that stands at pc, strictly inside bytes that are to be
	 * replaced, is to go on; 0: it may stay. */
	uint64_t (*moved)(uint64_t pc);
	/* Called under each stop, by the thread that asked for it, with the places
	 * of threads for which ours() says yes. 0, or -errno: nothing is written. */
	bool (*ours)(uint64_t pc);
	int (*stopped)(const struct pb_stopped *at, size_t nr);
};

/* 0, or -errno: -EAGAIN when a thread could not be stopped in time, or another
 * process shares the memory (the group that `done` ends before was not written;
 * try again). With nr = 0 one stop for `stopped`. */
int pb_stop_world(struct pb_stop *s);
#endif
