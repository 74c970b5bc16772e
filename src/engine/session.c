/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <stddef.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include "engine/session.h"
#include "engine/creds.h"
#include "engine/files.h"
#include "engine/ftrace.h"
#include "engine/thread.h"
#include "arch/x86_64/stop.h"
#include "base/mem.h"
#include "base/sys.h"

#define IDLE_MS		20	/* see pb_creds_start() */
#define BUFFER_SIZE	(sizeof(struct pb_msg) + PB_MSG_MAX)

/* One for the session of the start, which the agent's thread goes on with; one
 * for arrivals, under the text's lock. With room for a NUL. */
static uint8_t buffers[2][BUFFER_SIZE + 16] __attribute__((aligned(16)));

static int send_msg(struct pb_session *s, uint32_t type, const void *a, size_t na,
		    const void *b, size_t nb)
{
	struct pb_msg head = { type, (uint32_t)(na + nb) };
	struct iovec iov[3] = {
		{ &head, sizeof(head) }, { (void *)a, na }, { (void *)b, nb },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 3 };
	long n;

	do
		n = pb_sys(SYS_sendmsg, s->fd, &msg, MSG_NOSIGNAL);
	while (n == -4);
	return n < 0 ? (int)n : 0;
}

/* The message's type, its body in buffer behind the head; *fd: what came with
 * it, or -1. */
static int receive(struct pb_session *s, int *fd, uint32_t *len)
{
	struct iovec iov = { s->buffer, BUFFER_SIZE };
	union { char buf[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } control;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	const struct pb_msg *head = (const void *)s->buffer;
	struct cmsghdr *c;
	long n;

	*fd = -1;
	do
		n = pb_sys(SYS_recvmsg, s->fd, &msg, MSG_CMSG_CLOEXEC);
	while (n == -4);
	if (n < 0)
		return (int)n;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof(int));
	if (n < (long)sizeof(*head) || head->len != (size_t)n - sizeof(*head)) {
		if (*fd >= 0)
			pb_sys(SYS_close, *fd);
		*fd = -1;
		return n ? -71 : -104;
	}
	*len = head->len;
	return (int)head->type;
}

static void *body(const struct pb_session *s)
{
	return s->buffer + sizeof(struct pb_msg);
}

static int map_ring(const struct pb_msg_welcome *w, int fd)
{
	/* aligned to a chunk: positions are masked */
	uint64_t size = w->ring_size, want = size + PB_CHUNK_SIZE;
	long p = pb_sys(SYS_mmap, 0, want, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			-1, 0);
	uint64_t base;
	int err;

	if (pb_sys_failed(p))
		return (int)p;
	base = pb_align_up((uint64_t)p, (uint64_t)PB_CHUNK_SIZE);
	p = pb_sys(SYS_mmap, base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	if (pb_sys_failed(p))
		return (int)p;
	err = pb_ring_attach((void *)base, size, w->nr_threads, w->nr_chunks, w->threads_offset,
			     w->chunks_offset, w->mode);
	if (!err)
		pb_image = w->image;
	return err;
}

static int connect_to(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t n = strlen(path);
	long fd, high, err;

	if (n >= sizeof(addr.sun_path))
		return -36;
	memcpy(addr.sun_path, path, n + 1);
	fd = pb_sys(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (pb_sys_failed(fd))
		return (int)fd;
	/* out of the program's way: it may count on low numbers */
	high = pb_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 200);
	if (!pb_sys_failed(high)) {
		pb_sys(SYS_close, fd);
		fd = high;
	}
	err = pb_sys(SYS_connect, fd, &addr, offsetof(struct sockaddr_un, sun_path) + n + 1);
	if (err) {
		pb_sys(SYS_close, fd);
		return (int)err;
	}
	return (int)fd;
}

static uint32_t peer_pid(int fd)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);

	if (pb_sys(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return 0;
	return (uint32_t)cred.pid;
}

static int fail(struct pb_session *s, int err)
{
	pb_sys(SYS_close, s->fd);
	s->fd = -1;
	return err;
}

int pb_session_open(struct pb_session *s, const char *path, bool first,
		    const char **writes, uint32_t *nr_writes)
{
	struct pb_msg_hello hello = {
		.protocol = PB_PROTOCOL, .pid = (uint32_t)pb_sys(SYS_getpid),
		.tid = (uint32_t)pb_sys(SYS_gettid), .ppid = (uint32_t)pb_sys(SYS_getppid),
		.image = first ? 0 : pb_image, .clock = pb_rdtsc(),
	};
	const struct pb_msg_welcome *w;
	uint32_t len;
	int fd, type, err;

	s->buffer = buffers[!first];
	w = body(s);
	s->fd = connect_to(path);
	if (s->fd < 0)
		return s->fd;
	if (first)
		pb_observer_pid = peer_pid(s->fd);
	err = send_msg(s, PB_MSG_HELLO, &hello, sizeof(hello), NULL, 0);
	if (err)
		return fail(s, err);
	type = receive(s, &fd, &len);
	if (type != PB_MSG_WELCOME || len < sizeof(*w) || (first && fd < 0)) {
		if (fd >= 0)
			pb_sys(SYS_close, fd);
		return fail(s, type < 0 ? type : -71);
	}
	s->flags = w->flags;
	s->serve = w->flags & PB_WELCOME_SERVE;
	if (first) {
		char *copy = pb_arena_alloc(len - sizeof(*w) + 1);

		err = copy ? map_ring(w, fd) : -12;
		if (err) {
			pb_sys(SYS_close, fd);
			return fail(s, err);
		}
		memcpy(copy, w + 1, len - sizeof(*w));
		copy[len - sizeof(*w)] = 0;
		*writes = copy;
		*nr_writes = w->nr_writes < len ? w->nr_writes : 0;
	}
	if (fd >= 0)
		pb_sys(SYS_close, fd);
	return 0;
}

void pb_session_close(struct pb_session *s)
{
	pb_sys(SYS_close, s->fd);
	s->fd = -1;
}

int pb_session_error(struct pb_session *s, int error, const char *what, const char *why)
{
	struct pb_msg_error head = { error, 0 };
	char text[512];
	size_t at = 0;

	pb_put_str(text, sizeof(text), &at, what);
	pb_put_str(text, sizeof(text), &at, ": ");
	pb_put_str(text, sizeof(text), &at, why ? why : "failed");
	return send_msg(s, PB_MSG_ERROR, &head, sizeof(head), text, at + 1);
}

int pb_session_module(struct pb_session *s, const char *path, uint64_t bias,
		      uint64_t link_map, uint32_t flags, struct pb_module **m)
{
	struct pb_msg_module ask = { .image = pb_image, .pid = (uint32_t)pb_sys(SYS_getpid),
				     .bias = bias, .clock = pb_rdtsc(), .flags = flags };
	const struct pb_msg_analysis *a = body(s);
	struct pb_msg_analysis answer;
	const char *why = NULL;
	uint32_t len;
	int fd, type, err = send_msg(s, PB_MSG_MODULE, &ask, sizeof(ask), path, strlen(path) + 1);
	long p;

	*m = NULL;
	if (err)
		return err;
	type = receive(s, &fd, &len);
	if (type == PB_MSG_ERROR)
		return 0;	/* not traced; the observer knows why */
	if (type != PB_MSG_ANALYSIS || len < sizeof(*a) || fd < 0)
		return type < 0 ? type : -71;
	answer = *a;
	p = pb_sys(SYS_mmap, 0, answer.size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	pb_sys(SYS_close, fd);
	if (pb_sys_failed(p))
		return (int)p;
	*m = pb_text_add((void *)p, answer.size, bias, link_map, answer.first_site,
			 answer.module, &why);
	if (!*m) {
		pb_sys(SYS_munmap, p, answer.size);
		if (answer.first_site)
			return pb_session_error(s, -8, path, why);
	}
	return 0;
}

int pb_session_progs(struct pb_session *s, const void **file, uint64_t *size)
{
	const struct pb_msg_progs *answer = body(s);
	uint32_t len;
	int fd, type, err = send_msg(s, PB_MSG_PROGS, NULL, 0, NULL, 0);
	long p;

	if (err)
		return err;
	type = receive(s, &fd, &len);
	if (type != PB_MSG_PROGS || len < sizeof(*answer) || fd < 0)
		return type < 0 ? type : -71;
	*size = answer->size;
	p = pb_sys(SYS_mmap, 0, *size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	pb_sys(SYS_close, fd);
	if (pb_sys_failed(p))
		return (int)p;
	*file = (const void *)p;
	return 0;
}

int pb_session_gone(struct pb_session *s, uint32_t module)
{
	struct pb_msg_gone gone = { .image = pb_image, .pid = (uint32_t)pb_sys(SYS_getpid),
				    .module = module, .clock = pb_rdtsc() };

	return send_msg(s, PB_MSG_GONE, &gone, sizeof(gone), NULL, 0);
}

int pb_session_refused(struct pb_session *s, const struct pb_module *m)
{
	struct { struct pb_msg_refused head; struct { uint32_t func, reason; } list[4096]; } *r =
		(void *)s->buffer;
	uint32_t nr = 0;
	int err = 0;

	if (!m->sites)
		return 0;
	for (uint32_t i = 0; i <= m->analysis->nr_funcs && !err; i++) {
		if (i < m->analysis->nr_funcs && m->sites[i].flags & FTRACE_FL_REFUSED) {
			uint32_t why = (uint32_t)(m->sites[i].flags >> FTRACE_FL_REASON_SHIFT);

			/* the analysis' own are known */
			if (why >= PB_REFUSED_DIFFERS) {
				r->list[nr].func = i;
				r->list[nr++].reason = why;
			}
		}
		if (nr == 4096 || (nr && i == m->analysis->nr_funcs)) {
			r->head = (struct pb_msg_refused){ pb_image, m->number, nr, 0 };
			err = send_msg(s, PB_MSG_REFUSED, r, sizeof(r->head) + nr * 8, NULL, 0);
			nr = 0;
		}
	}
	return err;
}

static int send_ready(struct pb_session *s, const struct pb_ftrace_totals *t, uint64_t patch_ns, uint64_t start_ns)
{
	struct pb_msg_ready ready = {
		.image = pb_image, .pid = (uint32_t)pb_sys(SYS_getpid), .modules = t->modules,
		.sites = t->sites, .patched = t->patched, .refused = t->refused,
		.patch_ns = patch_ns, .start_ns = start_ns,
	};

	return send_msg(s, PB_MSG_READY, &ready, sizeof(ready), NULL, 0);
}

int pb_session_ready(struct pb_session *s, uint64_t start_ns)
{
	struct pb_ftrace_totals t = pb_ftrace_totals();

	return send_ready(s, &t, pb_text_ns, start_ns);
}

int pb_session_arrived(struct pb_session *s, struct pb_module *const *list, uint32_t nr, uint64_t patch_ns)
{
	struct pb_ftrace_totals t = { 0 };

	for (uint32_t i = 0; i < nr; i++)
		pb_ftrace_totals_add(&t, list[i]);
	return t.modules ? send_ready(s, &t, patch_ns, 0) : 0;
}

/* A file message: head, then the path, then (WRITE) the text. */
static int serve_one(struct pb_session *s, uint32_t type, uint32_t len)
{
	static char reply[PB_MSG_MAX];
	struct pb_msg_file head, answer = { 0 };
	char *path = (char *)body(s) + sizeof(head), *text;
	size_t n;

	if (len < sizeof(head) + 1)
		return -71;
	memcpy(&head, body(s), sizeof(head));
	n = len - sizeof(head);
	path[n] = 0;	/* buffer is larger than any message */
	text = path + strlen(path) + 1;
	if (type == PB_MSG_READ) {
		size_t max = sizeof(reply) - sizeof(head);

		pb_text_lock();
		answer.result = (int32_t)pb_file_read(path, reply,
						      head.size < max ? head.size : max, head.offset);
		pb_text_unlock();
		return send_msg(s, PB_MSG_REPLY, &answer, sizeof(answer), reply,
				answer.result > 0 ? (size_t)answer.result : 0);
	}
	if (type != PB_MSG_WRITE || text > path + n || head.size > (size_t)(path + n - text))
		return -71;
	text[head.size] = 0;
	pb_text_lock();
	answer.result = pb_file_write(path, text, head.append, true);
	pb_text_unlock();
	if (answer.result && pb_file_error)
		return send_msg(s, PB_MSG_REPLY, &answer, sizeof(answer), pb_file_error,
				strlen(pb_file_error) + 1);
	if (!answer.result)
		answer.result = (int32_t)head.size;
	return send_msg(s, PB_MSG_REPLY, &answer, sizeof(answer), NULL, 0);
}

/* The program may have closed it, and have another file of that number now. */
static bool still_ours(const struct pb_session *s)
{
	struct stat st;

	return !pb_sys(SYS_fstat, s->fd, &st) && st.st_ino == s->ino && st.st_dev == s->dev;
}

/* 0, or -errno: nothing will come. */
static int wait_for_message(const struct pb_session *s)
{
	struct pollfd p = { s->fd, POLLIN, 0 };
	long n;

	do {
		n = pb_sys(SYS_poll, &p, 1, IDLE_MS);
		pb_creds_serve();
	} while (!n || n == -4);
	return n < 0 ? (int)n : still_ours(s) ? 0 : -9;
}

void pb_session_serve(struct pb_session *s)
{
	struct stat st;

	if (!pb_sys(SYS_fstat, s->fd, &st)) {
		s->ino = st.st_ino;
		s->dev = st.st_dev;
	}
	for (;;) {
		uint32_t len;
		int fd, type = wait_for_message(s);

		if (!type)
			type = receive(s, &fd, &len);
		else
			fd = -1;
		if (fd >= 0)
			pb_sys(SYS_close, fd);
		if (type < 0 || serve_one(s, (uint32_t)type, len))
			break;
	}
	if (still_ours(s))
		pb_session_close(s);
}
