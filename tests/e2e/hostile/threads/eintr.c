/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads are blocked in epoll_wait, poll, nanosleep, clock_nanosleep, futex, sem_wait,
 * sem_timedwait, read, accept, recv, msgrcv, select, waitpid and pthread_cond_timedwait. Nothing
 * sends them a signal, so no thread may see EINTR, an early time-out, or a short read. The program
 * runs until a byte arrives on stdin. Until that byte, run_hostile changes text. After that byte,
 * each thread's wait ends.
 * @serve 1000
 * @stdin wait 0.3
 * @timeout 20
 */
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include "../hostile.h"

static int fds[16][2], listener, msgq, futex_word, child_pipe[2];
static sem_t sem, timed_sem;
static volatile int stop;
static pid_t child;

#define no_eintr(call) ({ \
	long r_ = (call); \
	if (r_ < 0) \
		die("%s: %m", #call); \
	r_; \
})

static KEEP long in_epoll(void)
{
	int e = epoll_create1(0);
	struct epoll_event ev = { .events = EPOLLIN };

	check(!epoll_ctl(e, EPOLL_CTL_ADD, fds[0][0], &ev));
	return no_eintr(epoll_wait(e, &ev, 1, -1));
}
static KEEP long in_epoll_timed(void)
{
	int e = epoll_create1(0);
	struct epoll_event ev = { .events = EPOLLIN };
	uint64_t start = now_ns();

	check(!epoll_ctl(e, EPOLL_CTL_ADD, fds[1][0], &ev));
	while (!stop) {
		start = now_ns();
		check_eq(no_eintr(epoll_wait(e, &ev, 1, 50)), 0);
		check(now_ns() - start >= 49000000);
	}
	return 1;
}
static KEEP long in_poll(void)
{
	struct pollfd p = { fds[2][0], POLLIN, 0 };

	return no_eintr(poll(&p, 1, -1));
}
static KEEP long in_select(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fds[3][0], &set);
	return no_eintr(select(fds[3][0] + 1, &set, NULL, NULL, NULL));
}
static KEEP long in_nanosleep(void)
{
	struct timespec ts = { 0, 20000000 };
	uint64_t start;

	while (!stop) {
		start = now_ns();
		no_eintr(nanosleep(&ts, NULL));
		check(now_ns() - start >= 20000000);
	}
	return 1;
}
static KEEP long in_clock_nanosleep(void)
{
	struct timespec ts;

	while (!stop) {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		if ((ts.tv_nsec += 20000000) >= 1000000000)
			ts.tv_sec++, ts.tv_nsec -= 1000000000;
		check_eq(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL), 0);
		check(now_ns() >= ts.tv_sec * 1000000000ull + ts.tv_nsec);
	}
	return 1;
}
static KEEP long in_futex(void)
{
	/* EAGAIN: the thread was woken before it began to wait */
	if (syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) &&
	    errno != EAGAIN)
		die("futex: %m");
	return 1;
}
static KEEP long in_sem(void) { no_eintr(sem_wait(&sem)); return 1; }
static KEEP long in_sem_timed(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += 1000;
	no_eintr(sem_timedwait(&timed_sem, &ts));
	return 1;
}
static KEEP long in_read(void)
{
	char buf[8];

	return no_eintr(read(fds[4][0], buf, 8)) == 8;
}
static KEEP long in_recv(void)
{
	char buf[8];

	return no_eintr(recv(fds[5][0], buf, 8, MSG_WAITALL)) == 8;
}
static KEEP long in_accept(void) { return no_eintr(accept(listener, NULL, NULL)) > 0; }
static KEEP long in_msgrcv(void)
{
	struct { long type; char text[8]; } m;

	return no_eintr(msgrcv(msgq, &m, 8, 0, 0)) == 8;
}
static KEEP long in_wait(void)
{
	int status;

	return no_eintr(waitpid(child, &status, 0)) == child && status == 0;
}
static KEEP long in_cond(void)
{
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	struct timespec ts;

	pthread_mutex_lock(&m);
	while (!stop) {
		clock_gettime(CLOCK_REALTIME, &ts);
		if ((ts.tv_nsec += 30000000) >= 1000000000)
			ts.tv_sec++, ts.tv_nsec -= 1000000000;
		check_eq(pthread_cond_timedwait(&c, &m, &ts), ETIMEDOUT);
	}
	pthread_mutex_unlock(&m);
	return 1;
}

typedef long wait_fn(void);
static wait_fn *const waits[] = {
	in_epoll, in_epoll_timed, in_poll, in_select, in_nanosleep, in_clock_nanosleep, in_futex,
	in_sem, in_sem_timed, in_read, in_recv, in_accept, in_msgrcv, in_wait, in_cond,
};
#define NR (sizeof(waits) / sizeof(waits[0]))

static KEEP void *thread_main(void *fn)
{
	check_eq((*(wait_fn *const *)fn)(), 1);
	return NULL;
}

int main(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct { long type; char text[8]; } m = { 1, "12345678" };
	socklen_t len = sizeof(sa_family_t);
	pthread_t t[NR];
	char byte;
	size_t i;
	int s;

	for (i = 0; i < 16; i++)
		check(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds[i]));
	check(!pipe(child_pipe));
	child = fork();
	if (!child) {
		close(child_pipe[1]);
		_exit(read(child_pipe[0], &byte, 1) != 1);
	}
	check((msgq = msgget(IPC_PRIVATE, 0600)) >= 0);
	check((listener = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
	check(!bind(listener, (void *)&addr, len) && !listen(listener, 1));
	len = sizeof(addr);
	check(!getsockname(listener, (void *)&addr, &len));
	check(!sem_init(&sem, 0, 0) && !sem_init(&timed_sem, 0, 0));
	for (i = 0; i < NR; i++)
		check(!pthread_create(&t[i], NULL, thread_main, (void *)&waits[i]));

	fprintf(stderr, "ready %d\n", getpid());
	check_eq(no_eintr(read(0, &byte, 1)), 1);

	stop = 1;
	for (i = 0; i < 6; i++)
		if (i != 1)
			check(write(fds[i][1], "12345678", 8) == 8);
	__atomic_store_n(&futex_word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &futex_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	sem_post(&sem);
	sem_post(&timed_sem);
	check((s = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
	check(!connect(s, (void *)&addr, len));
	check(!msgsnd(msgq, &m, 8, 0));
	check(write(child_pipe[1], "x", 1) == 1);
	for (i = 0; i < NR; i++)
		check(!pthread_join(t[i], NULL));
	msgctl(msgq, IPC_RMID, NULL);
	printf("%zu waits, no EINTR\n", NR);
	return 0;
}
