/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keeps the names of threads, which can be read only while the threads live. Context: the main
 * thread, unless said otherwise. */
#ifndef PB_RECORDER_THREAD_NAMES_H
#define PB_RECORDER_THREAD_NAMES_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "recorder/proc.h"

struct record_ring;
struct record_server;

struct record_threads {
	char (*comm)[RECORD_COMM];	/* [RECORD_NR_THREADS] */
	pthread_mutex_t lock;		/* protects the names. A zeroed struct is valid, because a
					 * mutex whose bytes are 0 is unlocked */
	uint32_t seen;			/* number of rows of the ring's table that were polled */
};
/* Copies the name of the thread in a row of the ring's table; "" if it isn't known. Context: any
 * thread. */
void record_threads_name(struct record_threads *t, uint32_t index, char comm[RECORD_COMM]);
/* Reads the names of new threads. If `renew` is true, also reads the names of the newest threads
 * again. */
void record_threads_poll(struct record_threads *t, const struct record_server *s, bool renew);
#endif
