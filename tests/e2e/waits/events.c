/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events in a program whose recorder doesn't answer. The program measures the time of each event
 * ("figure EVENT nanoseconds" on stderr), and prints the event's result on stdout.
 *
 *   events HOW SOCKET PLUGIN EVENT...
 *   events FD				the image that an event executes
 *
 * The recorder is the program's parent. HOW says what happens to the recorder before each event:
 *   alive     nothing; there may be no recorder
 *   stopped   SIGSTOP, and SIGCONT afterwards
 *   full      like "stopped", and the backlog of the recorder's socket is full of connections
 *   killed    SIGKILL, once
 * A child continues the recorder after WATCHDOG_MS, so that even an unbounded wait ends.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WATCHDOG_MS	2000
#define FRESH_MS	150	/* after this time, a continued recorder has sent a heartbeat */
#define MAX_CONNS	5000
#define CALLS		300000
#define AT_ONCE		1000

static const char *how, *session, *plugin, *self;
static pid_t recorder, watchdog;
static int conns[MAX_CONNS], nr_conns;
extern char **environ;

__attribute__((noipa)) static int traced(int n) { return n + 1; }

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

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
	sleep_ms(FRESH_MS);
	if (!strcmp(how, "killed")) {
		if (state_of(recorder))
			kill(recorder, SIGKILL);
		while (state_of(recorder) && state_of(recorder) != 'Z')
			sleep_ms(1);
		return;
	}
	watchdog = fork();
	if (!watchdog) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sleep_ms(WATCHDOG_MS);
		kill(recorder, SIGCONT);
		_exit(0);
	}
	kill(recorder, SIGSTOP);
	while (state_of(recorder) != 'T')
		sleep_ms(1);
	if (!strcmp(how, "full"))
		fill_backlog();
}

static void restore(void)
{
	if (!watchdog)
		return;
	kill(watchdog, SIGKILL);
	waitpid(watchdog, NULL, 0);
	watchdog = 0;
	while (nr_conns)
		close(conns[--nr_conns]);
	kill(recorder, SIGCONT);
}

/* ---- events: each returns its nanoseconds and stores a result -------------- */

static uint64_t until_child(uint64_t start, pid_t pid, int fd, int *result)
{
	uint64_t end = 0;
	int status;

	if (pid < 0 || read(fd, &end, sizeof(end)) != sizeof(end))
		err(2, "the child said nothing");
	waitpid(pid, &status, 0);
	*result = status;
	return end - start;
}

static uint64_t ev_exec(int *result)
{
	uint64_t start = now_ns();
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
	start = until_child(start, pid, fds[0], result);
	close(fds[0]);
	close(fds[1]);
	return start;
}

static uint64_t ev_spawn(int *result)
{
	char number[16], *argv[] = { (char *)self, number, NULL };
	uint64_t start = now_ns();
	int fds[2];
	pid_t pid;

	if (pipe(fds))
		err(2, "pipe");
	snprintf(number, sizeof(number), "%d", fds[1]);
	errno = posix_spawn(&pid, self, NULL, NULL, argv, environ);
	if (errno)
		err(2, "posix_spawn");
	start = until_child(start, pid, fds[0], result);
	close(fds[0]);
	close(fds[1]);
	return start;
}

static uint64_t ev_dlopen(int *result)
{
	uint64_t start = now_ns();
	void *h = dlopen(plugin, RTLD_NOW);
	int (*call)(int) = (int (*)(int))(h ? dlsym(h, "plugin_call") : NULL);

	start = now_ns() - start;
	*result = call ? call(20) : -1;
	if (h)
		dlclose(h);
	return start;
}

static void *loaded;

static uint64_t ev_dlclose(int *result)
{
	uint64_t start = now_ns();

	*result = dlclose(loaded);
	return now_ns() - start;
}

static uint64_t ev_fork(int *result)
{
	uint64_t start = now_ns(), end;
	int fds[2];
	pid_t pid;

	if (pipe(fds))
		err(2, "pipe");
	pid = fork();
	if (!pid) {
		int n = 0;

		for (int i = 0; i < AT_ONCE; i++)
			n = traced(n);
		end = now_ns();
		_exit(write(fds[1], &end, sizeof(end)) == sizeof(end) ? n % 256 : 99);
	}
	start = until_child(start, pid, fds[0], result);
	close(fds[0]);
	close(fds[1]);
	return start;
}

static void *routine(void *arg)
{
	int *n = arg;

	for (int i = 0; i < AT_ONCE; i++)
		*n = traced(*n);
	return arg;
}

static uint64_t ev_thread(int *result)
{
	uint64_t start = now_ns();
	pthread_t t;

	if (pthread_create(&t, NULL, routine, result))
		errx(2, "no thread");
	pthread_join(t, NULL);
	return now_ns() - start;
}

static uint64_t ev_exit(int *result)
{
	uint64_t start = 0;
	int fds[2];
	pid_t pid;

	if (pipe(fds))
		err(2, "pipe");
	pid = fork();
	if (!pid) {
		routine(result);
		start = now_ns();
		if (write(fds[1], &start, sizeof(start)) == sizeof(start))
			exit(7);
		_exit(99);
	}
	waitpid(pid, result, 0);
	if (read(fds[0], &start, sizeof(start)) != sizeof(start))
		errx(2, "the child said nothing");
	close(fds[0]);
	close(fds[1]);
	return now_ns() - start;
}

/* Returns the longest time that AT_ONCE calls took. The buffer is soon full. */
static uint64_t ev_calls(int *result)
{
	uint64_t most = 0;
	int n = 0;

	for (int i = 0; i < CALLS / AT_ONCE; i++) {
		uint64_t start = now_ns();

		for (int k = 0; k < AT_ONCE; k++)
			n = traced(n);
		start = now_ns() - start;
		most = start > most ? start : most;
	}
	*result = n;
	return most;
}

static const struct {
	const char *name;
	uint64_t (*run)(int *result);
} events[] = {
	{ "exec", ev_exec }, { "spawn", ev_spawn }, { "dlopen", ev_dlopen },
	{ "dlclose", ev_dlclose }, { "fork", ev_fork }, { "thread", ev_thread },
	{ "exit", ev_exit }, { "calls", ev_calls },
};

static void run(const char *name)
{
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		uint64_t ns;
		int result = 0;

		if (strcmp(events[i].name, name))
			continue;
		if (events[i].run == ev_dlclose)
			loaded = dlopen(plugin, RTLD_NOW);
		disturb();
		ns = events[i].run(&result);
		/* repeats the event, since the agent must not wait twice for a recorder that is
		 * gone */
		for (int k = 1; k <= 3 && events[i].run != ev_dlclose; k++) {
			uint64_t again = events[i].run(&result);

			fprintf(stderr, "figure %s_%d %llu\n", name, k, (unsigned long long)again);
		}
		restore();
		fprintf(stderr, "figure %s %llu\n", name, (unsigned long long)ns);
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
		uint64_t end = now_ns();

		traced(1);
		return write(atoi(argv[1]), &end, sizeof(end)) == sizeof(end) ? 5 : 99;
	}
	if (argc < 5)
		errx(2, "HOW SOCKET PLUGIN EVENT...");
	how = argv[1];
	session = argv[2];
	plugin = argv[3];
	recorder = getppid();
	for (int i = 4; i < argc; i++)
		run(argv[i]);
	return 0;
}
