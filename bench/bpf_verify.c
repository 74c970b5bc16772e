/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Measures how long Patchbay's verifier and this machine's kernel take to verify the programs of
 * eBPF objects. tests/bpf/load/run_objects compiles such objects from the kernel's sources. The two
 * verifiers take turns, and figures are medians of the rounds. Patchbay's time is the time for
 * verifying and resolving. The kernel's time is the time that the kernel reports (BPF_LOG_STATS).
 * The kernel's time includes neither reading the program, nor reading its types, nor the JIT.
 * Patchbay's verifier writes no log, and the kernel's log has only this time. Needs the right to
 * load programs.
 *
 *	bench_bpf_verify [-r ROUNDS] [-n LARGEST] OBJECT...
 *
 * Takes the programs that both verifiers accept, and sorts them by the number of instructions that
 * Patchbay's verifier processed. Shows the first LARGEST programs (10 by default).
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bpfload/load_make.h"

#define MAX_ROUNDS	31
#define MOST_PROGS	4096
#define LOG_SIZE	(1u << 20)

struct row {
	const char *path;
	char name[64];
	unsigned long insns, kernel_insns;
	double ours, kernel;		/* ms */
};

static struct row rows[MOST_PROGS];
static unsigned nr_rows;
static char kernel_log[LOG_SIZE];

static int silent(enum libbpf_print_level level, const char *format, va_list ap)
{
	return 0;
}

/* Returns the number of entries of a map. If the object leaves the number at 0, the loaders of the
 * kernel's tests set it before loading. In that case this function returns a usable number. */
static uint32_t entries_of(uint32_t type, uint32_t entries)
{
	if (entries || type == BPF_MAP_TYPE_PERF_EVENT_ARRAY)
		return entries;
	return type == BPF_MAP_TYPE_RINGBUF ? 4096 : 1;
}

static void adjust(void *arg, const struct pb_bpf_object_map *map, struct pb_bpf_map_spec *spec)
{
	spec->attr.max_entries = entries_of(spec->attr.type, spec->attr.max_entries);
}

/* Returns the kernel's time in ms. If the kernel doesn't accept the program, returns a negative
 * number. */
static double kernel_ms(const char *path, const struct pb_bpf_object_prog *prog,
			unsigned long *insns)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .kernel_log_buf = kernel_log,
		    .kernel_log_size = LOG_SIZE, .kernel_log_level = 4);
	struct bpf_object *o = bpf_object__open_file(path, &opts);
	const char *time, *processed;
	struct bpf_program *p;
	struct bpf_map *m;
	int err;

	if (!o)
		return -1;
	kernel_log[0] = 0;
	bpf_object__for_each_program(p, o)
		bpf_program__set_autoload(p, !strcmp(bpf_program__name(p), prog->name));
	bpf_object__for_each_map(m, o) {
		bpf_map__set_pin_path(m, NULL);
		bpf_map__set_max_entries(m, entries_of(bpf_map__type(m), bpf_map__max_entries(m)));
	}
	err = bpf_object__load(o);
	bpf_object__close(o);
	time = strstr(kernel_log, "verification time ");
	processed = strstr(kernel_log, "processed ");
	if (err || !time || !processed)
		return -1;
	*insns = strtoul(processed + 10, NULL, 10);
	return strtod(time + 18, NULL) / 1e3;
}

static double ours_ms(struct pb_bpf_made *made, uint32_t nr)
{
	int err;

	pb_bpf_prog_free(made->progs[nr].prog);
	made->progs[nr].prog = NULL;
	err = pb_bpf_make_prog(made, nr, NULL, 0);
	return err ? -1 : (double)made->progs[nr].ns / 1e6;
}

static int by_number(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void measure(const char *path, struct pb_bpf_made *made, uint32_t nr, unsigned rounds)
{
	const struct pb_bpf_object_prog *prog = &made->object->progs[nr];
	double ours[MAX_ROUNDS], kernel[MAX_ROUNDS];
	struct row *r = &rows[nr_rows];

	for (unsigned i = 0; i < rounds; i++) {
		ours[i] = ours_ms(made, nr);
		if (ours[i] < 0)
			return;
		kernel[i] = kernel_ms(path, prog, &r->kernel_insns);
		if (kernel[i] < 0)
			return;
	}
	qsort(ours, rounds, sizeof *ours, by_number);
	qsort(kernel, rounds, sizeof *kernel, by_number);
	r->path = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	snprintf(r->name, sizeof r->name, "%s", prog->name);
	r->insns = made->progs[nr].verified;
	r->ours = ours[rounds / 2];
	r->kernel = kernel[rounds / 2];
	nr_rows++;
}

static void object(const char *path, unsigned rounds)
{
	struct pb_bpf_make_opts opts = { .caps = PB_BPF_CAP_ALL, .adjust = adjust };
	struct pb_bpf_object *o;
	struct pb_bpf_made *made;
	char err[256];

	if (pb_bpf_object_open(path, NULL, &o, err, sizeof err))
		return;
	if (!pb_bpf_make(o, &opts, &made)) {
		for (uint32_t i = 0; i < o->nr_progs && nr_rows < MOST_PROGS; i++)
			if (o->progs[i].type && pb_bpf_type_of(o->progs[i].type))
				measure(path, made, i, rounds);
		pb_bpf_made_free(made);
	}
	pb_bpf_object_close(o);
}

static int by_size(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->insns < y->insns ? 1 : x->insns > y->insns ? -1 : 0;
}

int main(int argc, char **argv)
{
	unsigned rounds = 7, most = 10;
	int c;

	while ((c = getopt(argc, argv, "r:n:")) != -1)
		if (c == 'r')
			rounds = (unsigned)atoi(optarg);
		else if (c == 'n')
			most = (unsigned)atoi(optarg);
		else
			return 2;
	if (!rounds || rounds > MAX_ROUNDS || optind == argc)
		return 2;
	libbpf_set_print(silent);
	for (int i = optind; i < argc; i++)
		object(argv[i], rounds);
	qsort(rows, nr_rows, sizeof *rows, by_size);
	printf("%-32s %-20s %9s %9s %10s %10s  ours/kernel's\n", "object", "program", "insns",
	       "kernel's", "ours, ms", "kernel, ms");
	for (unsigned i = 0; i < nr_rows && i < most; i++)
		printf("%-32s %-20s %9lu %9lu %10.2f %10.2f  %.2f\n", rows[i].path, rows[i].name,
		       rows[i].insns, rows[i].kernel_insns, rows[i].ours, rows[i].kernel,
		       rows[i].ours / rows[i].kernel);
	return !nr_rows;
}
