/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A separate thread looks for requests every 10 ms and takes the snapshots. So a slow disk delays
 * neither agents nor the drain. A request must wait if it comes while a snapshot is written, or
 * less than a second after the last snapshot began. All waiting requests get one snapshot. Agents
 * only count their requests in the ring (engine/snapshot_on.c).
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/sys.h"
#include "reader/datadir_writer.h"
#include "reader/say.h"
#include "reader/snapshot.h"
#include "recorder/flight.h"
#include "recorder/recording.h"
#include "recorder/ring_memory.h"
#include "recorder/settings.h"
#include "recorder/snapshot_text.h"
#include "recorder/texts.h"

#define LOOK_MS		10
#define PAUSE_NS	1000000000u	/* shortest time between the starts of two
					 * snapshots */

struct record_flight {
	struct record_server *server;
	record_name_fn *name;
	void *arg;			/* for name() */
	pthread_t thread;
	_Atomic bool begun, stop;
	const char *_Atomic why;	/* the text of record_flight_ask(); NULL: no request */
	uint32_t seen;			/* number of requests in the ring's count that were
					 * served */
	unsigned taken, number;
	uint64_t last;			/* when the last snapshot began; 0: none was taken */
	_Atomic bool full;		/* no more snapshots are taken */
	pthread_mutex_t lock;		/* of `path` */
	char path[PATH_MAX];		/* the last snapshot; "": none */
};

/* Finds a name for the next snapshot's directory that doesn't exist yet. */
static void choose_name(struct record_flight *f, char dir[PATH_MAX])
{
	do
		snprintf(dir, PATH_MAX, "%.4080s.%u", f->server->datadir->dir, ++f->number);
	while (!access(dir, F_OK));
}

static void take(struct record_flight *f, const char *why)
{
	char dir[PATH_MAX], err[PATH_MAX + 200], text[300], what[100];
	bool quiet = f->server->options->quiet;
	const struct record_ring *ring = f->server->ring;
	struct pb_snapshot s = {
		.ring = ring->map, .geometry = ring->geometry, .from = f->server->datadir->dir_fd,
		.thread_name = f->name, .arg = f->arg, .why = text,
	};

	if (why)
		snprintf(text, sizeof(text), "%s", why);
	else
		record_snapshot_call(f->server->datadir->dir,
				     __atomic_load_n(&ring->map->snapshot_by, __ATOMIC_RELAXED),
				     text, sizeof(text));
	choose_name(f, dir);
	f->last = pb_now_ns();
	f->full = ++f->taken == f->server->options->most_snapshots;
	if (pb_snapshot_write(&s, dir, err, sizeof(err))) {
		record_error("no snapshot: %s", err);
	} else {
		pthread_mutex_lock(&f->lock);
		memcpy(f->path, dir, sizeof(f->path));
		pthread_mutex_unlock(&f->lock);
		if (!quiet)
			pb_say(NULL, "snapshot in %s: %s; %s", dir, text,
			       record_snapshot_text(&s, dir, what, sizeof(what)));
	}
	/* a snapshot that failed counts, too: a full disk must not cause an error line each
	 * second */
	if (f->full && !quiet)
		pb_say(NULL, "that was the last of %u snapshot%s (--snapshots); the recording goes "
		       "on", f->taken, pb_plural(f->taken));
}

static void look(struct record_flight *f)
{
	uint32_t asked = __atomic_load_n(&f->server->ring->map->snapshots_asked, __ATOMIC_ACQUIRE);
	const char *why;

	if (!f->begun || f->full || (f->last && pb_now_ns() - f->last < PAUSE_NS && !f->stop))
		return;
	why = atomic_exchange(&f->why, NULL);
	if (!why && asked == f->seen)
		return;
	f->seen = asked;
	take(f, why);
}

static void *flight_main(void *arg)
{
	struct record_flight *f = arg;
	struct timespec ts = { .tv_nsec = LOOK_MS * 1000000 };

	while (!f->stop) {
		look(f);
		nanosleep(&ts, NULL);
	}
	look(f);
	return NULL;
}

struct record_flight *record_flight_start(struct record_server *s, record_name_fn *name, void *arg)
{
	struct record_flight *f = calloc(1, sizeof(*f));
	sigset_t all, old;

	if (!f)
		return NULL;
	f->server = s;
	f->name = name;
	f->arg = arg;
	pthread_mutex_init(&f->lock, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int ret = pthread_create(&f->thread, NULL, flight_main, f);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret) {
		free(f);
		errno = ret;
		return NULL;
	}
	return f;
}

void record_flight_begin(struct record_flight *f)
{
	if (f)
		f->begun = true;
}

void record_flight_last(struct record_flight *f, char *path, size_t len)
{
	pthread_mutex_lock(&f->lock);
	snprintf(path, len, "%s", f->path);
	pthread_mutex_unlock(&f->lock);
}

bool record_flight_ask(struct record_flight *f, const char *why)
{
	f->why = why;
	return !f->full;
}

void record_flight_stop(struct record_flight *f)
{
	if (!f)
		return;
	f->stop = true;
	pthread_join(f->thread, NULL);
	free(f);
}
