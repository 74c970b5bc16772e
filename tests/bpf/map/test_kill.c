/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kills processes while they change a map that they share with other processes.
 *
 *   test_kill step STRIDE [TYPE]	repeats each operation; kills its process after 0, STRIDE,
 *					2 * STRIDE ... instructions
 *   test_kill linger STRIDE [TYPE]	the same, but the dead process's memory stays for a while
 *   test_kill random SECONDS [TYPE [SEED]]	two processes work and are killed at random moments
 *
 * After a kill, the map must have its contents from before or after the operation. Each element
 * must be in a list or free. The map must take elements up to its limit, and no more elements.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bpf/map/map_file.h"
#include "bpf/map/map_hash.h"
#include "bpf/map/map_ringbuf.h"
#include "bpf/map/map_sys.h"
#include "../../unit/step_path.h"
#include "../common/reopen.h"

#define MAX	8
#define KEYS	12
#define WORDS	4

static int failures, passed;
static const char *doing = "";
static uint64_t rng = 1;

static uint32_t rnd(uint32_t below)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)((rng * 0x2545f4914f6cdd1dull >> 32) % below);
}

#define CHECK(cond, ...) do { \
	if (!(cond)) { \
		if (failures++ < 10) { \
			printf("FAIL %s: %s:", doing, #cond); \
			printf(" " __VA_ARGS__); \
			puts(""); \
		} \
	} \
} while (0)

/* ---- maps and what is done to them ----------------------------------------------- */

static const struct type {
	const char *name;
	struct pb_bpf_map_attr attr;
} types[] = {
	{ "hash", { BPF_MAP_TYPE_HASH, 8, WORDS * 8, MAX, 0 } },
	{ "small_hash", { BPF_MAP_TYPE_HASH, 8, 8, MAX, 0 } },
	{ "percpu_hash", { BPF_MAP_TYPE_PERCPU_HASH, 8, WORDS * 8, MAX, 0 } },
	{ "lru_hash", { BPF_MAP_TYPE_LRU_HASH, 8, WORDS * 8, MAX, 0 } },
	{ "lru_percpu_hash", { BPF_MAP_TYPE_LRU_PERCPU_HASH, 8, WORDS * 8, MAX, 0 } },
	{ "lpm_trie", { BPF_MAP_TYPE_LPM_TRIE, 8, WORDS * 8, MAX, BPF_F_NO_PREALLOC } },
	{ "array", { BPF_MAP_TYPE_ARRAY, 4, 8, MAX, 0 } },
	{ "queue", { BPF_MAP_TYPE_QUEUE, 0, WORDS * 8, MAX, 0 } },
	{ "stack", { BPF_MAP_TYPE_STACK, 0, WORDS * 8, MAX, 0 } },
	{ "ringbuf", { BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0 } },
};
#define NR_TYPES (sizeof(types) / sizeof(*types))

static bool hashed(const struct pb_bpf_map *m)
{
	return m->attr.type != BPF_MAP_TYPE_LPM_TRIE && m->attr.type != BPF_MAP_TYPE_ARRAY &&
	       m->attr.key_size;
}

static bool queued(const struct pb_bpf_map *m)
{
	return !m->attr.key_size && m->attr.type != BPF_MAP_TYPE_RINGBUF;
}

static bool percpu(const struct pb_bpf_map *m)
{
	return m->cpu_slots > 1;
}

static struct pb_bpf_map_spec spec_of(const struct type *t)
{
	struct pb_bpf_map_spec s = { .attr = t->attr, .cpu_slots = 2,
		.types = { .spin_lock_off = -1, .timer_off = -1 } };

	return s;
}

static void make_key(const struct pb_bpf_map *m, uint64_t n, uint64_t *key)
{
	uint32_t prefix[2] = {
		4 + (uint32_t)n % 3 * 14, __builtin_bswap32((uint32_t)n << 27 | (uint32_t)n << 4) };

	*key = m->attr.type == BPF_MAP_TYPE_LPM_TRIE ? prefix[0] | (uint64_t)prefix[1] << 32 : n;
}

/* Makes a value whose words are all equal. So a check can recognize a torn value. */
static void make_value(uint64_t n, uint64_t *value)
{
	uint64_t salt = rnd(1 << 20);

	for (int i = 0; i < 2 * WORDS; i++)
		value[i] = n << 32 | salt;
}

static void check_value(const struct pb_bpf_map *m, uint64_t n, const uint64_t *value)
{
	int words = (int)(m->attr.value_size / 8);

	for (int i = 0; i < words; i++) {
		/* 0 is allowed: per-CPU slots are filled one by one, and an array has all keys from
		 * the beginning */
		if (!value[i] && (percpu(m) || m->attr.type == BPF_MAP_TYPE_ARRAY))
			continue;
		CHECK(n == UINT64_MAX || value[i] >> 32 == n, "key %llu value %llx",
		      (unsigned long long)n, (unsigned long long)value[i]);
		CHECK(percpu(m) || value[i] == value[0], "a torn value");
	}
}

static void operate(struct pb_bpf_map *m, int op, uint64_t n)
{
	uint64_t key, value[2 * WORDS];
	void *to;

	make_key(m, n, &key);
	make_value(n, value);
	if (m->attr.type == BPF_MAP_TYPE_RINGBUF) {
		to = pb_bpf_ringbuf_reserve(m, 8 + n * 8, 0);
		if (!to)
			return;
		for (uint64_t i = 0; i < n + 1; i++)
			((uint64_t *)to)[i] = value[0];
		pb_bpf_ringbuf_submit(m, to, 0, op == 1);
	} else if (queued(m)) {
		op == 1 ? pb_bpf_map_lookup_and_delete_elem(m, NULL, value, 0) :
			  pb_bpf_map_update_elem(m, NULL, value, op == 2 ? BPF_EXIST : BPF_ANY);
	} else if (op == 1) {
		pb_bpf_map_delete_elem(m, &key);
	} else {
		pb_bpf_map_update_elem(m, &key, value, BPF_ANY);
	}
}

/* ---- checks -------------------------------------------------------------------------- */

static int take_record(void *arg, const void *data, uint64_t size)
{
	const uint64_t *word = data;

	CHECK(size == 8 + 8 * (word[0] >> 32), "size %llu", (unsigned long long)size);
	for (uint64_t i = 0; i < size / 8; i++)
		CHECK(word[i] == word[0], "a torn record");
	++*(int *)arg;
	return 0;
}

static uint32_t nr_keys(struct pb_bpf_map *m)
{
	uint64_t key, next = 0, value[2 * WORDS], wanted;
	uint32_t nr = 0, seen = 0;

	for (void *at = NULL; nr < 4 * KEYS && !pb_bpf_map_get_next_key(m, at, &next); nr++) {
		uint64_t n = 0;

		key = next;
		at = &key;
		for (; n < KEYS; n++) {
			make_key(m, n, &wanted);
			if (wanted == key)
				break;
		}
		CHECK(n < KEYS, "key %llx", (unsigned long long)key);
		CHECK(!(seen & 1u << n), "key %llu twice", (unsigned long long)n);
		seen |= 1u << n;
		if (!pb_bpf_map_lookup_elem(m, &key, value, 0))
			check_value(m, n, value);
	}
	return nr;
}

/* Checks that no change of a value is still announced (map_hash.h). */
static void check_changes(struct pb_bpf_map *m)
{
	for (uint32_t i = 0; i < CHANGING; i++)
		CHECK(!hash_top(m)->changing[i], "word %u", i);
	for (uint32_t link = 1; percpu(m) && link <= m->nr_elems; link++)
		CHECK(!elem(m, link)->small, "element %u", link);
}

/* Each element must be in a list or free; `lost` counts the elements that are neither. */
static void check_elements(struct pb_bpf_map *m)
{
	uint32_t in_list = 0, lost = 0, keys = nr_keys(m);

	for (uint32_t link = 1; link <= m->nr_elems; link++) {
		struct elem *e = elem(m, link);

		if (!e->next || (STATE(e->next) == FREE && !(LINK(e->next) & END)))
			continue;
		if (!STATE(e->next) && pb_bpf_hash_in_list(m, e->hash & m->mask, link) == 1)
			in_list++;
		else
			lost++;
	}
	CHECK(!lost, "%u elements", lost);
	CHECK(in_list == keys, "%u and %u", in_list, keys);
	CHECK(pb_bpf_hash_keys(m) == keys, "%u and %u", pb_bpf_hash_keys(m), keys);
}

/* Empties the map. After that, the map must take exactly its maximal number of elements. */
static void check_limit(struct pb_bpf_map *m)
{
	bool lru = m->attr.type == BPF_MAP_TYPE_LRU_HASH ||
		m->attr.type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
	uint64_t key, value[2 * WORDS];
	int err;

	for (uint64_t n = 0; n < KEYS; n++) {
		make_key(m, n, &key);
		pb_bpf_map_delete_elem(m, &key);
	}
	CHECK(!nr_keys(m), "%u left", nr_keys(m));
	for (uint64_t n = 0; n < KEYS; n++) {
		make_key(m, n, &key);
		make_value(n, value);
		err = pb_bpf_map_update_elem(m, &key, value, BPF_ANY);
		CHECK(err == (n < MAX || lru ? 0 :
			      m->attr.type == BPF_MAP_TYPE_LPM_TRIE ? -ENOSPC : -E2BIG),
		      "number %llu: %d", (unsigned long long)n, err);
	}
	CHECK(nr_keys(m) == MAX, "%u keys", nr_keys(m));
}

/* The map must have at least `least` and at most `most` values. After these values are removed, it
 * must take MAX values. */
static void check_queue(struct pb_bpf_map *m, int least, int most)
{
	uint64_t value[2 * WORDS];
	int n = 0;

	for (; n < 2 * MAX && !pb_bpf_map_lookup_and_delete_elem(m, NULL, value, 0); n++)
		check_value(m, UINT64_MAX, value);
	CHECK(n >= least && n <= most, "%d values, not %d to %d", n, least, most);
	for (int i = 0; i <= MAX; i++) {
		make_value(0, value);
		n = pb_bpf_map_update_elem(m, NULL, value, 0);
		CHECK(n == (i < MAX ? 0 : -E2BIG), "number %d: %d", i, n);
	}
}

static void check_ringbuf(struct pb_bpf_map *m)
{
	int nr = 0, put = 0, after = 0;

	pb_bpf_ringbuf_consume(m, take_record, &nr);
	CHECK(!pb_bpf_ringbuf_query(m, BPF_RB_AVAIL_DATA), "%llu bytes stay",
	      (unsigned long long)pb_bpf_ringbuf_query(m, BPF_RB_AVAIL_DATA));
	for (; put < 1000 && pb_bpf_ringbuf_query(m, BPF_RB_AVAIL_DATA) < 4000; put++)
		operate(m, 0, (uint64_t)put % 5);
	pb_bpf_ringbuf_consume(m, take_record, &after);
	CHECK(after == put, "%d of %d", after, put);
}

/* Repairs the map as an agent does that gets the owner number of a dead process. An agent can't ask
 * which processes live, so its functions for this are NULL. */
static void repair_as_agent(const struct pb_bpf_map *m)
{
	struct pb_bpf_map agent = *m;

	agent.alive = NULL;
	agent.claim = NULL;
	agent.unclaim = NULL;
	for (uint32_t owner = 1; owner < PB_BPF_MAX_OWNERS; owner++)
		if (owner != m->owner && m->head->owners[owner / 32] >> owner % 32 & 1)
			m->ops->repair(&agent, owner);
}

/*
 * Checks the map while no other process uses it. A dead process may hold its lock for a moment
 * after waitpid(), because the kernel releases the lock together with the process's memory. A
 * reader of /proc/PID/stat can keep that memory alive for a moment.
 */
static void check(struct pb_bpf_map *m, int least, int most)
{
	static bool agent;

	while (pb_bpf_map_file_used(m->fd))
		usleep(1000);
	if (m->attr.type == BPF_MAP_TYPE_RINGBUF) {
		check_ringbuf(m);
	} else if (queued(m)) {
		check_queue(m, least, most);
	} else if (m->attr.type == BPF_MAP_TYPE_ARRAY) {
		nr_keys(m);
	} else {
		CHECK(nr_keys(m) <= KEYS);
		agent = !agent;
		if (m->ops->repair && agent)
			repair_as_agent(m);
		else if (m->ops->repair)
			m->ops->repair(m, 0);
		if (hashed(m)) {
			check_changes(m);
			check_elements(m);
		}
		check_limit(m);
		if (hashed(m))
			check_elements(m);
	}
}

/* ---- another process ------------------------------------------------------------------- */

static void attach(struct pb_bpf_map *m, int fd)
{
	int copy = reopen(fd);

	if (copy < 0 || pb_bpf_map_attach(m, copy, PB_BPF_MAP_READ | PB_BPF_MAP_WRITE)) {
		puts("FAIL no second view");
		fflush(stdout);
		_exit(3);
	}
}

static void fill(struct pb_bpf_map *m, int nr)
{
	for (int n = 0; n < nr; n++)
		operate(m, 0, (uint64_t)n);
}

static void reap(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Shares its parent's memory. After the parent has died, this process keeps the memory for a
 * while. */
static int linger(void *arg)
{
	const struct timespec ms = { 0, 1000000 }, long_after = { 0, 30000000 };
	pid_t parent = *(pid_t *)arg;

	while (getppid() == parent)
		nanosleep(&ms, NULL);
	nanosleep(&long_after, NULL);
	_exit(0);
}

static void operate_traced(struct pb_bpf_map *m, int op, uint64_t n, bool lingers)
{
	static char stack[16384] __attribute__((aligned(16)));
	struct pb_bpf_map other;
	pid_t self = getpid();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	munmap(m->head, m->mapped);	/* this mapping's lock belongs to the parent, so the child
					 * needs its own mapping */
	attach(&other, m->fd);
	close(m->fd);
	if (lingers && clone(linger, stack + sizeof(stack), CLONE_VM, &self) < 0)
		_exit(3);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	operate(&other, op, n);
	raise(SIGUSR1);
	_exit(0);
}

/* Lets the process run to a breakpoint at path->at. */
static bool run_to(pid_t pid, const struct step_path *path)
{
	struct user_regs_struct regs;
	int status;
	long word = ptrace(PTRACE_PEEKTEXT, pid, path->at, 0);

	ptrace(PTRACE_POKETEXT, pid, path->at, (word & ~0xffl) | STEP_INT3);
	ptrace(PTRACE_CONT, pid, 0, 0);
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
		return false;
	ptrace(PTRACE_POKETEXT, pid, path->at, word);
	ptrace(PTRACE_GETREGS, pid, 0, &regs);
	regs.rip--;
	return regs.rip == path->at && !ptrace(PTRACE_SETREGS, pid, 0, &regs);
}

/* Lets the process take `steps` steps. Returns true if the operation ended before the last step. */
static bool take_steps(pid_t pid, struct step_path *path, long steps)
{
	struct user_regs_struct regs;
	bool over = false;
	int status;
	long i = 0;

	if (path->known) {
		CHECK(run_to(pid, path), "not at step %ld", path->known);
		i = path->known;
	} else if (!ptrace(PTRACE_GETREGS, pid, 0, &regs)) {
		path_sees(path, regs.rip);
	}
	while (i < steps && !over) {
		if (ptrace(PTRACE_SINGLESTEP, pid, 0, 0) || waitpid(pid, &status, 0) != pid)
			return true;
		over = !WIFSTOPPED(status) || WSTOPSIG(status) == SIGUSR1;
		i++;
		if (i > path->noted && !ptrace(PTRACE_GETREGS, pid, 0, &regs))
			path_note_pc(path, i, regs.rip);
	}
	return over;
}

struct death {
	int nr, op;
	uint64_t n;
	const char *name;
};

/* Starts the operation on a map with d->nr keys. Kills the operation's process after `steps`
 * instructions. Returns false if the operation ended before the kill. */
static bool step_and_kill(const struct type *t, const struct death *d, bool lingers,
			  struct step_path *path, long steps)
{
	struct pb_bpf_map_spec spec = spec_of(t);
	struct pb_bpf_map m;
	int status = 0;
	bool over;
	pid_t pid;

	if (pb_bpf_map_create(&m, &spec)) {
		CHECK(false, "no map");
		return false;
	}
	fill(&m, d->nr);
	pid = fork();
	if (!pid)
		operate_traced(&m, d->op, d->n, lingers);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) {
		CHECK(false, "no process to kill, status %#x", status);
		pb_bpf_map_close(&m);
		return false;
	}
	over = take_steps(pid, path, steps);
	reap(pid);
	check(&m, d->nr - (d->op == 1), d->nr + (d->op != 1 && d->nr < MAX));
	pb_bpf_map_close(&m);
	return !over;
}

static void step(const struct type *t, int stride, bool lingers)
{
	static const struct death cases[] = {
		{ 3, 0, 5, "insert" }, { 6, 0, 3, "replace" }, { 6, 1, 3, "delete" },
		{ MAX, 0, 9, "insert when full" }, { MAX, 2, 3, "replace when full" },
	};
	char name[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct step_path path = { 0 };
		long steps = 0;
		int before = failures;

		for (; steps < 20000; steps += stride) {
			snprintf(name, sizeof(name), "%s: %s, %ld instructions", t->name,
				 cases[i].name, steps);
			doing = name;
			if (!step_and_kill(t, &cases[i], lingers, &path, steps))
				break;
		}
		printf("%s %s: %s, killed at %ld instructions\n",
		       failures == before ? "ok  " : "FAIL", t->name, cases[i].name, steps);
		passed += failures == before;
	}
}

/* ---- at random --------------------------------------------------------------------------- */

static pid_t worker(const struct pb_bpf_map *m)
{
	struct pb_bpf_map mine;
	pid_t pid = fork();

	if (pid < 0) {
		printf("FAIL no process: %s\n", strerror(errno));
		exit(1);
	}
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rng ^= (uint64_t)getpid() << 32;
	munmap(m->head, m->mapped);
	attach(&mine, m->fd);
	close(m->fd);
	for (;;)
		operate(&mine, rnd(2 + queued(&mine)), rnd(KEYS));
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void random_kills(const struct type *t, double seconds)
{
	struct pb_bpf_map_spec spec = spec_of(t);
	struct pb_bpf_map m;
	int kills = 0, records = 0, before = failures;
	pid_t pids[2];

	doing = t->name;
	if (pb_bpf_map_create(&m, &spec)) {
		CHECK(false, "no map");
		return;
	}
	for (int i = 0; i < 2; i++)
		pids[i] = worker(&m);
	for (double end = now() + seconds; now() < end; kills++) {
		int i = (int)rnd(2);

		usleep(500 + rnd(1500));
		if (m.attr.type == BPF_MAP_TYPE_RINGBUF)
			pb_bpf_ringbuf_consume(&m, take_record, &records);
		reap(pids[i]);
		if (!rnd(8)) {
			reap(pids[!i]);
			kills++;
			check(&m, 0, MAX);
			pids[!i] = worker(&m);
		}
		pids[i] = worker(&m);
	}
	for (int i = 0; i < 2; i++)
		reap(pids[i]);
	check(&m, 0, MAX);
	printf("%s %s: %d kills", failures == before ? "ok  " : "FAIL", t->name, kills);
	if (hashed(&m))
		printf(", %u elements freed by repairs", hash_top(&m)->deaths);
	if (records)
		printf(", %d records", records);
	puts("");
	passed += failures == before;
	pb_bpf_map_close(&m);
}

int main(int argc, char **argv)
{
	bool lingers = argc > 1 && !strcmp(argv[1], "linger"),
		steps = lingers || (argc > 1 && !strcmp(argv[1], "step"));
	const char *only = argc > 3 ? argv[3] : NULL;

	if (argc < 3 || (steps && atoi(argv[2]) < 1))
		return 2;
	if (argc > 4)
		rng = strtoull(argv[4], NULL, 0) | 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < NR_TYPES; i++) {
		if (only && strcmp(only, types[i].name))
			continue;
		if (steps)
			step(&types[i], atoi(argv[2]), lingers);
		else
			random_kills(&types[i], atof(argv[2]));
	}
	printf("%d passed, %d failed\n", passed, failures);
	return failures != 0;
}
