/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests parts of the recorder that need no agent: the ring's memory, the list of modules, the
 * connections, and texts. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "../test_dir.h"
#include "abi/messages.h"
#include "base/base.h"
#include "reader/datadir_writer.h"
#include "recorder/listen.h"
#include "recorder/modules.h"
#include "recorder/recording.h"
#include "recorder/ring_memory.h"
#include "recorder/server.h"
#include "recorder/session_dir.h"
#include "recorder/settings.h"
#include "recorder/snapshot_text.h"

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

/* Connects and waits until the connection was accepted. */
static int connect_to(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct pb_msg m;

	assert_true(strlen(path) < sizeof(a.sun_path));
	strcpy(a.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(recv(fd, &m, sizeof(m), 0), sizeof(m));
	return fd;
}

/* The pipe between the threads is full when the recording ends. */
static void full_pipe(void **state)
{
	struct rlimit files;
	struct record_options o = { 0 };
	struct record_session session;
	struct record_ring r;
	struct record_server s = { .options = &o, .session = &session, .ring = &r };
	int fds[600], nr = 0, size;

	getrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_max < 4096)
		skip();
	files.rlim_cur = 4096;
	setrlimit(RLIMIT_NOFILE, &files);
	setenv("XDG_RUNTIME_DIR", dir, 1);
	assert_int_equal(record_session_open(&session, false), 0);
	assert_int_equal(record_ring_create(&r, 4 * PB_CHUNK_SIZE, PB_RING_DISCARD), 0);
	assert_int_equal(record_listen_start(&s), 0);
	size = fcntl(record_listen_fd(&s), F_SETPIPE_SZ, 4096);
	assert_int_equal(size, 4096);
	alarm(600);
	/* the last connection has no room in the pipe */
	while (nr <= size / (int)sizeof(struct record_peer))
		fds[nr++] = connect_to(session.sock);
	record_listen_stop(&s);
	while (nr)
		close(fds[--nr]);
	record_session_close(&session);
	ring_free(&r);
}

/* With --serve, agents stay connected. An agent that finds no room is counted. */
static void full_server(void **state)
{
	struct rlimit files;
	struct record_options o = { 0 };
	struct record_session session;
	struct record_ring r;
	struct record_server s = { .options = &o, .session = &session, .ring = &r };
	struct pollfd polled[RECORD_MAX_CONNS + 2];
	int fds[RECORD_MAX_CONNS + 3], nr = 0;

	getrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_max < 4096)
		skip();
	files.rlim_cur = 4096;
	setrlimit(RLIMIT_NOFILE, &files);
	setenv("XDG_RUNTIME_DIR", dir, 1);
	assert_int_equal(record_session_open(&session, true), 0);
	assert_int_equal(record_ring_create(&r, 4 * PB_CHUNK_SIZE, PB_RING_DISCARD), 0);
	assert_int_equal(record_listen_start(&s), 0);
	alarm(600);
	while (nr < RECORD_MAX_CONNS + 3) {
		uint64_t known = s.nr_conns + s.nr_refused;

		fds[nr++] = connect_to(session.sock);
		while (s.nr_conns + s.nr_refused == known) {
			unsigned n = record_server_poll(&s, polled);

			assert_true(poll(polled, n, -1) > 0);
			record_server_handle(&s, polled, n);
		}
	}
	assert_int_equal(s.nr_conns, RECORD_MAX_CONNS);
	assert_int_equal(s.nr_refused, 3);
	record_server_close(&s);
	while (nr)
		close(fds[--nr]);
	record_session_close(&session);
	ring_free(&r);
}

/* The text that says which call has asked for a snapshot. Only the low 12 bits of its image's
 * number are known. */
static void asking_calls(void **state)
{
	static const struct { uint64_t us; uint32_t image; const char *text; } cases[] = {
		{ 25120, 1, "site:7 took 25.120 ms" }, { 0, 1, "site:7 was called" },
		{ 1, 2, "a call took 0.001 ms" }, { 0, 2 + 4096, "a call was called" },
		{ 1000, 3 + 4096, "site:7 took 1.000 ms" }, { 1, 4, "a call took 0.001 ms" },
		{ UINT32_MAX - 1, 1, "site:7 took 4294967.294 ms" },
		{ UINT32_MAX, 1, "site:7 took more than 71 min" },
	};
	static const uint32_t images[] = { 1, 2, 2 + 4096, 3 + 4096 };
	char path[100], err[5000], text[300];
	struct pb_datadir w;

	snprintf(path, sizeof(path), "%s/data", dir);
	assert_int_equal(pb_datadir_open(&w, path, err, sizeof(err)), 0);
	for (size_t i = 0; i < pb_array_size(images); i++) {
		struct pb_meta_image m = { .image = images[i] };

		assert_int_equal(pb_datadir_meta(&w, PB_META_IMAGE, &m, sizeof(m), "/x", 3), 0);
	}
	for (size_t i = 0; i < pb_array_size(cases); i++) {
		record_snapshot_call(path, PB_SNAPSHOT_BY(cases[i].us, (uint64_t)cases[i].image, 7),
				     text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
	pb_datadir_close(&w);
	assert_int_equal(pb_datadir_remove(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring), cmocka_unit_test(lost), cmocka_unit_test(late_module),
		cmocka_unit_test(full_pipe), cmocka_unit_test(full_server),
		cmocka_unit_test(asking_calls),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
