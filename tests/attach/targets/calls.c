/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Repeats one system call, whose name is the argument, and checks each result: never EINTR (but
 * always with sigsuspend), never an early time-out, never a wrong value. The process has one
 * thread, so the injector must borrow this thread during the call. A child process, the feeder,
 * sends data to the calls that wait for data. The feeder also waits for the end of the input, and
 * then lets the program print its result.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS	40
#define FEED_MS	15

static struct shared {
	atomic_bool end;
	atomic_uint word;	/* a futex that the feeder changes */
	sem_t sem;
} *shared;
static int epoll_fd, data[2], messages[2], listener;
static struct sockaddr_un address = { .sun_family = AF_UNIX };
static uint64_t received;	/* how many of the feeder's numbers have been received so far */

static uint64_t now_us(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static struct timespec after(clockid_t clock, unsigned ms)
{
	uint64_t us = now_us(clock) + ms * 1000;

	return (struct timespec) { (time_t)(us / 1000000), (long)(us % 1000000 * 1000) };
}

static const struct timespec wait_time = { 0, WAIT_MS * 1000000 };

/* --- calls that time out: they return 0 if they report the time-out ------- */

static int no_data(long ret)
{
	return ret ? -1 : 0;
}

static int failed(long ret, int want)
{
	return ret == -1 && errno == want ? 0 : -1;
}

static int do_epoll(void)
{
	struct epoll_event e;

	return no_data(epoll_wait(epoll_fd, &e, 1, WAIT_MS));
}

static int do_epoll_pwait(void)
{
	struct epoll_event e;
	sigset_t mask;

	sigemptyset(&mask);
	return no_data(epoll_pwait(epoll_fd, &e, 1, WAIT_MS, &mask));
}

static int do_poll(void)
{
	return no_data(poll(NULL, 0, WAIT_MS));
}

static int do_ppoll(void)
{
	sigset_t mask;

	sigemptyset(&mask);
	return no_data(ppoll(NULL, 0, &wait_time, &mask));
}

static int do_select(void)
{
	struct timeval t = { 0, WAIT_MS * 1000 };

	return no_data(select(0, NULL, NULL, NULL, &t));
}

static int do_nanosleep(void)
{
	return nanosleep(&wait_time, NULL);
}

static int do_clock_nanosleep(void)
{
	struct timespec t = after(CLOCK_REALTIME, WAIT_MS);

	return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL);
}

static int do_futex(void)
{
	static int word;

	return failed(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &wait_time, NULL, 0),
		      ETIMEDOUT);
}

static int do_sem(void)
{
	static sem_t sem;
	struct timespec t = after(CLOCK_REALTIME, WAIT_MS);

	return failed(sem_timedwait(&sem, &t), ETIMEDOUT);
}

static int do_cond(void)
{
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	struct timespec t = after(CLOCK_REALTIME, WAIT_MS);

	pthread_mutex_lock(&m);
	int ret = pthread_cond_timedwait(&c, &m, &t);

	pthread_mutex_unlock(&m);
	return ret == ETIMEDOUT ? 0 : -1;
}

static int do_sigtimedwait(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return failed(sigtimedwait(&set, NULL, &wait_time), EAGAIN);
}

static int do_recv_timeout(void)
{
	char c;

	return failed(recv(data[0], &c, 1, 0), EAGAIN);
}

static volatile sig_atomic_t alarms;

static void count_alarm(int sig)
{
	alarms++;
}

/* The signal is blocked before the wait and after it, so only the wait can get it. */
static int do_sigsuspend(void)
{
	struct sigaction sa = { .sa_handler = count_alarm };
	struct itimerval timer = { .it_value = { 0, WAIT_MS * 1000 } };
	int before = alarms;
	sigset_t set, none;

	sigemptyset(&none);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	int ret = failed(sigsuspend(&none), EINTR);

	sigprocmask(SIG_BLOCK, NULL, &set);
	return ret || alarms != before + 1 || !sigismember(&set, SIGALRM) ? -1 : 0;
}

static int lock_by_flock(int file)
{
	return flock(file, LOCK_EX);
}

static int lock_by_lockf(int file)
{
	return lockf(file, F_LOCK, 0);
}

static int lock_by_ofd(int file)
{
	struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(file, F_OFD_SETLKW, &all);
}

/* A child holds the lock for WAIT_MS after it has been taken. */
static int do_lock(int (*lock)(int file))
{
	int file = memfd_create("lock", 0), locked[2], status;
	char path[32], c;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	if (pipe(locked))
		return -1;
	pid_t child = fork();

	if (!child) {
		if (!lock(open(path, O_RDWR)) && write(locked[1], "", 1) == 1)
			nanosleep(&wait_time, NULL);
		_exit(0);
	}
	close(locked[1]);
	int ret = read(locked[0], &c, 1) == 1 && !lock(file) ? 0 : -1;

	close(locked[0]);
	close(file);
	return waitpid(child, &status, 0) == child && !status ? ret : -1;
}

static int do_flock(void)
{
	return do_lock(lock_by_flock);
}

static int do_lockf(void)
{
	return do_lock(lock_by_lockf);
}

static int do_ofd_lock(void)
{
	return do_lock(lock_by_ofd);
}

/* --- calls that are fed: they check the next number ----------------------- */

static int next(long ret, uint64_t number)
{
	return ret == sizeof(number) && number == ++received ? 0 : -1;
}

static int do_read(void)
{
	uint64_t n = 0;

	long ret = read(messages[0], &n, sizeof(n));

	return next(ret, n);
}

static int do_recvmsg(void)
{
	uint64_t n = 0;
	struct iovec v = { &n, sizeof(n) };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	long ret = recvmsg(messages[0], &m, 0);

	return next(ret, n);
}

static int do_accept(void)
{
	uint64_t n = 0;
	int fd = accept(listener, NULL, NULL);

	if (fd < 0)
		return -1;
	long ret = recv(fd, &n, sizeof(n), 0);

	close(fd);
	return next(ret, n);
}

static int do_wait(void)
{
	int status;
	pid_t child = fork();

	if (!child) {
		nanosleep(&wait_time, NULL);
		_exit(7);
	}
	return waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 7 ? 0 : -1;
}

static int do_sem_fed(void)
{
	return sem_wait(&shared->sem);
}

static int do_futex_fed(void)
{
	unsigned old = atomic_load(&shared->word);

	while (atomic_load(&shared->word) == old)
		if (syscall(SYS_futex, &shared->word, FUTEX_WAIT, old, NULL, NULL, 0) &&
		    errno != EAGAIN)
			return -1;
	return 0;
}

static const struct call {
	const char *name;
	int (*make)(void);
	int timed;		/* lasts WAIT_MS */
} calls[] = {
	{ "epoll_wait", do_epoll, 1 }, { "epoll_pwait", do_epoll_pwait, 1 }, { "poll", do_poll, 1 },
	{ "ppoll", do_ppoll, 1 }, { "select", do_select, 1 }, { "nanosleep", do_nanosleep, 1 },
	{ "clock_nanosleep", do_clock_nanosleep, 1 }, { "futex", do_futex, 1 },
	{ "sem_timedwait", do_sem, 1 }, { "cond_timedwait", do_cond, 1 },
	{ "sigtimedwait", do_sigtimedwait, 1 }, { "recv_timeout", do_recv_timeout, 1 },
	{ "sigsuspend", do_sigsuspend, 1 }, { "flock", do_flock },
	{ "lockf", do_lockf }, { "ofd_lock", do_ofd_lock },
	{ "read", do_read }, { "recvmsg", do_recvmsg }, { "accept", do_accept },
	{ "waitpid", do_wait, 1 }, { "sem_wait", do_sem_fed }, { "futex_fed", do_futex_fed },
};

/* --- the feeder ----------------------------------------------------------- */

/* Sends the number. Returns whether it was sent: if the socket's buffer is full, it is not. */
static int feed_once(const char *name, uint64_t number)
{
	int sent = 1;

	if (!strcmp(name, "accept")) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
		    send(fd, &number, sizeof(number), MSG_NOSIGNAL) < 0)
			_exit(1);
		close(fd);
	} else if (send(messages[1], &number, sizeof(number), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		if (errno != EAGAIN)
			_exit(1);
		sent = 0;
	}
	sem_post(&shared->sem);
	atomic_fetch_add(&shared->word, 1);
	syscall(SYS_futex, &shared->word, FUTEX_WAKE, 1, NULL, NULL, 0);
	return sent;
}

static void feed(const char *name)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	uint64_t number = 1;

	do {
		number += (uint64_t)feed_once(name, number);
	} while (poll(&input, 1, FEED_MS) == 0);
	atomic_store(&shared->end, 1);
	feed_once(name, number);
	_exit(0);
}

static void prepare(void)
{
	struct timeval t = { 0, WAIT_MS * 1000 };

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	sem_init(&shared->sem, 1, 0);
	epoll_fd = epoll_create1(0);
	socketpair(AF_UNIX, SOCK_STREAM, 0, data);
	socketpair(AF_UNIX, SOCK_SEQPACKET, 0, messages);
	setsockopt(data[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "patchbay-calls-%d",
		 (int)getpid());
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 64))
		exit(2);
}

int main(int argc, char **argv)
{
	const struct call *c = NULL;
	uint64_t longest = 0, count = 0;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (argc > 1 && !strcmp(argv[1], calls[i].name))
			c = &calls[i];
	if (!c)
		return 2;
	prepare();
	if (!fork())
		feed(c->name);
	printf("ready\n");
	fflush(stdout);
	for (; !atomic_load(&shared->end); count++) {
		uint64_t begin = now_us(CLOCK_MONOTONIC);
		int ret = c->make(), error = errno;
		uint64_t us = now_us(CLOCK_MONOTONIC) - begin;

		if (ret) {
			printf("bad: call %lu fails: %s\n", count, strerror(error));
			return 1;
		}
		if (c->timed && us + 1000 < WAIT_MS * 1000) {
			printf("bad: call %lu lasts %lu us\n", count, us);
			return 1;
		}
		longest = us > longest ? us : longest;
	}
	printf("%lu calls, longest %lu us\n", count, longest);
	return 0;
}
