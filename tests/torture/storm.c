/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Does everything that can happen between a call and its return, all at the same time. Signal
 * handlers make calls, jump away, fork, and interrupt one another. They are installed through libc
 * or by a raw system call. Threads are cancelled asynchronously. Coroutines migrate between threads
 * and are destroyed half-way. Modules are loaded and unloaded. Threads check the results of
 * functions of many shapes.
 *
 * The functions c_* count their calls. Lines on stdin:
 *
 *   park	all threads stop outside of the functions c_*, but suspended coroutines may be
 *		inside of them; prints "parked CALLS UNSURE"
 *   go		the threads continue, and the counts restart at 0
 *   end	the program ends
 *
 * UNSURE is the number of jumps, forks and cancellations. For each of them, the number of recorded
 * calls may be too large or too small by one.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include "../e2e/switch_stack.h"
#include "shapes.h"

#define COROUTINES	24
#define STACK		16384ul
#define JUMPERS		2		/* jumpers[0] has a raw handler, jumpers[1] has a handler
					 * that libc installs */
#define SA_RESTORER_	0x04000000

/* These counts are in shared memory, because children count calls, too. */
static struct shared {
	long calls, jumps, forks, cancelled, destroyed, loaded;
} *shared;
static volatile int stop, park;
static int nr_threads, nr_parked;
static const char *module_path;

/* Adds 1 with one instruction. So a handler that leaves by a jump can't leave the addition half
 * done. */
static inline void add(long *counter)
{
	__asm__ volatile("lock incq %0" : "+m"(*counter));
}

static KEEP long c_leaf(long x) { add(&shared->calls); return opaque(x) * 3; }
static KEEP long c_two(long x)
{
	add(&shared->calls);
	return opaque(c_leaf(x)) + opaque(c_leaf(x + 1));
}
static KEEP long c_three(long x)
{
	add(&shared->calls);
	return opaque(c_two(x)) - opaque(c_leaf(x));
}
static KEEP long c_deep(long n) { add(&shared->calls); return n ? opaque(c_deep(n - 1)) + 1 : 0; }
static KEEP long c_tail(long x) { add(&shared->calls); return c_leaf(x + 1); }

static void check_calls(long n)
{
	expect("c", c_three(n), 3 * n + 3);
	expect("c", c_deep(n & 7), n & 7);
	expect("c", c_tail(n), 3 * n + 3);
}

static void nap(long us)
{
	struct timespec t = { 0, us * 1000 };

	nanosleep(&t, NULL);
}

/* Waits while the threads are parked. Returns true if the program ends. In that case, the thread
 * must not make another counted call. */
static int rest(void)
{
	if (!park)
		return stop;
	__atomic_add_fetch(&nr_parked, 1, __ATOMIC_SEQ_CST);
	while (park)
		nap(500);
	__atomic_sub_fetch(&nr_parked, 1, __ATOMIC_SEQ_CST);
	return stop;
}

/* ---- handlers ------------------------------------------------------------------ */

static struct jumper {
	sigjmp_buf again;
	pid_t tid;
	int raw;
	volatile int ready;		/* a signal may be sent; the handler clears `ready` */
	volatile int resting;		/* it is in rest(), which no handler may leave by a jump:
					 * the thread would stay counted as parked */
	volatile unsigned signals;
	volatile int is_child;
} jumpers[JUMPERS];
static __thread struct jumper *me;

static void in_child(void)
{
	check_calls(7);
	_exit(0);
}

/* Forks in a handler. If libc installed the handler, the child returns to the interrupted code, and
 * ends there. If the handler is raw, the agent isn't notified of it. Then the child ends in the
 * handler. */
static void fork_here(void)
{
	int status;
	pid_t pid;

	add(&shared->forks);
	pid = fork();
	if (!pid) {
		alarm(30);
		if (me->raw)
			in_child();
		me->is_child = 1;
		return;
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0 || status)
		die("a child: %d, status %x", pid, status);
}

static void act(int nested)
{
	switch (me->signals++ % 6) {
	case 0:
	case 1:
		check_calls(3);
		break;
	case 2:
		check_calls(1);
		/* fall through */
	case 3:
		add(&shared->jumps);
		siglongjmp(me->again, 1);
	case 4:
		if (me->signals % 4 == 1)
			fork_here();
		break;
	default:
		check_calls(2);
		if (!nested)
			syscall(SYS_tgkill, getpid(), me->tid, me->raw ? SIGUSR1 : SIGUSR2);
		check_calls(2);
	}
}

static void on_signal(int sig)
{
	int error = errno;

	if (me && !me->resting) {
		int nested = !me->ready;

		me->ready = 0;
		act(nested);
	}
	errno = error;
}

/* Installs the handlers: the handler of SIGUSR1 through libc, and the handler of SIGUSR2 by a raw
 * system call. The raw handler uses libc's restorer, which is a part of SIGUSR1's action in the
 * kernel. */
static void install(void)
{
	struct { void *handler; unsigned long flags; void *restorer; unsigned long mask; } raw;
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_NODEFER };

	if (sigaction(SIGUSR1, &sa, NULL) || syscall(SYS_rt_sigaction, SIGUSR1, NULL, &raw, 8))
		die("sigaction");
	raw.handler = (void *)on_signal;
	raw.flags = SA_NODEFER | SA_RESTORER_;
	if (syscall(SYS_rt_sigaction, SIGUSR2, &raw, NULL, 8))
		die("rt_sigaction");
}

static void *jumper(void *arg)
{
	struct jumper *j = arg;
	volatile long n = 0;

	me = j;
	j->tid = (pid_t)syscall(SYS_gettid);
	sigsetjmp(j->again, 1);
	while (!stop) {
		j->ready = 0;
		j->resting = 1;
		rest();
		j->resting = 0;
		j->ready = 1;
		while (j->ready && !stop && !park) {
			check_calls(n++ & 1023);
			if (j->is_child)
				_exit(0);
			if (n % 4 == 0)
				nap(100);
		}
		if (j->is_child)
			_exit(0);
		nap(200);
	}
	return NULL;
}

/* Sends a signal to each jumper that is ready. */
static void *sender(void *arg)
{
	unsigned seed = 1;

	while (!stop) {
		rest();
		for (int i = 0; i < JUMPERS; i++) {
			if (!jumpers[i].ready)
				continue;
			for (int n = rand_r(&seed) % 3000; n > 0; n--)
				__asm__ volatile("");
			syscall(SYS_tgkill, getpid(), jumpers[i].tid,
				jumpers[i].raw ? SIGUSR2 : SIGUSR1);
		}
		nap(100);
	}
	return NULL;
}

/* ---- cancellation --------------------------------------------------------------- */

static void *victim(void *arg)
{
	int old;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	for (long n = 0; ; n++) {
		check_calls(n & 1023);
		if (n % 128 == 0)
			nap(20);
	}
	return NULL;
}

static void *canceller(void *arg)
{
	while (!stop) {
		pthread_t t;

		if (rest())
			break;
		if (pthread_create(&t, NULL, victim, NULL))
			die("pthread_create");
		nap(100);
		pthread_cancel(t);
		pthread_join(t, NULL);
		add(&shared->cancelled);
		nap(20000);
	}
	return NULL;
}

/* ---- coroutines ------------------------------------------------------------------ */

static struct coroutine {
	void *sp, *back;		/* sp: the coroutine's stack pointer. back: the stack
					 * pointer of the carrier, which is the thread that runs the
					 * coroutine */
	char *stack;
	int busy;			/* a carrier runs the coroutine */
	unsigned steps;
} coroutines[COROUTINES];

static KEEP void yield(struct coroutine *c)
{
	SWITCH(&c->sp, c->back);
}

static KEEP long c_yields(struct coroutine *c, long depth)
{
	long r;

	add(&shared->calls);
	if (depth)
		r = c_yields(c, depth - 1) + c_leaf(1);
	else
		yield(c), r = 0;
	return opaque(r);
}

static KEEP void work(struct coroutine *c)
{
	for (long n = 0; ; n++) {
		check_calls(n & 63);
		expect("coroutine", c_yields(c, n % 6), n % 6 * 3);
	}
}

/* The first function of a coroutine. It finds its struct coroutine by the address of its stack. */
__attribute__((used)) static void begin(void)
{
	uint64_t at = (uint64_t)__builtin_frame_address(0);

	for (int i = 0; i < COROUTINES; i++)
		if (at - (uint64_t)coroutines[i].stack < STACK)
			work(&coroutines[i]);
	die("no coroutine");
}

/* Destroys the coroutine and makes a new one. The new coroutine uses the old stack after it was
 * overwritten, or a new stack that is mapped at the same address. The agent isn't notified of
 * either. The stacks of all coroutines are adjacent, so the list of mappings doesn't show where one
 * stack ends. */
static void renew(struct coroutine *c)
{
	if (c->sp)
		add(&shared->destroyed);
	if (c->sp && c->steps % 2) {
		munmap(c->stack, STACK);
		if (mmap(c->stack, STACK, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != c->stack)
			die("mmap");
	} else if (c->sp) {
		memset(c->stack, 0x5a, STACK);
	}
	c->sp = stack_begin(c->stack + STACK, begin);
}

static void *carrier(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	while (!stop) {
		struct coroutine *c = &coroutines[rand_r(&seed) % COROUTINES];

		if (rest())
			break;
		if (__atomic_exchange_n(&c->busy, 1, __ATOMIC_ACQUIRE))
			continue;
		if (!c->sp || c->steps++ % 50 == 49)
			renew(c);
		SWITCH(&c->back, c->sp);
		__atomic_store_n(&c->busy, 0, __ATOMIC_RELEASE);
		if (rand_r(&seed) % 2)
			nap(100);
	}
	return NULL;
}

/* ---- modules, shapes --------------------------------------------------------------- */

static void *loader(void *arg)
{
	while (!stop) {
		long (*two)(long, long *);
		void *m;

		if (rest())
			break;
		m = dlopen(module_path, RTLD_NOW);
		two = m ? dlsym(m, "c_m_two") : NULL;
		if (!two)
			die("dlopen: %s", dlerror());
		for (long n = 0; n < 20; n++) {
			expect("module", two(n, &shared->calls), 2 * n + 11);
			if (n % 5 == 0)
				nap(1000);
		}
		dlclose(m);
		add(&shared->loaded);
		nap(5000);
	}
	return NULL;
}

static void *spinner(void *arg)
{
	for (long n = 0; !stop; n++) {
		if (rest())
			break;
		one_round(n & 4095);
		nap(1000);
	}
	return NULL;
}

/* ---- start and end ----------------------------------------------------------------- */

static pthread_t threads[16];

static void start(void *(*f)(void *), void *arg)
{
	if (pthread_create(&threads[nr_threads++], NULL, f, arg))
		die("pthread_create");
}

static long unsure(void)
{
	return shared->jumps + shared->forks + shared->cancelled;
}

static void wait_parked(void)
{
	park = 1;
	while (__atomic_load_n(&nr_parked, __ATOMIC_SEQ_CST) < nr_threads)
		nap(500);
}

int main(int argc, char **argv)
{
	long unsure_before = 0;
	char line[64], *stacks;

	module_path = argv[1];
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	stacks = mmap(NULL, COROUTINES * STACK, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (argc < 2 || shared == MAP_FAILED || stacks == MAP_FAILED)
		die("mmap");
	for (int i = 0; i < COROUTINES; i++)
		coroutines[i].stack = stacks + (unsigned long)i * STACK;
	install();
	for (int i = 0; i < JUMPERS; i++) {
		jumpers[i].raw = i == 0;
		start(jumper, &jumpers[i]);
	}
	start(sender, NULL);
	start(canceller, NULL);
	start(carrier, (void *)1l);
	start(carrier, (void *)2l);
	start(loader, NULL);
	start(spinner, NULL);
	start(spinner, NULL);
	printf("pid %d\n", getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n")) {
		if (!strcmp(line, "park\n")) {
			wait_parked();
			printf("parked %ld %ld\n", shared->calls, unsure() - unsure_before);
			fflush(stdout);
		} else {
			shared->calls = 0;
			unsure_before = unsure();
			park = 0;
		}
	}
	stop = 1;
	park = 0;
	for (int i = 0; i < nr_threads; i++)
		pthread_join(threads[i], NULL);
	printf("%ld jumps, %ld forks, %ld threads cancelled, %ld coroutines destroyed,"
	       " modules loaded %ld times\n",
	       shared->jumps, shared->forks, shared->cancelled, shared->destroyed, shared->loaded);
	puts("all results right");
	return 0;
}
