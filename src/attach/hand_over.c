/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * If a process runs in a container, or if its user has no access to the agent or to the socket, the
 * process can't open them by their paths. Such a process gets a descriptor of each file, and
 * reaches both files through /proc/self/fd. The descriptor leads to the same file as the path. So
 * in a second attach, the loader recognizes the agent that is loaded already.
 *
 * Only the process itself can receive a descriptor. So the new thread makes a pair of sockets. The
 * injector takes one socket from the process (pidfd_getfd), and sends both files through it:
 *
 *   injector                              new thread of the process
 *                                         socketpair() = a, b
 *   pidfd_getfd(a)
 *   sendmsg(a, {agent, session}) -------> recvmsg(b)
 *                                         close(a), close(b)
 *
 * The socket's file is opened with O_PATH: the process can connect to the file, and do nothing else
 * with it. At the connect, the kernel checks the file's mode, so the file must belong to the
 * process's user.
 *
 * The new thread makes all of these system calls with the stack pointer of its start routine. So if
 * the injector is killed, the thread returns from its start routine after the call, and ends. The
 * descriptors that the thread has made until then stay open.
 */
#include "attach/hand_over.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BELOW	4096		/* distance of the arguments from the stack pointer */
#define FLAGS_OFF 0x40500ull	/* direction, single step, alignment check */

/* The arguments of recvmsg(), as they are in the process's memory. */
struct received {
	struct msghdr head;
	struct iovec iov;
	union {
		char buf[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control;
	char byte;
};

/* Makes the new thread make a system call. */
static int remote_call(struct attach_hand *h, long number, uint64_t a, uint64_t b, uint64_t c,
		       uint64_t d, int64_t *result)
{
	struct user_regs_struct r = *h->start;
	int err;

	r.rip = h->l->call;
	r.rax = (uint64_t)number;
	r.rdi = a;
	r.rsi = b;
	r.rdx = c;
	r.r10 = d;
	r.orig_rax = UINT64_MAX;
	r.eflags &= ~FLAGS_OFF;
	err = attach_remote_set_regs(h->thread, &r);
	return err ? err : attach_remote_finish(h->thread, h->l->call + ATTACH_SYSCALL_SIZE,
						h->deadline, result);
}

static void remote_close(struct attach_hand *h, int fd)
{
	int64_t result;

	if (fd >= 0)
		remote_call(h, SYS_close, (uint64_t)fd, 0, 0, 0, &result);
}

static int say_failed(struct attach_hand *h, const char *what, int error)
{
	if (error == ESRCH || error == ETIMEDOUT)
		return -error;
	return attach_say(h->s, error, "doesn't see Patchbay's files, and can't be given them (%s: "
			  "%s); run patchbay where the process runs", what, strerror(error));
}

/* --- the pair of sockets -------------------------------------------------- */

/* Returns a copy of the process's descriptor `fd` for the injector, or -errno. */
static int take(pid_t pid, int fd)
{
	int process = (int)syscall(SYS_pidfd_open, pid, 0), got = -1, ret = -errno;

	if (process < 0)
		return ret;
	got = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
	ret = got < 0 ? -errno : got;
	close(process);
	return ret;
}

static int make_pair(struct attach_hand *h, int pair[2])
{
	uint64_t at = h->start->rsp - BELOW;
	int64_t result = 0;
	int err = remote_call(h, SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, at,
			      &result);

	if (!err && result < 0)
		err = (int)result;
	return err ? err : attach_mem_read(h->s, at, pair, 2 * sizeof(int));
}

/* --- the files ------------------------------------------------------------ */

/* Opens the socket's file. If root attaches to another user's process, that user becomes the file's
 * owner. The user can reach the file only by this descriptor, because the directory belongs to
 * root. */
static int open_session(const struct attach_subject *s)
{
	int fd = open(s->session, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISSOCK(st.st_mode) ||
	    (st.st_uid != s->uid && fchownat(fd, "", s->uid, (gid_t)-1, AT_EMPTY_PATH))) {
		close(fd);
		return -EACCES;
	}
	return fd;
}

static int send_files(int socket, const int files[2])
{
	struct received m = { .byte = 0 };

	m.iov = (struct iovec) { &m.byte, 1 };
	m.head = (struct msghdr) { .msg_iov = &m.iov, .msg_iovlen = 1, .msg_control = &m.control,
				   .msg_controllen = sizeof(m.control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m.head);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(2 * sizeof(int));
	memcpy(CMSG_DATA(c), files, 2 * sizeof(int));
	return sendmsg(socket, &m.head, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* *what: the step that has failed. */
static int send_both(const struct attach_subject *s, int socket, const char **what)
{
	int files[2] = { open(s->agent, O_RDONLY | O_CLOEXEC), -1 }, err;

	*what = "open";
	if (files[0] < 0)
		return -errno;
	err = files[1] = open_session(s);
	if (files[1] >= 0) {
		*what = "sendmsg";
		err = send_files(socket, files);
		close(files[1]);
	}
	close(files[0]);
	return err;
}

/* The new thread receives both descriptors. */
static int receive_both(struct attach_hand *h, int socket)
{
	uint64_t at = h->start->rsp - BELOW;
	struct received m = { .byte = 0 };
	int64_t result = 0;
	int fds[2];

	m.iov = (struct iovec) { (void *)(at + offsetof(struct received, byte)), 1 };
	m.head = (struct msghdr) {
		.msg_iov = (void *)(at + offsetof(struct received, iov)), .msg_iovlen = 1,
		.msg_control = (void *)(at + offsetof(struct received, control)),
		.msg_controllen = sizeof(m.control),
	};
	int err = attach_mem_write(h->s, at, &m, sizeof(m));

	if (!err)
		err = remote_call(h, SYS_recvmsg, (uint64_t)socket, at,
				  MSG_CMSG_CLOEXEC | MSG_DONTWAIT, 0, &result);
	if (!err && result < 0)
		err = (int)result;
	if (!err)
		err = attach_mem_read(h->s, at, &m, sizeof(m));
	if (err)
		return err;
	memcpy(fds, m.control.buf + CMSG_LEN(0), sizeof(fds));
	if (m.head.msg_controllen < CMSG_LEN(sizeof(fds)) || m.head.msg_flags & MSG_CTRUNC ||
	    m.control.align.cmsg_len != CMSG_LEN(sizeof(fds))) {
		/* if the process had room for one descriptor only, the agent's has come alone */
		if (m.head.msg_controllen >= CMSG_LEN(sizeof(int)) &&
		    m.control.align.cmsg_len == CMSG_LEN(sizeof(int)))
			remote_close(h, fds[0]);
		return -EMFILE;
	}
	h->agent = fds[0];
	h->session = fds[1];
	return 0;
}

int attach_hand_over(struct attach_hand *h)
{
	int pair[2] = { -1, -1 }, ours, err = make_pair(h, pair);
	const char *what = "pidfd_getfd";

	h->agent = h->session = -1;
	if (err)
		return say_failed(h, "socketpair", -err);
	err = ours = take(h->s->pid, pair[0]);
	if (ours >= 0) {
		err = send_both(h->s, ours, &what);
		close(ours);
		if (!err) {
			what = "recvmsg";
			err = receive_both(h, pair[1]);
		}
	}
	remote_close(h, pair[0]);
	remote_close(h, pair[1]);
	return err ? say_failed(h, what, -err) : 0;
}

void attach_hand_close(struct attach_hand *h)
{
	remote_close(h, h->agent);
	remote_close(h, h->session);
	h->agent = h->session = -1;
}
