/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Accepts agents. An agent that connects waits at most PB_PATIENCE_NS for the ring, which holds the
 * heartbeat. But the recorder's main thread may analyse a module for seconds. So a separate thread
 * accepts agents and sends them the ring. Then this thread passes the connection to the main thread
 * through a pipe. The thread does nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/messages.h"
#include "abi/ring.h"
#include "recorder/connection.h"
#include "recorder/listen.h"
#include "recorder/processes.h"
#include "recorder/ring_memory.h"
#include "recorder/recording.h"
#include "recorder/session_dir.h"
#include "recorder/settings.h"

#define FULL_US 10000		/* pause before the next attempt, if no descriptor was free */

struct record_listener {
	struct record_server *server;
	pthread_t thread;
	int read_fd, write_fd;
	_Atomic bool stop;
};

bool record_listen_accept(int listen_fd, struct record_peer *peer)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	peer->fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (peer->fd < 0)
		return false;
	if (getsockopt(peer->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) ||
	    (geteuid() && cred.uid != geteuid())) {
		close(peer->fd);
		errno = EAGAIN;
		return false;
	}
	peer->pid = cred.pid;
	return true;
}

bool record_listen_client(const struct record_server *s, struct record_peer *peer)
{
	if (record_listen_accept(s->session->control_fd, peer))
		return true;
	/* the socket remains readable, and the main loop would try again at once */
	if (errno != EAGAIN)
		usleep(FULL_US);
	return false;
}

/* Returns whether the peer may be an agent of this session. If a single process was attached, only
 * this process has an agent of this session. The PID comes from the kernel, so another process
 * can't forge it. */
static bool is_expected(const struct record_server *s, const struct record_peer *peer)
{
	return !s->ring->attached || s->options->children || peer->pid == s->ring->attached;
}

static bool accept_agent(const struct record_server *s, struct record_peer *peer)
{
	struct pb_msg_ring ring = record_ring_message(s->ring);
	struct record_conn c;
	int fd;

	if (!record_listen_accept(s->session->listen_fd, peer))
		return false;
	if (!is_expected(s, peer)) {
		close(peer->fd);
		errno = EAGAIN;
		return false;
	}
	/* An error of this send needs no check: if the agent has already left, the main thread's
	 * next read from it fails. */
	c = (struct record_conn){ .fd = peer->fd };
	fd = record_procs_share(s->ring);
	record_conn_send(&c, PB_MSG_RING, &ring, sizeof(ring), NULL, 0, fd);
	if (fd != s->ring->fd)
		close(fd);
	return true;
}

static void *listen_main(void *arg)
{
	struct record_listener *l = arg;
	struct pollfd p = { l->server->session->listen_fd, POLLIN, 0 };

	while (!l->stop) {
		struct record_peer peer;

		if (poll(&p, 1, -1) < 0 || l->stop)
			continue;
		if (!accept_agent(l->server, &peer)) {
			if (errno != EAGAIN)
				usleep(FULL_US);
			continue;
		}
		if (write(l->write_fd, &peer, sizeof(peer)) != sizeof(peer))
			close(peer.fd);
	}
	return NULL;
}

int record_listen_start(struct record_server *s)
{
	struct record_listener *l = calloc(1, sizeof(*l));
	sigset_t all, old;
	int fds[2], ret;

	if (!l)
		return -ENOMEM;
	if (pipe2(fds, O_CLOEXEC)) {
		ret = errno;
		free(l);
		return -ret;
	}
	*l = (struct record_listener){ .server = s, .read_fd = fds[0], .write_fd = fds[1] };
	fcntl(l->read_fd, F_SETFL, O_NONBLOCK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&l->thread, NULL, listen_main, l);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret) {
		close(fds[0]);
		close(fds[1]);
		free(l);
		return -ret;
	}
	s->listener = l;
	return 0;
}

void record_listen_raise_limit(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

int record_listen_fd(const struct record_server *s)
{
	return s->listener ? s->listener->read_fd : s->session->listen_fd;
}

bool record_listen_next(struct record_server *s, struct record_peer *peer)
{
	if (!s->listener)
		return accept_agent(s, peer);
	return read(s->listener->read_fd, peer, sizeof(*peer)) == sizeof(*peer);
}

/* Closes the connections that wait in the pipe. */
static void drop_peers(struct record_server *s)
{
	struct record_peer peer;

	while (record_listen_next(s, &peer))
		close(peer.fd);
}

void record_listen_stop(struct record_server *s)
{
	struct record_listener *l = s->listener;

	if (!l)
		return;
	l->stop = true;
	/* wake the thread, and give an error to agents that wait to be accepted */
	shutdown(s->session->listen_fd, SHUT_RDWR);
	/* the thread writes at most one more connection; a full pipe would block this write */
	drop_peers(s);
	pthread_join(l->thread, NULL);
	drop_peers(s);
	close(l->read_fd);
	close(l->write_fd);
	free(l);
	s->listener = NULL;
}
