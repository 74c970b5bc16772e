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
#include "arch/x86_64/text_poke.h"

extern uint32_t pb_agent_tid;		/* not to be stopped; 0: none */
extern uint32_t pb_observer_pid;	/* reaps its children; 0: unknown */

/* Sorted patches. moved(pc): where a thread that stands at pc, strictly inside
 * bytes that are to be replaced, is to go on; 0: it may stay. *longest_ns is
 * raised to the longest stop. 0, or -errno: -EAGAIN when a thread could not be
 * stopped in time (nothing was written; try again). */
int pb_stop_and_poke(const struct pb_patch *p, size_t nr, uint64_t (*moved)(uint64_t pc),
		     uint64_t *longest_ns);
#endif
