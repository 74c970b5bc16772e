/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loads whole objects: creates maps, verifies programs and makes them runnable. With --kernel,
 * libbpf also loads the same programs into the kernel, for comparison.
 *
 *   load_all [--kernel] [--rounds N] [--log LEVEL] FILE...
 *
 * Prints a line for each program of a type that Patchbay can run. Tabs separate the fields:
 *   FILE, NAME, our result ("ok INSNS NS" or "refused ERRNO"), the kernel's result ("ok INSNS NS",
 *   "refused", "unknown", "-" without --kernel), our reason, the kernel's reason
 * INSNS is the number of instructions that the verifier has processed. NS is the time to verify the
 * program and to resolve it, without the JIT. The kernel's NS covers the same steps; for a program
 * with subprograms, it also covers the JIT. With --log, the command instead prints each program's
 * result and verifier log. --rounds N loads each program N times, alternately in Patchbay and in
 * the kernel. The line has the lowest NS of Patchbay and the lowest NS of the kernel.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpfload/load_make.h"

#define LOG_SIZE (16u << 20)

static char said[1024], *kernel_log;
static unsigned long kernel_insns;
static uint64_t kernel_ns;

static int print(enum libbpf_print_level level, const char *format, va_list ap)
{
	if (level == LIBBPF_WARN && !said[0])
		vsnprintf(said, sizeof(said), format, ap);
	return 0;
}

/* In some objects of the kernel's tests, a map has no size. The tests' own loaders set the size,
 * and this loader does the same. */
static bool needs_entries(uint32_t type, uint32_t entries)
{
	return !entries && type != BPF_MAP_TYPE_PERF_EVENT_ARRAY;
}

static void adjust(void *arg, const struct pb_bpf_object_map *map, struct pb_bpf_map_spec *spec)
{
	if (needs_entries(spec->attr.type, spec->attr.max_entries))
		spec->attr.max_entries = spec->attr.type == BPF_MAP_TYPE_RINGBUF ? 4096 : 1;
}

/* --- the kernel ----------------------------------------------------------------------- */

static const char *last_line(char *log)
{
	static char line[512];
	char *end = log + strlen(log), *begin;

	for (line[0] = 0; end > log; end = begin) {
		while (end > log && end[-1] == '\n')
			*--end = 0;
		for (begin = end; begin > log && begin[-1] != '\n'; begin--)
			;
		snprintf(line, sizeof(line), "%s", begin);
		if (strncmp(begin, "processed ", 10) && strncmp(begin, "max_states_per_insn", 19) &&
		    strncmp(begin, "verification time", 17) && strncmp(begin, "stack depth", 11))
			break;
	}
	return line;
}

static void prepare(struct bpf_object *o, const struct pb_bpf_object_prog *prog)
{
	struct bpf_program *p;
	struct bpf_map *m;

	bpf_object__for_each_program(p, o) {
		bool it = !strcmp(bpf_program__name(p), prog->name);

		bpf_program__set_autoload(p, it);
		if (it && bpf_program__type(p) == BPF_PROG_TYPE_UNSPEC) {
			bpf_program__set_type(p, prog->type);
			bpf_program__set_expected_attach_type(p, prog->attach_type);
		}
	}
	bpf_object__for_each_map(m, o) {
		bpf_map__set_pin_path(m, NULL);
		if (needs_entries(bpf_map__type(m), bpf_map__max_entries(m)))
			bpf_map__set_max_entries(m, bpf_map__type(m) == BPF_MAP_TYPE_RINGBUF ?
						 4096 : 1);
	}
}

static const char *kernel_verdict(const char *path, const struct pb_bpf_object_prog *prog,
				  const char **why)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .kernel_log_buf = kernel_log,
		    .kernel_log_size = LOG_SIZE, .kernel_log_level = 4);
	struct bpf_object *o;
	int err;

	said[0] = kernel_log[0] = 0;
	o = bpf_object__open_file(path, &opts);
	*why = said;
	said[strcspn(said, "\n")] = 0;
	if (!o)
		return "unknown";
	said[0] = 0;
	prepare(o, prog);
	err = bpf_object__load(o);
	bpf_object__close(o);
	said[strcspn(said, "\n")] = 0;
	if (!err) {
		const char *time = strstr(kernel_log, "verification time "),
			*insns = strstr(kernel_log, "processed ");

		kernel_ns = time ? strtoull(time + 18, NULL, 10) * 1000 : 0;
		kernel_insns = insns ? strtoul(insns + 10, NULL, 10) : 0;
		return "ok";
	}
	*why = last_line(kernel_log);
	if (strstr(said, "BPF program load failed"))
		return "refused";
	*why = said;
	return "unknown";
}

/* --- ours ------------------------------------------------------------------------------- */

static bool run_here(const struct pb_bpf_object_prog *p)
{
	return p->type && pb_bpf_type_of(p->type) &&
	       (!p->why || !strstr(p->why, "Patchbay can't run such programs"));
}

static void show_log(struct pb_bpf_made *made, uint32_t nr, uint32_t level)
{
	struct pb_bpf_text log = { .buf = calloc(1, LOG_SIZE), .size = LOG_SIZE };
	int err = pb_bpf_make_prog(made, nr, &log, level);

	printf("%s: %s\n%s%s\n", made->object->progs[nr].name, err ? strerror(-err) : "ok", log.buf,
	       made->progs[nr].why ? made->progs[nr].why : "");
	free(log.buf);
}

static void one(const char *path, struct pb_bpf_made *made, uint32_t nr, bool kernel,
		unsigned rounds)
{
	const struct pb_bpf_object_prog *p = &made->object->progs[nr];
	uint64_t ours_ns = UINT64_MAX, theirs_ns = UINT64_MAX;
	const char *theirs = "-", *why = "";
	int err = 0;

	for (unsigned i = 0; i < rounds && !err; i++) {
		pb_bpf_prog_free(made->progs[nr].prog);
		made->progs[nr].prog = NULL;
		err = pb_bpf_make_prog(made, nr, NULL, 0);
		ours_ns = made->progs[nr].ns < ours_ns ? made->progs[nr].ns : ours_ns;
		if (kernel)
			theirs = kernel_verdict(path, p, &why);
		theirs_ns = kernel_ns < theirs_ns ? kernel_ns : theirs_ns;
	}
	printf("%s\t%s\t", path, p->name);
	if (err)
		printf("refused %d\t%s", -err, theirs);
	else
		printf("ok %u %llu\t%s", made->progs[nr].verified, (unsigned long long)ours_ns,
		       theirs);
	if (!strcmp(theirs, "ok"))
		printf(" %lu %llu", kernel_insns, (unsigned long long)theirs_ns);
	printf("\t%s\t%s\n", made->progs[nr].why ? made->progs[nr].why : "", why);
	fflush(stdout);
}

static void all(const char *path, bool kernel, unsigned rounds, int level)
{
	struct pb_bpf_make_opts opts = { .caps = PB_BPF_CAP_ALL, .adjust = adjust };
	struct pb_bpf_object *object;
	struct pb_bpf_made *made;
	char err[256];

	if (pb_bpf_object_open(path, NULL, &object, err, sizeof(err)))
		return;		/* the program `judge', which gets the same files, reports it */
	if (!pb_bpf_make(object, &opts, &made)) {
		for (uint32_t i = 0; i < object->nr_progs; i++)
			if (run_here(&object->progs[i]) && level >= 0)
				show_log(made, i, (uint32_t)level);
			else if (run_here(&object->progs[i]))
				one(path, made, i, kernel, rounds);
		pb_bpf_made_free(made);
	}
	pb_bpf_object_close(object);
}

int main(int argc, char **argv)
{
	unsigned rounds = 1;
	bool kernel = false;
	int level = -1;

	libbpf_set_print(print);
	kernel_log = calloc(1, LOG_SIZE);
	pb_bpf_settings.jit_enable = 1;
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--kernel"))
			kernel = true;
		else if (!strcmp(argv[i], "--log") && i + 1 < argc)
			level = atoi(argv[++i]);
		else if (!strcmp(argv[i], "--rounds") && i + 1 < argc)
			rounds = (unsigned)atoi(argv[++i]);
		else
			all(argv[i], kernel, rounds, level);
	free(kernel_log);
	return 0;
}
