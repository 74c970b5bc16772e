/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds threads by the TIDs that the ring has of them. These TIDs belong to the program's pid
 * namespace. In the recorder's pid namespace, the threads may have other TIDs. Context: any thread,
 * with its own struct record_names. */
#ifndef PB_RECORDER_TASKS_H
#define PB_RECORDER_TASKS_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "reader/drain.h"
#include "recorder/proc.h"

struct record_ring;

/* Sets `alive` of the threads that are alive or may be alive. Returns false if the search was
 * incomplete: `alive` then has no meaning. If *stop is set, the search ends. */
bool record_tasks_alive(struct record_ring *r, struct pb_drain_thread *threads, unsigned nr,
			const _Atomic bool *stop);
struct record_names {
	/* private */
	const struct record_ring *ring;
	bool is_ours, last_maps;
	pid_t last;
	void *list;
	unsigned nr;
};
/* Prepares n for record_names_get(). If look_further is true, other pid namespaces are searched,
 * too. */
void record_names_begin(struct record_names *n, struct record_ring *r, bool look_further);
void record_names_end(struct record_names *n);
/* Sets comm to the name of a traced thread that runs exe, or to "" if there is no such thread. exe
 * may be NULL: the thread may run any program. */
void record_names_get(struct record_names *n, uint32_t pid, uint32_t tid, const char *exe,
		      char comm[RECORD_COMM]);
#endif
