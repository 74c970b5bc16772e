/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The fuzzers' own driver. It needs only a C compiler.
 *
 *   fuzz_NAME [--seconds N | --runs N] [--seed S] [--keep DIR]
 *   fuzz_NAME FILE...       runs each input once
 *   fuzz_NAME --seeds DIR   writes the fuzzer's seeds
 *
 * --keep: the directory for the input of a finding (by default the current directory). With --seed
 * S, round r always has the same input. The first rounds run the unchanged seeds.
 * Rounds run in batches, each batch in a child process. The child makes each input in memory that
 * it shares with the parent. So the parent can store the input that killed the child.
 */
#include <err.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support.h"

#define BATCH		1000	/* rounds that one child runs */
#define INPUT_SECONDS	30	/* time limit of one input */
#define MEMORY_KIB	(2u << 20)	/* limit on a child's resident memory */
#define WILD_SHARE	1000	/* with fuzz_wild, 1 of WILD_SHARE batches may die */

/* The exit statuses of a child. */
enum { DONE, TIME_IS_UP = 40, TOO_MUCH_MEMORY, LEAKED };

struct shared {
	uint64_t round;		/* the current round */
	uint64_t began;		/* time in ns at which the input began to run; 0: no input is
				 * running */
	uint64_t rounds;	/* number of rounds that all children together have run */
	size_t size;
	uint8_t input[FUZZ_INPUT_MAX];
};

static struct shared *shared;
static const char *program, *name, *keep = ".";
static uint64_t seed = 1, end_ns, max_rounds = UINT64_MAX;

/* A function of LeakSanitizer. It is NULL in builds without LeakSanitizer. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* --- mutations ---------------------------------------------------------- */

static size_t insert(struct fuzz_rng *r, uint8_t *d, size_t size, size_t max)
{
	size_t at = fuzz_below(r, size + 1), n = 1 + fuzz_below(r, fuzz_random(r) % 4 ? 16 : 4096);

	if (n > max - size)
		n = max - size;
	memmove(d + at + n, d + at, size - at);
	for (size_t i = 0; i < n; i++)
		d[at + i] = fuzz_random(r) % 2 ? 0 : (uint8_t)fuzz_random(r);
	return size + n;
}

static size_t erase(struct fuzz_rng *r, uint8_t *d, size_t size)
{
	size_t at = fuzz_below(r, size), n = 1 + fuzz_below(r, fuzz_random(r) % 4 ? 16 : size);

	if (n > size - at)
		n = size - at;
	memmove(d + at, d + at + n, size - at - n);
	return size - n;
}

/* Copies a piece of the input or of a seed over a part of the input, or appends the piece. */
static size_t splice(struct fuzz_rng *r, uint8_t *d, size_t size, size_t max)
{
	size_t other = fuzz_below(r, fuzz_corpus.n), at = fuzz_below(r, size + 1), n, from;
	bool own = fuzz_random(r) % 2;

	n = own ? size : fuzz_corpus.v[other].size;
	if (!n)
		return size;
	from = fuzz_below(r, n);
	n = 1 + fuzz_below(r, n - from < 4096 ? n - from : 4096);
	if (n > max - at)
		n = max - at;
	memmove(d + at, (own ? d : fuzz_corpus.v[other].data) + from, n);
	return at + n > size ? at + n : size;
}

static size_t mutate_any(struct fuzz_rng *r, uint8_t *d, size_t size, size_t max)
{
	switch (size ? fuzz_random(r) % 16 : 0) {
	case 0:
		return insert(r, d, size, max);
	case 1:
		return erase(r, d, size);
	case 2:
		return fuzz_random(r) % 4 ? size : fuzz_below(r, size);
	case 3: case 4:
		return splice(r, d, size, max);
	default:
		fuzz_poke(r, d, size, fuzz_below(r, size));
		return size;
	}
}

/* Makes the input of a round in `shared`. In the first rounds it is a seed, later a mutated
 * seed. */
static void make_input(struct fuzz_rng *r, uint64_t round)
{
	bool is_seed = round < fuzz_corpus.n;
	size_t which = is_seed ? (size_t)round : fuzz_below(r, fuzz_corpus.n);
	size_t size = fuzz_corpus.v[which].size;
	unsigned nr = is_seed ? 0 : fuzz_random(r) % 8 ? (unsigned)(1 + fuzz_random(r) % 5) :
							 (unsigned)(1 + fuzz_random(r) % 64);

	memcpy(shared->input, fuzz_corpus.v[which].data, size);
	while (nr--) {
		if (fuzz_mutate && fuzz_random(r) % 4)
			size = fuzz_mutate(shared->input, size, FUZZ_INPUT_MAX,
					   (unsigned)fuzz_random(r));
		else
			size = mutate_any(r, shared->input, size, FUZZ_INPUT_MAX);
	}
	shared->size = size;
}

/* --- a child ------------------------------------------------------------ */

/* Runs an input in memory of exactly the input's size, so that a sanitizer sees reads past the
 * end. */
static void run_input(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		err(2, "input");
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static void run_batch(uint64_t from)
{
	struct rusage usage;
	struct fuzz_rng r;
	uint64_t n = max_rounds - from < BATCH ? max_rounds - from : BATCH;

	for (uint64_t i = 0; i < n; i++) {
		if (now_ns() >= end_ns)
			_exit(TIME_IS_UP);
		fuzz_rng_seed(&r, (seed << 32) + from + i);
		make_input(&r, from + i);
		shared->round = from + i;
		__atomic_store_n(&shared->began, now_ns(), __ATOMIC_RELEASE);
		run_input(shared->input, shared->size);
		__atomic_store_n(&shared->began, 0, __ATOMIC_RELEASE);
		shared->rounds++;
		getrusage(RUSAGE_SELF, &usage);
		if (usage.ru_maxrss > MEMORY_KIB)
			_exit(TOO_MUCH_MEMORY);
	}
	if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
		_exit(LEAKED);
	_exit(DONE);
}

/* --- the parent --------------------------------------------------------- */

static void kept_input(const char *why)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s-%llu-%llu", keep, name, (unsigned long long)seed,
		 (unsigned long long)shared->round);
	fuzz_write_file(path, shared->input, shared->size);
	printf("FAIL %s: %s in round %llu of seed %llu\n     again: %s %s\n", name, why,
	       (unsigned long long)shared->round, (unsigned long long)seed, program, path);
}

/* Returns a text that describes the finding, or NULL if the child ended without a finding. */
static const char *verdict(int status, bool late)
{
	static char text[64];

	if (late)
		return "an input that takes too long";
	if (WIFSIGNALED(status)) {
		snprintf(text, sizeof(text), "killed by SIG%s",
			 sigabbrev_np(WTERMSIG(status)) ?: "?");
		return text;
	}
	switch (WEXITSTATUS(status)) {
	case DONE: case TIME_IS_UP:
		return NULL;
	case TOO_MUCH_MEMORY:
		return "an input that takes too much memory";
	case LEAKED:
		return "memory that leaks, in this round or before it in its batch";
	}
	snprintf(text, sizeof(text), "exit status %d", WEXITSTATUS(status));
	return text;
}

/* Waits for the child. Returns true if the child took too long and was killed. */
static bool wait_for(pid_t pid, int *status)
{
	const struct timespec tick = { .tv_nsec = 100000000 };
	sigset_t child;
	bool late = false;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	while (!waitpid(pid, status, WNOHANG)) {
		uint64_t began = __atomic_load_n(&shared->began, __ATOMIC_ACQUIRE), now = now_ns();

		if (began && now > began && now - began > INPUT_SECONDS * 1000000000ull && !late) {
			late = true;
			kill(pid, SIGKILL);
		}
		sigtimedwait(&child, NULL, &tick);
	}
	return late;
}

/* Returns true if fuzz_wild allows the child's end. It doesn't allow a time-out. Nor does it allow
 * SIGABRT, because FUZZ_CHECK reports its findings by SIGABRT. */
static bool is_wild(int status, bool late)
{
	return &fuzz_wild && fuzz_wild && !late &&
	       (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT);
}

static int run_all(void)
{
	uint64_t from = 0, batches = 0, wild = 0;
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	for (; from < max_rounds && now_ns() < end_ns; batches++) {
		int status;
		bool late;

		fflush(NULL);
		shared->began = 0;
		pid_t pid = fork();
		if (pid < 0)
			err(2, "fork");
		if (!pid) {
			sigprocmask(SIG_UNBLOCK, &child, NULL);
			run_batch(from);
		}
		late = wait_for(pid, &status);
		const char *why = verdict(status, late);
		if (why && is_wild(status, late) && wild <= batches / WILD_SHARE) {
			wild++;
			from = shared->round + 1;
			continue;
		}
		if (why) {
			kept_input(why);
			return 1;
		}
		from += BATCH;
	}
	if (wild)
		printf("%s: %llu inputs ended their process\n", name, (unsigned long long)wild);
	return fuzz_summary && !fuzz_summary(fuzz_counts());
}

static int run_files(char **files)
{
	for (; *files; files++) {
		size_t size;
		uint8_t *data = fuzz_read_file(*files, SIZE_MAX, &size);

		if (!data)
			err(2, "%s", *files);
		fprintf(stderr, "%s: %s, %zu bytes\n", name, *files, size);
		run_input(data, size);
		free(data);
	}
	if (fuzz_summary)
		fuzz_summary(fuzz_counts());
	return 0;
}

static uint64_t number(const char *text)
{
	char *end;
	unsigned long long n = strtoull(text ? text : "", &end, 0);

	if (!text || !*text || *end)
		errx(2, "a number is missing; see driver.c");
	return n;
}

int main(int argc, char **argv)
{
	uint64_t seconds = 10;
	int status;

	program = argv[0];
	name = strrchr(program, '/') ? strrchr(program, '/') + 1 : program;
	for (argv++; *argv && !strncmp(*argv, "--", 2); argv += 2) {
		if (!strcmp(*argv, "--seconds"))
			seconds = number(argv[1]);
		else if (!strcmp(*argv, "--runs"))
			max_rounds = number(argv[1]), seconds = 1u << 20;
		else if (!strcmp(*argv, "--seed"))
			seed = number(argv[1]);
		else if (!strcmp(*argv, "--keep") && argv[1])
			keep = argv[1];
		else if (!strcmp(*argv, "--seeds") && argv[1])
			return fuzz_write_seeds(argv[1]), 0;
		else
			errx(2, "%s: not known; see driver.c", *argv);
	}
	fuzz_counts();
	fuzz_directory();
	if (*argv)
		return run_files(argv);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		err(2, "input");
	fuzz_load_seeds();
	if (!fuzz_corpus.n)
		fuzz_seed("", 0);
	end_ns = now_ns() + seconds * 1000000000;
	status = run_all();
	printf("%s: %llu executions from %zu seeds, seed %llu\n", name,
	       (unsigned long long)shared->rounds, fuzz_corpus.n, (unsigned long long)seed);
	/* a run without any round proves nothing, so it fails */
	return status || !shared->rounds;
}
