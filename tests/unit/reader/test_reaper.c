/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests the thread that looks for dead threads (src/reader/drain_dead.c). */
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "reader/drain_priv.h"

#define SIZE	(2ul * PB_CHUNK_SIZE)
#define NO_SUCH	0x7ffffff0
#define LATE_S	4
#define MOST_S	60	/* less than 20 times LATE_S, much more than two looks need */

static sem_t asked;
static unsigned looks;

/* In the first look, the thread has no processor for a long time. Nothing is found out, so the next
 * look asks again. */
static bool answer(void *arg, struct pb_drain_thread *threads, unsigned nr,
		   const _Atomic bool *stop)
{
	sem_post(&asked);
	if (!looks++)
		sleep(LATE_S);
	return false;
}

/* The pause after a look depends on the processor time that the look needed, not on the time that
 * has passed. */
static void late_look(void **state)
{
	struct pb_drain d = {
		.ring = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
		.geometry = { .nr_threads = 1, .nr_chunks = 1, .nr_buffer = 1,
			      .threads_offset = 4096, .chunks_offset = PB_CHUNK_SIZE,
			      .size = SIZE },
		.threads_alive = answer, .high = 1,
	};
	struct pb_ring_thread *t = (void *)((char *)d.ring + d.geometry.threads_offset);
	struct timespec end;

	assert_true(d.ring != MAP_FAILED);
	assert_int_equal(sem_init(&asked, 0, 0), 0);
	*t = (struct pb_ring_thread){ .serial = 1, .pid = NO_SUCH, .tid = NO_SUCH };
	pb_drain_chunk(&d, 0)->serial = 1;
	pb_drain_chunk(&d, 0)->state = PB_CHUNK_OPEN;
	pb_drain_taken(&d)[0] = 1;
	assert_int_equal(pb_drain_dead_init(&d), 0);
	assert_int_equal(pb_drain_dead_start(&d), 0);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += MOST_S;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(sem_clockwait(&asked, CLOCK_MONOTONIC, &end), 0);
	d.stop = true;
	pb_drain_dead_stop(&d);
	pb_drain_dead_fini(&d);
	munmap(d.ring, SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(late_look) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
