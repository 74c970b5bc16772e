/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Prints which exits of functions the analysis finds in files, and how each exit is hooked.
 *
 *   exits_census FILE...        a line for each file, with shares in percent
 *   exits_census -f FILE...     the same lines, for the exits in the analysis's file. If not all
 *                               exits of a function are hooked, the file has none of them. Also
 *                               prints the size of the analysis, with and without exits
 *   exits_census -r FILE        the functions whose exits aren't hooked, and why
 *   exits_census -x FILE        a line for each window, and a line for each function with its exits
 *   exits_census -t FILE...     the time that the analysis takes with exits, and without them
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "abi/analysis_access.h"
#include "module/analysis/exit_types.h"
#include "module/analysis/analyse.h"
#include "module/analysis/stages.h"

#define MAX_UNITS 4096

static const char *const how_names[] = {
#define X(name, text) #name,
	PB_EXIT_HOW_LIST(X)
#undef X
};
static const char *const why_names[] = {
#define X(name, text) #name,
	PB_INEXIT_LIST(X)
#undef X
};
static const char *const kind_names[] = {
	"ret", "ret_pops", "jmp", "jcc", "indirect", "fall", "undecoded"
};

struct totals {
	size_t functions, why[PB_NR_INEXIT], exits[2], how[2][PB_NR_EXIT_HOW];
};
static struct totals all;

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void add(struct pb_an *an, struct totals *t)
{
	for (size_t i = 0; i < an->fns.n; i++) {
		t->functions++;
		t->why[an->fns.v[i].inexit]++;
	}
	for (size_t i = 0; i < an->exits.n; i++) {
		const struct pb_fn_exit *e = &an->exits.v[i];
		bool jump = e->kind != PB_EXIT_RET;

		if (!e->exit || (!e->how && !e->why))
			continue;
		t->exits[jump]++;
		t->how[jump][e->how]++;
	}
}

static void print(const char *name, const struct totals *t)
{
	printf("%-22s functions %6zu hooked %6.2f %%;", name, t->functions,
	       100.0 * (double)t->why[0] / (double)t->functions);
	for (unsigned i = 1; i < PB_NR_INEXIT; i++)
		if (t->why[i])
			printf(" %s %.2f", why_names[i],
			       100.0 * (double)t->why[i] / (double)t->functions);
	for (unsigned jump = 0; jump < 2; jump++) {
		printf("; %s %zu:", jump ? "tail jumps" : "returns", t->exits[jump]);
		for (unsigned i = 0; i < PB_NR_EXIT_HOW; i++)
			if (t->how[jump][i])
				printf(" %s %.2f", how_names[i],
				       100.0 * (double)t->how[jump][i] / (double)t->exits[jump]);
	}
	printf("\n");
	fflush(stdout);
}

static void census(struct pb_an *an, void *arg)
{
	struct totals t = { 0 };

	(void)arg;
	add(an, &t);
	add(an, &all);
	print(base_name(an->path), &t);
}

static void add_file(const struct pb_analysis *a, struct totals *t)
{
	const struct pb_exit_window *w = pb_analysis_windows(a);

	for (uint32_t i = 0; i < a->nr_funcs; i++) {
		t->functions++;
		t->why[pb_func_inexit(a, pb_analysis_funcs(a) + i)]++;
	}
	for (uint32_t i = 0; i < a->nr_windows; i++)
		for (unsigned k = 0; k < w[i].nr; k++) {
			bool jump = pb_window_exits(a, &w[i])[k].kind > PB_EXIT_RET_POPS;
			bool joined = k && w[i].how != PB_EXIT_ENTRY;

			t->exits[jump]++;
			t->how[jump][joined ? PB_EXIT_JOINED : w[i].how]++;
		}
}

static const struct pb_analysis *written(const char *path, unsigned flags)
{
	int fd = open(path, O_RDONLY);
	const char *why = "can't be opened";
	uint8_t *blob;
	size_t size;

	if (fd < 0 || pb_analyse(fd, path, flags, &blob, &size, &why)) {
		fprintf(stderr, "%s: %s\n", path, why);
		exit(1);
	}
	close(fd);
	return (const struct pb_analysis *)blob;
}

static void census_file(const char *path)
{
	const struct pb_analysis *a = written(path, PB_MODULE_RETURNS), *without = written(path, 0);
	struct totals t = { 0 };

	add_file(a, &t);
	add_file(a, &all);
	print(base_name(path), &t);
	printf("%-22s bytes %lu, without %lu; windows %u, recipes %lu, without %lu\n", "", a->size,
	       without->size, a->nr_windows, a->recipes_size, without->recipes_size);
	free((void *)a);
	free((void *)without);
}

static void print_name(const struct pb_an *an, const struct pb_fn *f)
{
	if (f->nr_cands)
		printf(" %.*s", (int)an->cands.v[f->cand].len, an->cands.v[f->cand].name);
	else
		printf(" sub_%lx", (long)f->addr);
}

static void refusals(struct pb_an *an, void *arg)
{
	uint32_t units[MAX_UNITS];

	(void)arg;
	for (size_t i = 0; i < an->fns.n; i++) {
		const struct pb_fn *f = &an->fns.v[i];
		size_t n = pb_exits_units(an, f, units, MAX_UNITS);

		if (f->inexit == PB_INEXIT_NOT)
			continue;
		printf("%lx", (long)f->addr);
		print_name(an, f);
		printf(" %s", why_names[f->inexit]);
		for (size_t u = 0; u < n && u < MAX_UNITS; u++)
			for (size_t k = pb_exits_lower(an, units[u]);
			     k < an->exits.n && an->exits.v[k].unit == units[u]; k++)
				if (an->exits.v[k].live && !an->exits.v[k].how)
					printf(" %lx:%s", (long)an->exits.v[k].addr,
					       kind_names[an->exits.v[k].kind]);
		printf("\n");
	}
}

static void everything(struct pb_an *an, void *arg)
{
	uint32_t units[MAX_UNITS];

	(void)arg;
	for (size_t i = 0; i < an->exit_windows.n; i++) {
		const struct pb_an_window *w = &an->exit_windows.v[i];
		uint64_t slot = w->via ? w->start + (uint64_t)(int64_t)w->via : 0;

		printf("W %zu %lx %u %s %lx %u\n", i, (long)w->start, w->len, how_names[w->how],
		       (long)slot, w->second_len);
	}
	for (size_t i = 0; i < an->fns.n; i++) {
		const struct pb_fn *f = &an->fns.v[i];
		size_t n = pb_exits_units(an, f, units, MAX_UNITS);

		printf("F %lx %s", (long)f->addr, why_names[f->inexit]);
		print_name(an, f);
		for (size_t u = 0; u < n && u < MAX_UNITS; u++)
			for (size_t k = pb_exits_lower(an, units[u]);
			     k < an->exits.n && an->exits.v[k].unit == units[u]; k++)
				if (an->exits.v[k].exit)
					printf(" %lx:%s", (long)an->exits.v[k].addr,
					       kind_names[an->exits.v[k].kind]);
		printf("\n");
	}
}

static void nothing(struct pb_an *an, void *arg)
{
	(void)an;
	(void)arg;
}

static void visit(const char *path, unsigned flags, void (*how)(struct pb_an *, void *))
{
	int fd = open(path, O_RDONLY);
	const char *why = "can't be opened";

	if (fd < 0 || pb_analyse_visit(fd, path, flags, how, NULL, &why)) {
		fprintf(stderr, "%s: %s\n", path, why);
		exit(1);
	}
	close(fd);
}

static double time_of(const char *path, unsigned flags)
{
	double best = 1e9;

	for (unsigned i = 0; i < 5; i++) {
		struct timespec a, b;

		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
		visit(path, flags, nothing);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
		double t = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;

		best = t < best ? t : best;
	}
	return best;
}

int main(int argc, char **argv)
{
	bool list = argc > 2 && !strcmp(argv[1], "-r"), dump = argc > 2 && !strcmp(argv[1], "-x");
	bool times = argc > 2 && !strcmp(argv[1], "-t"), file = argc > 2 && !strcmp(argv[1], "-f");

	for (int i = 1 + (list || dump || times || file); i < argc; i++) {
		if (times)
			printf("%s: %.3f s without, %.3f s with exits\n", base_name(argv[i]),
			       time_of(argv[i], 0), time_of(argv[i], PB_MODULE_RETURNS));
		else if (file)
			census_file(argv[i]);
		else
			visit(argv[i], PB_MODULE_RETURNS,
			      list ? refusals : dump ? everything : census);
	}
	if (!list && !dump && !times && argc > 2)
		print("all", &all);
	return 0;
}
