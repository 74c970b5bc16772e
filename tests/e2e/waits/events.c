/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events in a program whose recorder doesn't answer. For each event the program prints on stderr
 * how long it waited ("figure EVENT nanoseconds"), and on stdout the event's result.
 *
 *   events HOW SOCKET PLUGIN EVENT...
 *   events FD				the image that an event executes
 *
 * The recorder is the program's parent. HOW says what happens to the recorder before each event:
 *   alive     nothing; there may be no recorder
 *   stopped   SIGSTOP, and SIGCONT afterwards
 *   full      like "stopped", and the backlog of the recorder's socket is full of connections
 *   killed    SIGKILL, once
 *
 * Waits are counted, not timed, so that a busy machine changes nothing: a child traces the program
 * with ptrace. If a system call of the program ends by its time-out, the child adds the time-out
 * that was asked for. Exits with status 3 if ptrace isn't allowed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../supply/shared_ring.h"

#define BEATS		15
#define MAX_CONNS	5000
#define CALLS		300000
#define AT_ONCE		1000
#define REPEATS		4

static const char *how, *session, *plugin, *self;
static pid_t recorder;
static const struct pb_ring *ring;
static int conns[MAX_CONNS], nr_conns;
extern char **environ;

__attribute__((noipa)) static int traced(int n) { return n + 1; }

static void sleep_ms(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

/* ---- the recorder -------------------------------------------------------- */

static char state_of(pid_t pid)
{
	char path[40], text[400] = "", *p;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	p = strrchr(text, ')');
	return p ? p[2] : 0;
}

/* Returns whether all threads of the recorder have ended. The main thread may end first. The socket
 * is closed when the last thread ends. */
static int is_dead(void)
{
	char tasks[40], state = state_of(recorder);
	glob_t g = { 0 };
	int more;

	snprintf(tasks, sizeof(tasks), "/proc/%d/task/*", (int)recorder);
	more = !glob(tasks, 0, NULL, &g) && g.gl_pathc > 1;
	globfree(&g);
	return !more && (!state || state == 'Z');
}

static void fill_backlog(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	glob_t g;

	if (glob(session, 0, NULL, &g) || g.gl_pathc != 1)
		errx(2, "%s: not there", session);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", g.gl_pathv[0]);
	globfree(&g);
	for (nr_conns = 0; nr_conns < MAX_CONNS; nr_conns++) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (fd < 0)
			err(2, "socket");
		conns[nr_conns] = fd;
		if (!connect(fd, (struct sockaddr *)&a, sizeof(a)))
			continue;
		if (errno != EAGAIN)
			err(2, "connect");
		close(fd);
		return;
	}
	errx(2, "the backlog has no end");
}

static void disturb(void)
{
	if (!strcmp(how, "alive"))
		return;
	/* after an earlier event, the recorder must have noticed that it was continued */
	if (ring && !is_dead())
		wait_for_heartbeats(ring, BEATS);
	if (!strcmp(how, "killed")) {
		if (!is_dead())
			kill(recorder, SIGKILL);
		while (!is_dead())
			sleep_ms(1);
		return;
	}
	kill(recorder, SIGSTOP);
	while (state_of(recorder) != 'T')
		sleep_ms(1);
	if (!strcmp(how, "full"))
		fill_backlog();
}

static void restore(void)
{
	while (nr_conns)
		close(conns[--nr_conns]);
	if (strcmp(how, "alive") && strcmp(how, "killed"))
		kill(recorder, SIGCONT);
}

/* ---- waits ----------------------------------------------------------------- */

#define MAX_TASKS 64

/* A thread inside a system call that may wait. */
struct task {
	pid_t tid;
	uint64_t timeout_ns;
};

/* Memory that the program shares with the child that counts. */
static struct shared {
	uint64_t waited_ns;	/* sum over the threads and processes of the program */
	int counts;		/* 1: the child counts; -errno: it can't */
} *shared;
static pid_t counter;

/* Returns the time-out of a system call, or 0 if the call isn't a wait. Waits for a futex aren't
 * counted. They wait for another thread of the program, whose own waits are counted. */
static uint64_t timeout_of(pid_t tid, uint64_t nr, const uint64_t *args)
{
	uint64_t at = nr == SYS_ppoll || nr == SYS_clock_nanosleep ? args[2] :
		      nr == SYS_nanosleep ? args[0] : 0;
	long sec, nsec;

	if (nr == SYS_poll || nr == SYS_epoll_wait) {
		int ms = (int)args[nr == SYS_poll ? 2 : 3];

		return ms > 0 ? (uint64_t)ms * 1000000 : 0;
	}
	if (!at)
		return 0;
	errno = 0;
	sec = ptrace(PTRACE_PEEKDATA, tid, at + offsetof(struct timespec, tv_sec), NULL);
	nsec = ptrace(PTRACE_PEEKDATA, tid, at + offsetof(struct timespec, tv_nsec), NULL);
	return errno ? 0 : (uint64_t)sec * 1000000000 + (uint64_t)nsec;
}

/* Called at the entry and at the exit of each system call. poll(), similar system calls and
 * nanosleep() return 0 after their time-out. */
static void see_call(struct task *tasks, pid_t tid)
{
	struct __ptrace_syscall_info info;
	struct task *t = NULL;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(info), &info) <= 0)
		return;
	for (int i = MAX_TASKS - 1; i >= 0; i--)
		if (tasks[i].tid == tid || (!tasks[i].tid && (!t || !t->tid)))
			t = &tasks[i];
	if (!t)
		errx(2, "too many threads");
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		uint64_t ns = timeout_of(tid, info.entry.nr, info.entry.args);

		*t = ns ? (struct task){ tid, ns } : (struct task){ 0 };
	} else if (info.op == PTRACE_SYSCALL_INFO_EXIT && t->tid == tid) {
		if (!info.exit.rval)
			__atomic_fetch_add(&shared->waited_ns, t->timeout_ns, __ATOMIC_RELAXED);
		*t = (struct task){ 0 };
	}
}

static void count_waits(pid_t pid)
{
	static struct task tasks[MAX_TASKS];
	int status;

	if (ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK |
		   PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC) ||
	    ptrace(PTRACE_INTERRUPT, pid, NULL, NULL)) {
		__atomic_store_n(&shared->counts, -errno, __ATOMIC_RELEASE);
		return;
	}
	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		int sig = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;

		if (!WIFSTOPPED(status))
			continue;
		if (sig == (SIGTRAP | 0x80))
			see_call(tasks, pid);
		if (sig == (SIGTRAP | 0x80) || status >> 16)
			sig = 0;	/* no signal, but a stop of ptrace */
		ptrace(PTRACE_SYSCALL, pid, NULL, sig);
		__atomic_store_n(&shared->counts, 1, __ATOMIC_RELEASE);
	}
}

static void begin_count(void)
{
	pid_t self_pid = getpid();

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED)
		err(2, "mmap");
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	counter = fork();
	if (!counter) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		count_waits(self_pid);
		_exit(0);
	}
	while (!__atomic_load_n(&shared->counts, __ATOMIC_ACQUIRE))
		sched_yield();
	if (shared->counts < 0) {
		errno = -shared->counts;
		err(3, "ptrace");
	}
}

/* The program's threads run on when the child that traces them is killed. */
static void end_count(void)
{
	kill(counter, SIGKILL);
	waitpid(counter, NULL, 0);
	munmap(shared, sizeof(*shared));
}

static uint64_t waited_ns(void)
{
	return __atomic_load_n(&shared->waited_ns, __ATOMIC_RELAXED);
}

/* ---- events: each stores a result ------------------------------------------ */

/* Waits for the byte that the child writes as its last act, and then for the child's end. */
static void until_child(pid_t pid, int fds[2], int *result)
{
	char byte;

	if (pid < 0 || read(fds[0], &byte, 1) != 1)
		err(2, "the child said nothing");
	waitpid(pid, result, 0);
	close(fds[0]);
	close(fds[1]);
}

static void ev_exec(int *result)
{
	char number[16];
	int fds[2];
	pid_t pid;

	if (pipe(fds))
		err(2, "pipe");
	snprintf(number, sizeof(number), "%d", fds[1]);
	pid = fork();
	if (!pid) {
		execl(self, self, number, (char *)NULL);
		_exit(127);
	}
	until_child(pid, fds, result);
}

static void ev_spawn(int *result)
{
	char number[16], *argv[] = { (char *)self, number, NULL };
	int fds[2];
	pid_t pid;

	if (pipe(fds))
		err(2, "pipe");
	snprintf(number, sizeof(number), "%d", fds[1]);
	errno = posix_spawn(&pid, self, NULL, NULL, argv, environ);
	if (errno)
		err(2, "posix_spawn");
	until_child(pid, fds, result);
}

static void ev_dlopen(int *result)
{
	void *h = dlopen(plugin, RTLD_NOW);
	int (*call)(int) = (int (*)(int))(h ? dlsym(h, "plugin_call") : NULL);

	*result = call ? call(20) : -1;
	if (h)
		dlclose(h);
}

static void *loaded;

static void ev_dlclose(int *result)
{
	*result = dlclose(loaded);
}

static void *routine(void *arg)
{
	int *n = arg;

	for (int i = 0; i < AT_ONCE; i++)
		*n = traced(*n);
	return arg;
}

static void ev_fork(int *result)
{
	int fds[2], n = 0;
	pid_t pid;

	if (pipe(fds))
		err(2, "pipe");
	pid = fork();
	if (!pid) {
		routine(&n);
		_exit(write(fds[1], "x", 1) == 1 ? n % 256 : 99);
	}
	until_child(pid, fds, result);
}

static void ev_thread(int *result)
{
	pthread_t t;

	if (pthread_create(&t, NULL, routine, result))
		errx(2, "no thread");
	pthread_join(t, NULL);
}

static void ev_exit(int *result)
{
	pid_t pid = fork();

	if (!pid) {
		routine(result);
		exit(7);
	}
	waitpid(pid, result, 0);
}

/* Makes more calls than the buffer has room for. */
static void ev_calls(int *result)
{
	int n = 0;

	for (int i = 0; i < CALLS; i++)
		n = traced(n);
	*result = n;
}

static const struct {
	const char *name;
	void (*run)(int *result);
} events[] = {
	{ "exec", ev_exec }, { "spawn", ev_spawn }, { "dlopen", ev_dlopen },
	{ "dlclose", ev_dlclose }, { "fork", ev_fork }, { "thread", ev_thread },
	{ "exit", ev_exit }, { "calls", ev_calls },
};

static void run(const char *name)
{
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		int result = 0;

		if (strcmp(events[i].name, name))
			continue;
		if (events[i].run == ev_dlclose)
			loaded = dlopen(plugin, RTLD_NOW);
		begin_count();
		disturb();
		/* repeats the event, since the agent must not wait twice for a recorder that is
		 * gone */
		for (int k = 0; k < (events[i].run == ev_dlclose ? 1 : REPEATS); k++) {
			uint64_t before = waited_ns();

			events[i].run(&result);
			fprintf(stderr, "figure %s_%d %llu\n", name, k,
				(unsigned long long)(waited_ns() - before));
		}
		restore();
		end_count();
		printf("%s %d\n", name, result);
		return;
	}
	errx(2, "%s: no such event", name);
}

int main(int argc, char **argv)
{
	self = argv[0];
	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc == 2) {
		traced(1);
		return write(atoi(argv[1]), "x", 1) == 1 ? 5 : 99;
	}
	if (argc < 5)
		errx(2, "HOW SOCKET PLUGIN EVENT...");
	how = argv[1];
	session = argv[2];
	plugin = argv[3];
	recorder = getppid();
	ring = shared_ring();
	for (int i = 4; i < argc; i++)
		run(argv[i]);
	return 0;
}
