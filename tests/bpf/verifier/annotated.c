/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Verifies and runs programs of the kernel's selftests, in Patchbay and in this machine's kernel.
 * annotated.py lists the selftests. Annotations in these programs say what verdict a verifier must
 * give. run_verifier612 reads the output and compares it with the annotations.
 *
 *   bpf_annotated [-k] [-u] [-p PROGRAM] OBJECT...
 *
 * -k: also loads the programs into the kernel. -u, with -k: also loads them into the kernel without
 * privileges. During the test, unprivileged_bpf_disabled is 0. -p: tests only this program.
 *
 * The output is a sequence of fields, "KEY LENGTH\nBYTES\n". The keys are:
 *   object                 begins an object; the path
 *   broken                 the reason why the object can't be opened
 *   prog                   begins a program; its name
 *   section                the program's section
 *   tag                    one of the program's annotations
 *   why                    the reason why the program can't run here
 *   ours, ours_unpriv, kernel, kernel_unpriv      "ERRNO LOG"
 *   xlated, xlated_unpriv  the rewritten instructions, if an annotation describes them
 *   run                    "WHO ERRNO RESULT" of a test run; WHO is interpreter, jit or kernel,
 *                          with _unpriv if the program was loaded without privileges
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/core/disasm.h"
#include "bpf/helper/helper.h"
#include "bpf/map/map_sys.h"
#include "bpf/run/test_run.h"
#include "bpfload/load_make.h"

#define LOG_SIZE	(64u << 20)
#define LOG_END		2000	/* bytes */
#define DATA_SIZE	64
#define TAG		"comment:test_"
#define DISABLED	"/proc/sys/kernel/unprivileged_bpf_disabled"

static char *log_text;
static bool ask_kernel, ask_unpriv;

static void field(const char *key, const char *bytes, size_t len)
{
	printf("%s %zu\n", key, len);
	fwrite(bytes, 1, len, stdout);
	putchar('\n');
}

static void field_text(const char *key, const char *text)
{
	field(key, text, strlen(text));
}

/* Prints the whole log if `whole` is true. Otherwise prints only the log's end. */
static void verdict(const char *key, int err, bool whole)
{
	size_t len = strlen(log_text);
	const char *log = log_text;

	if (!whole && len > LOG_END) {
		log += len - LOG_END;
		len = LOG_END;
	}
	printf("%s %zu\n%d %s\n", key, len + (size_t)snprintf(NULL, 0, "%d ", err), err, log);
}

/* ---- annotations ----------------------------------------------------------------------- */

struct wish {
	uint32_t flags, log_level;
	char types[256];		/* the file with the types for CO-RE; "": the kernel's
				 * types */
	bool unpriv, auxiliary, runs, messages, xlated;
};

/* If the tag begins with the word, returns the rest of the tag. Otherwise returns NULL. */
static const char *after(const char *tag, const char *word)
{
	size_t n = strlen(word);

	return strncmp(tag, word, n) ? NULL : tag + n;
}

/* Sets a flag by its name, or flags by their number. !NAME clears the flag. */
static void read_flag(struct wish *w, const char *text)
{
	static const struct { const char *name; uint32_t bit; } names[] = {
		{ "BPF_F_STRICT_ALIGNMENT", 1 }, { "BPF_F_ANY_ALIGNMENT", 2 },
		{ "BPF_F_TEST_RND_HI32", 4 }, { "BPF_F_TEST_STATE_FREQ", 8 },
		{ "BPF_F_SLEEPABLE", 16 }, { "BPF_F_XDP_HAS_FRAGS", 32 },
		{ "BPF_F_TEST_REG_INVARIANTS", 128 },
	};
	bool clear = *text == '!';

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(text + clear, names[i].name))
			w->flags = clear ? w->flags & ~names[i].bit : w->flags | names[i].bit;
	if (*text >= '0' && *text <= '9')
		w->flags |= (uint32_t)strtoul(text, NULL, 0);
}

/* The path of the current object. Files with types are in the same directory. */
static const char *dir_of_objects;

static void read_tag(struct wish *w, const char *tag)
{
	const char *text;

	if ((text = after(tag, "btf_path=")))
		snprintf(w->types, sizeof(w->types), "%.*s%.*s.o",
			 (int)(strrchr(dir_of_objects, '/') + 1 - dir_of_objects), dir_of_objects,
			 (int)strcspn(text, "."), text);
	if ((text = after(tag, "log_level=")))
		w->log_level = (uint32_t)strtoul(text, NULL, 0);
	else if ((text = after(tag, "prog_flags=")))
		read_flag(w, text);
	else if (!strcmp(tag, "auxiliary") || after(tag, "auxiliary_unpriv"))
		w->auxiliary = true;
	w->messages |= after(tag, "expect_msg") != NULL;
	w->xlated |= after(tag, "expect_xlated") != NULL;
	w->runs |= after(tag, "retval=") != NULL || after(tag, "retval_unpriv=") != NULL;
	w->unpriv |= strstr(tag, "_unpriv") != NULL;
}

/* The annotations of one object, each with its function. */
static struct tag { const char *prog, *text; } *tags;
static size_t nr_tags;

static void find_tags(const struct btf *btf)
{
	nr_tags = 0;
	tags = realloc(tags, btf__type_cnt(btf) * sizeof(*tags));
	for (uint32_t i = 1; i < btf__type_cnt(btf); i++) {
		const struct btf_type *t = btf__type_by_id(btf, i), *func = t;
		const char *text;

		if (btf_is_decl_tag(t) && btf_decl_tag(t)->component_idx == -1)
			func = btf__type_by_id(btf, t->type);
		if (!btf_is_func(func) || func == t)
			continue;
		text = after(btf__name_by_offset(btf, t->name_off), TAG);
		if (text)
			tags[nr_tags++] = (struct tag){ btf__name_by_offset(btf, func->name_off),
							text };
	}
}

static void read_tags(const char *prog, struct wish *w, bool show)
{
	*w = (struct wish){ .log_level = 0 };
	for (size_t i = 0; i < nr_tags; i++) {
		if (strcmp(tags[i].prog, prog))
			continue;
		read_tag(w, tags[i].text);
		if (show)
			field_text("tag", tags[i].text);
	}
}

static bool is_auxiliary(const char *prog)
{
	struct wish w;

	read_tags(prog, &w, false);
	return w.auxiliary;
}

/* ---- contents of the maps of two tests --------------------------------------------------- */

static const struct { const char *object, *map; } filled[] = {
	{ "verifier_array_access", "map_array_ro" },
	{ "verifier_value_ptr_arith", "map_array_48b" },
};
static const struct {
	uint32_t index, foo[11];
} first_value = { .index = 28, .foo[6] = 0xabcdef12 };

static const char *filled_map(const char *object)
{
	for (size_t i = 0; i < sizeof(filled) / sizeof(*filled); i++)
		if (strstr(object, filled[i].object))
			return filled[i].map;
	return NULL;
}

static void fill_ours(const struct pb_bpf_object *object, struct pb_bpf_made *made)
{
	const char *name = filled_map(object->name);
	int nr = name ? pb_bpf_object_map(object, name) : -1;

	if (nr >= 0 && made->maps[nr].map)
		pb_bpf_map_update_elem(made->maps[nr].map, &(uint32_t){ 0 }, &first_value, BPF_ANY);
}

static void fill_kernels(struct bpf_object *o)
{
	const char *name = filled_map(bpf_object__name(o));
	int fd = name ? bpf_object__find_map_fd_by_name(o, name) : -1;

	if (fd >= 0)
		bpf_map_update_elem(fd, &(uint32_t){ 0 }, &first_value, BPF_ANY);
}

/* ---- ours -------------------------------------------------------------------------------- */

static void run(const struct pb_bpf_object_prog *p, const struct pb_bpf_prog *prog, bool interpret,
		const char *who)
{
	char in[DATA_SIZE] = { 0 }, out[DATA_SIZE * 4], text[80];
	struct pb_bpf_test_run t = {
		.prog = prog, .host = pb_bpf_host_linux(), .interpret = interpret,
		.attach_type = p->attach_type, .data_in = in, .data_size_in = sizeof(in),
		.repeat = 1, .data_out = out, .data_size_out = sizeof(out),
	};
	int err;

	if (p->type == BPF_PROG_TYPE_RAW_TRACEPOINT) {
		t.data_in = t.data_out = NULL;
		t.data_size_in = t.data_size_out = 0;
	}
	if (!interpret && !prog->jited)
		return;
	err = pb_bpf_test_run(&t);
	snprintf(text, sizeof(text), "%s %d %d", who, -err, (int)t.retval);
	field_text("run", text);
}

/* Returns the name of a called helper. `nr` is an index into the program's table of calls. */
static const char *called(void *arg, int32_t nr)
{
	const struct pb_bpf_prog *prog = arg;

	for (uint32_t id = 1; id < 300 && nr >= 0 && (uint32_t)nr < prog->nr_calls; id++) {
		const struct pb_bpf_helper *h = pb_bpf_helper_of(id);

		if (h && h->name && h->fn == prog->calls[nr])
			return h->name;
	}
	return "unknown";
}

static void show_xlated(const char *key, const struct pb_bpf_prog *prog)
{
	struct pb_bpf_text t = { .buf = log_text, .size = LOG_SIZE };
	const struct pb_bpf_names names = { .helper = called, .arg = (void *)prog };

	log_text[0] = 0;
	for (uint32_t i = 0; i < prog->nr; i++) {
		pb_bpf_printf(&t, "%u: ", i);
		pb_bpf_disasm(&t, &prog->insns[i], &names);
		pb_bpf_printf(&t, "\n");
		if (prog->insns[i].code == (BPF_LD | BPF_IMM | BPF_DW))
			i++;
	}
	field(key, t.buf, t.len);
}

static void ours(const struct pb_bpf_object *object, uint32_t nr, const struct wish *w, bool unpriv)
{
	const struct pb_bpf_object_prog *p = &object->progs[nr];
	struct pb_bpf_make_opts opts = { .caps = unpriv ? 0 : PB_BPF_CAP_ALL, .flags = w->flags,
					 .cpu_slots = 2 };
	struct pb_bpf_text log = { .buf = log_text, .size = LOG_SIZE };
	struct pb_bpf_made *made;
	int err;

	if (pb_bpf_make(object, &opts, &made))
		abort();
	fill_ours(object, made);
	for (uint32_t i = 0; i < object->nr_progs; i++)
		if (i != nr && is_auxiliary(object->progs[i].name))
			pb_bpf_make_prog(made, i, NULL, 0);
	log_text[0] = 0;
	err = pb_bpf_make_prog(made, nr, &log, w->log_level | 1);
	if (err && !log_text[0] && made->progs[nr].why)
		snprintf(log_text, LOG_SIZE, "(no log) %s\n", made->progs[nr].why);
	verdict(unpriv ? "ours_unpriv" : "ours", -err, w->messages);
	if (!err && w->runs) {
		run(p, made->progs[nr].prog, true, unpriv ? "interpreter_unpriv" : "interpreter");
		run(p, made->progs[nr].prog, false, unpriv ? "jit_unpriv" : "jit");
	}
	if (!err && w->xlated)
		show_xlated(unpriv ? "xlated_unpriv" : "xlated", made->progs[nr].prog);
	pb_bpf_made_free(made);
}

/* Returns the reason why Patchbay can't run the program, or NULL if it can. Possible reasons are
 * the program's section, a function that the program calls, or a map that can't be made. */
static const char *not_ours(const struct pb_bpf_object *object, uint32_t nr)
{
	const struct pb_bpf_object_prog *p = &object->progs[nr];
	struct pb_bpf_make_opts opts = { .caps = PB_BPF_CAP_ALL, .cpu_slots = 2 };
	static char why[512];
	struct pb_bpf_made *made;

	if (p->why)
		return p->why;
	if (!p->type || !pb_bpf_type_of(p->type))
		return "programs of a type that Patchbay does not run";
	if (pb_bpf_make(object, &opts, &made))
		abort();
	why[0] = 0;
	for (uint32_t i = 0; i < p->nr && !why[0]; i++) {
		const struct bpf_insn *in = &p->insns[i];

		if (in->code != (BPF_LD | BPF_IMM | BPF_DW))
			continue;
		if ((in->src_reg == BPF_PSEUDO_MAP_FD || in->src_reg == BPF_PSEUDO_MAP_VALUE) &&
		    !made->maps[in->imm].map)
			snprintf(why, sizeof(why), "%s",
				 made->maps[in->imm].why ? made->maps[in->imm].why : "a map");
		i++;
	}
	pb_bpf_made_free(made);
	return why[0] ? why : NULL;
}

/* ---- the kernel ----------------------------------------------------------------------------- */

static int silent(enum libbpf_print_level level, const char *format, va_list ap)
{
	return 0;
}

/* The privileges that the kernel requires for these programs. */
#define CAPS ((1ull << CAP_SYS_ADMIN) | (1ull << CAP_NET_ADMIN) | (1ull << CAP_PERFMON) | \
	      (1ull << CAP_BPF))

static void set_caps(bool on)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2];

	if (syscall(SYS_capget, &h, d))
		return;
	for (int i = 0; i < 2; i++) {
		uint32_t bits = (uint32_t)(CAPS >> 32 * i);

		d[i].effective = on ? d[i].effective | (d[i].permitted & bits) :
				 d[i].effective & ~bits;
	}
	if (syscall(SYS_capset, &h, d))
		perror("capset");
}

static void kernel_run(struct bpf_program *p, bool unpriv)
{
	char in[DATA_SIZE] = { 0 }, out[DATA_SIZE * 4], text[80];
	LIBBPF_OPTS(bpf_test_run_opts, t, .data_in = in, .data_size_in = sizeof(in),
		    .data_out = out, .data_size_out = sizeof(out), .repeat = 1);
	int err;

	if (bpf_program__type(p) == BPF_PROG_TYPE_RAW_TRACEPOINT) {
		t.data_in = t.data_out = NULL;
		t.data_size_in = t.data_size_out = t.repeat = 0;
	}
	err = bpf_prog_test_run_opts(bpf_program__fd(p), &t) ? errno : 0;
	snprintf(text, sizeof(text), "kernel%s %d %d", unpriv ? "_unpriv" : "", err, (int)t.retval);
	field_text("run", text);
}

/* Returns whether a caller without privileges may create maps of the type. */
static bool for_anybody(enum bpf_map_type type)
{
	switch (type) {
	case BPF_MAP_TYPE_HASH: case BPF_MAP_TYPE_PERCPU_HASH: case BPF_MAP_TYPE_HASH_OF_MAPS:
	case BPF_MAP_TYPE_ARRAY: case BPF_MAP_TYPE_PERCPU_ARRAY: case BPF_MAP_TYPE_ARRAY_OF_MAPS:
	case BPF_MAP_TYPE_PROG_ARRAY: case BPF_MAP_TYPE_PERF_EVENT_ARRAY: case BPF_MAP_TYPE_RINGBUF:
	case BPF_MAP_TYPE_USER_RINGBUF:
		return true;
	default:
		return false;
	}
}

static void kernel(const char *path, const char *name, const struct wish *w, bool unpriv)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = w->types[0] ? w->types : NULL);
	struct bpf_object *o = bpf_object__open_file(path, &opts);
	struct bpf_program *p, *it = NULL;
	struct bpf_map *m;
	int err;

	if (!o)
		return;
	bpf_object__for_each_program(p, o) {
		bool is = !strcmp(bpf_program__name(p), name);

		bpf_program__set_autoload(p, is || is_auxiliary(bpf_program__name(p)));
		if (is)
			it = p;
	}
	bpf_object__for_each_map(m, o) {
		bpf_map__set_pin_path(m, NULL);
		bpf_map__set_autocreate(m, !unpriv || for_anybody(bpf_map__type(m)));
	}
	log_text[0] = 0;
	if (it) {
		bpf_program__set_log_buf(it, log_text, LOG_SIZE);
		bpf_program__set_log_level(it, w->log_level | 1);
		bpf_program__set_flags(it, bpf_program__flags(it) | w->flags);
	}
	if (unpriv)
		set_caps(false);
	err = it ? bpf_object__load(o) : -ENOENT;
	if (unpriv)
		set_caps(true);
	/* If the load failed and the log is empty, the verifier never started: the failure was at a
	 * map, at BTF, or in libbpf. Then there is no verdict. */
	if (!err || log_text[0])
		verdict(unpriv ? "kernel_unpriv" : "kernel", -err, false);
	if (!err)
		fill_kernels(o);
	if (!err && w->runs)
		kernel_run(it, unpriv);
	bpf_object__close(o);
}

/* ---- objects --------------------------------------------------------------------------------- */

static struct pb_bpf_object *open_ours(const char *path, const char *types, const char **why)
{
	struct pb_bpf_object_opts opts = { .target = types };
	struct pb_bpf_object *object;
	static char err[256];

	*why = err;
	return pb_bpf_object_open(path, &opts, &object, err, sizeof(err)) ? NULL : object;
}

static void one(const char *path, const struct pb_bpf_object *object, uint32_t nr,
		const struct wish *w)
{
	const struct pb_bpf_object_prog *p = &object->progs[nr];
	const char *why = not_ours(object, nr);

	if (why)
		field_text("why", why);
	if (!why && !w->auxiliary) {
		ours(object, nr, w, false);
		if (w->unpriv)
			ours(object, nr, w, true);
		if (ask_kernel)
			kernel(path, p->name, w, false);
		if (ask_kernel && ask_unpriv && w->unpriv)
			kernel(path, p->name, w, true);
	}
	fflush(stdout);
}

static void begin(const char *path, const struct pb_bpf_object *object, uint32_t nr)
{
	struct pb_bpf_object *with_types = NULL;
	const char *why;
	struct wish w;

	field_text("prog", object->progs[nr].name);
	field_text("section", object->progs[nr].section);
	read_tags(object->progs[nr].name, &w, true);
	if (w.types[0])
		with_types = open_ours(path, w.types, &why);
	one(path, with_types ? with_types : object, nr, &w);
	pb_bpf_object_close(with_types);
}

static void all(const char *path, const char *only)
{
	struct btf *btf = btf__parse(path, NULL);
	const char *why = "it has no BTF";
	struct pb_bpf_object *object = btf ? open_ours(path, NULL, &why) : NULL;

	field_text("object", path);
	dir_of_objects = path;
	if (object)
		find_tags(btf);
	else
		field_text("broken", why);
	for (uint32_t i = 0; object && i < object->nr_progs; i++)
		if (!only || !strcmp(object->progs[i].name, only))
			begin(path, object, i);
	pb_bpf_object_close(object);
	btf__free(btf);
}

static int disabled_before = -1;

static void write_disabled(int value)
{
	FILE *f = fopen(DISABLED, "w");

	if (f) {
		fprintf(f, "%d\n", value);
		fclose(f);
	}
}

static void restore_disabled(void)
{
	write_disabled(disabled_before);
}

/* Sets unprivileged_bpf_disabled to 0. If the value is 1, nobody can change it, so the kernel isn't
 * asked for verdicts without privileges. */
static void allow_unpriv(void)
{
	FILE *f = fopen(DISABLED, "r");

	if (!f || fscanf(f, "%d", &disabled_before) != 1 || disabled_before == 1)
		ask_unpriv = false;
	if (f)
		fclose(f);
	if (ask_unpriv && disabled_before == 2) {
		atexit(restore_disabled);
		write_disabled(0);
	}
}

int main(int argc, char **argv)
{
	const char *only = NULL;
	int c;

	while ((c = getopt(argc, argv, "kup:")) != -1)
		switch (c) {
		case 'k':
			ask_kernel = true;
			break;
		case 'u':
			ask_unpriv = true;
			break;
		case 'p':
			only = optarg;
			break;
		default:
			return 2;
		}
	libbpf_set_print(silent);
	pb_bpf_settings.jit_enable = 1;
	log_text = malloc(LOG_SIZE);
	if (!log_text)
		return 1;
	if (ask_kernel && ask_unpriv)
		allow_unpriv();
	for (int i = optind; i < argc; i++)
		all(argv[i], only);
	free(tags);
	free(log_text);
	return 0;
}
