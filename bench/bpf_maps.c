/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Measures the time of one map operation, for Patchbay's maps and for this kernel's maps. C code
 * operates on Patchbay's maps. An eBPF program operates on the kernel's maps. Operations run in one
 * thread, in two threads, and in two processes that share a map. For Patchbay and for the kernel, a
 * loop makes a thousand operations. The loop also prepares key and value for each operation. The
 * time for preparing them is part of both figures.
 *
 * There is no row for lookups in an array. Patchbay and the kernel inline such a lookup into the
 * eBPF program. So the kernel's figure would be little more than the loop's time, and the C code
 * would measure a call that eBPF programs don't make. bench_bpf measures these lookups.
 *
 *   bench_bpf_maps [ROUNDS [TYPE]]	prints nanoseconds, as medians of ROUNDS (9) rounds
 *
 * In rows `same`, both threads or processes change the same keys of a map. In all other rows, they
 * use different keys.
 *
 * On shared machines, communication between the two processors becomes slower or faster for
 * seconds at a time. So before and after each measurement, a check measures how fast two threads
 * increment the same word. Only a third of the measurements is used: those with the fastest
 * checks. The last column has the time of these checks, in ns per increment.
 */
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bpf/core/program.h"
#include "bpf/map/map_file.h"
#include "bpf/map/map_sys.h"

#include "../tests/bpf/common/kernel.h"
#include "../tests/bpf/common/reopen.h"

#define LOOP	1000		/* operations in a program's run */
#define REPEAT	200		/* runs of the loop in a measurement */
#define KEYS	1024		/* number of keys in the map, which has room for twice this number;
				 * each of two threads uses half of the keys */
#define OWN	(KEYS / 2)
#define MOST	192		/* most measurements of a row, which has 3 * ROUNDS */

enum work { LOOKUP, UPDATE, BOTH, INSERT, NOTHING, NR_WORKS };
static const char *const names[] = { "lookup", "update", "lookup and update", "update and delete" };

/* ---- ours --------------------------------------------------------------------------- */

struct job {
	struct pb_bpf_map *map;
	enum work work;
	uint32_t cpu, first;	/* first: the lowest key */
	double ns;		/* ns for each operation */
	pthread_barrier_t *start;
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void loop(struct job *j, struct pb_bpf_run *run)
{
	const struct pb_bpf_map_ops *ops = j->map->ops;
	static uint64_t word[16];
	uint64_t sum = 0;

	for (uint64_t i = 0; j->work == NOTHING && i < LOOP; i++)
		__atomic_add_fetch(&word[8], 1, __ATOMIC_RELAXED);
	for (uint64_t i = 0; j->work != NOTHING && i < LOOP; i++) {
		uint64_t key = i % OWN + j->first, value[8] = { i };
		void *at;

		if (j->work == LOOKUP || j->work == BOTH) {
			at = ops->lookup(j->map, &key, run);
			sum += at ? *(uint64_t *)at : 0;
		}
		if (j->work == UPDATE || j->work == BOTH)
			ops->update(j->map, &key, value, BPF_ANY, run);
		if (j->work == INSERT) {
			key += KEYS;
			ops->update(j->map, &key, value, BPF_ANY, run);
			ops->remove(j->map, &key, run);
		}
	}
	__asm__ volatile("" : : "r"(sum));
}

/* Pins this thread to a processor. If SCHED_FIFO is allowed, keeps other threads off this processor
 * for the milliseconds of the measurement. */
static void on_cpu(uint32_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 });
}

static void *work(void *arg)
{
	struct job *j = arg;
	struct pb_bpf_run run = { .cpu_slot = j->cpu, .thread = (uint32_t)gettid() };
	double from;

	on_cpu(j->cpu);
	pthread_barrier_wait(j->start);
	from = now();
	for (int i = 0; i < REPEAT; i++)
		loop(j, &run);
	j->ns = (now() - from) / REPEAT / LOOP;
	return NULL;
}

/* Runs in a child process. The child maps the map's file by itself and does job j. On failure, the
 * child still waits at the barrier, so that the parent goes on. After that, it exits with status
 * 1. */
static void second_process(struct job *j)
{
	int fd = reopen(j->map->fd), error = fd < 0 ? errno : 0;
	struct pb_bpf_map mine;

	if (!error)
		error = -pb_bpf_map_attach(&mine, fd, PB_BPF_MAP_READ | PB_BPF_MAP_WRITE);
	if (error) {
		warnx("map of type %u: a second process can't map its file: %s", j->map->attr.type,
		      strerror(error));
		pthread_barrier_wait(j->start);
		_exit(1);
	}
	j->map = &mine;
	work(j);
	pb_bpf_map_close(&mine);
	_exit(0);
}

static double both_jobs(struct job *jobs, int nr, bool processes)
{
	pthread_barrierattr_t attr;
	pthread_t threads[2];
	int status;
	pid_t pid;
	double ns;

	jobs[0].ns = jobs[1].ns = 0;
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(jobs[0].start, &attr, (unsigned int)nr);
	if (processes) {
		pid = fork();
		if (pid < 0)
			err(1, "fork");
		if (!pid)
			second_process(&jobs[1]);
		work(&jobs[0]);
		sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 });
		if (waitpid(pid, &status, 0) != pid || status)
			errx(1, "map of type %u: the second process failed",
			     jobs[0].map->attr.type);
	} else {
		for (int i = 0; i < nr; i++)
			pthread_create(&threads[i], NULL, work, &jobs[i]);
		for (int i = 0; i < nr; i++)
			pthread_join(threads[i], NULL);
	}
	/* For one job, ns is the job's time. For two jobs, ns is the harmonic mean of their times:
	 * the time of one operation at the mean of the two rates. */
	ns = nr > 1 ? 2 / (1 / jobs[0].ns + 1 / jobs[1].ns) : jobs[0].ns;
	return ns;
}

/* Returns the ns per operation: the mean of two jobs, or the time of one job on processor `cpu`. */
static double ours(struct pb_bpf_map *map, enum work what, int nr, uint32_t cpu, bool processes,
		   bool same)
{
	struct shared {
		struct job jobs[2];
		pthread_barrier_t start;
	} *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double ns;

	for (uint32_t i = 0; i < 2; i++)
		s->jobs[i] = (struct job){ map, what, nr > 1 ? i : cpu, same ? 0 : i * OWN, 0,
					   &s->start };
	ns = both_jobs(s->jobs, nr, processes);
	munmap(s, 4096);
	return ns;
}

/* ---- the kernel's ------------------------------------------------------------------------ */

static int kernel_map(uint32_t type, uint32_t key_size, uint32_t value_size)
{
	union bpf_attr a;

	memset(&a, 0, sizeof(a));
	a.map_type = type;
	a.key_size = key_size;
	a.value_size = value_size;
	a.max_entries = 2 * KEYS;
	return (int)kernel_bpf(BPF_MAP_CREATE, &a);
}

#define INSN(c, d, s, o, i) \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })

static uint32_t emit_call(struct bpf_insn *p, uint32_t n, int fd, int32_t helper)
{
	p[n++] = INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, fd);
	p[n++] = INSN(0, 0, 0, 0, 0);
	p[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0);
	p[n++] = INSN(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -8);
	p[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_X, 3, 10, 0, 0);
	p[n++] = INSN(BPF_ALU64 | BPF_ADD | BPF_K, 3, 0, 0, -72);
	p[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_K, 4, 0, 0, 0);
	p[n++] = INSN(BPF_JMP | BPF_CALL, 0, 0, 0, helper);
	return n;
}

/* Loads a program that has the same loop as loop(). The loop's first key is `first`. */
static int kernel_prog(int fd, enum work what, uint32_t first)
{
	struct bpf_insn p[64];
	uint32_t n = 0, top;

	p[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_K, 6, 0, 0, 0);
	top = n;
	p[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_X, 7, 6, 0, 0);
	p[n++] = INSN(BPF_ALU64 | BPF_AND | BPF_K, 7, 0, 0, OWN - 1);
	p[n++] = INSN(BPF_ALU64 | BPF_ADD | BPF_K, 7, 0, 0,
		      (int32_t)first + (what == INSERT ? KEYS : 0));
	p[n++] = INSN(BPF_STX | BPF_DW | BPF_MEM, 10, 7, -8, 0);
	for (int16_t at = -72; at < -8; at += 8)
		p[n++] = INSN(BPF_STX | BPF_DW | BPF_MEM, 10, 6, at, 0);
	if (what == LOOKUP || what == BOTH) {
		n = emit_call(p, n, fd, BPF_FUNC_map_lookup_elem);
		p[n++] = INSN(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1, 0);
		p[n++] = INSN(BPF_LDX | BPF_DW | BPF_MEM, 1, 0, 0, 0);
	}
	if (what == UPDATE || what == BOTH || what == INSERT)
		n = emit_call(p, n, fd, BPF_FUNC_map_update_elem);
	if (what == INSERT)
		n = emit_call(p, n, fd, BPF_FUNC_map_delete_elem);
	p[n++] = INSN(BPF_ALU64 | BPF_ADD | BPF_K, 6, 0, 0, 1);
	p[n] = INSN(BPF_JMP | BPF_JLT | BPF_K, 6, 0, (int16_t)(top - n - 1), LOOP);
	n++;
	p[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0);
	p[n++] = INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	return kernel_load(BPF_PROG_TYPE_SOCKET_FILTER, 0, p, n, NULL, 0);
}

struct kernel_job {
	int prog;
	uint32_t cpu;
	double ns;
	pthread_barrier_t *start;
};

static void *kernel_work(void *arg)
{
	struct kernel_job *j = arg;
	uint8_t data[64] = { 0 };
	union bpf_attr a;

	memset(&a, 0, sizeof(a));
	a.test.prog_fd = (uint32_t)j->prog;
	a.test.data_in = (uintptr_t)data;
	a.test.data_size_in = sizeof(data);
	a.test.repeat = REPEAT;
	on_cpu(j->cpu);
	pthread_barrier_wait(j->start);
	j->ns = kernel_bpf(BPF_PROG_TEST_RUN, &a) ? 0 : (double)a.test.duration / LOOP;
	return NULL;
}

static double kernel(int fd, enum work what, int nr, uint32_t cpu, bool same)
{
	struct kernel_job jobs[2];
	pthread_barrier_t start;
	pthread_t threads[2];

	pthread_barrier_init(&start, NULL, (unsigned int)nr);
	for (uint32_t i = 0; i < (uint32_t)nr; i++) {
		jobs[i] = (struct kernel_job){ kernel_prog(fd, what, same ? 0 : i * OWN),
					       nr > 1 ? i : cpu, 0, &start };
		pthread_create(&threads[i], NULL, kernel_work, &jobs[i]);
	}
	for (int i = 0; i < nr; i++) {
		pthread_join(threads[i], NULL);
		close(jobs[i].prog);
	}
	return nr > 1 ? 2 / (1 / jobs[0].ns + 1 / jobs[1].ns) : jobs[0].ns;
}

/* ---- both ----------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, int nr)
{
	qsort(v, (size_t)nr, sizeof(*v), by_value);
	return v[nr / 2];
}

struct row {
	const char *type;
	uint32_t number;
	enum work what;
	uint32_t value_size;
	bool same;
	int fd;
	struct pb_bpf_map map;
	/* v: ns for each operation. In one thread: the kernel (0), ours (1). In two threads: the
	 * kernel (2), ours (3). In two processes: ours (4). word: ns per increment in the checks */
	double v[5][MOST], word[MOST];
};

static bool open_row(struct row *r)
{
	bool array = r->number == BPF_MAP_TYPE_ARRAY || r->number == BPF_MAP_TYPE_PERCPU_ARRAY;
	uint32_t key_size = array ? 4 : 8;
	struct pb_bpf_map_spec spec = {
		.attr = { r->number, key_size, r->value_size, 2 * KEYS, 0 }, .cpu_slots = 2,
		.types = { .spin_lock_off = -1, .timer_off = -1 }
	};
	struct pb_bpf_run run = { 0 };

	r->fd = kernel_map(r->number, key_size, r->value_size);
	if (r->fd < 0 || pb_bpf_map_create(&r->map, &spec))
		return false;
	for (uint64_t key = 0, value[8] = { 0 }; key < KEYS; key++) {
		union bpf_attr a;

		memset(&a, 0, sizeof(a));
		a.map_fd = (uint32_t)r->fd;
		a.key = (uintptr_t)&key;
		a.value = (uintptr_t)value;
		kernel_bpf(BPF_MAP_UPDATE_ELEM, &a);
		r->map.ops->update(&r->map, &key, value, BPF_ANY, &run);
	}
	return true;
}

static void measure(struct row *r, int i)
{
	r->word[i] = ours(&r->map, NOTHING, 2, 0, false, false);
	r->v[0][i] = (kernel(r->fd, r->what, 1, 0, r->same) +
		      kernel(r->fd, r->what, 1, 1, r->same)) / 2;
	r->v[1][i] = (ours(&r->map, r->what, 1, 0, false, r->same) +
		      ours(&r->map, r->what, 1, 1, false, r->same)) / 2;
	r->v[2][i] = kernel(r->fd, r->what, 2, 0, r->same);
	r->v[3][i] = ours(&r->map, r->what, 2, 0, false, r->same);
	r->v[4][i] = ours(&r->map, r->what, 2, 0, true, r->same);
	r->word[i] = (r->word[i] + ours(&r->map, NOTHING, 2, 0, false, false)) / 2;
}

static void show(struct row *r, int rounds)
{
	double sorted[MOST], v[5], most;
	int kept = 0;

	memcpy(sorted, r->word, sizeof(sorted));
	qsort(sorted, (size_t)rounds * 3, sizeof(*sorted), by_value);
	most = sorted[rounds - 1];
	for (int i = 0; i < 3 * rounds && kept < rounds; i++) {
		if (r->word[i] > most)
			continue;
		for (int k = 0; k < 5; k++)
			r->v[k][kept] = r->v[k][i];
		r->word[kept++] = r->word[i];
	}
	for (int k = 0; k < 5; k++)
		v[k] = median(r->v[k], kept);
	printf("%-14s %-18s %7.1f %7.1f %6.2f   %7.1f %7.1f   %7.1f   %5.2f %5.2f %5.2f %5.1f\n",
	       r->type, names[r->what], v[0], v[1], v[1] / v[0], v[2], v[3], v[4], 2 * v[0] / v[2],
	       2 * v[1] / v[3], 2 * v[1] / v[4], median(r->word, kept));
}

/* Each kind has one row in the table for each operation from `first` to `last`. */
static const struct kind {
	const char *type;
	uint32_t number;
	enum work first, last;
	uint32_t value_size;
	bool same;
} kinds[] = {
	{ "array", BPF_MAP_TYPE_ARRAY, UPDATE, UPDATE, 8, false },
	{ "hash", BPF_MAP_TYPE_HASH, LOOKUP, INSERT, 8, false },
	{ "hash, 64 bytes", BPF_MAP_TYPE_HASH, UPDATE, INSERT, 64, false },
	{ "hash, same", BPF_MAP_TYPE_HASH, UPDATE, INSERT, 8, true },
	{ "lru_hash", BPF_MAP_TYPE_LRU_HASH, LOOKUP, INSERT, 8, false },
	{ "percpu_hash", BPF_MAP_TYPE_PERCPU_HASH, LOOKUP, BOTH, 8, false },
};

int main(int argc, char **argv)
{
	static struct row rows[NR_WORKS * sizeof(kinds) / sizeof(kinds[0])];
	int rounds = argc > 1 ? atoi(argv[1]) : 9, nr = 0;

	if (!kernel_is_there() || rounds < 1 || rounds > MOST / 3)
		return 77;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (enum work w = kinds[k].first;
		     w <= kinds[k].last && (argc < 3 || !strcmp(argv[2], kinds[k].type)); w++) {
			rows[nr] = (struct row){ .type = kinds[k].type, .number = kinds[k].number,
						.what = w, .value_size = kinds[k].value_size,
						.same = kinds[k].same };
			nr += open_row(&rows[nr]);
		}
	for (int i = 0; i < 3 * rounds; i++)
		for (int n = 0; n < nr; n++)
			measure(&rows[n], i);
	printf("%-33s %23s   %15s   %7s   %s\n", "", "one thread", "two threads", "two",
	       "throughput of two / one");
	printf("%-33s %7s %7s %6s   %7s %7s   %7s   %5s %5s %5s %5s\n", "ns", "kernel", "ours",
	       "ratio", "kernel", "ours", "process", "kern.", "thr.", "proc.", "word");
	for (int n = 0; n < nr; n++)
		show(&rows[n], rounds);
	return 0;
}
