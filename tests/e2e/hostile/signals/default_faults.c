/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests what the kernel does if a process has no handler of SIGSEGV or SIGBUS. Children die by
 * their own faults, and by sent signals. The signal's siginfo and program counter must be the same
 * as in an untraced run. ptrace shows the values that a core dump would have. Also tests the
 * dispositions that sigaction reports, and the dispositions of children of fork, vfork and exec.
 * @markers 60 main/one_iteration
 */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/user.h>
#include <sys/wait.h>
#include "../hostile.h"

extern char **environ;
static char *volatile bad, *volatile cut;

/* The first instruction faults. If the function is traced, a copy of this instruction runs at
 * another address. */
long load(const char *p);
extern char load_insn[];
__asm__(".text; .p2align 4; .globl load; .type load,@function\n"
	"load: .globl load_insn; load_insn: movsbq (%rdi), %rax; nop; nop; ret; "
	".size load, . - load");

static KEEP void fault(void) { load(bad); }
static KEEP void bus(void) { load(cut); }
static KEEP void noncanonical(void) { load((char *)0x8000000000000000ul); }
static KEEP void sent(void) { kill(getpid(), SIGSEGV); }
static KEEP void raised(void) { raise(SIGBUS); }
static KEEP void queued(void)
{
	union sigval v = { .sival_int = 12345 };

	sigqueue(getpid(), SIGSEGV, v);
	pause();
}
static KEEP void *thread_main(void *arg) { fault(); return NULL; }
static KEEP void in_thread(void)
{
	pthread_t t;

	pthread_create(&t, NULL, thread_main, NULL);
	pthread_join(t, NULL);
}
static KEEP void on_altstack(void)
{
	stack_t ss = { .ss_sp = malloc(65536), .ss_size = 65536 };

	sigaltstack(&ss, NULL);
	fault();
}
static KEEP void set_again(void)
{
	signal(SIGSEGV, SIG_IGN);
	signal(SIGSEGV, SIG_DFL);
	fault();
}
static KEEP void blocked(void)
{
	sigset_t set;

	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	fault();
}
static KEEP void ignore(int sig) { }
/* The handler is called once, and the load faults again. */
static KEEP void after_a_handler(void)
{
	struct sigaction a = { .sa_handler = ignore, .sa_flags = SA_RESETHAND | SA_NODEFER };

	sigaction(SIGSEGV, &a, NULL);
	fault();
}

static const struct {
	const char *name;
	void (*run)(void);
	int sig, code;
	void *volatile *addr;
} deaths[] = {
	{ "fault", fault, SIGSEGV, SEGV_MAPERR, (void *)&bad },
	{ "bus", bus, SIGBUS, BUS_ADRERR, (void *)&cut },
	{ "non-canonical", noncanonical, SIGSEGV, SI_KERNEL },
	{ "sent", sent, SIGSEGV, SI_USER },
	{ "raised", raised, SIGBUS, SI_TKILL },
	{ "queued", queued, SIGSEGV, SI_QUEUE },
	{ "in a thread", in_thread, SIGSEGV, SEGV_MAPERR, (void *)&bad },
	{ "on an alternate stack", on_altstack, SIGSEGV, SEGV_MAPERR, (void *)&bad },
	{ "set again", set_again, SIGSEGV, SEGV_MAPERR, (void *)&bad },
	{ "blocked", blocked, SIGSEGV, SEGV_MAPERR, (void *)&bad },
	{ "after a handler", after_a_handler, SIGSEGV, SEGV_MAPERR, (void *)&bad },
};
#define NR_DEATHS (int)(sizeof(deaths) / sizeof(*deaths))

/* A child dies under ptrace. Checks the child's last stop before its end. */
static KEEP void die_traced(int k)
{
	struct user_regs_struct regs = { 0 };
	siginfo_t info = { 0 }, at;
	int status, seen = 0;
	pid_t pid = fork(), who;

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		deaths[k].run();
		_exit(55);
	}
	check(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	check(!ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL));
	check(!ptrace(PTRACE_CONT, pid, 0, 0));
	while ((who = waitpid(-1, &status, __WALL)) > 0) {
		int sig = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;

		if (!WIFSTOPPED(status)) {
			if (who == pid)
				break;
			continue;
		}
		if (sig == SIGTRAP || sig == SIGSTOP)
			sig = 0;
		if (sig == deaths[k].sig && !ptrace(PTRACE_GETSIGINFO, who, 0, &at)) {
			info = at;
			check(!ptrace(PTRACE_GETREGS, who, 0, &regs));
			seen++;
		}
		ptrace(PTRACE_CONT, who, 0, sig);
	}
	if (!WIFSIGNALED(status) || WTERMSIG(status) != deaths[k].sig || !seen)
		die("%s: status %#x after %d stops", deaths[k].name, status, seen);
	check_eq(info.si_code, deaths[k].code);
	if (deaths[k].addr) {
		check(info.si_addr == *deaths[k].addr);
		/* if the signal is blocked or was ignored, the agent has no handler that could
		 * correct rip */
		if (deaths[k].run != blocked && deaths[k].run != set_again)
			check_eq(regs.rip, (uintptr_t)load_insn);
		check_eq(regs.rdi, (uintptr_t)*deaths[k].addr);
	}
	if (deaths[k].code == SI_QUEUE)
		check(info.si_value.sival_int == 12345 && info.si_pid == pid);
}

static KEEP void die_alone(int k)
{
	siginfo_t info;
	pid_t pid = fork();

	if (!pid) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		deaths[k].run();
		_exit(55);
	}
	check(!waitid(P_PID, pid, &info, WEXITED));
	check_eq(info.si_code, CLD_KILLED);
	check_eq(info.si_status, deaths[k].sig);
}

static KEEP void is_default(int flags, int restorer)
{
	struct sigaction a;
	int i;

	for (i = 0; i < 2; i++) {
		check(!sigaction(i ? SIGBUS : SIGSEGV, NULL, &a));
		check(a.sa_handler == SIG_DFL);
		check_eq(a.sa_flags & ~0x04000000, flags);
		check_eq(!!a.sa_restorer, restorer);
		check_eq(sigismember(&a.sa_mask, SIGUSR1), flags ? 1 : 0);
	}
}

static KEEP void dispositions(void)
{
	struct sigaction a = { .sa_handler = SIG_DFL,
			       .sa_flags = SA_ONSTACK | SA_RESETHAND | SA_RESTART };
	char *argv[] = { "sh", "-c", "kill -SEGV $$", NULL };
	pid_t pid = fork();
	int status;

	check(pid >= 0);
	if (!pid) {
		is_default(0, 0);
		sigaddset(&a.sa_mask, SIGUSR1);
		check(!sigaction(SIGSEGV, &a, NULL) && !sigaction(SIGBUS, &a, NULL));
		is_default(SA_ONSTACK | SA_RESETHAND | SA_RESTART, 1);
		_exit(7);
	}
	check(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
	check(!posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ));
	check(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	      WTERMSIG(status) == SIGSEGV);
	pid = vfork();
	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		kill(getpid(), SIGSEGV);
		_exit(3);
	}
	check(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	      WTERMSIG(status) == SIGSEGV);
}

static KEEP void one_iteration(int n)
{
	if (n % 3 == 0)
		die_alone(n % NR_DEATHS);
	else if (n % 3 == 1)
		die_traced(n % NR_DEATHS);
	else
		dispositions();
	marker_begin(n);
}

int main(void)
{
	FILE *f = tmpfile();
	int n;

	bad = (char *)0x10;
	check(f);
	cut = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(f), 0);
	check(cut != MAP_FAILED);
	is_default(0, 0);
	for (n = 0; n < 60; n++)
		one_iteration(n);
	is_default(0, 0);
	for (n = 0; n < NR_DEATHS; n++)
		printf("%s: signal %d, code %d\n", deaths[n].name, deaths[n].sig, deaths[n].code);
	return 0;
}
