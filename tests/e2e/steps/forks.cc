/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The handler forks in the middle of the stepped call, and the child continues with the call. The
 * child is a thread of its own in the recording, so it begins with no marks.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "steps.h"

namespace steps {

#define NUMBER_USED	77	/* status of a child whose pid isn't new */

bool is_child;

static unsigned char used_tids[1 << 22];

bool is_new(long tid)
{
	return tid >= (long)sizeof(used_tids) || !used_tids[tid];
}

void use(long tid)
{
	if (tid < (long)sizeof(used_tids))
		used_tids[tid] = 1;
}

struct chunk {
	uint32_t state, serial, buffer, image, pid, tid;
};

/* Is called in a child while the parent waits for the child. The child must not write into the
 * chunks of the thread that forked, so the function makes these chunks read-only. The thread's
 * chunks are the OPEN, HELD and TAKEN chunks with its serial. They stay the thread's chunks
 * meanwhile, because only the thread itself could hand them over, and it waits. */
static void protect_parents(pid_t pid, pid_t tid)
{
	enum { CHUNK_SIZE = 16384, THREAD_WORDS = 16 };
	enum { CHUNK_OPEN = 1, CHUNK_HELD = 4, CHUNK_TAKEN = 5 };
	const uint32_t *head = (const uint32_t *)ring, *thread;
	uint32_t serial = 0, nr_threads = ring ? head[4] : 0, nr_chunks = ring ? head[5] : 0;
	uint64_t threads, chunks;
	const uint64_t *taken;

	if (!ring)
		return;
	memcpy(&threads, ring + 24, 8);
	memcpy(&chunks, ring + 32, 8);
	thread = (const uint32_t *)(ring + threads);
	/* tids are used again, so the last row with this pid and tid is the valid one */
	taken = (const uint64_t *)(ring + threads + nr_threads * 64ul);
	for (uint32_t i = 0; i < nr_threads && thread[i * THREAD_WORDS]; i++)
		if (thread[i * THREAD_WORDS + 1] == (uint32_t)pid &&
		    thread[i * THREAD_WORDS + 2] == (uint32_t)tid)
			serial = thread[i * THREAD_WORDS];
	for (uint32_t i = 0; serial && i < nr_chunks; i++) {
		char *at = ring + chunks + i * (uint64_t)CHUNK_SIZE;
		const struct chunk *c = (const struct chunk *)at;

		if (taken[i / 64] >> i % 64 & 1 && c->serial == serial &&
		    (c->state == CHUNK_OPEN || c->state == CHUNK_HELD || c->state == CHUNK_TAKEN) &&
		    mprotect(at, CHUNK_SIZE, PROT_READ))
			_exit(6);
	}
}

/* The child of FORK_LATE. It goes on when the call is over in the parent. */
static pid_t late_child;
static int late_fd;

static void begin_child(void)
{
	is_child = true;
	alarm(200);	/* a child that hangs is reported like one that dies */
	forget_text();
	marks = 0;
	memcpy(made_at_mark, made, sizeof(made));
}

static void child_ends(pid_t pid)
{
	int status = 0;

	if (waitpid(pid, &status, 0) != pid)
		die("no child");
	if (status)
		print("x %s %s %s %ld %d\n", act_names[act], function, state, step, status);
}

void fork_late(void)
{
	int fd[2];
	char c = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		die("socketpair");
	pid = fork();
	if (!pid) {
		if (!is_new(getpid()))
			_exit(NUMBER_USED);
		close(fd[0]);
		if (write(fd[1], &c, 1) != 1 || read(fd[1], &c, 1))
			_exit(5);
		begin_child();
		return;
	}
	close(fd[1]);
	if (read(fd[0], &c, 1) == 1) {
		use(pid);
		late_child = pid;
		late_fd = fd[0];
		return;
	}
	close(fd[0]);
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		die("no child");
	fork_late();
}

void release_late_child(void)
{
	if (!late_child)
		return;
	close(late_fd);
	child_ends(late_child);
	late_child = 0;
}

void fork_here(void)
{
	pid_t pid, parent = getpid(), thread = (pid_t)syscall(SYS_gettid);
	int status = 0;

	pid = fork();
	if (!pid) {
		if (!is_new(getpid()))
			_exit(NUMBER_USED);
		protect_parents(parent, thread);
		begin_child();
		if (act == FORK_CALLS)
			t_root(5, t_hand);
		return;		/* the child continues with the stepped call */
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		die("no child");
	if (WIFEXITED(status) && WEXITSTATUS(status) == NUMBER_USED)
		return fork_here();
	use(pid);
	if (status)
		print("x %s %s %s %ld %d\n", act_names[act], function, state, step, status);
}

}
