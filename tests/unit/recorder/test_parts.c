/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests parts of the recorder that need no agent: the ring's memory and the list of modules. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../test_dir.h"
#include "abi/messages.h"
#include "reader/datadir_writer.h"
#include "recorder/modules.h"
#include "recorder/ring_memory.h"

static void ring_free(struct record_ring *r)
{
	munmap(r->map, r->geometry.size);
	close(r->fd);
}

/* record_ring_create() leaves no member of the structure as it was. */
static void ring(void **state)
{
	struct record_ring r;

	memset((void *)&r, 0xff, sizeof(r));
	assert_int_equal(record_ring_create(&r, 4 * PB_CHUNK_SIZE, PB_RING_DISCARD), 0);
	assert_false(r.unlocked);
	assert_int_equal(r.attached, 0);
	assert_false(r.foreign);
	assert_false(r.nested);
	ring_free(&r);
}

/* The number of lost calls includes the calls of threads that have no row in the table. */
static void lost(void **state)
{
	struct record_ring r;

	assert_int_equal(record_ring_create(&r, 4 * PB_CHUNK_SIZE, PB_RING_DISCARD), 0);
	assert_int_equal(record_ring_lost(&r), 0);
	for (uint32_t i = 0; i < 2; i++)
		((struct pb_ring_thread *)record_ring_thread(&r, i))->lost = 10 + i;
	r.map->next_serial = 2;
	r.map->calls_lost = 300;
	assert_int_equal(record_ring_lost(&r), 321);
	ring_free(&r);
}

/* A module that can't be written when it is analysed is written at the end. */
static void late_module(void **state)
{
	struct pb_datadir w = { .modules_fd = -1 };
	struct record_modules m = { 0 };
	struct stat st;
	char err[256];
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_int_equal(record_modules_write(&m, &w), 0);
	struct record_module *e = record_module_get(&m, fd, "/test", err, sizeof(err));
	assert_non_null(e);
	assert_int_equal(record_modules_write(&m, &w), -EBADF);
	w.modules_fd = open(dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(record_modules_write(&m, &w), 0);
		assert_int_equal(fstatat(w.modules_fd, "1", &st, 0), 0);
		assert_int_equal(st.st_size, e->size);
	}
	record_modules_free(&m);
	close(w.modules_fd);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring), cmocka_unit_test(lost), cmocka_unit_test(late_module),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
