/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keeps the names of threads, which can be read only while the threads live. The ring has each
 * thread's number in the program's pid namespace. tasks.c finds the thread with this number. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder/connection.h"
#include "recorder/proc.h"
#include "recorder/ring_memory.h"
#include "recorder/recording.h"
#include "recorder/server.h"
#include "recorder/tasks.h"
#include "recorder/thread_names.h"

#define RENEW_MAX 256		/* how many names one round reads again */

void record_threads_poll(struct record_threads *t, const struct record_server *s, bool renew)
{
	struct record_ring *r = s->ring;
	uint32_t nr = record_ring_nr_threads(r), from = t->seen;
	struct record_names names;

	if (!t->comm) {
		pthread_mutex_lock(&t->lock);
		t->comm = calloc(RECORD_NR_THREADS, sizeof(*t->comm));
		pthread_mutex_unlock(&t->lock);
	}
	if (!t->comm)
		return;
	if (renew)
		from = nr > RENEW_MAX ? nr - RENEW_MAX : 0;
	if (from > t->seen)
		from = t->seen;
	if (from >= nr)
		return;
	/* search other namespaces only if `renew` is set, once a second, because the search takes
	 * long */
	record_names_begin(&names, r, renew && r->nested);
	for (uint32_t i = from; i < nr; i++) {
		const struct pb_ring_thread *thread = record_ring_thread(r, i);
		const struct record_image *im = record_server_image(s, thread->image);
		char comm[RECORD_COMM] = "";

		if (!thread->serial || !im)
			continue;
		record_names_get(&names, thread->pid, thread->tid, im->path, comm);
		if (!*comm)
			continue;
		pthread_mutex_lock(&t->lock);
		memcpy(t->comm[i], comm, sizeof(comm));
		pthread_mutex_unlock(&t->lock);
	}
	record_names_end(&names);
	t->seen = nr;
}

void record_threads_name(struct record_threads *t, uint32_t index, char comm[RECORD_COMM])
{
	*comm = 0;
	pthread_mutex_lock(&t->lock);
	if (t->comm && index < RECORD_NR_THREADS)
		memcpy(comm, t->comm[index], RECORD_COMM);
	pthread_mutex_unlock(&t->lock);
}
