/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stacks of coroutines are unmapped while calls are open on these stacks. Each case runs in a
 * child process of its own. The children differ in their disposition and mask of SIGSEGV. When the
 * agent checks whether these stacks still exist, it must neither end the program nor run the
 * program's handlers. The program's own faults must have the same effect as in an untraced run.
 * Also tests stacks that can't be read for a while.
 * @markers 42 main/one_process
 * @calls body >=40000
 * @timeout 30
 * @slow none none-own bpf-own
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include "coro.h"

#define NR 1500		/* number of coroutines; with so many, the agent looks for unmapped
			 * stacks */

static volatile int seen, waits, *reached;
static sigjmp_buf env;
static int *volatile null;

static void on_segv(int sig, siginfo_t *si, void *uc)
{
	seen++;
	if (si->si_code <= 0)
		return;
	check(si->si_addr == (void *)null);
	siglongjmp(env, 1);
}

static void on_usr1(int sig) { coro_churn(NR); }
static void on_usr2(int sig, siginfo_t *si, void *uc)
{
	sigaddset(&((ucontext_t *)uc)->uc_sigmask, SIGSEGV);
}

static KEEP void set(int sig, void *handler, int flags, int block)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = flags };

	if (block)
		sigaddset(&sa.sa_mask, SIGSEGV);
	check(!sigaction(sig, &sa, NULL));
}

static KEEP int touch(void) { return *null; }

static void block_segv(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigaddset(&set, SIGBUS);
	check(!sigprocmask(how, &set, NULL));
}

/* --- the part of each process before it dies by a fault --- */

static KEEP void by_default(void) { coro_churn(NR); }

static KEEP void with_handler(void)
{
	set(SIGSEGV, on_segv, SA_SIGINFO, 0);
	coro_churn(NR);
	check_eq(seen, 0);
	if (!sigsetjmp(env, 1))
		touch();
	check_eq(seen, 1);
	check(!raise(SIGSEGV));
	check_eq(seen, 2);
	coro_churn(NR);
	check_eq(seen, 2);
	set(SIGSEGV, SIG_DFL, 0, 0);
	coro_churn(NR);
}

static KEEP void one_shot(void)
{
	struct sigaction old;

	set(SIGSEGV, on_segv, SA_SIGINFO | SA_RESETHAND | SA_NODEFER, 0);
	coro_churn(NR);
	check(!sigaction(SIGSEGV, NULL, &old));
	check(old.sa_sigaction == on_segv && old.sa_flags & SA_RESETHAND);
	check_eq(seen, 0);
	if (!sigsetjmp(env, 1))
		touch();
	check_eq(seen, 1);
	check(!sigaction(SIGSEGV, NULL, &old));
	check(old.sa_handler == SIG_DFL);
	coro_churn(NR);
}

static KEEP void ignored(void)
{
	set(SIGSEGV, SIG_IGN, 0, 0);
	check(!raise(SIGSEGV));
	coro_churn(NR);
}

static KEEP void blocked(void)
{
	coro_churn(NR);
	block_segv(SIG_BLOCK);
	coro_churn(NR);
}

static KEEP void blocked_past_libc(void)
{
	unsigned long all = ~0ul;

	check(!syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8));
	coro_churn(NR);
}

static KEEP void in_handlers(void)
{
	sigset_t all;

	set(SIGUSR1, on_usr1, 0, 1);
	check(!raise(SIGUSR1));
	/* the handler runs with the mask of sigsuspend() */
	set(SIGUSR1, on_usr1, 0, 0);
	sigemptyset(&all);
	sigaddset(&all, SIGUSR1);
	check(!sigprocmask(SIG_BLOCK, &all, NULL));
	check(!raise(SIGUSR1));
	sigfillset(&all);
	sigdelset(&all, SIGUSR1);
	check(sigsuspend(&all) == -1);
	coro_churn(NR);
	/* after the handler's return, SIGSEGV stays blocked */
	set(SIGUSR2, on_usr2, SA_SIGINFO, 0);
	check(!raise(SIGUSR2));
	coro_churn(3 * NR);
}

static KEEP void in_vfork_child(void)
{
	int status;
	pid_t pid;

	block_segv(SIG_BLOCK);
	pid = vfork();
	if (!pid) {
		block_segv(SIG_UNBLOCK);
		coro_churn(100);
		_exit(3);
	}
	check(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 3);
	coro_churn(NR);
	block_segv(SIG_UNBLOCK);
	coro_churn(NR);
}

static KEEP void filtered(void)
{
#define KILL(nr) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), \
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		KILL(SYS_rt_sigreturn), KILL(SYS_rt_sigaction), KILL(SYS_rt_tgsigqueueinfo),
		KILL(SYS_tgkill),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(*code), code };

	coro_churn(NR);
	check(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	check(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog));
	coro_churn(NR);
}

static void at_cancel(void *arg) { coro_churn(NR); }

static KEEP void *cancelled(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_cleanup_push(at_cancel, NULL);
	coro_churn(NR);
	waits = 1;
	ppoll(NULL, 0, NULL, &all);
	pthread_cleanup_pop(0);
	return NULL;
}

static KEEP void *in_thread(void *arg)
{
	coro_churn(NR);
	return NULL;
}

static KEEP void in_threads(void)
{
	pthread_attr_t attr;
	pthread_t t;
	void *ret;

	check(!pthread_attr_init(&attr) && !pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN));
	check(!pthread_create(&t, NULL, in_thread, NULL) && !pthread_join(t, NULL));
	check(!pthread_create(&t, &attr, in_thread, NULL) && !pthread_join(t, NULL));
	block_segv(SIG_BLOCK);
	check(!pthread_create(&t, NULL, in_thread, NULL) && !pthread_join(t, NULL));
	block_segv(SIG_UNBLOCK);
	check(!pthread_create(&t, NULL, cancelled, NULL));
	while (!waits)
		usleep(1000);
	check(!usleep(20000) && !pthread_cancel(t) && !pthread_join(t, &ret) &&
	      ret == PTHREAD_CANCELED);
	coro_churn(NR);
}

/* One stack has no permissions for a while. Even so, its calls must return later. Another stack is
 * in a file that is truncated. */
static KEEP void hidden(void)
{
	char *closed = coro_map(), name[] = "/tmp/coro_gone.XXXXXX", *file;
	struct coro a, b;
	int fd = mkstemp(name);

	check(fd >= 0 && !unlink(name) && !ftruncate(fd, CORO_STACK));
	file = mmap(NULL, CORO_STACK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(file != MAP_FAILED);
	coro_start(&a, closed, 3);
	coro_start(&b, file, 3);
	resume(&a);
	resume(&b);
	check(!mprotect(closed, CORO_STACK, PROT_NONE));
	check(!ftruncate(fd, 0));
	coro_churn(3 * NR);
	check(!mprotect(closed, CORO_STACK, PROT_READ | PROT_WRITE));
	resume(&a);
	check_eq(a.sum, 4);
}

static const struct {
	const char *name;
	void (*run)(void);
} processes[] = {
	{ "by default", by_default }, { "with a handler", with_handler },
	{ "with a handler for once", one_shot }, { "ignored", ignored }, { "blocked", blocked },
	{ "blocked past libc", blocked_past_libc }, { "in handlers", in_handlers },
	{ "in a vfork child", in_vfork_child }, { "filtered", filtered },
	{ "in threads", in_threads }, { "hidden", hidden },
};
#define NR_PROCESSES (int)(sizeof(processes) / sizeof(*processes))

static KEEP void one_process(int n)
{
	int status;
	pid_t pid;

	fflush(stdout);
	*reached = 0;
	pid = fork();
	check(pid >= 0);
	if (!pid) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		processes[n % NR_PROCESSES].run();
		marker_begin(n);
		*reached = n + 1;
		touch();
		_exit(77);
	}
	check(waitpid(pid, &status, 0) == pid);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV)
		die("%s: status %#x", processes[n % NR_PROCESSES].name, status);
	if (*reached != n + 1)
		die("%s: died before its own fault", processes[n % NR_PROCESSES].name);
	marker_begin(n);
}

int main(void)
{
	int n;

	reached = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(reached != MAP_FAILED);
	coro_churn(NR);
	for (n = 0; n < NR_PROCESSES; n++) {
		one_process(n);
		printf("%s\n", processes[n].name);
	}
	for (n = 0; n < 10; n++)
		one_process(0);
	return 0;
}
