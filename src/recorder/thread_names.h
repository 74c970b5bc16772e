/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keeps the names of threads, which can be read only while the threads live. Context: the main
 * thread. */
#ifndef PB_RECORDER_THREAD_NAMES_H
#define PB_RECORDER_THREAD_NAMES_H
#include <stdbool.h>
#include <stdint.h>

#include "recorder/proc.h"

struct record_ring;
struct record_server;

struct record_threads {
	char (*comm)[RECORD_COMM];	/* [RECORD_NR_THREADS] */
	uint32_t seen;			/* number of rows of the ring's table that were polled */
};
/* Reads the names of new threads. If `renew` is true, also reads the names of the newest threads
 * again. */
void record_threads_poll(struct record_threads *t, const struct record_server *s, bool renew);
#endif
