/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sends messages to agents, and to clients (`patchbay control`). Never blocks. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "abi/messages.h"
#include "recorder/connection.h"

#define MAX_FDS 2

/* The message consists of a head, which this function makes, and of body and tail. */
static int send_message(struct record_conn *c, uint32_t type, const struct iovec *body,
			const struct iovec *tail, const int *fds, unsigned nr)
{
	struct pb_msg m = { .type = type, .len = (uint32_t)(body->iov_len + tail->iov_len) };
	struct iovec iov[3] = { { &m, sizeof(m) }, *body, *tail };
	union {
		char buf[CMSG_SPACE(MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} u = { 0 };
	struct msghdr h = { .msg_iov = iov, .msg_iovlen = 3 };

	if (nr) {
		h.msg_control = &u;
		h.msg_controllen = CMSG_SPACE(nr * sizeof(int));
		struct cmsghdr *cm = CMSG_FIRSTHDR(&h);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(nr * sizeof(int));
		memcpy(CMSG_DATA(cm), fds, nr * sizeof(int));
	}
	if (sendmsg(c->fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		c->error = -errno;
		/* an agent that has left may have sent an error before: it is still to be read */
		if (c->error == -EPIPE || c->error == -ECONNRESET)
			return 0;
		c->dead = true;
		return c->error;
	}
	return 0;
}

int record_conn_send(struct record_conn *c, uint32_t type, const void *body, size_t len,
		     const void *tail, size_t tail_len, int fd)
{
	return send_message(c, type, &(struct iovec){ (void *)body, len },
			    &(struct iovec){ (void *)tail, tail_len }, &fd, fd >= 0);
}

int record_conn_send_files(struct record_conn *c, uint32_t type, const void *body, size_t len,
			   const int *fds, unsigned nr)
{
	return send_message(c, type, &(struct iovec){ (void *)body, len }, &(struct iovec){ 0 },
			    fds, nr < MAX_FDS ? nr : MAX_FDS);
}

int record_conn_error(struct record_conn *c, int error, const char *text)
{
	struct pb_msg_error e = { .error = error };

	return record_conn_send(c, PB_MSG_ERROR, &e, sizeof(e), text, strlen(text) + 1, -1);
}
