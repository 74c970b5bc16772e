/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests the verifier with programs of the second generator (weave.h), and with slightly changed
 * variants of each program:
 *
 * - Our verdict is compared with the running kernel's verdict. If only the kernel refuses a
 *   program, the program is reduced, and is counted in a class that names the reason of the
 *   difference (fuzz_laxer_class()).
 * - An accepted program runs on a checking interpreter, on both engines between inaccessible pages,
 *   and in the kernel. All results must be the same. The checking interpreter checks each access,
 *   and compares each register with the verifier's deductions (watch.h, beliefs.h).
 * - The program is verified a second time. In this second verification, a path is pruned only if an
 *   earlier state contains the whole current state. The verdict must stay the same.
 *
 *   bpf_fuzz_verifier [-s SEED] [-n PROGRAMS] [-t SECONDS] [-i INPUTS] [-c CHANGES] [-gk]
 *                     [-o FILE] [-v]
 *   bpf_fuzz_verifier -x [-s SEED] [-i INPUTS] [-k] <REPORT
 *
 * -g: programs of the first generator (generate.h), without variants. Verdicts are compared, but
 * the programs don't run in the kernel. -k: without the kernel. -o: appends findings to FILE, with
 * reduced programs. -v: also prints known classes and classes of stricter verdicts; -vv also prints
 * each program. -x: tests a reported program again. Without -s, uses the seed of the report.
 * Programs are made and tested in child processes. Exit status 1: something was found. 77: the
 * kernel can't be asked, but -k isn't given.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "ask.h"
#include "bpf/helper/helper.h"
#include "bpf/run/heap.h"
#include "fuzz.h"
#include "guarded.h"
#include "world.h"

#define CHUNK		4000		/* number of programs for each process */

struct fuzz_options fuzz_opt = {
	.seed = 1, .programs = 2000, .inputs = 8, .changes = 3, .kernel = true
};
struct fuzz_counts *fuzz_all;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static bool try(const struct gen_program *p, uint64_t seed, int change)
{
	bool accepted;
	enum finding f;
	int kernel;

	fuzz_all->programs++;
	f = fuzz_judge(p, seed, fuzz_opt.kernel && fuzz_caps == PB_BPF_CAP_ALL, &accepted, &kernel);
	fuzz_all->accepted += accepted;
	if (f) {
		if (fuzz_all->found[f]++ < 3)
			fuzz_report(p, seed, f, change);
		return accepted;
	}
	if (fuzz_opt.kernel && fuzz_caps == PB_BPF_CAP_ALL)
		fuzz_compare(p, seed, change, accepted, kernel);
	return accepted;
}

static void try_seed(uint64_t seed)
{
	const struct itimerval limit = { .it_value.tv_sec = 600 };
	struct gen_program p, q;

	fuzz_all->at = seed;
	/* limits the processor time; on a busy machine, the elapsed time may be much longer */
	setitimer(ITIMER_PROF, &limit, NULL);
	fuzz_choose_caps(seed);
	if (fuzz_opt.first)
		generate(&p, seed);
	else
		weave(&p, seed, fuzz_ask_bounds);
	if (fuzz_opt.loud > 1)
		fuzz_print(&p);
	if (!try(&p, seed, 0) || fuzz_opt.first)
		return;
	for (int i = 1; i <= fuzz_opt.changes; i++) {
		q = p;
		weave_change(&q, seed * 64 + (uint64_t)i);
		if (i % 3 == 0)
			weave_change(&q, seed * 64 + 32 + (uint64_t)i);
		try(&q, seed, i);
	}
}

/* ---- a reported program ---------------------------------------------------------------------- */

static int again(void)
{
	struct pb_bpf_text log = { .buf = fuzz_log, .size = sizeof fuzz_log };
	struct pb_bpf_verify v;
	struct gen_program p;
	bool accepted;
	int kernel;
	enum finding f;

	if (!fuzz_read(stdin, &p))
		return 2;
	fuzz_choose_caps(fuzz_opt.seed);
	v = fuzz_to_verify(&p);
	v.log = &log;
	v.log_level = 2;
	pb_bpf_verify(&v);
	pb_bpf_facts_free(&pb_bpf_heap, v.facts);
	printf("---- ours\n%s\n", fuzz_log);
	if (fuzz_opt.kernel && ask_verdict(&p, 2) != -EPERM)
		printf("---- the kernel's\n%s\n", ask_log);
	guarded_begin();
	f = fuzz_judge(&p, fuzz_opt.seed, fuzz_opt.kernel && fuzz_caps == PB_BPF_CAP_ALL, &accepted,
		       &kernel);
	printf("---- ours %s, the kernel %d; %s: %s\n", accepted ? "accepts" : "refuses", kernel,
	       fuzz_finding_names[f], f ? fuzz_why : "");
	if (!accepted || ask_answer(kernel) != ASK_REFUSES)
		return f != NOTHING;
	fuzz_laxer_class(&p, fuzz_log, 160);
	printf("---- %s\n", fuzz_log);
	return f != NOTHING || !fuzz_is_known(fuzz_log);
}

/* ---- processes ------------------------------------------------------------------------------- */

static void work(uint64_t from, uint64_t end, double until)
{
#ifndef __SANITIZE_ADDRESS__	/* AddressSanitizer's own mappings have terabytes */
	const struct rlimit memory = { 1ul << 30, 1ul << 30 };

	setrlimit(RLIMIT_AS, &memory);
#endif
	guarded_begin();
	for (uint64_t s = from; s < end && now() < until; s++)
		try_seed(s);
	fuzz_all->at = end;
	fflush(stdout);
	_exit(0);
}

static int crashes;

static int status_of_child(uint64_t from, uint64_t end, double until)
{
	pid_t child = fork();
	int status;

	if (!child)
		work(from, end, until);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static bool work_in_child(uint64_t from, uint64_t end, double until)
{
	int status = status_of_child(from, end, until), alone;
	uint64_t at = fuzz_all->at;

	if (!status)
		return true;
	/* Linux 6.18 may follow a bad pointer in propagate_precision(); the fault kills the
	 * process. If the same seed passes without the kernel, this was the cause. */
	if (fuzz_opt.kernel && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
		fuzz_opt.kernel = false;
		alone = status_of_child(at, at + 1, until);
		fuzz_opt.kernel = true;
		if (!alone) {
			printf("the kernel crashes: seed %lu\n", at);
			fuzz_all->kernel_bugs++;
			fuzz_all->at = at;
			return false;
		}
	}
	printf("FOUND the process ends with %#x: seed %lu\n", status, at);
	crashes++;
	return false;
}

static void print_classes(int which, const char *name)
{
	for (int i = 0; i < fuzz_all->nr_classes[which]; i++) {
		const struct class *c = &fuzz_all->classes[which][i];

		if (fuzz_opt.loud || (!which && !fuzz_is_known(c->text)))
			printf("%s %lu times (seed %lu, change %d): %s\n", name, c->count, c->seed,
			       c->change, c->text);
	}
}

static void options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "s:n:t:i:c:o:gkvx")) != -1)
		switch (c) {
		case 's':
			fuzz_opt.seed = strtoull(optarg, NULL, 0);
			fuzz_opt.seeded = true;
			break;
		case 'n':
			fuzz_opt.programs = strtoull(optarg, NULL, 0);
			break;
		case 't':
			fuzz_opt.seconds = atof(optarg);
			fuzz_opt.programs = ~0ull >> 8;
			break;
		case 'i':
			fuzz_opt.inputs = atoi(optarg);
			break;
		case 'c':
			fuzz_opt.changes = atoi(optarg);
			break;
		case 'o':
			fuzz_opt.file = optarg;
			break;
		case 'g':
			fuzz_opt.first = true;
			break;
		case 'k':
			fuzz_opt.kernel = false;
			break;
		case 'x':
			fuzz_opt.again = true;
			break;
		case 'v':
			fuzz_opt.loud++;
			break;
		default:
			exit(2);
		}
}

int main(int argc, char **argv)
{
	double start = now(), until;
	uint64_t found = 0, seed;
	int err;

	setvbuf(stdout, NULL, _IOLBF, 0);
	options(argc, argv);
	until = fuzz_opt.seconds ? start + fuzz_opt.seconds : 1e18;
	fuzz_all = mmap(NULL, sizeof *fuzz_all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	world_make();
	pb_bpf_settings.jit_enable = 1;
	err = fuzz_opt.kernel ? ask_open() : 0;
	if (err) {
		printf("the kernel can't be asked: %s\n", strerror(-err));
		return 77;
	}
	if (fuzz_opt.again)
		return again();
	for (seed = fuzz_opt.seed;
	     seed < fuzz_opt.seed + fuzz_opt.programs && now() < until && crashes < 20; ) {
		uint64_t end = seed + CHUNK < fuzz_opt.seed + fuzz_opt.programs ? seed + CHUNK :
			       fuzz_opt.seed + fuzz_opt.programs;

		seed = work_in_child(seed, end, until) ? end : fuzz_all->at + 1;
	}
	print_classes(0, "laxer");
	print_classes(1, "stricter");
	for (int i = 1; i < NR_FINDINGS; i++)
		found += fuzz_all->found[i];
	if (fuzz_opt.kernel)
		printf("verdicts: %lu asked, %lu accepted by both, %lu refused by both, "
		       "stricter %lu, laxer %lu (%lu of a known class), "
		       "the kernel gives up %lu, has a bug %lu; %lu runs in the kernel\n",
		       fuzz_all->verdicts, fuzz_all->both, fuzz_all->neither, fuzz_all->stricter,
		       fuzz_all->laxer, fuzz_all->known, fuzz_all->gave_up, fuzz_all->kernel_bugs,
		       fuzz_all->kernel_runs);
	printf("%lu programs (seeds from %lu), %lu accepted, %lu executions, %lu inputs compared, "
	       "%lu with incomplete deductions, %.0f s: %lu findings\n", fuzz_all->programs,
	       fuzz_opt.seed, fuzz_all->accepted, fuzz_all->executions, fuzz_all->compared,
	       fuzz_all->unheard, now() - start, found + (unsigned)crashes);
	return found || crashes;
}
