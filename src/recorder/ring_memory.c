/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes the ring: a sparse memfd that can neither shrink nor grow. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/sys.h"
#include "reader/say.h"
#include "recorder/ring_memory.h"
#include "recorder/texts.h"

#define BUFFER_MAX (1ull << 44)
#define RESERVE	16384		/* number of chunks in addition to the buffer: 256 MiB of address
				 * space */
#define WAIT_MS	150		/* how long engines wait for a recorder that sends no heartbeat */

/* Converts WAIT_MS to the units in which an engine waits: ticks and pauses. The number of pauses is
 * scaled by 3/4, because an engine does more between two pauses than the loop in this function.
 * For the pauses, only the fastest round counts, because interrupts slow the other rounds. */
static void measure_wait(struct pb_ring *g)
{
	uint64_t ticks = 0, start = pb_now_ns(), tsc = pb_cpu_counter(), ns, best = UINT64_MAX;
	const int nr = 2000;

	for (int i = 0; i < 8; i++) {
		uint64_t t = pb_cpu_counter();

		for (int k = 0; k < nr; k++)
			pb_cpu_pause();
		ticks = pb_cpu_counter() - t;
		best = ticks < best ? ticks : best;
	}
	ticks = pb_cpu_counter() - tsc;
	ns = pb_now_ns() - start;
	g->wait_ticks = (uint64_t)((double)ticks / (double)(ns | 1) * WAIT_MS * 1e6);
	g->wait_pauses = (uint32_t)((double)g->wait_ticks * nr / (double)(best | 1) * 3 / 4);
}

static void geometry_init(struct pb_ring *g, uint64_t buffer, uint32_t reserve, uint32_t mode)
{
	uint32_t nr_buffer = (uint32_t)(buffer / PB_CHUNK_SIZE);
	uint64_t threads = pb_align_up((uint64_t)sizeof(struct pb_ring), 4096);
	uint64_t chunks = pb_align_up(pb_ring_taken_offset(threads, RECORD_NR_THREADS) +
				      pb_ring_taken_words(nr_buffer + reserve) * 8, PB_CHUNK_SIZE);

	*g = (struct pb_ring){
		.magic = PB_RING_MAGIC,
		.version = PB_RING_VERSION,
		.mode = mode,
		.nr_threads = RECORD_NR_THREADS,
		.nr_chunks = nr_buffer + reserve,
		.nr_buffer = nr_buffer,
		.usable = nr_buffer,
		.threads_offset = threads,
		.chunks_offset = chunks,
	};
	g->size = chunks + (uint64_t)g->nr_chunks * PB_CHUNK_SIZE;
	measure_wait(g);
}

/* Makes the ring's file and maps it. Returns 0 or -errno. On failure, *map is true if the file was
 * made but can't be mapped, and false if the file can't be made. */
static int try_create(struct record_ring *r, bool *map)
{
	int e = 0;

	*map = false;
	r->fd = memfd_create("patchbay-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (r->fd < 0)
		return -errno;
	if (ftruncate(r->fd, (off_t)r->geometry.size) ||
	    fcntl(r->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		e = errno;
	if (!e) {
		*map = true;
		r->map = mmap(NULL, r->geometry.size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
		e = r->map == MAP_FAILED ? errno : 0;
	}
	if (e)
		close(r->fd);
	return -e;
}

static int say_why(const struct record_ring *r, int e, bool map)
{
	unsigned long long mib = (unsigned long long)r->geometry.size >> 20;

	if (map)
		return record_error(
				"can't map a buffer of %llu MiB: %s; choose a smaller one with -b "
				    "(or see ulimit -v)", mib, strerror(e));
	return record_error("no buffer of %llu MiB: %s%s", mib, strerror(e),
			    e == EFBIG ? " (see ulimit -f)" :
			    e != ENOMEM && *pb_say_limit(e) ? pb_say_limit(e) :
			    "; choose a smaller one with -b");
}

int record_ring_create(struct record_ring *r, uint64_t buffer, uint32_t mode)
{
	uint32_t reserve = RESERVE;
	struct stat st;
	bool map;
	int ret;

	*r = (struct record_ring){ 0 };
	if (buffer < 4 * PB_CHUNK_SIZE || buffer > BUFFER_MAX)
		return record_error("-b %llu: the buffer must be between 64K and 16T",
				    (unsigned long long)buffer);
	/* If a limit of memory or of file sizes is too low for the ring, the loop tries smaller
	 * reserves, and at last no reserve, before it gives up. */
	for (;; reserve /= 4) {
		geometry_init(&r->geometry, buffer, reserve, mode);
		ret = try_create(r, &map);
		if (!ret || !reserve)
			break;
	}
	if (ret)
		return say_why(r, -ret, map);
	if (fstat(r->fd, &st)) {
		ret = errno;
		close(r->fd);
		return record_error("no shared memory: %s", strerror(ret));
	}
	r->dev = st.st_dev;
	r->ino = st.st_ino;
	*r->map = r->geometry;
	return 0;
}

const struct pb_ring_thread *record_ring_thread(const struct record_ring *r, uint32_t i)
{
	return (const void *)((const char *)r->map + r->geometry.threads_offset +
			      i * sizeof(struct pb_ring_thread));
}

uint32_t record_ring_nr_threads(const struct record_ring *r)
{
	uint32_t n = __atomic_load_n(&r->map->next_serial, __ATOMIC_ACQUIRE);

	return n < r->geometry.nr_threads ? n : r->geometry.nr_threads;
}

uint64_t record_ring_bytes(const struct record_ring *r)
{
	const struct pb_ring *g = &r->geometry;
	const uint64_t *taken = (const void *)((const char *)r->map +
			pb_ring_taken_offset(g->threads_offset, g->nr_threads));
	uint64_t nr = __atomic_load_n(&r->map->chunks_overwritten, __ATOMIC_RELAXED);

	for (uint64_t i = 0; i < pb_ring_taken_words(g->nr_chunks); i++)
		nr += (uint64_t)__builtin_popcountll(__atomic_load_n(&taken[i], __ATOMIC_RELAXED));
	return nr * PB_CHUNK_SIZE;
}

uint64_t record_ring_lost(const struct record_ring *r)
{
	const volatile struct pb_ring *ring = r->map;
	uint64_t lost = ring->calls_lost, late = ring->calls_late, regained = ring->calls_regained;

	for (uint32_t i = 0, n = record_ring_nr_threads(r); i < n; i++) {
		const volatile struct pb_ring_thread *t = record_ring_thread(r, i);

		lost += t->lost;
		late += t->late;
		regained += t->regained;
	}
	return lost + pb_ring_open_late(late, regained);
}

struct pb_msg_ring record_ring_message(const struct record_ring *r)
{
	const struct pb_ring *g = &r->geometry;

	return (struct pb_msg_ring){
		.mode = g->mode, .nr_buffer = g->nr_buffer, .ring_size = g->size,
		.nr_threads = g->nr_threads, .nr_chunks = g->nr_chunks,
		.threads_offset = g->threads_offset, .chunks_offset = g->chunks_offset,
	};
}
