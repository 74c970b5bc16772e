/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Starts tracing: in a program that is just starting (agent.c), and in a program that runs already
 * (attach.c). Both files call the functions below in the order of their declarations, but leave out
 * functions that they don't need. Context: one thread of the agent, or the program's only thread.
 */
#ifndef PB_ENGINE_START_H
#define PB_ENGINE_START_H
#include <stdbool.h>
#include <stdint.h>
#include "engine/graph/thread.h"

struct pb_start {
	const char *session;	/* path of the recorder's socket */
	const char *preload;	/* path of the agent, for LD_PRELOAD at an exec */
	bool live;		/* the program runs already: its threads must be stopped while text
				 * changes, and it may have modules and handlers of its own */
	uint64_t begun;		/* time at which the connection was begun; pb_start_connect() sets
				 * it */
};

/* Maps the memory of threads and of calls. Returns 0 or -errno. */
int pb_start_memory(const struct pb_known_thread *thread);
/* Connects to the recorder, and maps the ring. Returns 0 or -errno. */
int pb_start_connect(struct pb_start *s);
/* Called after one of the functions above has failed with `error`, so that the image goes on
 * untraced. Counts the image if the recorder gave no answer, or if there was no memory. Unmaps the
 * ring. */
void pb_start_missed(const struct pb_start *s, int error);
/* Finds the modules, patches them and starts the tracer. Returns 0 or -errno. After an error the
 * connection is closed. If the program is live, the caller must then call pb_detach(). */
int pb_start_trace(const struct pb_start *s);
/* Starts the agent's thread, which serves the connection. If the recorder hasn't asked for this
 * (PB_WELCOME_SERVE), or if the thread can't be started, closes the connection. Not for a live
 * program, where the calling thread serves the connection itself. */
void pb_start_thread(const struct pb_start *s);
/* Serves the connection until it ends, then detaches. Returns what pb_detach() returns (detach.h):
 * false if a thread may still be in the agent's code. */
bool pb_start_serve(void);
#endif
