/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program to attach to. It makes calls only when it is asked to, so a test knows how many calls
 * it makes between an attach and a detach. Each round is one call of outer(), one of inner() and
 * three of leaf(). One thread never makes a traced call.
 *
 *   rounds THREADS
 *
 * It reads one command from each line of its input, and answers each with a line:
 *   run N       each thread makes N rounds
 *   new N       a new thread makes N rounds, and ends
 *   fork N      a new process makes N rounds, and ends
 *   raw N       like fork, but the process is made by a direct system call, not by libc
 *   vfork N     like fork, but by vfork, so that the process shares the program's memory
 *   spawn N     posix_spawn of this program, which makes N rounds
 *   forkexec N  fork, and then execution of this program, which makes N rounds
 *   hold N      a new process makes N rounds, and ends when the program closes a pipe
 *   twin HOW    a new process, the twin, waits for orders. HOW: 0: it is made by fork, 1: by a
 *               direct system call, 2: by fork, and it has the same PID in another PID namespace,
 *               and its own /proc; the answer is -1 if that isn't possible
 *   order N     the twin makes N rounds. 0: it ends
 *   spin        a new thread makes rounds without a pause
 *   turn        waits until that thread has begun a round and ended it
 *   stop        that thread ends; the answer has the number of its rounds
 *   exec        the program executes itself again, in the same process
 *   name TEXT   the main thread's name becomes TEXT
 *   chroot DIR  the program's root directory becomes DIR; the answer has errno
 *   user N      the program's user becomes N
 *   load NAME   the program loads this library
 *   files N     the program may have N open files, no more
 *   pages N     the program maps N pages, each by itself; the answer is the number of pages mapped
 *               so far whose content has changed
 *   filter 0    a seccomp filter for all threads kills the program if it opens a file
 *   tsc 0       the main thread and its later threads can't read the clock; the answer has errno
 *   mdwe 0      no memory of the program becomes executable any more; the answer has errno
 *   exit N      the program exits with status N
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t begin, end;
static long rounds;
static int held[2], orders[2], acks[2];
static volatile int spinning;
static volatile long spun;

__attribute__((noinline)) void leaf(void)
{
	__asm__ volatile("");
}

__attribute__((noinline)) void inner(void)
{
	leaf();
	leaf();
	__asm__ volatile("");
}

__attribute__((noinline)) void outer(void)
{
	inner();
	leaf();
	__asm__ volatile("");
}

static void make(long n)
{
	while (n-- > 0)
		outer();
}

static void *worker(void *arg)
{
	for (;;) {
		pthread_barrier_wait(&begin);
		make(rounds);
		pthread_barrier_wait(&end);
	}
	return arg;
}

static void *idle(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void *once(void *arg)
{
	make((long)arg);
	return NULL;
}

static void *spin(void *arg)
{
	for (; spinning; spun++)
		outer();
	return arg;
}

/* Waits until two rounds have ended. The first of them may have begun before this function was
 * called, but the second began after that. */
static void wait_for_turn(void)
{
	for (long n = spun; spun < n + 2;)
		usleep(1000);
}

static void run_threads(long n)
{
	rounds = n;
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&end);
}

static void run_new(long n)
{
	pthread_t t;

	pthread_create(&t, NULL, once, (void *)n);
	pthread_join(t, NULL);
}

static pid_t raw_fork(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static pid_t run_child(long n, int hold, pid_t (*make_child)(void))
{
	pid_t pid = make_child();
	char c;

	if (!pid) {
		make(n);
		close(held[1]);
		if (hold && read(held[0], &c, 1))
			_exit(1);
		_exit(0);
	}
	if (!hold)
		waitpid(pid, NULL, 0);
	return pid;
}

static void run_vfork(long n)
{
	pid_t pid = vfork();

	if (!pid) {
		make(n);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

/* Executes this program in a new process, where it makes n rounds. */
static void run_program(long n, int spawn)
{
	char count[24], *argv[] = { "rounds", "once", count, NULL };
	extern char **environ;
	pid_t pid = 0;

	snprintf(count, sizeof(count), "%ld", n);
	if (spawn)
		posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ);
	else if (!(pid = fork()))
		execv("/proc/self/exe", argv);
	waitpid(pid, NULL, 0);
}

static void obey_orders(void)
{
	long n;

	while (read(orders[0], &n, sizeof(n)) == sizeof(n) && n) {
		make(n);
		if (write(acks[1], &n, sizeof(n)) != sizeof(n))
			break;
	}
	_exit(0);
}

/* The first process of a PID namespace. Sets the PID before the one that the next process gets. It
 * ends with its parent. */
static void first_process(pid_t next, int ready)
{
	FILE *f = fopen("/proc/sys/kernel/ns_last_pid", "w");
	int set = f && fprintf(f, "%d", next - 1) > 0 && !fclose(f);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(ready, set ? "y" : "n", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static int is_ready(int ready)
{
	char c;

	return read(ready, &c, 1) == 1 && c == 'y';
}

/* Makes a process that has this process's PID, in another PID namespace. Returns -1 if that isn't
 * possible. */
static pid_t same_pid(void)
{
	pid_t own = getpid(), pid;
	int ready[2], bad;

	if (pipe(ready) || unshare(CLONE_NEWPID))
		return -1;
	pid = fork();
	if (!pid)
		first_process(own, ready[1]);
	if (pid < 0 || !is_ready(ready[0]))
		return -1;
	pid = fork();
	if (pid)
		return pid > 0 && is_ready(ready[0]) ? pid : -1;
	bad = getpid() != own || unshare(CLONE_NEWNS) ||
	      mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	      mount("proc", "/proc", "proc", 0, NULL);
	if (write(ready[1], bad ? "n" : "y", 1) != 1 || bad)
		_exit(1);
	return 0;
}

static pid_t make_twin(long how)
{
	pid_t pid = how == 2 ? same_pid() : how ? raw_fork() : fork();

	if (!pid) {
		close(orders[1]);
		obey_orders();
	}
	return pid;
}

static void order(long n)
{
	if (write(orders[1], &n, sizeof(n)) != sizeof(n))
		exit(1);
	if (!n)
		wait(NULL);
	else if (read(acks[0], &n, sizeof(n)) != sizeof(n))
		exit(1);
}

/* Starts or stops the thread that makes rounds without a pause. */
static long toggle_spin(int on)
{
	static pthread_t t;

	spinning = on;
	if (on) {
		spun = 0;
		pthread_create(&t, NULL, spin, NULL);
	} else {
		pthread_join(t, NULL);
	}
	return spun;
}

static long forbid_code(void)
{
	const int set_mdwe = 65, refuse_exec_gain = 1;	/* PR_SET_MDWE, since Linux 6.3 */

	return prctl(set_mdwe, refuse_exec_gain, 0, 0, 0) ? errno : 0;
}

static void forbid_open(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(filter) / sizeof(filter[0]), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog))
		exit(1);
}

static long map_pages(long n)
{
	static unsigned char *pages[1000], content[4096];
	static int nr;
	long changed = 0;

	memset(content, 0x5a, sizeof(content));
	while (n-- > 0 && nr < 1000) {
		void *p = mmap(NULL, sizeof(content), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p != MAP_FAILED)
			pages[nr++] = memcpy(p, content, sizeof(content));
	}
	for (int i = 0; i < nr; i++)
		changed += memcmp(pages[i], content, sizeof(content)) != 0;
	return changed;
}

/* The commands that change the process. */
static long change(const char *word, long n, const char *name)
{
	struct rlimit limit = { (rlim_t)n, (rlim_t)n };

	if (!strcmp(word, "name"))
		prctl(PR_SET_NAME, name);
	else if (!strcmp(word, "chroot"))
		return chroot(name) || chdir("/") ? errno : 0;
	else if (!strcmp(word, "user"))
		return setresuid((uid_t)n, (uid_t)n, (uid_t)n) ? errno : 0;
	else if (!strcmp(word, "tsc"))
		return prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) ? errno : 0;
	else if (!strcmp(word, "mdwe"))
		return forbid_code();
	else if (!strcmp(word, "load"))
		return !dlopen(name, RTLD_NOW);
	else if (!strcmp(word, "pages"))
		return map_pages(n);
	else if (!strcmp(word, "files"))
		setrlimit(RLIMIT_NOFILE, &limit);
	else if (!strcmp(word, "filter"))
		forbid_open();
	else if (!strcmp(word, "exit"))
		exit((int)n);
	return n;
}

static void obey(char **argv, const char *line)
{
	char word[10] = "", name[64] = "";
	long n = 0;

	sscanf(line, "%9s %ld", word, &n);
	if (!strcmp(word, "run"))
		run_threads(n);
	else if (!strcmp(word, "new"))
		run_new(n);
	else if (!strcmp(word, "fork"))
		run_child(n, 0, fork);
	else if (!strcmp(word, "raw"))
		run_child(n, 0, raw_fork);
	else if (!strcmp(word, "vfork"))
		run_vfork(n);
	else if (!strcmp(word, "spawn") || !strcmp(word, "forkexec"))
		run_program(n, word[0] == 's');
	else if (!strcmp(word, "hold"))
		n = run_child(n, 1, fork);
	else if (!strcmp(word, "twin"))
		n = make_twin(n);
	else if (!strcmp(word, "order"))
		order(n);
	else if (!strcmp(word, "spin") || !strcmp(word, "stop"))
		n = toggle_spin(word[1] == 'p');
	else if (!strcmp(word, "turn"))
		wait_for_turn();
	else if (!strcmp(word, "exec"))
		execv("/proc/self/exe", argv);
	else if (sscanf(line, "%*s %63[^\n]", name) == 1)
		n = change(word, n, name);
	printf("%s %ld\n", word, n);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int threads = atoi(argv[argc - 1]);
	char line[100];
	pthread_t t;

	if (argc == 3 && !strcmp(argv[1], "once")) {
		make(atol(argv[2]));
		return 0;
	}
	pthread_barrier_init(&begin, NULL, (unsigned)threads + 1);
	pthread_barrier_init(&end, NULL, (unsigned)threads + 1);
	if (pipe(held) || pipe(orders) || pipe(acks))
		return 1;
	pthread_create(&t, NULL, idle, NULL);
	for (int i = 0; i < threads; i++)
		pthread_create(&t, NULL, worker, NULL);
	printf("ready %d\n", getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		obey(argv, line);
	return 0;
}
