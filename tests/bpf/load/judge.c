/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compares libbpf's view of an object with our loader's view.
 *
 *   judge FILE...     prints a line for each file: FILE, a tab, and one of
 *       same P progs, M maps, refused R, guessed G, and "NAME: reason" for each refused program
 *       differs: ...  (the difference, libbpf's value, our value)
 *       both refuse: our message
 *       only ours opens it: libbpf's message | only libbpf opens it: our message
 *     G: number of programs whose type is guessed from the beginning of the section's name
 *   judge --show FILE prints our loader's view of the object
 *   judge --load [--target BTF] FILE...
 *                     compares the instructions after relocation, and the tables of functions and
 *                     lines (needs root)
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/core/disasm.h"
#include "bpfload/load.h"
#include "judge.h"

char judge_said[1024];			/* libbpf's first warning */
static char differs[4096];

static int judge_print(enum libbpf_print_level level, const char *format, va_list ap)
{
	if (level == LIBBPF_WARN && !judge_said[0]) {
		vsnprintf(judge_said, sizeof(judge_said), format, ap);
		for (char *p = judge_said; *p; p++)
			if (*p == '\n')
				*p = ' ';
	}
	return 0;
}

static void differ(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void differ(const char *format, ...)
{
	size_t n = strlen(differs);
	va_list ap;

	va_start(ap, format);
	n += (size_t)snprintf(differs + n, sizeof(differs) - n, "%s", n ? "; " : "");
	vsnprintf(differs + n, n < sizeof(differs) ? sizeof(differs) - n : 0, format, ap);
	va_end(ap);
}

#define SAME(what, name, theirs, ours) do { \
	unsigned long long a_ = (unsigned long long)(theirs), b_ = (unsigned long long)(ours); \
	if (a_ != b_) \
		differ("%s of %s: %llu, %llu", what, name, a_, b_); \
} while (0)

static void same_attributes(const struct bpf_map *m, const struct pb_bpf_object_map *o)
{
	SAME("type", o->name, bpf_map__type(m), o->attr.type);
	SAME("key size", o->name, bpf_map__key_size(m), o->attr.key_size);
	SAME("value size", o->name, bpf_map__value_size(m), o->attr.value_size);
	/* When libbpf opens an object, it adjusts the size of a ring buffer, but not yet the size
	 * of a perf event array. With 0 processors, pb_bpf_object_map_attr() does the same. */
	SAME("entries", o->name, bpf_map__max_entries(m), pb_bpf_object_map_attr(o, 0).max_entries);
	SAME("flags", o->name, bpf_map__map_flags(m), o->attr.flags);
	SAME("node", o->name, bpf_map__numa_node(m), o->numa_node);
	SAME("extra", o->name, bpf_map__map_extra(m), o->extra);
	SAME("pinning", o->name, bpf_map__pin_path(m) != NULL, o->pin_by_name);
}

static void same_contents(struct bpf_map *m, const struct pb_bpf_object_map *o)
{
	size_t size;
	const void *init = bpf_map__initial_value(m, &size);
	char zeros[4096] = {};

	if (!init || o->kind == PB_BPF_MAP_KCONFIG)
		return;
	if (o->contents ? memcmp(init, o->contents, size) :
	    size <= sizeof(zeros) && memcmp(init, zeros, size))
		differ("contents of %s", o->name);
}

static void same_map(struct bpf_map *m, const struct pb_bpf_object_map *o)
{
	same_attributes(m, o);
	SAME("inner map", o->name, bpf_map__inner_map(m) != NULL, o->inner != NULL);
	if (o->kind != PB_BPF_MAP_KCONFIG) {
		SAME("key type", o->name, bpf_map__btf_key_type_id(m), o->types.btf_key);
		SAME("value type", o->name, bpf_map__btf_value_type_id(m), o->types.btf_value);
	}
	if (bpf_map__inner_map(m) && o->inner)
		same_map(bpf_map__inner_map(m), o->inner);
	same_contents(m, o);
}

static void same_maps(struct bpf_object *theirs, const struct pb_bpf_object *ours)
{
	struct bpf_map *m;
	unsigned n = 0;

	bpf_object__for_each_map(m, theirs) {
		int i = pb_bpf_object_map(ours, bpf_map__name(m));

		n++;
		if (bpf_map__type(m) == BPF_MAP_TYPE_STRUCT_OPS)
			n--;
		else if (i < 0)
			differ("no map %s", bpf_map__name(m));
		else
			same_map(m, &ours->maps[i]);
	}
	SAME("maps", "the object", n, ours->nr_maps);
}

static void same_progs(struct bpf_object *theirs, const struct pb_bpf_object *ours)
{
	struct bpf_program *p;
	unsigned n = 0;

	bpf_object__for_each_program(p, theirs) {
		const struct pb_bpf_object_prog *o = NULL;

		for (uint32_t i = 0; i < ours->nr_progs; i++)
			if (!strcmp(ours->progs[i].name, bpf_program__name(p)))
				o = &ours->progs[i];
		n++;
		if (!o) {
			differ("no program %s", bpf_program__name(p));
			continue;
		}
		if (strcmp(o->section + (o->section[0] == '?'),
			   bpf_program__section_name(p) + (bpf_program__section_name(p)[0] == '?')))
			differ("section of %s: %s, %s", o->name, bpf_program__section_name(p),
			       o->section);
		SAME("type", o->name, bpf_program__type(p), o->guessed ? 0 : o->type);
		/* libbpf computes the attach type of a struct_ops program from the structure that
		 * names the program. Our loader doesn't, so the attach types aren't compared. */
		if (o->type != BPF_PROG_TYPE_STRUCT_OPS)
			SAME("attach type", o->name, bpf_program__expected_attach_type(p),
			     o->guessed ? 0 : o->attach_type);
		SAME("autoload", o->name, bpf_program__autoload(p), o->autoload);
		if (o->nr && bpf_program__insn_cnt(p) > o->nr)
			differ("%s has fewer instructions", o->name);
	}
	SAME("programs", "the object", n, ours->nr_progs);
}

static void print_same(const struct pb_bpf_object *o)
{
	unsigned refused = 0, guessed = 0;

	for (uint32_t i = 0; i < o->nr_progs; i++) {
		refused += o->progs[i].why != NULL;
		guessed += o->progs[i].guessed;
	}
	printf("same %u progs, %u maps, refused %u, guessed %u", o->nr_progs, o->nr_maps, refused,
	       guessed);
	for (uint32_t i = 0; i < o->nr_progs; i++)
		if (o->progs[i].why)
			printf("\t%s: %s", o->progs[i].name, o->progs[i].why);
	printf("\n");
}

static int judge(const char *path)
{
	struct bpf_object *theirs;
	struct pb_bpf_object *ours;
	char err[256];
	int ret = 1;

	judge_said[0] = differs[0] = 0;
	theirs = bpf_object__open(path);
	pb_bpf_object_open(path, NULL, &ours, err, sizeof(err));
	printf("%s\t", path);
	if (theirs && ours) {
		same_progs(theirs, ours);
		same_maps(theirs, ours);
		ret = differs[0] != 0;
		if (ret)
			printf("differs: %s\n", differs);
		else
			print_same(ours);
	} else if (theirs) {
		printf("only libbpf opens it: %s\n", err);
	} else if (ours) {
		printf("only ours opens it: %s\n", judge_said);
	} else {
		printf("both refuse: %s\n", err);
		ret = 0;
	}
	fflush(stdout);
	bpf_object__close(theirs);
	pb_bpf_object_close(ours);
	return ret;
}

/* --- --show ------------------------------------------------------------------- */

static void show_prog(const struct pb_bpf_object_prog *p)
{
	uint32_t func = 0, line = 0;

	printf("\nprogram %s section %s type %u attach %u target %s%s%s\n", p->name, p->section,
	       p->type, p->attach_type, p->target ? p->target : "-", p->why ? "\n  refused: " : "",
	       p->why ? p->why : "");
	for (uint32_t i = 0; i < p->nr; i++) {
		struct pb_bpf_text t = { .buf = (char[256]){}, .size = 256 };

		for (; func < p->nr_funcs && p->funcs[func].insn == i; func++) {
			printf("%s%s(", p->funcs[func].global ? "global " : "",
			       p->funcs[func].name);
			for (uint32_t a = 0; a < PB_BPF_FUNC_ARGS &&
			     a < p->funcs[func].nr_args; a++)
				printf(" %u/%u", p->funcs[func].args[a].kind,
				       p->funcs[func].args[a].size);
			printf(" )\n");
		}
		for (; line < p->nr_lines && p->lines[line].insn == i; line++)
			printf("; %s\n", p->lines[line].text);
		pb_bpf_disasm(&t, &p->insns[i], NULL);
		printf("%5u: %s\n", i, t.buf);
		i += p->insns[i].code == (BPF_LD | BPF_IMM | BPF_DW);
	}
	for (uint32_t i = 0; i < p->nr_poison; i++)
		printf("  poisoned %u: %s\n", p->poison[i].insn, p->poison[i].text);
}

static int show(const char *path)
{
	struct pb_bpf_object *o;
	char err[256];

	if (pb_bpf_object_open(path, NULL, &o, err, sizeof(err))) {
		printf("%s: %s\n", path, err);
		return 1;
	}
	printf("object %s license %s%s version %u\n", o->name, o->license, o->gpl ? " (GPL)" : "",
	       o->version);
	for (uint32_t i = 0; i < o->nr_maps; i++) {
		const struct pb_bpf_object_map *m = &o->maps[i];

		printf("map %u %s type %u key %u value %u entries %u flags %#x lock %d timer %d "
		       "kptrs %u%s%s%s\n", i, m->name, m->attr.type, m->attr.key_size,
		       m->attr.value_size, m->attr.max_entries, m->attr.flags,
		       m->types.spin_lock_off, m->types.timer_off, m->types.nr_kptrs,
		       m->inner ? " inner" : "", m->why ? " refused: " : "", m->why ? m->why : "");
		for (uint32_t s = 0; s < m->nr_slots; s++)
			printf("  [%u] = %s %u\n", m->slots[s].index,
			       m->slots[s].prog ? "program" : "map", m->slots[s].number);
	}
	for (uint32_t i = 0; i < o->nr_progs; i++)
		show_prog(&o->progs[i]);
	pb_bpf_object_close(o);
	return 0;
}

int main(int argc, char **argv)
{
	int bad = 0;

	libbpf_set_print(judge_print);
	if (argc > 2 && !strcmp(argv[1], "--show"))
		return show(argv[2]);
	if (argc > 2 && !strcmp(argv[1], "--load")) {
		const char *target = argc > 4 && !strcmp(argv[2], "--target") ? argv[3] : NULL;

		for (int i = target ? 4 : 2; i < argc; i++)
			bad |= judge_load(argv[i], target);
		return bad;
	}
	for (int i = 1; i < argc; i++)
		bad |= judge(argv[i]);
	return bad;
}
