/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fuzzes the recorder's server. Agents and clients of `patchbay control` connect, send any messages
 * in any order, disconnect, or don't read the answers. The server must continue to serve, and must
 * write a readable meta file.
 *
 * The input is a sequence of steps. A step has a byte for its kind and a byte for the connection.
 * If the step is a message, these follow: the message's type, a byte that may falsify the message's
 * length, the body's length, and the body.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "recorder/modules.h"
#include "recorder/ring_memory.h"
#include "recorder/server.h"
#include "recorder/session_dir.h"
#include "recorder/settings.h"
#include "driver.h"
#include "module/module.h"
#include "module/analysis/analyse.h"
#include "module/analysis/stages.h"
#include "reader/data.h"
#include "recorder/recording.h"
#include "seeds.h"

#define PEERS	12

enum step { AGENT, CLIENT, LEAVE, MESSAGE, LISTEN, NR_STEPS };

static struct record_ring ring;
static struct record_session session;
static struct pb_datadir datadir;
static struct record_options options = {
	.quiet = true, .welcome_flags = PB_WELCOME_SERVE,
	.writes = { .buf = (char *)"current_tracer\0>\0nop", .len = 21, .nr = 1 },
};
static struct record_modules modules = { .options = &options, .datadir = &datadir };
static struct record_server server;
static int peers[PEERS];
static int analysis = -1;

/* Replaces the module analysis, which has its own fuzzers. If the path ends with 'x', fails.
 * Otherwise returns the same analysis for each path. */
int __wrap_pb_module_open(int elf_fd, const char *path, const struct pb_module_options *o,
			  char *err, size_t errlen);
int __wrap_pb_module_open(int elf_fd, const char *path, const struct pb_module_options *o,
			  char *err, size_t errlen)
{
	char self[64];

	if (path[strlen(path) - 1] == 'x') {
		snprintf(err, errlen, "is not what it seems");
		return -ENOEXEC;
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", analysis);
	return open(self, O_RDONLY | O_CLOEXEC);
}

/* Poisons the rest of the buffer, so that ASan sees reads past a message's end. */
void __asan_poison_memory_region(const volatile void *p, size_t size) __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void *p, size_t size) __attribute__((weak));
ssize_t __real_recv(int fd, void *buf, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *buf, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *buf, size_t size, int flags)
{
	ssize_t n;

	if (__asan_unpoison_memory_region)
		__asan_unpoison_memory_region(buf, size);
	n = __real_recv(fd, buf, size, flags);
	if (n > 0 && __asan_poison_memory_region)
		__asan_poison_memory_region((char *)buf + n, size - (size_t)n);
	return n;
}

static void make_analysis(const char *path, const uint8_t *data, size_t size)
{
	uint8_t *copy = analysis < 0 ? malloc(size) : NULL, *blob;
	size_t blob_size;
	const char *why;

	if (!copy)
		return;
	memcpy(copy, data, size);
	if (pb_analyse_memory(copy, size, "lib.so", 0, &blob, &blob_size, &why))
		return;
	analysis = memfd_create("analysis", MFD_CLOEXEC);
	if (write(analysis, blob, blob_size) != (ssize_t)blob_size)
		err(2, "analysis");
	free(blob);
}

/* --- set-up ------------------------------------------------------------- */

static int listen_at(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	unlink(path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, PEERS))
		err(2, "%s", path);
	return fd;
}

static void set_up(void)
{
	static char dir[4096];
	char error[5000];

	if (!ring.map) {
		if (record_ring_create(&ring, 8 * PB_CHUNK_SIZE, PB_RING_DISCARD))
			errx(2, "no ring");
		fuzz_each_elf(60000, make_analysis);
		if (analysis < 0)
			errx(2, "no analysis");
		snprintf(dir, sizeof(dir), "%s/messages", fuzz_directory());
		snprintf(session.sock, sizeof(session.sock), "%.90s/sock", fuzz_directory());
		snprintf(session.control, sizeof(session.control), "%.90s/control",
			 fuzz_directory());
		session.listen_fd = listen_at(session.sock);
		session.control_fd = listen_at(session.control);
	}
	pb_datadir_remove(dir);
	if (pb_datadir_open(&datadir, dir, error, sizeof(error)))
		errx(2, "%s", error);
	server = (struct record_server){
		.options = &options, .session = &session, .ring = &ring, .datadir = &datadir,
		.modules = &modules,
	};
	memset(peers, -1, sizeof(peers));
}

/* --- agents and clients ------------------------------------------------- */

static void serve(void)
{
	struct pollfd fds[PEERS + 8];

	/* serves several times, since one round may leave work for the next round */
	for (int i = 0; i < 3; i++) {
		unsigned nr = record_server_poll(&server, fds);

		FUZZ_CHECK(nr <= pb_array_size(fds));
		if (poll(fds, nr, 0) <= 0)
			break;
		record_server_handle(&server, fds, nr);
	}
}

static int connect_to(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void leave(int *peer)
{
	if (*peer >= 0)
		close(*peer);
	*peer = -1;
}

/* Reads all messages that the server sent, and checks their length fields. */
static void listen_to(int peer)
{
	static _Alignas(8) char buf[sizeof(struct pb_msg) + PB_MSG_MAX + 8];
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u;
	struct iovec iov = { buf, sizeof(buf) };
	struct pb_msg m;

	for (;;) {
		struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &u,
				    .msg_controllen = sizeof(u) };
		ssize_t n = recvmsg(peer, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&h) : NULL;
		int fd = -1;

		if (n <= 0)
			return;
		if (c)
			memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		memcpy(&m, buf, sizeof(m));
		FUZZ_CHECK((size_t)n >= sizeof(m) && m.len == (size_t)n - sizeof(m));
		FUZZ_CHECK(m.type != PB_MSG_RING || fd >= 0);
		FUZZ_CHECK(m.type != PB_MSG_ERROR || m.len >= sizeof(struct pb_msg_error));
		if (fd >= 0)
			close(fd);
	}
}

/* Sends a message. Its type, a byte `length` and its body come from the input. If `length` is 239,
 * the message is cut off. If `length` is from 240 to 254, `length` - 247 is added to the message's
 * length field. If `length` is 255, the message has the longest allowed length or a byte more.
 * Other values change nothing. */
static void send_message(int peer, struct fuzz_input *in)
{
	static char buf[sizeof(struct pb_msg) + PB_MSG_MAX + 64];
	struct pb_msg m = { .type = (uint32_t)fuzz_take(in, 1) };
	unsigned length = (unsigned)fuzz_take(in, 1);
	size_t size;
	const uint8_t *body = fuzz_take_block(in, 1, &size);
	size_t whole = sizeof(m) + size;

	memset(buf, 0, sizeof(m) + size + 64);
	memcpy(buf + sizeof(m), body, size);
	if (length == 255)		/* the longest allowed length, or a byte more */
		whole = sizeof(m) + PB_MSG_MAX + (size & 1);
	m.len = (uint32_t)(whole - sizeof(m));
	if (length >= 240 && length < 255)
		m.len += length - 247;
	if (length == 239)
		whole = size % (sizeof(m) + 1);
	memcpy(buf, &m, sizeof(m));
	send(peer, buf, whole, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void step(struct fuzz_input *in)
{
	enum step what = (enum step)(fuzz_take(in, 1) % NR_STEPS);
	int *peer = &peers[fuzz_take(in, 1) % PEERS];

	switch (what) {
	case AGENT: case CLIENT:
		leave(peer);
		*peer = connect_to(what == AGENT ? session.sock : session.control);
		break;
	case LEAVE:
		leave(peer);
		break;
	case LISTEN:
		if (*peer >= 0)
			listen_to(*peer);
		return;
	default:
		if (*peer >= 0)
			send_message(*peer, in);
	}
	serve();
}

static void finish(void)
{
	char error[5000];
	struct pb_data *d;

	for (unsigned i = 0; i < PEERS; i++) {
		if (peers[i] >= 0)
			listen_to(peers[i]);
		leave(&peers[i]);
	}
	serve();
	FUZZ_CHECK(!server.nr_conns);
	record_server_close(&server);
	record_modules_free(&modules);
	pb_datadir_close(&datadir);
	d = pb_data_open(datadir.dir, 0, error, sizeof(error));
	FUZZ_CHECK(d && !d->damaged);
	pb_data_close(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };

	set_up();
	while (in.left)
		step(&in);
	finish();
	return 0;
}

/* --- inputs ------------------------------------------------------------- */

static size_t put_message(uint8_t *to, uint8_t peer, uint8_t type, const void *body, size_t len)
{
	to[0] = MESSAGE;
	to[1] = peer;
	to[2] = type;
	to[3] = 0;
	to[4] = (uint8_t)len;
	memcpy(to + 5, body, len);
	return 5 + len;
}

/* Makes a message of a random type, with small or extreme values. It has the type's usual size, or
 * is up to 59 bytes longer. */
static size_t any_message(struct fuzz_rng *r, uint8_t *to)
{
	static const uint8_t sizes[] = {
		[PB_MSG_HELLO] = sizeof(struct pb_msg_hello), [PB_MSG_WELCOME] = 48,
		[PB_MSG_MODULE] = sizeof(struct pb_msg_module) + 8,
		[PB_MSG_REFUSED] = sizeof(struct pb_msg_refused) + 16,
		[PB_MSG_READY] = sizeof(struct pb_msg_ready), [PB_MSG_ERROR] = 30,
		[PB_MSG_GONE] = sizeof(struct pb_msg_gone), [PB_MSG_WRITE] = 40, [PB_MSG_READ] = 40,
		[PB_MSG_REPLY] = 40,
	};
	uint8_t type = (uint8_t)fuzz_below(r, sizeof(sizes)), body[250] = { 0 };
	size_t len = sizes[type] + (fuzz_random(r) % 4 ? 0 : fuzz_below(r, 60));

	for (size_t i = 0; i + 4 <= len; i += 4) {
		uint32_t v = (uint32_t)(fuzz_random(r) % 4 ? fuzz_below(r, 4) : fuzz_nasty(r));

		memcpy(body + i, &v, 4);
	}
	if (type == PB_MSG_HELLO)
		body[0] = PB_PROTOCOL;
	if (type == PB_MSG_MODULE)
		strcpy((char *)body + sizeof(struct pb_msg_module), "/etc/os-release");
	return put_message(to, (uint8_t)fuzz_below(r, 4), type, body, len);
}

size_t fuzz_mutate(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	uint8_t new[300];
	struct fuzz_rng r;
	size_t n = 2, at;

	fuzz_rng_seed(&r, seed);
	at = fuzz_below(&r, size + 1);
	if (fuzz_random(&r) % 3) {
		n = any_message(&r, new);
	} else {
		new[0] = (uint8_t)fuzz_below(&r, NR_STEPS);
		new[1] = (uint8_t)fuzz_below(&r, 4);
	}
	if (n > max - size)
		return size;
	memmove(data + at + n, data + at, size - at);
	memcpy(data + at, new, n);
	return size + n;
}

void fuzz_seeds(void)
{
	struct pb_msg_hello hello = { .protocol = PB_PROTOCOL, .pid = (uint32_t)getpid() };
	struct pb_msg_hello again = { .protocol = PB_PROTOCOL, .image = 1 };
	struct { struct pb_msg_module m; char path[16]; } exe = { .m.flags = PB_MODULE_EXE };
	struct { struct pb_msg_module m; char path[16]; } lib = { .path = "/etc/os-release" };
	struct pb_msg_ready ready = { .image = 1, .modules = 2 };
	struct { struct pb_msg_refused r; uint32_t list[4]; } refused = {
		.r = { .image = 1, .module = 1, .nr = 2 }, .list = { 1, 2, 3, 4 } };
	struct { struct pb_msg_error e; char text[16]; } error = { { -22, 0 }, "a filter" };
	struct pb_msg_gone gone = { .image = 1, .module = 1 };
	struct { struct pb_msg_file f; char path[16]; } file = { { .size = 0 }, "tracing_on" };
	uint8_t v[2000];
	size_t n = 0;

#define STEP(what, peer) do { v[n++] = (what); v[n++] = (peer); } while (0)
#define SEND(peer, type, body, len) do { n += put_message(v + n, peer, type, body, len); } while (0)
	STEP(AGENT, 0);
	SEND(0, PB_MSG_HELLO, &hello, sizeof(hello));
	SEND(0, PB_MSG_MODULE, &exe, sizeof(exe.m) + 1);
	SEND(0, PB_MSG_MODULE, &lib, sizeof(lib));
	SEND(0, PB_MSG_REFUSED, &refused, sizeof(refused));
	SEND(0, PB_MSG_ERROR, &error, sizeof(error));
	SEND(0, PB_MSG_READY, &ready, sizeof(ready));
	fuzz_seed(v, n);
	STEP(AGENT, 1);
	SEND(1, PB_MSG_HELLO, &again, sizeof(again));
	SEND(1, PB_MSG_GONE, &gone, sizeof(gone));
	STEP(CLIENT, 2);
	SEND(2, PB_MSG_HELLO, &hello, sizeof(hello));
	SEND(2, PB_MSG_WRITE, &file, sizeof(file));
	SEND(0, PB_MSG_REPLY, &file, sizeof(file.f));
	SEND(2, PB_MSG_READ, &file, sizeof(file));
	STEP(CLIENT, 3);
	SEND(3, PB_MSG_HELLO, &hello, sizeof(hello));
	SEND(3, PB_MSG_READ, &file, sizeof(file));
	STEP(LISTEN, 2);
	SEND(0, PB_MSG_REPLY, &file, sizeof(file.f));
	fuzz_seed(v, n);
	STEP(LEAVE, 2);
	STEP(LEAVE, 0);
	STEP(LISTEN, 3);
	fuzz_seed(v, n);
}
