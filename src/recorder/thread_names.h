/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of threads, kept while the threads live. Context: the main thread. */
#ifndef PB_RECORDER_THREAD_NAMES_H
#define PB_RECORDER_THREAD_NAMES_H
#include <stdbool.h>
#include <stdint.h>

#include "recorder/proc.h"

struct record_ring;
struct record_server;

struct record_threads {
	char (*comm)[RECORD_COMM];	/* [RECORD_NR_THREADS] */
	uint32_t seen;
};
/* Names of new threads; with renew, also those of the newest ones again. */
void record_threads_poll(struct record_threads *t, const struct record_server *s, bool renew);
/* Records lost, as the threads count them. */
uint64_t record_threads_lost(const struct record_ring *r);
#endif
