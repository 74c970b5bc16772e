/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compares the relocated instructions of libbpf with those of our loader. libbpf shows its
 * relocated instructions only to the handler of a section. So this file registers a handler for
 * each section. libbpf creates the maps, relocates the program and calls the handler. The handler
 * compares the instructions and returns an error. Because of the error, libbpf doesn't load the
 * program, and removes the maps and BTF from the kernel at once. Needs root.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/core/disasm.h"
#include "bpfload/load.h"
#include "judge.h"

#define LD_IMM64 (BPF_LD | BPF_IMM | BPF_DW)

static struct {
	struct bpf_object *theirs;
	const struct pb_bpf_object *ours;
	const struct pb_bpf_object_prog *prog;
	bool called;
	char differs[1024];
} now;

static const char *text_of(const struct bpf_insn *insn)
{
	static char bufs[2][200];
	static unsigned turn;
	struct pb_bpf_text t = { .buf = bufs[turn++ % 2], .size = 200 };

	pb_bpf_disasm(&t, insn, NULL);
	return t.buf;
}

static struct bpf_map *map_of(int fd)
{
	struct bpf_map *m;

	bpf_object__for_each_map(m, now.theirs)
		if (bpf_map__fd(m) == fd)
			return m;
	return NULL;
}

static bool same_imm64(const struct bpf_insn *a, const struct bpf_insn *b)
{
	struct bpf_map *m;

	/* a weak symbol: libbpf may find the kernel's symbol, but our loader always sets 0 */
	if (a->src_reg == BPF_PSEUDO_BTF_ID && !b->src_reg)
		return !b->imm && !b[1].imm;
	if (a->dst_reg != b->dst_reg || a->src_reg != b->src_reg || a->off != b->off ||
	    a[1].imm != b[1].imm || a[1].code != b[1].code || a[1].off != b[1].off)
		return false;
	if (a->src_reg != BPF_PSEUDO_MAP_FD && a->src_reg != BPF_PSEUDO_MAP_VALUE)
		return a->imm == b->imm;
	m = map_of(a->imm);
	return m && b->imm >= 0 && (uint32_t)b->imm < now.ours->nr_maps &&
	       !strcmp(bpf_map__name(m), now.ours->maps[b->imm].name);
}

static void same_insns(const struct bpf_program *p)
{
	const struct bpf_insn *a = bpf_program__insns(p), *b = now.prog->insns;
	size_t nr = bpf_program__insn_cnt(p);

	if (nr != now.prog->nr) {
		snprintf(now.differs, sizeof(now.differs), "%zu instructions, %u", nr,
			 now.prog->nr);
		return;
	}
	for (size_t i = 0; i < nr; i++) {
		bool wide = a[i].code == LD_IMM64 && i + 1 < nr;

		if (a[i].code == b[i].code &&
		    (wide ? same_imm64(a + i, b + i) : !memcmp(a + i, b + i, 8))) {
			i += wide;
			continue;
		}
		snprintf(now.differs, sizeof(now.differs), "instruction %zu: %s | %s", i,
			 text_of(a + i), text_of(b + i));
		return;
	}
}

static void same_tables(const struct bpf_prog_load_opts *o)
{
	const struct pb_bpf_object_prog *p = now.prog;
	uint32_t n = 0;

	if (now.differs[0] || !o->func_info)
		return;
	if (o->func_info_cnt != p->nr_funcs)
		snprintf(now.differs, sizeof(now.differs), "%u functions, %u", o->func_info_cnt,
			 p->nr_funcs);
	for (uint32_t i = 0; i < o->func_info_cnt && i < p->nr_funcs; i++) {
		const struct bpf_func_info *f =
			(const void *)((const char *)o->func_info + i * o->func_info_rec_size);

		if (f->insn_off != p->funcs[i].insn)
			snprintf(now.differs, sizeof(now.differs), "function %u at %u, %u", i,
				 f->insn_off, p->funcs[i].insn);
	}
	for (uint32_t i = 0; i < o->line_info_cnt; i++) {
		const struct bpf_line_info *f =
			(const void *)((const char *)o->line_info + i * o->line_info_rec_size);

		if (n < p->nr_lines && f->insn_off == p->lines[n].insn)
			n++;
	}
	if (n != p->nr_lines)
		snprintf(now.differs, sizeof(now.differs), "%u lines, %u", o->line_info_cnt,
			 p->nr_lines);
}

static int prepare(struct bpf_program *p, struct bpf_prog_load_opts *opts, long cookie)
{
	now.called = true;
	same_insns(p);
	same_tables(opts);
	return -ECANCELED;
}

enum { SAME, DIFFERENT, BOTH_REFUSE, THEY_REFUSE, WE_REFUSE, NR_ENDS };

/* Returns the outcome for the program. Prints a line if libbpf and our loader disagree. */
static int verdict(const char *path)
{
	const struct pb_bpf_object_prog *prog = now.prog;

	if (now.called && !now.differs[0])
		return SAME;
	if (now.called && !prog->why) {
		printf("%s\t%s\tdiffers: %s\n", path, prog->name, now.differs);
		return DIFFERENT;
	}
	if (now.called) {	/* our loader doesn't complete the relocation of a program that it
				 * refuses, so a difference doesn't count */
		printf("%s\t%s\tonly ours refuses: %s\n", path, prog->name, prog->why);
		return WE_REFUSE;
	}
	if (prog->why)
		return BOTH_REFUSE;
	printf("%s\t%s\tonly libbpf refuses: %s\n", path, prog->name, judge_said);
	return THEY_REFUSE;
}

static int load_one(const char *path, const char *target, uint32_t i)
{
	const struct pb_bpf_object_prog *prog = &now.ours->progs[i];
	const char *section = prog->section + (prog->section[0] == '?');
	LIBBPF_OPTS(libbpf_prog_handler_opts, opts, .prog_prepare_load_fn = prepare);
	LIBBPF_OPTS(bpf_object_open_opts, open_opts, .btf_custom_path = target);
	int id = libbpf_register_prog_handler(section, BPF_PROG_TYPE_SOCKET_FILTER, 0, &opts);
	struct bpf_program *p;
	struct bpf_map *m;

	judge_said[0] = now.differs[0] = 0;
	now.called = false;
	now.prog = prog;
	now.theirs = bpf_object__open_file(path, &open_opts);
	if (now.theirs) {
		judge_said[0] = 0;
		bpf_object__for_each_program(p, now.theirs)
			bpf_program__set_autoload(p, !strcmp(bpf_program__name(p), prog->name));
		bpf_object__for_each_map(m, now.theirs) {
			bpf_map__set_pin_path(m, NULL);
			if (!bpf_map__max_entries(m) &&
			    bpf_map__type(m) != BPF_MAP_TYPE_PERF_EVENT_ARRAY)
				bpf_map__set_max_entries(m, bpf_map__type(m) ==
							 BPF_MAP_TYPE_RINGBUF ? 4096 : 1);
			if (bpf_map__type(m) == BPF_MAP_TYPE_STRUCT_OPS ||
			    bpf_map__max_entries(m) > 1000000)
				bpf_map__set_autocreate(m, false);
		}
		bpf_object__load(now.theirs);
		bpf_object__close(now.theirs);
	}
	libbpf_unregister_prog_handler(id);
	return verdict(path);
}

int judge_load(const char *path, const char *target)
{
	struct pb_bpf_object_opts opts = { .target = target };
	static bool first = true;
	struct pb_bpf_object *ours;
	unsigned ends[NR_ENDS] = {};
	char err[256];

	if (pb_bpf_object_open(path, &opts, &ours, err, sizeof(err)))
		return 0;	/* judge without --load reports this error */
	if (first)	/* This handler is never removed. Otherwise libbpf's table of handlers
			 * would become empty, and libbpf would free the table twice. */
		libbpf_register_prog_handler("no/section", BPF_PROG_TYPE_UNSPEC, 0, NULL);
	first = false;
	now.ours = ours;
	for (uint32_t i = 0; i < ours->nr_progs; i++)
		ends[load_one(path, target, i)]++;
	printf("%s\t=\tsame %u, different %u, both refuse %u, only libbpf refuses %u, only ours "
	       "refuses %u\n", path, ends[SAME], ends[DIFFERENT], ends[BOTH_REFUSE],
	       ends[THEY_REFUSE], ends[WE_REFUSE]);
	fflush(stdout);
	pb_bpf_object_close(ours);
	return ends[DIFFERENT] != 0;
}
