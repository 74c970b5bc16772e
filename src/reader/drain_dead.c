/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The reaper finds the OPEN, HELD and TAKEN chunks of dead threads. It goes over all chunks again
 * and again. One pass over the chunks is called a look. Chunks may be taken only from dead threads,
 * because a living thread continues to write to its chunk.
 *
 *   suspect   tgkill(pid, tid) finds no such thread. Every thread is a suspect at each
 *             eighth look, and at each look if threads hold more than half of all chunks
 *   missing   one look hasn't found the suspect
 *   dead      the next look hasn't found the missing thread, either. Before it declares a thread
 *             dead, this look also calls threads_alive(), which searches all pid namespaces
 *
 * Thread numbers in the ring are untrusted. A number may be wrong, or may belong to a pid namespace
 * that the recorder isn't in. tgkill() then never finds the thread, although the thread lives.
 * Once threads_alive() has found such a thread, the thread is checked again only at looks at which
 * every thread is a suspect. Thread numbers are used again, so a new thread may have the number of
 * a dead thread. The new thread's start time shows this: if a thread started after a chunk was
 * first seen with its owner, that thread isn't the owner.
 *
 * If there are many processes, the search may take long. So the reaper is a separate thread, which
 * sleeps at least twenty times as long as it works. The reaper only reads the ring. The drain
 * thread takes the chunks of dead threads (pb_drain_take_from), and compares the serial when it
 * takes a chunk. A serial is never given to another thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/sys.h"
#include "reader/drain_priv.h"

#define LOOK_NS		250000000ull
#define ALL_EACH	8	/* one in this many looks treats every thread as a suspect */
#define WORK_SHARE	20	/* the pause is this multiple of the last look's processor time */
#define ASK_MAX		4096	/* limit of the threads in one call of threads_alive() */
#define FOUND_MAX	1024	/* limit of the chunks of dead threads that one look finds */

struct suspect {
	uint32_t serial;	/* the serial of the thread that holds the chunk; 0: none */
	uint8_t missing;	/* number of looks in a row that haven't found the owner */
	bool misleading;	/* tgkill() doesn't find the owner, but the owner lives */
	uint64_t seen;		/* when this owner was first seen with the chunk (CLOCK_BOOTTIME) */
};

struct pb_drain_dead {
	struct suspect *suspects;	/* [nr_chunks] */
	/* The arguments of the next call of threads_alive(). */
	unsigned nr;
	uint32_t chunk[ASK_MAX];
	bool gone[ASK_MAX];		/* tgkill() has found no such thread */
	struct pb_drain_thread ask[ASK_MAX];
	uint64_t now;			/* time of this look (CLOCK_BOOTTIME) */
	uint32_t open;			/* number of chunks that had an owner at this look */
	/* The chunks of dead threads. The reaper owns this list while nr_found is 0. Otherwise the
	 * drain thread owns it. */
	unsigned filled;
	struct { uint32_t chunk, serial; } found[FOUND_MAX];
	_Atomic unsigned nr_found;

	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
};

static uint64_t boot_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* --- a look --------------------------------------------------------------- */

/* Returns the serial of the thread that holds the chunk, and stores the thread's pid and tid.
 * Returns 0 if no thread holds the chunk, or if these numbers aren't known. The numbers come from
 * the ring's table, because the header of a TAKEN chunk may still name the previous owner. If the
 * table has no room for the thread, the numbers come from the header, unless the chunk is TAKEN. */
static uint32_t owner(struct pb_drain *d, uint32_t i, uint32_t *pid, uint32_t *tid)
{
	struct pb_chunk *c = pb_drain_chunk(d, i);
	/* if the chunk is free, don't read it: it may have no memory, and the read would allocate
	 * memory */
	uint64_t word = pb_drain_is_taken(d, i) ? __atomic_load_n((uint64_t *)c, __ATOMIC_ACQUIRE) :
			0;
	uint32_t state = (uint32_t)word, serial = (uint32_t)(word >> 32);

	if (state != PB_CHUNK_OPEN && state != PB_CHUNK_HELD && state != PB_CHUNK_TAKEN)
		return 0;
	if (serial - 1 < d->geometry.nr_threads) {
		const struct pb_ring_thread *t =
			(const void *)((char *)d->ring + d->geometry.threads_offset);

		t += serial - 1;
		/* the engine writes the serial last, after the other fields */
		if (__atomic_load_n(&t->serial, __ATOMIC_ACQUIRE) != serial)
			return 0;
		*pid = __atomic_load_n(&t->pid, __ATOMIC_RELAXED);
		*tid = __atomic_load_n(&t->tid, __ATOMIC_RELAXED);
	} else {
		*pid = __atomic_load_n(&c->pid, __ATOMIC_RELAXED);
		*tid = __atomic_load_n(&c->tid, __ATOMIC_RELAXED);
		if (state == PB_CHUNK_TAKEN)
			return 0;
	}
	/* an engine that doesn't know the numbers writes 0 */
	return (int)*pid > 0 && (int)*tid > 0 ? serial : 0;
}

static bool is_missing(uint32_t pid, uint32_t tid)
{
	return syscall(SYS_tgkill, pid, tid, 0) && errno == ESRCH;
}

static void answer(struct pb_drain_dead *r, unsigned i, bool alive)
{
	struct suspect *s = &r->suspects[r->chunk[i]];

	if (alive) {
		s->missing = 0;
		s->misleading = r->gone[i];
	} else if (++s->missing > 1 && r->filled < FOUND_MAX) {
		r->found[r->filled].chunk = r->chunk[i];
		r->found[r->filled++].serial = s->serial;
		s->serial = 0;
	} else {
		s->missing = 1;
	}
}

static void ask(struct pb_drain *d)
{
	struct pb_drain_dead *r = d->dead;
	bool known = true;

	if (r->nr && d->threads_alive)
		known = d->threads_alive(d->arg, r->ask, r->nr, &d->stop);
	for (unsigned i = 0; i < r->nr; i++)
		answer(r, i, !known || r->ask[i].alive);
	r->nr = 0;
}

static void look_at(struct pb_drain *d, uint32_t i, bool all)
{
	struct pb_drain_dead *r = d->dead;
	struct suspect *s = &r->suspects[i];
	uint32_t pid, tid, serial = owner(d, i, &pid, &tid);
	bool gone;

	if (s->serial != serial)
		*s = (struct suspect){ .serial = serial, .seen = r->now };
	r->open += serial != 0;
	if (!serial || (s->misleading && !all))
		return;
	gone = is_missing(pid, tid);
	if (!all && !s->missing) {
		/* If tgkill() finds no thread, ask threads_alive() only at the next look. Most
		 * chunks of threads that end are handed over before that look. */
		s->missing = gone;
		return;
	}
	r->chunk[r->nr] = i;
	r->ask[r->nr] = (struct pb_drain_thread){ .tid = tid, .seen = s->seen };
	r->gone[r->nr++] = gone;
	if (r->nr == ASK_MAX)
		ask(d);
}

void pb_drain_dead_look(struct pb_drain *d, bool all)
{
	struct pb_drain_dead *r = d->dead;

	if (r->nr_found)
		return;
	all |= r->open > d->geometry.nr_chunks / 2;
	r->filled = r->open = 0;
	r->now = boot_ns();
	for (uint32_t i = 0, high = d->high; i < high && !d->stop; i++)
		look_at(d, i, all);
	ask(d);
	r->nr_found = r->filled;
}

void pb_drain_dead_take(struct pb_drain *d)
{
	struct pb_drain_dead *r = d->dead;
	unsigned nr = r->nr_found;

	if (!nr)
		return;
	for (unsigned i = 0; i < nr; i++)
		pb_drain_take_from(d, r->found[i].chunk, r->found[i].serial);
	pb_drain_flush(d);
	r->nr_found = 0;
}

/* --- the thread ----------------------------------------------------------- */

static void sleep_until(struct pb_drain *d, uint64_t when)
{
	struct pb_drain_dead *r = d->dead;
	struct timespec ts = {
		.tv_sec = (time_t)(when / 1000000000u), .tv_nsec = (long)(when % 1000000000u),
	};

	pthread_mutex_lock(&r->lock);
	while (!d->stop && !pthread_cond_timedwait(&r->wake, &r->lock, &ts))
		;
	pthread_mutex_unlock(&r->lock);
}

/* Returns this thread's processor time. The elapsed time would count the time for which the thread
 * had no processor. */
static uint64_t own_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *reaper_main(void *arg)
{
	struct pb_drain *d = arg;
	unsigned looks = 0;
	uint64_t work = 0;

	while (!d->stop) {
		uint64_t pause = work * WORK_SHARE > LOOK_NS ? work * WORK_SHARE : LOOK_NS;

		sleep_until(d, pb_now_ns() + pause);
		if (d->stop)
			break;
		uint64_t begin = own_ns();
		pb_drain_dead_look(d, ++looks % ALL_EACH == 0);
		work = own_ns() - begin;
	}
	return NULL;
}

int pb_drain_dead_init(struct pb_drain *d)
{
	pthread_condattr_t attr;

	d->dead = calloc(1, sizeof(*d->dead));
	if (!d->dead)
		return -ENOMEM;
	pthread_mutex_init(&d->dead->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&d->dead->wake, &attr);
	pthread_condattr_destroy(&attr);
	d->dead->suspects = calloc(d->geometry.nr_chunks, sizeof(*d->dead->suspects));
	return d->dead->suspects ? 0 : -ENOMEM;
}

void pb_drain_dead_fini(struct pb_drain *d)
{
	if (!d->dead)
		return;
	pthread_cond_destroy(&d->dead->wake);
	pthread_mutex_destroy(&d->dead->lock);
	free(d->dead->suspects);
	free(d->dead);
	d->dead = NULL;
}

int pb_drain_dead_start(struct pb_drain *d)
{
	return pthread_create(&d->dead->thread, NULL, reaper_main, d);
}

void pb_drain_dead_stop(struct pb_drain *d)
{
	pthread_mutex_lock(&d->dead->lock);
	pthread_cond_signal(&d->dead->wake);
	pthread_mutex_unlock(&d->dead->lock);
	pthread_join(d->dead->thread, NULL);
}
