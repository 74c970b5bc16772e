/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The client of a recorder's `control` socket. Reads and writes a running program's control files,
 * asks for a detach or for the status, and gets the descriptors of the ring and the data. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/messages.h"
#include "control/control.h"

#define TIMEOUT_S	10
#define DETACH_TRIES	12	/* pb_control_detach() waits at most this many times TIMEOUT_S */
#define ASK_TRIES	6	/* the same for reads and writes: on a busy machine the agent's
				 * thread may get no processor for seconds */
#define FILE_MAX	(256u << 20)

struct pb_control {
	uint32_t pid, image, recorder;
	int fd;
	int tries;			/* a read or write waits this many times TIMEOUT_S */
	_Alignas(8) char buf[sizeof(struct pb_msg) + PB_MSG_MAX];
};

static int send_message(struct pb_control *c, uint32_t type, const void *body, size_t len,
			const char *path, const char *value, size_t value_len)
{
	size_t path_len = path ? strlen(path) + 1 : 0;
	struct pb_msg m = { .type = type, .len = (uint32_t)(len + path_len + value_len) };
	struct iovec iov[4] = {
		{ &m, sizeof(m) }, { (void *)body, len }, { (void *)path, path_len },
		{ (void *)value, value_len },
	};
	struct msghdr h = { .msg_iov = iov, .msg_iovlen = 4 };

	if (len + path_len + value_len > PB_MSG_MAX)
		return -EMSGSIZE;
	return sendmsg(c->fd, &h, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Receives a message. Waits at most `tries` times TIMEOUT_S. If fd isn't NULL, *fd is the
 * descriptor that came with the message, or -1. */
static ssize_t receive_bytes(struct pb_control *c, int tries, int *fd)
{
	struct iovec iov = { c->buf, sizeof(c->buf) };
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u = { 0 };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (fd) {
		*fd = -1;
		h.msg_control = &u;
		h.msg_controllen = sizeof(u.buf);
	}
	do
		n = recvmsg(c->fd, &h, MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || (errno == EAGAIN && --tries)));
	struct cmsghdr *cm = fd && n >= 0 ? CMSG_FIRSTHDR(&h) : NULL;
	if (cm && cm->cmsg_level == SOL_SOCKET && cm->cmsg_type == SCM_RIGHTS &&
	    cm->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(cm), sizeof(*fd));
	return n;
}

/* Receives an answer. Returns its type, or -errno. After an error, err has a text. An ERROR message
 * contains the errno and the text. -ETIMEDOUT: there was no answer within `tries` times TIMEOUT_S.
 * If there is no answer, the connection is shut down. Otherwise an answer that comes later would be
 * taken for the answer to the next request. */
static int receive(struct pb_control *c, int tries, int *fd, char *err, size_t errlen)
{
	struct pb_msg *m = (struct pb_msg *)c->buf;
	ssize_t n = receive_bytes(c, tries, fd);

	if (n < 0 || (size_t)n < sizeof(*m) || m->len != (size_t)n - sizeof(*m)) {
		int ret = !n ? -EPIPE : n > 0 ? -EPROTO : errno == EAGAIN ? -ETIMEDOUT : -errno;

		if (ret == -ETIMEDOUT)
			snprintf(err, errlen, "no answer within %d s", tries * TIMEOUT_S);
		else
			snprintf(err, errlen, "%s", ret == -EPIPE ? "the recorder ended" :
				 strerror(-ret));
		shutdown(c->fd, SHUT_RDWR);
		return ret;
	}
	if (m->type != PB_MSG_ERROR)
		return (int)m->type;
	struct pb_msg_error *e = (void *)(m + 1);
	if (m->len < sizeof(*e)) {
		snprintf(err, errlen, "the recorder's error message is cut off");
		return -EPROTO;
	}
	snprintf(err, errlen, "%.*s", (int)(m->len - sizeof(*e)), (char *)(e + 1));
	return e->error < 0 ? e->error : -EIO;
}

static void take_ready(struct pb_control *c)
{
	const struct pb_msg *m = (const void *)c->buf;
	const struct pb_msg_ready *r = (const void *)(m + 1);
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);

	c->pid = m->len >= sizeof(*r) ? r->pid : 0;
	c->image = m->len >= sizeof(*r) ? r->image : 0;
	getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	c->recorder = (uint32_t)cred.pid;
}

uint32_t pb_control_pid(const struct pb_control *c)
{
	return c->pid;
}

uint32_t pb_control_image(const struct pb_control *c)
{
	return c->image;
}

uint32_t pb_control_recorder(const struct pb_control *c)
{
	return c->recorder;
}

/* Connects to the recorder. Returns 0 or -errno. -EAGAIN: the recorder accepts no connection within
 * TIMEOUT_S. */
static int connect_to(struct pb_control *c, const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct timeval tv = { .tv_sec = TIMEOUT_S };

	c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return -errno;
	if (strlen(path) >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	strcpy(a.sun_path, path);
	/* SO_SNDTIMEO also limits connect(), which waits while the recorder's queue of connections
	 * is full */
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	return connect(c->fd, (struct sockaddr *)&a, sizeof(a)) ? -errno : 0;
}

int pb_control_open(struct pb_control **out, const char *socket_path, uint32_t pid,
		    char *err, size_t errlen)
{
	struct pb_msg_hello h = { .protocol = PB_PROTOCOL, .pid = pid };
	struct pb_control *c = malloc(sizeof(*c));
	char why[500];
	int ret;

	if (!c) {
		snprintf(err, errlen, "%s: out of memory", socket_path);
		return -ENOMEM;
	}
	c->tries = ASK_TRIES;
	ret = connect_to(c, socket_path);
	if (!ret)
		ret = send_message(c, PB_MSG_HELLO, &h, sizeof(h), NULL, NULL, 0);
	if (ret)
		snprintf(why, sizeof(why), "%s", ret == -EAGAIN ? "the recorder doesn't answer" :
			 strerror(-ret));
	else
		ret = receive(c, 1, NULL, why, sizeof(why));
	if (ret == PB_MSG_READY) {
		take_ready(c);
		*out = c;
		return 0;
	}
	if (ret > 0) {
		snprintf(why, sizeof(why), "unexpected answer (message %d); the recorder may be of "
			 "another version", ret);
		ret = -EPROTO;
	}
	snprintf(err, errlen, "%s: %s", socket_path, why);
	pb_control_close(c);
	return ret;
}

void pb_control_wait_less(struct pb_control *c)
{
	c->tries = 1;
}

/* Sends a request and receives the REPLY. Returns 0 or -errno. The REPLY's header is in *f. After
 * an error, err has a text. */
static int ask(struct pb_control *c, uint32_t type, struct pb_msg_file *f, const char *path,
	       const char *value, size_t value_len, char *err, size_t errlen)
{
	const struct pb_msg *m = (const void *)c->buf;
	int ret = send_message(c, type, f, sizeof(*f), path, value, value_len);

	if (ret) {
		snprintf(err, errlen, "%s: %s", path, strerror(-ret));
		return ret;
	}
	ret = receive(c, c->tries, NULL, err, errlen);
	if (ret < 0)
		return ret;
	if (ret != PB_MSG_REPLY || m->len < sizeof(*f)) {
		snprintf(err, errlen, "%s: the recorder's answer is damaged", path);
		return -EPROTO;
	}
	memcpy(f, m + 1, sizeof(*f));
	if (f->result < 0) {
		/* if the agent reports an error, the REPLY may also have a text */
		const char *text = (const char *)(m + 1) + sizeof(*f);
		int len = (int)strnlen(text, m->len - sizeof(*f));

		snprintf(err, errlen, "%s: %.*s", path, len ? len : 100,
			 len ? text : strerror(-f->result));
	}
	return f->result < 0 ? f->result : 0;
}

int pb_control_write(struct pb_control *c, const char *path, const char *value, bool append,
		     char *err, size_t errlen)
{
	size_t len = strlen(value);
	struct pb_msg_file f = { .size = (uint32_t)len, .append = append };

	return ask(c, PB_MSG_WRITE, &f, path, value, len, err, errlen);
}

int pb_control_read(struct pb_control *c, const char *path, char **out, size_t *len,
		    char *err, size_t errlen)
{
	const struct pb_msg *m = (const void *)c->buf;
	size_t have = 0;
	char *text = NULL;

	for (;;) {
		struct pb_msg_file f = { .offset = have,
					 .size = PB_MSG_MAX - sizeof(struct pb_msg_file) };
		int ret = ask(c, PB_MSG_READ, &f, path, NULL, 0, err, errlen);
		size_t n = ret ? 0 : m->len - sizeof(f);
		char *bigger = ret || have + n > FILE_MAX ? NULL : realloc(text, have + n + 1);

		if (!bigger) {
			free(text);
			if (!ret)
				ret = have + n > FILE_MAX ? -EFBIG : -ENOMEM;
			if (ret == -EFBIG || ret == -ENOMEM)
				snprintf(err, errlen, "%s: %s", path,
					 ret == -EFBIG ? "too large" : "out of memory");
			return ret;
		}
		text = bigger;
		memcpy(text + have, (const char *)(m + 1) + sizeof(f), n);
		have += n;
		text[have] = 0;
		if (!n)
			break;
	}
	*out = text;
	*len = have;
	return 0;
}

int pb_control_detach(struct pb_control *c, char *text, size_t len, char *err, size_t errlen)
{
	const struct pb_msg *m = (const void *)c->buf;
	int ret = send_message(c, PB_MSG_DETACH, NULL, 0, NULL, NULL, 0);

	if (ret) {
		snprintf(err, errlen, "%s", strerror(-ret));
		return ret;
	}
	ret = receive(c, DETACH_TRIES, NULL, err, errlen);
	if (ret == -ETIMEDOUT)
		snprintf(err, errlen, "not detached yet: its threads are still in traced code; the "
			 "recorder goes on waiting");
	if (ret < 0)
		return ret;
	if (ret != PB_MSG_REPLY || m->len < sizeof(struct pb_msg_file)) {
		snprintf(err, errlen, "the recorder's answer is damaged");
		return -EPROTO;
	}
	snprintf(text, len, "%.*s", (int)(m->len - sizeof(struct pb_msg_file)),
		 (const char *)(m + 1) + sizeof(struct pb_msg_file));
	return 0;
}

int pb_control_status(struct pb_control *c, struct pb_msg_status *out, char *err, size_t errlen)
{
	const struct pb_msg *m = (const void *)c->buf;
	int ret = send_message(c, PB_MSG_STATUS, NULL, 0, NULL, NULL, 0);

	if (ret)
		snprintf(err, errlen, "%s", strerror(-ret));
	else
		ret = receive(c, 1, NULL, err, errlen);
	if (ret < 0)
		return ret;
	if (ret != PB_MSG_STATUS || m->len < sizeof(*out)) {
		snprintf(err, errlen, "the recorder's answer is damaged");
		return -EPROTO;
	}
	memcpy(out, m + 1, sizeof(*out));
	return 0;
}

/* Sends a request whose answer has a descriptor. Returns 0 or -errno. On success, the answer is in
 * c->buf and the descriptor in *fd. */
static int ask_file(struct pb_control *c, uint32_t type, size_t size, int *fd, char *err,
		    size_t errlen)
{
	const struct pb_msg *m = (const void *)c->buf;
	int ret = send_message(c, type, NULL, 0, NULL, NULL, 0);

	*fd = -1;
	if (ret)
		snprintf(err, errlen, "%s", strerror(-ret));
	else
		ret = receive(c, 1, fd, err, errlen);
	if (ret == (int)type && m->len >= size && *fd >= 0)
		return 0;
	if (ret >= 0) {
		snprintf(err, errlen, "the recorder's answer is damaged");
		ret = -EPROTO;
	}
	if (*fd >= 0)
		close(*fd);
	return ret;
}

int pb_control_memory(struct pb_control *c, struct pb_msg_ring *ring, int *ring_fd, int *data_fd,
		      char *err, size_t errlen)
{
	int ret = ask_file(c, PB_MSG_RING, sizeof(*ring), ring_fd, err, errlen);

	if (ret)
		return ret;
	memcpy(ring, c->buf + sizeof(struct pb_msg), sizeof(*ring));
	ret = ask_file(c, PB_MSG_DATA, 0, data_fd, err, errlen);
	if (ret)
		close(*ring_fd);
	return ret;
}

void pb_control_close(struct pb_control *c)
{
	if (!c)
		return;
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}
