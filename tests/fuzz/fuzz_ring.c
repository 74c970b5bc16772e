/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fuzzes the recorder's side of the ring, while traced processes write random data into the ring.
 * Tests the drain, the thread table and the header, up to the end of the session. The data
 * directory must be readable to its end.
 *
 * The input begins with a byte of CHOOSE_*, three bytes that limit the file's size (used with
 * CHOOSE_LIMIT), and four bytes that seed a second thread. Steps of the recorder and of the program
 * follow. With CHOOSE_FIRE, the second thread writes into the ring while the recorder reads it.
 * With CHOOSE_VIEWS, all views read the data directory at the end.
 */
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/record.h"
#include "base/base.h"
#include "cli/cli.h"
#include "recorder/connection.h"
#include "recorder/modules.h"
#include "recorder/ring_memory.h"
#include "recorder/server.h"
#include "recorder/session_dir.h"
#include "recorder/settings.h"
#include "recorder/summary.h"
#include "recorder/thread_names.h"
#include "driver.h"
#include "reader/data.h"
#include "reader/drain_priv.h"
#include "recorder/recording.h"
#include "views.h"

#define CHUNKS		24
#define CHOOSE_MODE	3
#define CHOOSE_FIRE	4
#define CHOOSE_VIEWS	8
#define CHOOSE_LIMIT	16

enum step {
	FULL, DEAD, POLL, LOST, SUPPLY,			/* steps of the recorder */
	STATE, HEAD, WORDS, THREAD, RING, HOLE, HONEST,	/* steps of the program */
	NR_STEPS
};

static struct record_ring ring;
static struct record_threads threads;
static struct pb_drain drain;
static struct pb_datadir datadir;
static struct record_options options = { .quiet = true };
static struct record_image image = { .number = 1, .path = "/usr/bin/victim" };
static struct record_image *images[] = { &image };
static struct record_session session;	/* its directory is "", so that the recorder finds no file
					 * of an agent there */
static struct record_server server = {
	.session = &session, .options = &options, .ring = &ring, .datadir = &datadir,
	.images = images, .nr_images = 1,
};

/* --- the program -------------------------------------------------------- */

static struct pb_chunk *chunk(size_t i)
{
	return (void *)((char *)ring.map + ring.geometry.chunks_offset +
			i % CHUNKS * PB_CHUNK_SIZE);
}

/* Sets the `taken` bit of a chunk that isn't free, as programs should. */
static void set_taken(struct pb_chunk *c)
{
	uint64_t i = ((uint64_t)c - (uint64_t)chunk(0)) / PB_CHUNK_SIZE;

	__atomic_fetch_or(&pb_drain_taken(&drain)[i / 64], 1ull << i % 64, __ATOMIC_RELAXED);
}

static void write_at(void *at, size_t room, size_t offset, const uint8_t *bytes, size_t size)
{
	offset = room ? offset % room & ~(size_t)3 : 0;
	memcpy((char *)at + offset, bytes, size < room - offset ? size : room - offset);
}

static void make_hole(struct fuzz_input *in)
{
	uint64_t at = fuzz_take(in, 3) % ring.geometry.size & ~4095ull;

	fallocate(ring.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
		  (off_t)(fuzz_take(in, 1) + 1) * 4096);
}

/* Writes a chunk as the engine does. */
static void honest(size_t i, uint32_t serial, uint32_t nr)
{
	struct pb_chunk *c = chunk(i);
	uint64_t *words = (uint64_t *)(c + 1);

	if (c->state != PB_CHUNK_FREE)
		return;
	memset(words, 0, PB_CHUNK_SIZE - sizeof(*c));
	set_taken(c);
	c->state = PB_CHUNK_OPEN;
	c->serial = serial;
	c->uses++;
	c->image = 1;
	c->pid = c->tid = 100 + serial;
	c->seq = c->uses;
	c->start = 1000;
	for (uint32_t k = 0; k < nr; k++)
		words[k] = (1000ull + 10 * k) << PB_LEAF_SHIFT | 4ull << PB_DUR_SHIFT |
			   (1 + k % 7) << PB_SITE_SHIFT | PB_TAG_LEAF;
	c->used = nr * 8;
	__atomic_store_n(&c->state, PB_CHUNK_FULL, __ATOMIC_RELEASE);
}

static void write_step(enum step step, struct fuzz_input *in)
{
	struct pb_chunk *c = chunk(fuzz_take(in, 1));
	const uint8_t *bytes;
	size_t size, offset;

	if (step == STATE) {
		uint32_t state = (uint32_t)fuzz_take(in, 1);

		__atomic_store_n(&c->state, state % 6, __ATOMIC_RELEASE);
		if (state < 128)
			set_taken(c);
		return;
	}
	if (step == HOLE) {
		make_hole(in);
		return;
	}
	if (step == HONEST) {
		honest(fuzz_take(in, 1), 1 + (uint32_t)fuzz_take(in, 1) % 8,
		       (uint32_t)fuzz_take(in, 2) % 1900);
		return;
	}
	offset = fuzz_take(in, 2);
	bytes = fuzz_take_block(in, 1, &size);
	if (step == HEAD)
		write_at(c, sizeof(*c), offset, bytes, size);
	else if (step == WORDS)
		write_at(c + 1, PB_CHUNK_SIZE - sizeof(*c), offset, bytes, size);
	else if (step == THREAD)
		write_at((char *)ring.map + ring.geometry.threads_offset, 4096, offset, bytes,
			 size);
	else
		write_at(ring.map, sizeof(*ring.map), offset, bytes, size);
}

/* --- the second thread, with CHOOSE_FIRE -------------------------------- */

struct fire {
	pthread_t thread;
	struct fuzz_rng rng;
	bool stop;
};

static void fire_once(struct fuzz_rng *r)
{
	struct pb_chunk *c = chunk(fuzz_random(r));
	uint64_t word = fuzz_random(r) % 2 ? fuzz_nasty(r) : fuzz_random(r);

	switch (fuzz_random(r) % 8) {
	case 0: case 1: case 2:
		set_taken(c);
		__atomic_store_n(&c->state, PB_CHUNK_FULL, __ATOMIC_RELEASE);
		break;
	case 3:
		__atomic_store_n(&c->state, (uint32_t)fuzz_below(r, 6), __ATOMIC_RELEASE);
		break;
	case 4:
		((volatile uint32_t *)c)[1 + fuzz_below(r, sizeof(*c) / 4 - 1)] = (uint32_t)word;
		break;
	case 5:
		((volatile uint64_t *)ring.map)[fuzz_below(r, sizeof(*ring.map) / 8)] = word;
		break;
	case 6:
		((volatile uint64_t *)((char *)ring.map + ring.geometry.threads_offset))
			[fuzz_below(r, 512)] = word;
		break;
	case 7:
		if (word % 2) {
			*(volatile uint64_t *)pb_drain_taken(&drain) = word;
			break;
		}
		/* fall through */
	default:
		((volatile uint64_t *)(c + 1))[fuzz_below(r, 2000)] = word;
	}
}

static void *fire_main(void *arg)
{
	struct fire *f = arg;

	while (!__atomic_load_n(&f->stop, __ATOMIC_RELAXED))
		fire_once(&f->rng);
	return NULL;
}

/* --- the recorder ------------------------------------------------------- */

static void set_up(unsigned choices, uint64_t limit)
{
	static char dir[4096];
	char error[5000];

	if (!ring.map) {
		if (record_ring_create(&ring, CHUNKS * PB_CHUNK_SIZE, PB_RING_DISCARD))
			errx(2, "no ring");
		ring.geometry.nr_threads = 256;	/* a small table saves time */
		ring.geometry.nr_buffer = CHUNKS * 2 / 3;
		snprintf(dir, sizeof(dir), "%s/session", fuzz_directory());
	}
	if (fallocate(ring.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		      (off_t)ring.geometry.size))
		err(2, "ring");
	ring.geometry.mode = (choices & CHOOSE_MODE) % 3;
	*ring.map = ring.geometry;
	pb_datadir_remove(dir);
	if (pb_datadir_open(&datadir, dir, error, sizeof(error)))
		errx(2, "%s", error);
	drain = (struct pb_drain){
		.ring = ring.map, .ring_fd = ring.fd, .geometry = ring.geometry,
		.datadir = &datadir,
		.max_size = choices & CHOOSE_LIMIT ? limit : 0,
	};
	threads.seen = 0;
	if (pb_drain_init(&drain))
		err(2, "drain");
	pb_datadir_clock(&datadir);
}

static void step(enum step what, struct fuzz_input *in)
{
	switch (what) {
	case FULL:
		if (ring.geometry.mode == PB_RING_OVERWRITE)
			pb_drain_count(&drain);
		else
			pb_drain_full(&drain);
		break;
	case DEAD:
		pb_drain_dead_look(&drain, fuzz_take(in, 1) & 1);
		pb_drain_dead_take(&drain);
		break;
	case POLL:
		record_threads_poll(&threads, &server, fuzz_take(in, 1) & 1);
		break;
	case LOST:
		record_ring_lost(&ring);
		break;
	case SUPPLY:
		pb_drain_ahead(&drain);
		pb_drain_trim(&drain);
		break;
	default:
		write_step(what, in);
	}
}

/* Ends the session, and checks that its data directory can be read. */
static void finish(void)
{
	struct record_outcome out = { .exited = true, .pid = 100 };
	struct record_modules none = { 0 };
	char error[5000];
	struct pb_data *d;
	uint64_t bytes = sizeof(struct pb_data_header);

	pb_drain_rest(&drain);
	pb_drain_fini(&drain);
	record_threads_poll(&threads, &server, false);
	server.modules = &none;
	record_end(&server, &drain, &threads, &out);
	pb_datadir_close(&datadir);
	FUZZ_CHECK(!drain.error);
	FUZZ_CHECK(!drain.max_size || datadir.chunks_size <= drain.max_size ||
		   datadir.chunks_size == sizeof(struct pb_data_header));
	d = pb_data_open(datadir.dir, 0, error, sizeof(error));
	FUZZ_CHECK(d && d->ended && !d->damaged);
	FUZZ_CHECK(d->chunks_size == datadir.chunks_size);
	for (size_t i = 0; i < d->nr_notes; i++)
		FUZZ_CHECK(!strstr(d->notes[i], "cut off"));
	for (size_t i = 0; i < d->nr_chunks; i++)
		bytes += sizeof(struct pb_chunk) + d->chunks[i].used;
	FUZZ_CHECK(bytes <= d->chunks_size);
	pb_data_close(d);
	free(drain.discarded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	unsigned choices = (unsigned)fuzz_take(&in, 1);
	uint64_t limit = fuzz_take(&in, 3);
	struct fire fire = { .stop = false };

	set_up(choices, limit);
	fuzz_rng_seed(&fire.rng, fuzz_take(&in, 4));
	if (choices & CHOOSE_FIRE && pthread_create(&fire.thread, NULL, fire_main, &fire))
		err(2, "thread");
	while (in.left)
		step((enum step)(fuzz_take(&in, 1) % NR_STEPS), &in);
	finish();
	if (choices & CHOOSE_FIRE) {
		__atomic_store_n(&fire.stop, true, __ATOMIC_RELAXED);
		pthread_join(fire.thread, NULL);
	}
	if (choices & CHOOSE_VIEWS)
		fuzz_run_views(datadir.dir);
	return 0;
}

/* Inserts a random step at a random offset. */
size_t fuzz_mutate(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	uint8_t new[80] = { 0 };
	struct fuzz_rng r;
	size_t n, at;

	fuzz_rng_seed(&r, seed);
	at = size > 8 ? 8 + fuzz_below(&r, size - 7) : size;
	new[0] = (uint8_t)fuzz_below(&r, NR_STEPS);
	for (size_t i = 1; i < sizeof(new); i += 4) {
		uint32_t v = (uint32_t)(fuzz_random(&r) % 2 ? fuzz_nasty(&r) : fuzz_random(&r));

		memcpy(new + i, &v, i + 4 > sizeof(new) ? sizeof(new) - i : 4);
	}
	switch (new[0]) {
	case FULL: case LOST: case SUPPLY:
		n = 1;
		break;
	case DEAD: case POLL:
		n = 2;
		break;
	case STATE:
		n = 3;
		break;
	case HOLE: case HONEST:
		n = 6;
		break;
	default:
		new[4] = (uint8_t)fuzz_below(&r, sizeof(new) - 5);
		n = 5u + new[4];
	}
	if (n > max - size)
		return size;
	memmove(data + at + n, data + at, size - at);
	memcpy(data + at, new, n);
	return size + n;
}

void fuzz_seeds(void)
{
	static const uint8_t steps[] = {
		HONEST, 0, 0, 0, 100, 0, HONEST, 0, 1, 1, 108, 7, FULL, HONEST, 0, 2, 0, 1, 0,
		STATE, 2, 1, HONEST, 0, 3, 2, 8, 0, STATE, 3, 4, DEAD, 1, DEAD, 1, POLL, 1,
		LOST, FULL, SUPPLY,
		/* next_serial becomes 3, the thread table gets a row, and chunk 4 gets serial 0 */
		RING, 0, 64, 0, 4, 3, 0, 0, 0, THREAD, 0, 0, 0, 12, 1, 0, 0, 0, 100, 0, 0, 0,
		100, 0, 0, 0, HEAD, 4, 4, 0, 4, 0, 0, 0, 0,
	};
	uint8_t input[8 + sizeof(steps)] = { 0 };

	memcpy(input + 8, steps, sizeof(steps));
	for (unsigned choices = 0; choices < 32; choices++) {
		input[0] = (uint8_t)choices;
		input[2] = 0x40;
		fuzz_seed(input, sizeof(input));
	}
}
