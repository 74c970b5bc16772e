/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compares our verdicts on random programs with the kernel's verdicts. Our verdict may be stricter.
 * If the kernel refuses a program that we accept, the program is printed.
 *
 *   bpf_verdicts [-n PROGRAMS] [-s SEED] [-u] [-v]
 *
 * -u: asks the kernel from a process without privileges. During the test, unprivileged_bpf_disabled
 * is 0. If its value is 1, nobody can change it, so the test is skipped. -v: also prints programs
 * that only we refuse. In all, at most 20 programs are printed.
 *
 * Exit status 1: we accept a program that the kernel refuses. 77: the kernel can't be asked.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <grp.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ask.h"
#include "bpf/run/heap.h"
#include "bpf/verifier/verify.h"

static char values[64];

static void *direct(struct pb_bpf_map *map, uint32_t off)
{
	return values + off;
}

static const struct pb_bpf_map_ops array_ops = { .direct = direct }, hash_ops = { 0 };
static struct pb_bpf_map maps[GEN_MAPS];
static char ours_log[1 << 20];
static uint32_t caps = PB_BPF_CAP_ALL;

static int ask_us(const struct gen_program *p, uint32_t level)
{
	struct pb_bpf_text log = { .buf = ours_log, .size = sizeof ours_log };
	struct pb_bpf_map *list[GEN_MAPS];
	struct pb_bpf_verify v = {
		.type = pb_bpf_type_of(p->type), .caps = caps, .gpl = true, .insns = p->insns,
		.nr = (uint32_t)p->nr, .maps = list, .nr_maps = GEN_MAPS, .log = &log,
		.log_level = level, .mem = &pb_bpf_heap, .funcs = p->funcs, .nr_funcs = p->nr_funcs,
	};
	int err;

	for (int i = 0; i < GEN_MAPS; i++)
		list[i] = &maps[i];
	err = pb_bpf_verify(&v);

	pb_bpf_facts_free(&pb_bpf_heap, v.facts);
	return err;
}

static void show(const struct gen_program *p, uint64_t seed, const char *what, int kernel, int us)
{
	long limit = getenv("LIMIT") ? atol(getenv("LIMIT")) : 1500;
	char *k, *u;

	ask_verdict(p, 1);
	ours_log[0] = 0;
	ask_us(p, us ? 1 : 2);
	k = ask_log + strlen(ask_log);
	u = ours_log + strlen(ours_log);
	printf("%s: seed %lu, type %u: kernel %d, ours %d\n--- end of the kernel's log\n%s\n"
	       "--- end of our log\n%s\n", what, seed, p->type, kernel, us,
	       k - ask_log > limit ? k - limit : ask_log,
	       u - ours_log > limit ? u - limit : ours_log);
}

/* ---- without privileges ------------------------------------------------------------------- */

#define DISABLED "/proc/sys/kernel/unprivileged_bpf_disabled"

static int read_disabled(void)
{
	FILE *f = fopen(DISABLED, "r");
	int value = -1;

	if (f && fscanf(f, "%d", &value) != 1)
		value = -1;
	if (f)
		fclose(f);
	return value;
}

static bool write_disabled(int value)
{
	FILE *f = fopen(DISABLED, "w");

	if (!f)
		return false;
	fprintf(f, "%d\n", value);
	return !fclose(f);
}

/* Forks a child without privileges. Returns -1 in the child. In the parent, returns the child's
 * exit status, or 77 if the kernel can't be asked. */
static int drop_privileges(void)
{
	int before = read_disabled(), status;
	pid_t child;

	/* the value 1 can't be changed */
	if (before != 0 && (before != 2 || !write_disabled(0))) {
		printf("verdicts: " DISABLED " is %d\n", before);
		return 77;
	}
	child = fork();
	if (!child) {
		caps = 0;
		if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
			_exit(77);
		return -1;
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (before)
		write_disabled(before);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* ---- the comparison -------------------------------------------------------------------------- */

static struct {
	unsigned long programs;
	uint64_t seed;
	int loud;
	bool unprivileged;
} opt = { .programs = 10000, .seed = 1 };

static struct {
	unsigned long both, neither, stricter, laxer, shown, kernels, gave_up, quirks;
} sum;

static void make_maps(void)
{
	for (int i = 0; i < GEN_MAPS; i++) {
		maps[i] = (struct pb_bpf_map){ .ops = gen_maps[i].type == BPF_MAP_TYPE_ARRAY ?
						      &array_ops : &hash_ops,
					       .attr = gen_maps[i],
					       .types = { .spin_lock_off = -1, .timer_off = -1 } };
	}
}

/* Compares the verdicts on one program, and counts the result. */
static void compare(uint64_t seed)
{
	struct gen_program p;
	enum ask_answer said;
	int kernel, us;

	generate(&p, seed);
	kernel = ask_verdict(&p, 0);
	said = ask_answer(kernel);
	us = ask_us(&p, 0);
	if (said == ASK_HAS_BUG) {
		sum.kernels++;	/* the kernel itself reports the bug */
	} else if (said == ASK_GIVES_UP && !us) {
		sum.gave_up++;
	} else if (said == ASK_REFUSES && !us && ask_verdict(&p, 1) &&
		   ask_takes_delta_for_offset()) {
		sum.quirks++;
	} else if (!kernel && !us) {
		sum.both++;
	} else if (kernel && us) {
		sum.neither++;
	} else if (us) {
		sum.stricter++;
		if (opt.loud && sum.shown++ < 20)
			show(&p, seed, "STRICTER", kernel, us);
	} else {
		sum.laxer++;
		if (sum.shown++ < 20)
			show(&p, seed, "LAXER", kernel, us);
	}
}

/* Returns false if an option is unknown. */
static bool read_options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "n:s:uv")) != -1)
		switch (c) {
		case 'n':
			opt.programs = strtoul(optarg, NULL, 0);
			break;
		case 's':
			opt.seed = strtoull(optarg, NULL, 0);
			break;
		case 'u':
			opt.unprivileged = true;
			break;
		case 'v':
			opt.loud++;
			break;
		default:
			return false;
		}
	return true;
}

int main(int argc, char **argv)
{
	struct utsname u;
	int end, err;

	if (!read_options(argc, argv))
		return 2;
	make_maps();
	err = ask_open();
	if (err) {
		printf("verdicts: the kernel can't be asked: %s\n", strerror(-err));
		return 77;
	}
	if (opt.unprivileged) {
		ask_make_all();
		end = drop_privileges();
		if (end >= 0)
			return end;
	}
	for (uint64_t s = opt.seed; s < opt.seed + opt.programs; s++)
		compare(s);
	uname(&u);
	printf("%lu programs (seeds from %lu), Linux %s: %lu accepted by both, "
	       "%lu refused by both, ours stricter %lu, laxer %lu; "
	       "not compared: the kernel has a bug %lu, gives up %lu, has a known flaw %lu\n",
	       opt.programs, opt.seed, u.release, sum.both, sum.neither, sum.stricter, sum.laxer,
	       sum.kernels, sum.gave_up, sum.quirks);
	return sum.laxer != 0;
}
