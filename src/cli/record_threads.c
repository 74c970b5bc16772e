/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads' names, which can be read only while the threads live. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/record_server.h"

#define RENEW_MAX 256		/* names read again in one round */

/* A thread that went on to another program by exec has that one's name now;
 * the kernel changes the executable before the name. */
static bool still_runs(const struct record_server *s, const struct pb_ring_thread *t)
{
	const struct record_image *im = record_server_image(s, t->image);
	char link[40], path[PATH_MAX];

	snprintf(link, sizeof(link), "/proc/%u/exe", t->pid);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = 0;
	return im && !strcmp(path, im->path);
}

void record_threads_poll(struct record_threads *t, const struct record_server *s, bool renew)
{
	const struct record_ring *r = s->ring;
	uint32_t nr = record_ring_nr_threads(r), from = t->seen;

	if (!t->comm)
		t->comm = calloc(RECORD_NR_THREADS, sizeof(*t->comm));
	if (!t->comm)
		return;
	if (renew)
		from = nr > RENEW_MAX ? nr - RENEW_MAX : 0;
	if (from > t->seen)
		from = t->seen;
	for (uint32_t i = from; i < nr; i++) {
		const struct pb_ring_thread *thread = record_ring_thread(r, i);
		char comm[RECORD_COMM] = "";

		if (!thread->serial)
			continue;
		record_read_comm((pid_t)thread->pid, (pid_t)thread->tid, comm);
		if (*comm && still_runs(s, thread))
			memcpy(t->comm[i], comm, sizeof(comm));
	}
	t->seen = nr;
}

uint64_t record_threads_lost(const struct record_ring *r)
{
	uint64_t lost = 0;

	for (uint32_t i = 0, n = record_ring_nr_threads(r); i < n; i++)
		lost += __atomic_load_n(&record_ring_thread(r, i)->lost, __ATOMIC_RELAXED);
	return lost;
}
