/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A preloaded library that replaces the agent in tests of the recorder. It sends the messages of
 * abi/messages.h and fills chunks by the rules of abi/ring.h, but traces nothing. The environment
 * variable FAKE_AGENT is a list of actions, separated by commas:
 *
 *   chunks=N   fill N chunks, each with WORDS_FULL leaf records
 *   flood=MS   fill chunks for MS milliseconds, as fast as they become free
 *   open       leave one chunk OPEN with three leaves and a hole (a word that is
 *              never written)
 *   held       like "open", but leave the chunk HELD
 *   threads=N  make N threads, at most 64. Each thread does the actions above with its own chunks
 *   lost=N     report N lost calls for each thread
 *   error      send ERROR after WELCOME
 *   leave      ask for a module, send ERROR, and leave without having read the answer
 *   garbage    send invalid messages, then continue as usual
 *   daemon=1   fork a child that outlives the program. When the recorder has reported that it
 *              continues to record the child, the child fills one chunk
 *   quiet      never connect
 *
 * The library prints nothing, and doesn't change the program's exit status.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "abi/messages.h"
#include "abi/record.h"
#include "abi/ring.h"
#include "base/base.h"

#define WORDS_FULL 2000

static struct pb_msg_welcome welcome;
static struct pb_msg_ring geometry;
static char *ring_map;
static int quota, flood_ms, lost;
static bool leave_open, leave_held;

static int option(const char *name, int none)
{
	const char *p = getenv("FAKE_AGENT");
	size_t len = strlen(name);

	for (; p && *p; p += strcspn(p, ","), p += *p == ',')
		if (!strncmp(p, name, len) && (p[len] == '=' || p[len] == ',' || !p[len]))
			return p[len] == '=' ? atoi(p + len + 1) : 1;
	return none;
}

static int send_body(int fd, uint32_t type, const void *body, size_t len)
{
	char buf[4096];
	struct pb_msg m = { type, (uint32_t)len };

	memcpy(buf, &m, sizeof(m));
	memcpy(buf + sizeof(m), body, len);
	return send(fd, buf, sizeof(m) + len, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/* Receives a message into buf. *out becomes the descriptor that came with the message, or -1. */
static int receive(int fd, char *buf, size_t size, int *out)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u = { 0 };
	struct iovec iov = { buf, size };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &u,
			    .msg_controllen = sizeof(u) };
	ssize_t n = recvmsg(fd, &h, MSG_CMSG_CLOEXEC);
	struct cmsghdr *cm = n > 0 ? CMSG_FIRSTHDR(&h) : NULL;

	*out = -1;
	if (cm)
		memcpy(out, CMSG_DATA(cm), sizeof(int));
	return n < (ssize_t)sizeof(struct pb_msg) ? -1 : 0;
}

static void send_garbage(const char *path)
{
	static const uint32_t types[] = { PB_MSG_HELLO, PB_MSG_MODULE, PB_MSG_REFUSED, PB_MSG_READY,
					  PB_MSG_ERROR, PB_MSG_GONE, PB_MSG_REPLY, PB_MSG_WRITE,
					  PB_MSG_READ, 0, 12345 };
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char body[600];

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	srand(1);
	for (int i = 0; i < 500; i++) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

		if (connect(fd, (struct sockaddr *)&a, sizeof(a))) {
			close(fd);
			continue;
		}
		for (int k = 0; k < 4; k++) {
			struct pb_msg_hello h = { .protocol = PB_PROTOCOL, .image = 1 };

			for (size_t b = 0; b < sizeof(body); b++)
				body[b] = (char)rand();
			if (i & 1 && !k)
				send_body(fd, PB_MSG_HELLO, &h, sizeof(h));
			if (i % 3)
				send_body(fd, types[rand() % pb_array_size(types)], body,
					  (size_t)rand() % sizeof(body));
			else
				send(fd, body, (size_t)rand() % sizeof(body), MSG_NOSIGNAL);
		}
		close(fd);
	}
}

static void send_error(int fd)
{
	struct {
		struct pb_msg_error e;
		char text[40];
	} e = { { -EINVAL, 0 }, "set_ftrace_filter: \033nothing" };

	send_body(fd, PB_MSG_ERROR, &e, sizeof(e));
}

/* Leaves while an answer is unread. The recorder, which is the parent, is stopped meanwhile, so it
 * reads the last message only after the connection has ended. */
static void leave(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };

	poll(&p, 1, -1);
	kill(getppid(), SIGSTOP);
	send_error(fd);
	close(fd);
	kill(getppid(), SIGCONT);
}

static int hello(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	static char buf[PB_MSG_MAX + sizeof(struct pb_msg)];
	struct pb_msg_hello h = { PB_PROTOCOL, (uint32_t)getpid(), (uint32_t)getpid(),
				  (uint32_t)getppid(), 0, 0, pb_cpu_counter() };
	struct {
		struct pb_msg_module m;
		char path[64];
	} mod = { .m = { .pid = (uint32_t)getpid(), .flags = PB_MODULE_EXE } };
	int ring_fd, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) ||
	    receive(fd, buf, sizeof(buf), &ring_fd) || ((struct pb_msg *)buf)->type != PB_MSG_RING)
		return -1;
	memcpy(&geometry, buf + sizeof(struct pb_msg), sizeof(geometry));
	ring_map = mmap(NULL, geometry.ring_size, PROT_READ | PROT_WRITE, MAP_SHARED, ring_fd, 0);
	close(ring_fd);
	if (send_body(fd, PB_MSG_HELLO, &h, sizeof(h)) || receive(fd, buf, sizeof(buf), &ring_fd) ||
	    ((struct pb_msg *)buf)->type != PB_MSG_WELCOME)
		return -1;
	memcpy(&welcome, buf + sizeof(struct pb_msg), sizeof(welcome));
	if (option("error", 0))
		send_error(fd);
	mod.m.image = welcome.image;
	send_body(fd, PB_MSG_MODULE, &mod, sizeof(mod.m) + 1);
	if (option("leave", 0)) {
		leave(fd);
		return -1;
	}
	receive(fd, buf, sizeof(buf), &ring_fd);
	if (ring_fd >= 0)
		close(ring_fd);
	struct pb_msg_ready r = { .image = welcome.image, .pid = (uint32_t)getpid(), .modules = 1 };
	send_body(fd, PB_MSG_READY, &r, sizeof(r));
	close(fd);
	__atomic_fetch_add(&((struct pb_ring *)ring_map)->processes, 1, __ATOMIC_RELAXED);
	return ring_map == MAP_FAILED ? -1 : 0;
}

static struct pb_chunk *chunk_open(void)
{
	struct pb_ring *ring = (void *)ring_map;

	for (;;) {
		if (ring->closing)
			return NULL;
		for (uint32_t i = 0; i < geometry.nr_buffer; i++) {
			uint32_t k = __atomic_fetch_add(&ring->next_chunk, 1, __ATOMIC_RELAXED) %
				     geometry.nr_buffer;
			uint32_t free_state = geometry.mode == PB_RING_OVERWRITE && i % 2 ?
					      PB_CHUNK_FULL : PB_CHUNK_FREE;
			struct pb_chunk *c = (void *)(ring_map + geometry.chunks_offset +
						      (uint64_t)k * PB_CHUNK_SIZE);

			if (__atomic_compare_exchange_n(&c->state, &free_state, PB_CHUNK_OPEN,
							false, __ATOMIC_ACQ_REL,
							__ATOMIC_RELAXED)) {
				uint64_t *taken = (void *)(ring_map + pb_ring_taken_offset(
					geometry.threads_offset, geometry.nr_threads));

				__atomic_fetch_or(&taken[k / 64], 1ull << k % 64, __ATOMIC_RELAXED);
				return c;
			}
		}
		usleep(100);
	}
}

static struct pb_chunk *chunk_new(uint32_t serial, uint64_t seq)
{
	struct pb_chunk *c = chunk_open();

	if (!c)
		return NULL;
	if (c->uses)
		memset(c + 1, 0, PB_CHUNK_SIZE - sizeof(*c));
	c->uses++;
	c->serial = serial;
	c->image = welcome.image;
	c->pid = (uint32_t)getpid();
	c->tid = (uint32_t)syscall(SYS_gettid);
	c->seq = seq;
	c->start = pb_cpu_counter();
	c->buffer = 0;
	c->used = 0;
	return c;
}

static void fill(struct pb_chunk *c, const uint64_t *words, uint32_t nr)
{
	memcpy(c + 1, words, nr * 8ul);
	c->used = nr * 8;
	__atomic_store_n(&c->state, PB_CHUNK_FULL, __ATOMIC_RELEASE);
}

static void *produce(void *arg)
{
	struct pb_ring *ring = (void *)ring_map;
	uint64_t words[WORDS_FULL], seq = 0, end = pb_cpu_counter();
	uint32_t serial = __atomic_fetch_add(&ring->next_serial, 1, __ATOMIC_ACQ_REL) + 1;
	struct pb_ring_thread *t = (void *)(ring_map + geometry.threads_offset);
	struct timespec a, b;

	t += serial - 1;
	t->pid = (uint32_t)getpid();
	t->tid = (uint32_t)syscall(SYS_gettid);
	t->image = welcome.image;
	t->start = end;
	t->lost = (uint64_t)lost;
	t->serial = serial;
	for (int i = 0; i < WORDS_FULL; i++)
		words[i] = 1u << PB_SITE_SHIFT | PB_TAG_LEAF;
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < quota || flood_ms; i++) {
		struct pb_chunk *c = chunk_new(serial, seq++);

		if (!c)
			break;
		fill(c, words, WORDS_FULL);
		clock_gettime(CLOCK_MONOTONIC, &b);
		if (flood_ms &&
		    (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 > flood_ms)
			break;
	}
	struct pb_chunk *c = leave_open || leave_held ? chunk_new(serial, seq++) : NULL;
	if (c) {
		memcpy(c + 1, words, 16);
		memcpy((uint64_t *)(c + 1) + 3, words, 8);
		if (leave_held)
			__atomic_store_n(&c->state, PB_CHUNK_HELD, __ATOMIC_RELEASE);
	}
	return arg;
}

/* Returns whether the recorder has printed the text `what`. The recorder and the program have the
 * same file as stderr. */
static bool is_printed(const char *what)
{
	int fd = open("/proc/self/fd/2", O_RDONLY | O_CLOEXEC);
	char text[4096];
	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	text[n > 0 ? n : 0] = 0;
	return strstr(text, what);
}

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("PATCHBAY_SESSION");
	pthread_t threads[64];
	int nr = option("threads", 1);

	if (!path || option("quiet", 0) || nr > 64)
		return;
	alarm(600);	/* without the alarm, a writer would wait forever for a killed recorder */
	if (option("garbage", 0))
		send_garbage(path);
	if (hello(path))
		return;
	quota = option("chunks", 0);
	flood_ms = option("flood", 0);
	lost = option("lost", 0);
	leave_open = option("open", 0);
	leave_held = option("held", 0);
	for (int i = 0; i < nr; i++)
		pthread_create(&threads[i], NULL, produce, NULL);
	for (int i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	if (option("daemon", 0) && !fork()) {
		setsid();
		for (int i = 0; i < 3000 && !is_printed("continues and is recorded"); i++)
			usleep(10000);
		quota = 1;
		flood_ms = 0;
		produce(NULL);
		_exit(0);
	}
}
