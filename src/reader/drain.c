/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Starts and stops the three threads of a drain (drain.h). The loops of the drain thread and of the
 * heartbeat thread are in this file, too. */
#include "reader/drain.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/sys.h"
#include "reader/drain_priv.h"

#define SLEEP_MIN_NS	200000
#define SLEEP_MAX_NS	10000000
#define HEARTBEAT_NS	10000000	/* time between two heartbeats. With five busy programs for
					 * each processor, heartbeats came up to 50 ms late */
#define COUNT_NS	250000000	/* time between two calls of pb_drain_serials() */
#define MANY		32		/* if a round takes more chunks than this, the next round
					 * begins at once */

static void sleep_ns(uint64_t ns)
{
	struct timespec ts = { .tv_nsec = (long)ns };

	nanosleep(&ts, NULL);
}

static void *drain_main(void *arg)
{
	struct pb_drain *d = arg;
	bool overwrite = d->geometry.mode == PB_RING_OVERWRITE;
	uint64_t sleep = SLEEP_MIN_NS, counted = pb_now_ns();
	unsigned counts = 0;

	while (!d->stop) {
		unsigned n = overwrite ? 0 : pb_drain_full(d);
		bool busy = pb_drain_ahead(d) || n;
		uint64_t now = pb_now_ns();

		pb_drain_dead_take(d);
		if (now - counted > COUNT_NS) {
			pb_drain_serials(d);
			if (overwrite)
				pb_drain_count(d);
			if (++counts % 8 == 0)
				pb_drain_trim(d);
			counted = pb_now_ns();
		}
		if (n > MANY)
			continue;
		sleep = busy ? SLEEP_MIN_NS : sleep;
		sleep_ns(sleep);
		if (!busy)
			sleep = sleep * 2 > SLEEP_MAX_NS ? SLEEP_MAX_NS : sleep * 2;
	}
	pb_drain_rest(d);
	return NULL;
}

static void *heart_main(void *arg)
{
	struct pb_drain *d = arg;

	pb_drain_own(d);
	while (!d->stop) {
		__atomic_store_n(&d->ring->heartbeat_ns, pb_now_ns(), __ATOMIC_RELAXED);
		__atomic_fetch_add(&d->ring->heartbeat, 1, __ATOMIC_RELEASE);
		sleep_ns(HEARTBEAT_NS);
	}
	pb_drain_disown(d);
	return NULL;
}

int pb_drain_init(struct pb_drain *d)
{
	int err = pb_drain_dead_init(d);

	return pb_drain_chunks_init(d) ? -ENOMEM : err;
}

void pb_drain_fini(struct pb_drain *d)
{
	pb_drain_chunks_fini(d);
	pb_drain_dead_fini(d);
}

/* Returns 0 or an error number. After an error, none of the three threads runs. */
static int start_threads(struct pb_drain *d)
{
	int ret = pthread_create(&d->heart, NULL, heart_main, d);

	if (ret)
		return ret;
	ret = pb_drain_dead_start(d);
	if (!ret && (ret = pthread_create(&d->thread, NULL, drain_main, d))) {
		d->stop = true;
		pb_drain_dead_stop(d);
	}
	if (ret) {
		d->stop = true;
		pthread_join(d->heart, NULL);
	}
	return ret;
}

int pb_drain_start(struct pb_drain *d)
{
	sigset_t all, old;
	int ret = pb_drain_init(d);

	if (!ret) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		ret = -start_threads(d);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	if (ret) {
		pb_drain_fini(d);
		free(d->discarded);
		d->discarded = NULL;
	}
	return ret;
}

void pb_drain_close_ring(const struct pb_drain *d)
{
	__atomic_store_n(&d->ring->closing, 1, __ATOMIC_RELEASE);
}

void pb_drain_finish(struct pb_drain *d)
{
	pb_drain_close_ring(d);
	d->stop = true;
	pb_drain_dead_stop(d);
	pthread_join(d->thread, NULL);
	pthread_join(d->heart, NULL);
	pb_drain_fini(d);
}
