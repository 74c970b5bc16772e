/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages to and from the recorder over a non-blocking socket. Without an idle function (wire.h),
 * a wait is cut into slices of at most 10 ms. After each slice the agent looks at the recorder's
 * heartbeat. The agent waits as long as the heartbeat changes. If the recorder dies, hangs or is
 * stopped, the agent soon gives up.
 */
#include <asm/errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "engine/wire.h"
#include "base/mem.h"
#include "base/sys.h"
#include "base/task.h"
#include "arch/arch.h"
#include "engine/sandbox.h"
#include "ring/writer.h"

#define SLICE_NS	10000000ull	/* time between two looks at the heartbeat */
#define RETRY_NS	2000000ull	/* time between two attempts to connect: poll() can't wait
					 * for room in a full backlog */
#define SUSPENDED_NS	100000000ull	/* if a slice took this long, the agent was stopped */
#define FRESH_NS	100000000ull	/* a recorder with a younger heartbeat is alive */

bool pb_recording_ended(void)
{
	const struct pb_ring *ring = pb_ring_map.ring;

	return ring && __atomic_load_n(&ring->closing, __ATOMIC_RELAXED);
}

static uint64_t patience(const struct pb_wire *w)
{
	return w->patience_ns ? w->patience_ns : PB_PATIENCE_NS;
}

static uint64_t read_heartbeat(const struct pb_ring *ring)
{
	return __atomic_load_n(&ring->heartbeat, __ATOMIC_ACQUIRE);
}

static int give_up(struct pb_wire *w)
{
	struct pb_ring *ring = pb_ring_map.ring;

	w->gave_up = true;
	if (ring)
		__atomic_store_n(&ring->silent, w->heartbeat + 1, __ATOMIC_RELAXED);
	return -ETIMEDOUT;
}

/* Returns whether it makes sense to wait longer. spent: the time since the last look at the
 * heartbeat. If the whole process group was stopped and continued (a terminal's job), the recorder
 * had no time to send a heartbeat either. So a slice in which the agent was stopped counts as a
 * slice of the usual length. False: the recorder was silent for too long, the recording has ended,
 * or another agent has given up at this heartbeat. */
static bool may_wait(struct pb_wire *w, uint64_t spent)
{
	const struct pb_ring *ring = pb_ring_map.ring;
	uint64_t now = ring ? read_heartbeat(ring) : w->heartbeat;

	if (now != w->heartbeat) {
		w->heartbeat = now;
		w->silent_ns = 0;
	} else {
		w->silent_ns += spent > SUSPENDED_NS ? SLICE_NS : spent;
	}
	if (ring && (pb_recording_ended() ||
		     now + 1 == __atomic_load_n(&ring->silent, __ATOMIC_RELAXED)))
		return false;
	return w->silent_ns < patience(w);
}

/* Returns whether the recorder was silent for too long because it had no processor, or waited for a
 * disk. A recorder counts as starved if any of its threads has to wait, or if it can't be looked at
 * because it is in another pid namespace. But the thread that has to answer may hang meanwhile. So
 * after PB_STARVED_NS (or starved_ns) the result is false in any case. */
static bool is_starved(const struct pb_wire *w)
{
	const struct pb_ring *ring = pb_ring_map.ring;

	if ((!w->recorder && w->fd < 0) || w->silent_ns < patience(w) ||
	    w->silent_ns >= (w->starved_ns ? w->starved_ns : PB_STARVED_NS) ||
	    !pb_calls_are_safe())
		return false;
	if (ring && (pb_recording_ended() ||
		     w->heartbeat + 1 == __atomic_load_n(&ring->silent, __ATOMIC_RELAXED)))
		return false;
	return !w->recorder || pb_process_is_held_up(w->recorder);
}

static uint32_t peer_pid(int fd)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);

	if (pb_sys(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return 0;
	return (uint32_t)cred.pid;
}

/* Waits for events on fd, for `ns` at most. If fd is -1, waits for the whole time. Returns what
 * ppoll() returns. ppoll() fails with EINVAL if the process's limit of descriptors is 0
 * (RLIMIT_NOFILE). Then this function waits for the whole time, too, and there may be events
 * afterwards. */
static long poll_for(int fd, short events, uint64_t ns)
{
	struct { long sec, nsec; } ts = { 0, (long)ns };
	struct pollfd p = { fd, events, 0 };
	long n = pb_sys(SYS_ppoll, &p, 1, &ts, NULL, 0);

	if (n != -EINVAL)
		return n;
	pb_sys(SYS_nanosleep, &ts, NULL);
	return 1;
}

static int wait_idle(struct pb_wire *w, short events)
{
	long n;

	do {
		n = poll_for(w->fd, events, PB_WIRE_IDLE_MS * 1000000ull);
		if (!w->idle())
			return -ECANCELED;
	} while (!n || n == -EINTR);
	return n < 0 ? (int)n : 0;
}

/* Waits until there may be events on fd, for a slice at most. If there is an idle function, waits
 * for events on w->fd instead, without a limit. */
static int wait_for(struct pb_wire *w, int fd, short events, uint64_t slice_ns)
{
	uint64_t most = patience(w), left = w->silent_ns < most ? most - w->silent_ns : slice_ns;
	uint64_t start;

	if (w->idle)
		return wait_idle(w, events);
	start = pb_now_ns();
	poll_for(fd, events, slice_ns < left ? slice_ns : left);
	if (may_wait(w, pb_now_ns() - start) || is_starved(w))
		return 0;
	/* between the two checks, the recorder may have run, sent a heartbeat, and gone to sleep
	 * again */
	return may_wait(w, 0) ? 0 : give_up(w);
}

int pb_wire_connect(struct pb_wire *w, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t n = strlen(path);
	long fd, high, err;

	w->fd = -1;
	w->gave_up = false;
	w->silent_ns = 0;
	w->recorder = 0;
	w->heartbeat = pb_ring_map.ring ? read_heartbeat(pb_ring_map.ring) : 0;
	if (n >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	if (!may_wait(w, 0)) {
		w->gave_up = true;
		return -ETIMEDOUT;
	}
	memcpy(addr.sun_path, path, n + 1);
	fd = pb_sys(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (pb_sys_failed(fd))
		return (int)fd;
	/* The descriptor may be in the program's own table. The program may rely on low numbers, so
	 * the descriptor gets a high one. */
	high = pb_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 200);
	if (!pb_sys_failed(high)) {
		pb_sys(SYS_close, fd);
		fd = high;
	}
	for (;;) {
		err = pb_sys(SYS_connect, fd, &addr, sizeof(addr.sun_family) + n + 1);
		if (err != -EAGAIN && err != -EINTR)
			break;
		err = wait_for(w, -1, 0, RETRY_NS);
		if (err)
			break;
	}
	w->fd = (int)fd;
	if (err)
		pb_wire_close(w);
	else
		w->recorder = peer_pid(w->fd);
	return (int)err;
}

void pb_wire_close(struct pb_wire *w)
{
	if (w->fd >= 0)
		pb_sys(SYS_close, w->fd);
	w->fd = -1;
}

int pb_wire_send(struct pb_wire *w, uint32_t type, const void *a, size_t na, const void *b,
		 size_t nb)
{
	struct pb_msg head = { type, (uint32_t)(na + nb) };
	struct iovec iov[3] = {
		{ &head, sizeof(head) }, { (void *)a, na }, { (void *)b, nb },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 3 };
	long n;

	while (!w->gave_up) {
		int err;

		n = pb_sys(SYS_sendmsg, w->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n == -EINTR)
			continue;
		if (n != -EAGAIN)
			return n < 0 ? (int)n : 0;
		err = wait_for(w, w->fd, POLLOUT, SLICE_NS);
		if (err)
			return err;
	}
	return -ETIMEDOUT;
}

static long receive_bytes(struct pb_wire *w, struct msghdr *msg)
{
	size_t room = msg->msg_controllen;

	while (!w->gave_up) {
		long n;
		int err;

		msg->msg_controllen = room;
		n = pb_sys(SYS_recvmsg, w->fd, msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
		if (n == -EINTR)
			continue;
		if (n != -EAGAIN)
			return n;
		err = wait_for(w, w->fd, POLLIN, SLICE_NS);
		if (err)
			return err;
	}
	return -ETIMEDOUT;
}

void pb_wire_close_fds(int fds[PB_WIRE_FDS])
{
	for (unsigned i = 0; i < PB_WIRE_FDS; i++) {
		if (fds[i] >= 0)
			pb_sys(SYS_close, fds[i]);
		fds[i] = -1;
	}
}

int pb_wire_receive_fds(struct pb_wire *w, int fds[PB_WIRE_FDS], uint32_t *len)
{
	struct iovec iov = { w->buffer, PB_WIRE_BUFFER - 16 };
	union { char buf[CMSG_SPACE(PB_WIRE_FDS * sizeof(int))]; struct cmsghdr align; } control;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	const struct pb_msg *head = (const void *)w->buffer;
	long n = receive_bytes(w, &msg);
	struct cmsghdr *c;

	memset(fds, 0xff, PB_WIRE_FDS * sizeof(int));
	if (n < 0)
		return (int)n;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len >= CMSG_LEN(0) && c->cmsg_len <= CMSG_LEN(PB_WIRE_FDS * sizeof(int)))
		memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	if (n < (long)sizeof(*head) || head->len != (size_t)n - sizeof(*head)) {
		pb_wire_close_fds(fds);
		return n ? -EPROTO : -ECONNRESET;
	}
	/* the message had descriptors, but the process has reached its limit of descriptors */
	if (msg.msg_flags & MSG_CTRUNC && fds[0] < 0)
		return -EMFILE;
	*len = head->len;
	return (int)head->type;
}

int pb_wire_receive(struct pb_wire *w, int *fd, uint32_t *len)
{
	int fds[PB_WIRE_FDS], type = pb_wire_receive_fds(w, fds, len);

	*fd = fds[0];
	fds[0] = -1;
	pb_wire_close_fds(fds);
	return type;
}

bool pb_wire_hides(long err)
{
	return err == -EACCES || err == -EPERM || err == -ENOENT || err == -ENOTDIR ||
	       err == -ELOOP;
}

bool pb_wire_missed(const struct pb_wire *w)
{
	return w->gave_up && !pb_recording_ended();
}

/* Called before an exec. If the last heartbeat is recent, returns true at once. Otherwise waits for
 * the next heartbeat: if the recorder is in another time namespace, its clock differs, so its
 * heartbeats look old. */
bool pb_recorder_lives(void)
{
	struct pb_ring *ring = pb_ring_map.ring;
	struct pb_wire w = {
		.fd = -1, .heartbeat = read_heartbeat(ring), .recorder = pb_observer_pid,
	};
	uint64_t first = w.heartbeat;

	if (!may_wait(&w, 0))
		return false;
	if (pb_now_ns() - __atomic_load_n(&ring->heartbeat_ns, __ATOMIC_RELAXED) <= FRESH_NS)
		return true;
	while (w.heartbeat == first)
		if (wait_for(&w, -1, 0, SLICE_NS))
			return false;
	return true;
}
