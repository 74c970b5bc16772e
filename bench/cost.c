/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that times its own loops. Some loops call traced functions. Other loops call limit() or
 * entry_limit(), which do only the work that every tracer has to do: read the clock and write a
 * record. All loops run in one process, and take turns in short slices.
 *
 *   cost slices K [DIR]   K slices of every loop; prints the median ns per call of each loop, as
 *                         JSON. Before the slices, a loop of leaf fills the tracer's buffer (of
 *                         default size) once. Three values are CPU times per call: "first_8mb" for
 *                         this loop's first million calls (8 MB of records), "first_pass" for all
 *                         calls of this loop, and "later_passes" for calls after this loop. With
 *                         DIR, the program first writes its PID to DIR/pid and waits for DIR/go, so
 *                         that tracing can be changed before a slice runs
 *   cost threads K        K slices in one thread and in two threads; prints how limit, leaf and fib
 *                         scale
 *   cost idle T CALLS     starts T threads. Each thread makes CALLS traced calls and then waits.
 *                         Prints the memory before and after the start
 *   cost leaf N           N calls of leaf, nothing else
 *   cost fib N            fib(N)
 *   cost mix N M          N calls of leaf, then fib(M)
 *
 * The functions to trace are leaf(), fib(), leaf_loop(), fib_loop() and other(). Nothing calls
 * other(). leaf_loop() and fib_loop() are traced so that the options -D and -N can reject the calls
 * that they make. UNTRACED functions have no patchable entry, whatever the compiler's options are.
 * The two limits are assembly, so the compiler adds no patchable entry to them either.
 *
 * The program must be built with -O2 -fno-optimize-sibling-calls. Otherwise gcc turns
 * half of fib's calls into a loop.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define UNTRACED __attribute__((noipa, patchable_function_entry(0)))
#define TRACED	 __attribute__((noipa))

#define LOG_BYTES   (1ul << 20)	/* size of the buffer for the limits' records; about the size of an
				 * L2 cache */
#define SLICE_CALLS 200000
#define SLICE_FIB   24		/* 150,049 calls */
#define FIRST_8MB   1000000	/* the number of 8-byte records in 8 MB */
#define FIRST_PASS  9000000	/* this number of 8-byte records fills the tracer's buffer, which
				 * has 64 MiB by default */
#define MAX_SLICES  1001

/* The buffer in which limit() and entry_limit() write a thread's records. `next` is the address of
 * the next record. At the buffer's end, `next` goes back to `start`. */
__thread struct limit_log {
	char *next, *end, *start;
} limit_log;

/*
 * limit: two clock reads and one 8-byte record stored at a moving pointer.
 * entry_limit: one clock read and a 16-byte record.
 */
int limit(int x);
int entry_limit(int x);
int clock_once(int x);

__asm__(
"	.text\n"
"	.p2align 4\n"
"	.globl limit\n"
"	.type limit,@function\n"
"limit:	rdtsc\n"
"	shl $32,%rdx\n"
"	or %rdx,%rax\n"
"	mov %rax,%r8\n"
"	rdtsc\n"
"	shl $32,%rdx\n"
"	or %rdx,%rax\n"
"	sub %r8,%rax\n"
"	shl $24,%rax\n"
"	or $5,%rax\n"
"	mov %fs:limit_log@tpoff,%rcx\n"
"	mov %rax,(%rcx)\n"
"	add $8,%rcx\n"
"	cmp %fs:limit_log@tpoff+8,%rcx\n"
"	jae 2f\n"
"1:	mov %rcx,%fs:limit_log@tpoff\n"
"	ret\n"
"2:	mov %fs:limit_log@tpoff+16,%rcx\n"
"	jmp 1b\n"
"	.size limit,.-limit\n"
"	.p2align 4\n"
"	.globl entry_limit\n"
"	.type entry_limit,@function\n"
"entry_limit:\n"
"	rdtsc\n"
"	shl $32,%rdx\n"
"	or %rdx,%rax\n"
"	mov %fs:limit_log@tpoff,%rcx\n"
"	mov %rax,(%rcx)\n"
"	mov %rdi,8(%rcx)\n"
"	add $16,%rcx\n"
"	cmp %fs:limit_log@tpoff+8,%rcx\n"
"	jae 2f\n"
"1:	mov %rcx,%fs:limit_log@tpoff\n"
"	ret\n"
"2:	mov %fs:limit_log@tpoff+16,%rcx\n"
"	jmp 1b\n"
"	.size entry_limit,.-entry_limit\n"
"	.p2align 4\n"
"	.globl clock_once\n"
"	.type clock_once,@function\n"
"clock_once:\n"
"	rdtsc\n"
"	shl $32,%rdx\n"
"	or %rdx,%rax\n"
"	ret\n"
"	.size clock_once,.-clock_once\n");

TRACED int leaf(int x)
{
	return (x * 3 + 1) ^ 7;
}

TRACED int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

TRACED int other(int x)
{
	return (x * 5 + 3) ^ 9;
}

UNTRACED int empty(int x)
{
	return x;
}

UNTRACED int gettime(int x)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return x;
}

TRACED int leaf_loop(long n)
{
	int x = 1;

	for (long i = 0; i < n; i++)
		x = leaf(x);
	return x;
}

TRACED int fib_loop(int n)
{
	return fib(n);
}

#define UNTRACED_LOOP(f)			\
UNTRACED static int f##_loop(long n)		\
{						\
	int x = 1;				\
						\
	for (long i = 0; i < n; i++)		\
		x = f(x);			\
	return x;				\
}

UNTRACED_LOOP(empty)
UNTRACED_LOOP(clock_once)
UNTRACED_LOOP(gettime)
UNTRACED_LOOP(limit)
UNTRACED_LOOP(entry_limit)

UNTRACED static int fib_slice(long n)
{
	(void)n;
	return fib_loop(SLICE_FIB);
}

UNTRACED static long fib_calls(int n)
{
	long a = 1, b = 1;

	for (int i = 2; i <= n; i++) {
		long c = a + b + 1;

		a = b;
		b = c;
	}
	return b;
}

static const struct loop {
	const char *name;
	int (*run)(long n);
} loops[] = {
	{ "empty", empty_loop },	{ "rdtsc", clock_once_loop },
	{ "clock_gettime", gettime_loop }, { "limit", limit_loop },
	{ "leaf", leaf_loop },		{ "entry_limit", entry_limit_loop },
	{ "fib", fib_slice },
};
#define NR_LOOPS (sizeof(loops) / sizeof(loops[0]))

UNTRACED static long loop_calls(const struct loop *loop)
{
	return loop->run == fib_slice ? fib_calls(SLICE_FIB) : SLICE_CALLS;
}

UNTRACED static void limit_log_init(void)
{
	char *log = aligned_alloc(4096, LOG_BYTES);

	if (!log)
		abort();
	memset(log, 1, LOG_BYTES);
	limit_log = (struct limit_log){ log, log + LOG_BYTES, log };
}

UNTRACED static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

UNTRACED static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

UNTRACED static double median(double *v, int n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

UNTRACED static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static double samples[NR_LOOPS][MAX_SLICES];
static volatile int sink;

UNTRACED static void wait_in(const char *dir)
{
	struct timespec pause = { .tv_nsec = 2000000 };
	FILE *f;

	if (chdir(dir) || !(f = fopen("pid.new", "w"))) {
		perror(dir);
		exit(1);
	}
	fprintf(f, "%d\n", (int)getpid());
	fclose(f);
	rename("pid.new", "pid");
	while (access("go", F_OK))
		nanosleep(&pause, NULL);
}

/* CPU time per call of leaf in ns. part: the first 8 MB of records. pass: the first pass through
 * the tracer's buffer. During this pass, the kernel also allocates the buffer's pages. later: calls
 * after the first pass. */
static struct first {
	double part, pass, later;
} first;

UNTRACED static void time_first_pass(void)
{
	double start = cpu_ns(), later[MAX_SLICES];

	sink += leaf_loop(FIRST_8MB);
	first.part = (cpu_ns() - start) / FIRST_8MB;
	sink += leaf_loop(FIRST_PASS - FIRST_8MB);
	first.pass = (cpu_ns() - start) / FIRST_PASS;
	for (int i = 0; i < 41; i++) {
		start = cpu_ns();
		sink += leaf_loop(SLICE_CALLS);
		later[i] = (cpu_ns() - start) / SLICE_CALLS;
	}
	first.later = median(later, 41);
}

UNTRACED static void slices(int k)
{
	limit_log_init();
	time_first_pass();
	for (int s = -1; s < k; s++)	/* slice -1 warms up */
		for (size_t i = 0; i < NR_LOOPS; i++) {
			long n = loop_calls(&loops[i]);
			double t = now_ns();

			sink += loops[i].run(n);
			if (s >= 0)
				samples[i][s] = (now_ns() - t) / n;
		}
	for (size_t i = 0; i < NR_LOOPS; i++)
		printf("%s\"%s\": %.4f", i ? ", " : "{", loops[i].name, median(samples[i], k));
	printf(", \"first_8mb\": %.4f, \"first_pass\": %.4f, \"later_passes\": %.4f}\n", first.part,
	       first.pass, first.later);
}

/*
 * There are two workers, each on its own processor. A slice runs a loop in worker 0 alone, then in
 * both workers. A loop's scaling is the calls per second of both workers, divided by the calls per
 * second of one worker. A barrier starts the work. It wakes the workers tens of microseconds
 * apart. So after the barrier, each worker spins until the other worker has arrived.
 */
#define SPAN_NS 20e6		/* how long one thread runs a loop in each slice */

static pthread_barrier_t gate;
static struct work {
	const struct loop *loop;
	int times, workers;
} work;
static int arrived;
static struct span {
	double start, end;
} spans[2];

UNTRACED static void pin(int nth)
{
	cpu_set_t all, one;

	sched_getaffinity(0, sizeof(all), &all);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && !nth--) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
			return;
		}
	fprintf(stderr, "cost: needs two processors\n");
	exit(1);
}

UNTRACED static void do_work(struct span *span)
{
	long n = loop_calls(work.loop);
	int x = 0;

	__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < work.workers)
		;
	span->start = now_ns();
	for (int i = 0; i < work.times; i++)
		x += work.loop->run(n);
	span->end = now_ns();
	__asm__ volatile("" : : "r"(x));
}

UNTRACED static void *worker(void *arg)
{
	int me = (int)(intptr_t)arg;

	pin(me);
	limit_log_init();
	for (;;) {
		pthread_barrier_wait(&gate);
		if (!work.loop)
			return NULL;
		if (me < work.workers)
			do_work(&spans[me]);
		pthread_barrier_wait(&gate);
	}
}

UNTRACED static double calls_per_ns(const struct loop *loop, int times, int workers)
{
	double start, end;

	work = (struct work){ loop, times, workers };
	arrived = 0;
	pthread_barrier_wait(&gate);
	pthread_barrier_wait(&gate);
	start = spans[0].start;
	end = spans[0].end;
	if (workers == 2) {
		start = spans[1].start < start ? spans[1].start : start;
		end = spans[1].end > end ? spans[1].end : end;
	}
	return (double)loop_calls(loop) * times * workers / (end - start);
}

UNTRACED static const struct loop *loop_named(const char *name)
{
	for (size_t i = 0; i < NR_LOOPS; i++)
		if (!strcmp(loops[i].name, name))
			return &loops[i];
	abort();
}

UNTRACED static void threads(int k)
{
	static const char *const names[] = { "limit", "leaf", "fib" };
	int times[3] = { 1, 1, 1 };
	pthread_t id[2];

	pthread_barrier_init(&gate, NULL, 3);
	for (intptr_t i = 0; i < 2; i++)
		pthread_create(&id[i], NULL, worker, (void *)i);
	for (int s = -1; s < k; s++)	/* slice -1 finds how often a loop must run to fill a
					 * slice */
		for (int i = 0; i < 3; i++) {
			const struct loop *loop = loop_named(names[i]);
			double one = calls_per_ns(loop, times[i], 1);

			if (s < 0)
				times[i] = 1 + SPAN_NS * one / loop_calls(loop);
			else
				samples[i][s] = calls_per_ns(loop, times[i], 2) / one;
		}
	work.loop = NULL;
	pthread_barrier_wait(&gate);
	for (int i = 0; i < 2; i++)
		pthread_join(id[i], NULL);
	for (int i = 0; i < 3; i++)
		printf("%s\"%s\": %.4f", i ? ", " : "{", names[i], median(samples[i], k));
	printf("}\n");
}

static pthread_barrier_t idle_ready;
static pthread_mutex_t idle_hold = PTHREAD_MUTEX_INITIALIZER;
static long idle_calls;

UNTRACED static void *idle_thread(void *arg)
{
	int x = 1;

	for (long i = 0; i < idle_calls; i++)
		x = leaf(x);
	__asm__ volatile("" : : "r"(x));
	pthread_barrier_wait(&idle_ready);
	pthread_mutex_lock(&idle_hold);
	pthread_mutex_unlock(&idle_hold);
	return arg;
}

UNTRACED static void print_memory(const char *when)
{
	static const char *const keys[] = { "VmRSS:", "RssAnon:", "RssFile:", "RssShmem:",
					    "VmSize:" };
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
			if (!strncmp(line, keys[i], strlen(keys[i])))
				printf("\"%s_%.*s\": %ld, ", when, (int)strlen(keys[i]) - 1,
				       keys[i], atol(line + strlen(keys[i])) * 1024);
	if (f)
		fclose(f);
}

UNTRACED static void idle(int nr, long calls)
{
	pthread_t *id = calloc(nr, sizeof(*id));
	pthread_attr_t attr;

	if (!id)
		abort();
	idle_calls = calls;
	sink += leaf(1);		/* so that the tracer allocates this thread's state
					 * before memory is measured */
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	pthread_barrier_init(&idle_ready, NULL, nr + 1);
	pthread_mutex_lock(&idle_hold);
	printf("{");
	print_memory("before");
	for (int i = 0; i < nr; i++)
		if (pthread_create(&id[i], &attr, idle_thread, NULL)) {
			fprintf(stderr, "cost: can't make thread %d\n", i);
			exit(1);
		}
	pthread_barrier_wait(&idle_ready);
	print_memory("after");
	printf("\"threads\": %d}\n", nr);
	pthread_mutex_unlock(&idle_hold);
	for (int i = 0; i < nr; i++)
		pthread_join(id[i], NULL);
}

UNTRACED int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	long n = argc > 2 ? atol(argv[2]) : 0;
	long m = argc > 3 ? atol(argv[3]) : 0;

	if (n > MAX_SLICES && (!strcmp(mode, "slices") || !strcmp(mode, "threads")))
		n = MAX_SLICES;
	if (!strcmp(mode, "slices") && argc > 3)
		wait_in(argv[3]);
	if (!strcmp(mode, "slices") && n > 0)
		slices(n);
	else if (!strcmp(mode, "threads") && n > 0)
		threads(n);
	else if (!strcmp(mode, "idle"))
		idle(n, m);
	else if (!strcmp(mode, "leaf"))
		printf("{\"calls\": %ld, \"result\": %d}\n", n + 1, leaf_loop(n));
	else if (!strcmp(mode, "fib"))
		printf("{\"calls\": %ld, \"result\": %d}\n", fib_calls(n) + 1, fib_loop(n));
	else if (!strcmp(mode, "mix"))
		printf("{\"calls\": %ld, \"result\": %d}\n", n + fib_calls(m) + 2,
		       leaf_loop(n) + fib_loop(m));
	else {
		fprintf(stderr,
			"usage: cost slices K [DIR] | threads K | idle T CALLS | leaf N | fib N"
			" | mix N M\n");
		return 2;
	}
	return 0;
}
