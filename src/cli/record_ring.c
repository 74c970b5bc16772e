/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes the ring: a sparse memfd that can neither shrink nor grow. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/record.h"

#define BUFFER_MAX (1ull << 44)

static void geometry_init(struct pb_ring *g, uint64_t buffer, uint32_t mode)
{
	uint64_t threads = pb_align_up((uint64_t)sizeof(struct pb_ring), 4096);
	uint64_t chunks = pb_align_up(threads + (uint64_t)RECORD_NR_THREADS *
				      sizeof(struct pb_ring_thread), PB_CHUNK_SIZE);

	*g = (struct pb_ring){
		.magic = PB_RING_MAGIC,
		.version = PB_RING_VERSION,
		.mode = mode,
		.nr_threads = RECORD_NR_THREADS,
		.nr_chunks = (uint32_t)(buffer / PB_CHUNK_SIZE),
		.threads_offset = threads,
		.chunks_offset = chunks,
	};
	g->size = chunks + (uint64_t)g->nr_chunks * PB_CHUNK_SIZE;
}

/* A limit of file sizes is an error here, not a signal. */
static int set_size(int fd, uint64_t size)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, old;
	int ret;

	sigaction(SIGXFSZ, &ignore, &old);
	ret = ftruncate(fd, (off_t)size);
	sigaction(SIGXFSZ, &old, NULL);
	return ret;
}

int record_ring_create(struct record_ring *r, uint64_t buffer, uint32_t mode)
{
	struct stat st;
	void *map;

	if (buffer < 4 * PB_CHUNK_SIZE || buffer > BUFFER_MAX)
		return record_error("-b %llu: the buffer must be between 64K and 16T",
				    (unsigned long long)buffer);
	geometry_init(&r->geometry, buffer, mode);
	r->fd = memfd_create("patchbay-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (r->fd < 0)
		return record_error("no shared memory: memfd_create: %s", strerror(errno));
	if (set_size(r->fd, r->geometry.size) || fstat(r->fd, &st) ||
	    fcntl(r->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		int e = errno;

		close(r->fd);
		return record_error("no buffer of %llu MiB: %s%s",
				    (unsigned long long)r->geometry.size >> 20, strerror(e),
				    e == EFBIG ? " (see ulimit -f)" : "; choose a smaller one with -b");
	}
	map = mmap(NULL, r->geometry.size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (map == MAP_FAILED) {
		int e = errno;

		close(r->fd);
		return record_error("can't map a buffer of %llu MiB: %s; choose a smaller one with -b "
				    "(or see ulimit -v)",
				    (unsigned long long)r->geometry.size >> 20, strerror(e));
	}
	r->map = map;
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
