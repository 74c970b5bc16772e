/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay list`: prints those functions of a program or library that can be traced. With
 * --refused, prints the functions that can't be traced, each with the reason. Runs no code of the
 * file. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/analysis_access.h"
#include "base/base.h"
#include "base/clean_text.h"
#include "cli/cli.h"
#include "module/demangle.h"
#include "module/module.h"
#include "module/needed.h"
#include "module/elf/runtimes.h"
#include "view/out.h"

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV };

struct list {
	const char *file;
	bool refused, entry_only, total, libs;
	uint32_t runtimes;	/* the language runtimes of all files, as bits */
	uint64_t unknown_kib;	/* KiB of code that belongs to no function. A file counts only if at
				 * least half of its code is of this kind (abi/analysis.h) */
	enum format format;
	enum pb_demangle demangle;
	struct pb_module_options module;
	/* the state of the listing */
	struct pb_out *out;
	bool first;		/* no JSON object has been printed yet */
	int status;
	uint64_t count[PB_NR_REFUSED], count_in[PB_NR_INEXIT];
};

static const struct {
	const char *name, *text;
} reasons[] = {
#define X(name, text) { #name, text },
	PB_REFUSED_LIST(X)
#undef X
};

static const struct {
	const char *name, *text;
} inexits[] = {
#define X(name, text) { #name, text },
	PB_INEXIT_LIST(X)
#undef X
};

static const char *const kinds[] = { "symbol", "nop", "fentry", "mcount", "xray", "cyg" };

/* ------------------------------------------------------------------ output */

static void json_separator(struct list *l)
{
	pb_out_str(l->out, l->first ? "[\n" : ",\n");
	l->first = false;
}

/* Returns why the function's return can't be hooked. Returns PB_INEXIT_NOT if the return can be
 * hooked, or if the function isn't patched. */
static enum pb_inexit inexit(const struct pb_analysis *a, const struct pb_func *f)
{
	return f->refused || f->kind == PB_SITE_CYG ? PB_INEXIT_NOT : pb_func_inexit(a, f);
}

static void print_json(struct list *l, const char *module, const char *name,
		       const struct pb_func *f, enum pb_inexit in)
{
	struct pb_out *o = l->out;

	json_separator(l);
	pb_out_str(o, "{\"name\":");
	pb_out_json(o, name);
	pb_out_str(o, ",\"module\":");
	pb_out_json(o, module);
	pb_out_fmt(o, ",\"addr\":%" PRIu64 ",\"size\":%u,\"kind\":\"%s\",\"entry_only\":%s",
		   f->addr, f->size, kinds[f->kind], in ? "true" : "false");
	if (in)
		pb_out_fmt(o, ",\"reason\":\"%s\"", inexits[in].text);
	if (f->refused)
		pb_out_fmt(o, ",\"refused\":\"%s\",\"reason\":\"%s\"", reasons[f->refused].name,
			   reasons[f->refused].text);
	pb_out_char(o, '}');
}

static void print_csv(struct pb_out *o, const char *module, const char *name,
		      const struct pb_func *f, enum pb_inexit in)
{
	pb_out_csv(o, name);
	pb_out_char(o, ',');
	pb_out_csv(o, module);
	pb_out_fmt(o, ",0x%" PRIx64 ",%u,%s,%d,%s,", f->addr, f->size, kinds[f->kind],
		   in != PB_INEXIT_NOT, f->refused ? reasons[f->refused].name : "");
	if (f->refused)
		pb_out_csv(o, reasons[f->refused].text);
	else if (in)
		pb_out_csv(o, inexits[in].text);
	pb_out_char(o, '\n');
}

/* Prints a line as in available_filter_functions. With --libs, prints the module after the name.
 * With --refused or --entry-only, prints the reason at the end. */
static void print_text(const struct list *l, const char *module, const char *name,
		       const struct pb_func *f, enum pb_inexit in)
{
	pb_out_str(l->out, name);
	if (l->libs && *module)
		pb_out_fmt(l->out, " [%s]", module);
	if (f->refused)
		pb_out_fmt(l->out, ": %s", reasons[f->refused].text);
	else if (l->entry_only)
		pb_out_fmt(l->out, ": %s", inexits[in].text);
	pb_out_char(l->out, '\n');
}

static void print_func(struct list *l, const char *module, const char *name,
		       const struct pb_func *f, enum pb_inexit in)
{
	char *pretty = pb_demangle(name, l->demangle);

	if (!pretty && !pb_text_printable(name)) {
		pretty = strdup(name);
		pb_text_clean(pretty, '?', 0);
	}
	name = pretty ? pretty : name;
	switch (l->format) {
	case FORMAT_TEXT:
		print_text(l, module, name, f, in);
		break;
	case FORMAT_JSON:
		print_json(l, module, name, f, in);
		break;
	case FORMAT_CSV:
		print_csv(l->out, module, name, f, in);
		break;
	}
	free(pretty);
}

static void print_total_line(struct list *l, const char *name, const char *text, uint64_t n)
{
	switch (l->format) {
	case FORMAT_TEXT:
		pb_out_fmt(l->out, "%8" PRIu64 "  %s\n", n, text);
		break;
	case FORMAT_JSON:
		json_separator(l);
		pb_out_fmt(l->out, "{\"refused\":\"%s\",\"reason\":\"%s\",\"count\":%" PRIu64 "}",
			   name, text, n);
		break;
	case FORMAT_CSV:
		pb_out_fmt(l->out, "%s,", name);
		pb_out_csv(l->out, text);
		pb_out_fmt(l->out, ",%" PRIu64 "\n", n);
		break;
	}
}

static uint64_t entry_only(const struct list *l)
{
	uint64_t n = 0;

	for (unsigned i = 1; i < PB_NR_INEXIT; i++)
		n += l->count_in[i];
	return n;
}

static void print_runtimes(struct list *l)
{
	for (unsigned i = 0; pb_runtime_name(i); i++) {
		if (!(l->runtimes >> i & 1))
			continue;
		if (l->format == FORMAT_TEXT)
			pb_out_fmt(l->out, "%s: %s\n", pb_runtime_name(i),
				   pb_runtime_policy(i));
		else
			print_total_line(l, pb_runtime_name(i), pb_runtime_policy(i), 1);
	}
}

static void print_totals(struct list *l)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < PB_NR_REFUSED; i++)
		all += l->count[i];
	print_runtimes(l);
	if (l->unknown_kib)
		print_total_line(l, "", "KiB of code in no function: neither unwind tables nor "
				 "symbols describe it", l->unknown_kib);
	print_total_line(l, "", all == 1 && l->format == FORMAT_TEXT ? "function" : "functions",
			 all);
	print_total_line(l, "", "can be traced", l->count[PB_REFUSED_NOT]);
	for (unsigned i = 1; i < PB_NR_REFUSED; i++)
		if (l->count[i])
			print_total_line(l, reasons[i].name, reasons[i].text, l->count[i]);
	for (unsigned i = 1, all = 0; i < PB_NR_INEXIT; i++) {
		if (!l->count_in[i])
			continue;
		if (!all++)
			print_total_line(l, "", "of these, traced by their entries only",
					 entry_only(l));
		print_total_line(l, inexits[i].name, inexits[i].text, l->count_in[i]);
	}
}

/* ------------------------------------------------------------------- files */

static void list_analysis(struct list *l, const struct pb_analysis *a)
{
	const struct pb_func *f = pb_analysis_funcs(a);
	/* this may be the name of a file, which may have any characters */
	char *module = strdup(pb_analysis_string(a, a->soname));

	if (!module) {
		l->status = pb_error("list", "out of memory");
		return;
	}
	pb_text_clean(module, '?', 0);
	l->runtimes |= a->runtimes;
	l->unknown_kib += a->unknown_kib;
	for (uint32_t i = 0; i < a->nr_funcs; i++) {
		enum pb_inexit in = inexit(a, &f[i]);

		l->count[f[i].refused]++;
		l->count_in[in]++;
		if (!l->total &&
		    (l->entry_only ? in : l->refused == (f[i].refused != PB_REFUSED_NOT)))
			print_func(l, module, pb_func_name(a, &f[i]), &f[i], in);
	}
	free(module);
}

static void list_file(void *arg, const char *path)
{
	struct list *l = arg;
	int elf = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), fd;
	char err[256];
	struct stat st;
	void *map;

	if (elf < 0) {
		l->status = pb_error("list", "%s: %s", path, strerror(errno));
		return;
	}
	fd = pb_module_open(elf, path, &l->module, err, sizeof(err));
	close(elf);
	if (fd < 0) {
		l->status = pb_error("list", "%s: %s", path, err);
		return;
	}
	map = fstat(fd, &st) ? MAP_FAILED :
	      mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (map == MAP_FAILED) {
		l->status = pb_error("list", "%s: its analysis: %s", path, strerror(errno));
		return;
	}
	list_analysis(l, map);
	munmap(map, (size_t)st.st_size);
}

static void missing(void *arg, const char *name, const char *needed_by)
{
	struct list *l = arg;

	l->status = pb_error("list", "%s: not found (needed by %s); skipped", name, needed_by);
}

/* If the name has no slash, looks for a command in PATH, then for a file in the current
 * directory. */
static const char *find_program(const char *name, char *out)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/') || !path)
		return name;
	for (const char *end; *path; path = end + (*end == ':')) {
		struct stat st;

		end = path + strcspn(path, ":");
		if (snprintf(out, PATH_MAX, "%.*s/%s", (int)(end - path), path, name) < PATH_MAX &&
		    !access(out, X_OK) && !stat(out, &st) && S_ISREG(st.st_mode))
			return out;
	}
	return name;
}

/* --------------------------------------------------------------- arguments */

enum { OPT_REFUSED = 256, OPT_ALL_SITES, OPT_FORMAT, OPT_ENTRY_ONLY, OPT_TOTAL, OPT_LIBS,
	OPT_NO_CACHE,
       OPT_DEMANGLE };

static const struct argp_option options[] = {
	{ "refused", OPT_REFUSED, NULL, 0, "Functions that can't be traced, and why", 0 },
	{ "entry-only", OPT_ENTRY_ONLY, NULL, 0, "Functions whose returns can't be hooked, and why",
		0 },
	{ "total", OPT_TOTAL, NULL, 0, "Numbers only, by reason", 0 },
	{ "libs", OPT_LIBS, NULL, 0, "Include the shared libraries that PROG needs", 0 },
	{ "all-sites", OPT_ALL_SITES, NULL, 0,
	  "In an instrumented program, also list functions that the compiler did not instrument",
	  0 },
	{ "format", OPT_FORMAT, "text|json|csv", 0, "Default: text", 0 },
	{ "demangle", OPT_DEMANGLE, "HOW", 0, "Names: simple, full or no (no)", 0 },
	{ "no-cache", OPT_NO_CACHE, NULL, 0, "Analyse the file again, and do not use the cache",
		0 },
	{ 0 }
};

static error_t list_parse(int key, char *arg, struct argp_state *state)
{
	struct list *l = state->input;

	switch (key) {
	case OPT_REFUSED:
		l->refused = true;
		return 0;
	case OPT_ENTRY_ONLY:
		l->entry_only = true;
		return 0;
	case OPT_TOTAL:
		l->total = true;
		return 0;
	case OPT_LIBS:
		l->libs = true;
		return 0;
	case OPT_ALL_SITES:
		l->module.flags |= PB_MODULE_ALL_SITES;
		return 0;
	case OPT_DEMANGLE:
		if (!pb_demangle_style(arg, &l->demangle))
			argp_failure(state, 2, 0, "--demangle=%s: choose simple, full or no", arg);
		return 0;
	case OPT_NO_CACHE:
		l->module.flags |= PB_MODULE_NO_CACHE;
		return 0;
	case OPT_FORMAT:
		if (!strcmp(arg, "text"))
			l->format = FORMAT_TEXT;
		else if (!strcmp(arg, "json"))
			l->format = FORMAT_JSON;
		else if (!strcmp(arg, "csv"))
			l->format = FORMAT_CSV;
		else
			argp_failure(state, 2, 0, "--format=%s: not one of text, json, csv", arg);
		return 0;
	case ARGP_KEY_ARG:
		if (l->file)
			argp_failure(state, 2, 0, "%s: one program or file at a time", arg);
		l->file = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_failure(state, 2, 0, "no program or file");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	options, list_parse, "PROG|FILE",
	"List the functions of a program or library that can be traced.", NULL, NULL, NULL
};

static int list_run(int argc, char **argv)
{
	static const struct pb_needed_ops ops = { list_file, missing };
	static struct pb_out out;
	struct list l = { .first = true, .demangle = PB_DEMANGLE_NO,
		.module.flags = PB_MODULE_RETURNS, .out = &out };
	char found[PATH_MAX];
	const char *path;
	int ret;

	if (argp_parse(&argp, argc, argv, 0, NULL, &l))
		return 2;
	path = find_program(l.file, found);
	pb_out_open(&out, "list", false);
	if (l.format == FORMAT_CSV)
		pb_out_str(&out, l.total ? "refused,reason,count\n" :
			   "name,module,addr,size,kind,entry_only,refused,reason\n");
	list_file(&l, path);
	if (l.libs && !l.status)
		pb_module_needed(path, &ops, &l);
	if (l.total && !(l.status && !l.count[PB_REFUSED_NOT]))
		print_totals(&l);
	if (l.format == FORMAT_JSON)
		pb_out_str(&out, l.first ? "[]\n" : "\n]\n");
	ret = pb_out_close(&out);
	return ret ? pb_error("list", "can't write the output: %s", strerror(-ret)) : l.status;
}

const struct pb_command pb_command_list = {
	.name = "list",
	.summary = "List the functions that can be traced, or why others can't",
	.argp = &argp,
	.run = list_run,
};
