/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes programs. A program is an entry function, followed by one copy of each function that it may
 * call. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpfload/load_priv.h"

/* The functions of a program, in the order in which a depth-first walk of the calls finds them. */
struct chain {
	struct load *l;
	struct pb_bpf_object_prog *prog;
	uint32_t number;		/* 1 + the program's number */
	struct load_func **funcs;
	uint32_t nr;
	struct { struct load_func *f; uint32_t ref; } *path;	/* the walk's current function is
								 * last, after its callers; ref:
								 * its next call to follow */
	uint32_t depth;
};

static bool add_func(struct chain *c, struct load_func *f)
{
	struct pb_bpf_object_prog *p = c->prog;

	if (f->nr > c->l->room) {
		load_error(c->l, &p->why,
			   "the object's programs have more than 8388608 instructions together");
		return false;
	}
	c->l->room -= f->nr;
	f->seen = c->number;
	f->at = p->nr;
	p->nr += f->nr;
	p->nr_lines += f->nr_lines;
	p->nr_poison += f->nr_poison;
	p->nr_funcs += f->btf != 0;
	if (f->why && !p->why) {
		p->err = f->err;
		load_error(c->l, &p->why, "%s", f->why);
	}
	c->funcs[c->nr++] = f;
	c->path[c->depth].f = f;
	c->path[c->depth++].ref = 0;
	return true;
}

static void collect(struct chain *c, struct load_func *f)
{
	if (!add_func(c, f))
		return;
	while (c->depth) {
		struct load_func *caller = c->path[c->depth - 1].f;
		uint32_t i = c->path[c->depth - 1].ref++;

		if (i == caller->nr_refs)
			c->depth--;
		else if (c->l->funcs[caller->refs[i].func].seen != c->number &&
			 !add_func(c, &c->l->funcs[caller->refs[i].func]))
			return;
	}
}

/* --- types of arguments ---------------------------------------------------------- */

/* Returns the name of the structure that programs of this type get as their context. The loader
 * recognises an argument as the context by this name, or by its tag __arg_ctx. NULL: only the tag
 * counts. */
static const char *context_name(uint32_t type)
{
	switch (type) {
	case BPF_PROG_TYPE_SOCKET_FILTER: case BPF_PROG_TYPE_SCHED_CLS:
	case BPF_PROG_TYPE_SCHED_ACT:
	case BPF_PROG_TYPE_CGROUP_SKB:
		return "__sk_buff";
	case BPF_PROG_TYPE_XDP:
		return "xdp_md";
	case BPF_PROG_TYPE_KPROBE:
		return "pt_regs";
	case BPF_PROG_TYPE_PERF_EVENT:
		return "bpf_perf_event_data";
	case BPF_PROG_TYPE_RAW_TRACEPOINT:
		return "bpf_raw_tracepoint_args";
	default:
		return NULL;
	}
}

static void read_tag(struct load *l, const struct btf_type *t)
{
	int32_t arg = ((const struct btf_decl_tag *)(t + 1))->component_idx;
	const char *text = pb_bpf_btf_name(l->object.btf, t), *spent = NULL;
	bool ctx = !strcmp(text, "arg:ctx"), sure = !strcmp(text, "arg:nonnull");

	if ((!ctx && !sure) || arg < 0 || arg >= 5 || !load_work(l, l->nr_funcs, &spent))
		return;
	for (uint32_t i = 0; i < l->nr_funcs; i++) {
		if (l->funcs[i].btf && pb_bpf_btf_type(l->object.btf, l->funcs[i].btf) ==
					       pb_bpf_btf_type(l->object.btf, t->type)) {
			l->funcs[i].ctx_args |= (uint8_t)(ctx << arg);
			l->funcs[i].sure_args |= (uint8_t)(sure << arg);
		}
	}
}

/* Reads the tags of functions' arguments: __arg_ctx and __arg_nonnull. */
static void read_tags(struct load *l)
{
	for (uint32_t id = 1; l->object.btf && id < l->object.btf->nr; id++) {
		const struct btf_type *t = pb_bpf_btf_type(l->object.btf, id);

		if (t && pb_btf_kind(t) == BTF_KIND_DECL_TAG)
			read_tag(l, t);
	}
}

static void set_arg(const struct pb_bpf_btf *b, uint32_t prog_type, uint32_t type, uint8_t *kind,
		    uint32_t *size)
{
	const struct btf_type *t = pb_bpf_btf_skip(b, type, true, NULL), *to;
	const char *context = context_name(prog_type);
	int64_t bytes;

	*kind = PB_BPF_FUNC_OTHER;
	if (t && (pb_btf_kind(t) == BTF_KIND_INT || pb_btf_is_enum(t)))
		*kind = PB_BPF_FUNC_SCALAR;
	if (!t || pb_btf_kind(t) != BTF_KIND_PTR)
		return;
	to = pb_bpf_btf_skip(b, t->type, true, NULL);
	if (to && context && pb_btf_kind(to) == BTF_KIND_STRUCT &&
	    !strcmp(pb_bpf_btf_name(b, to), context)) {
		*kind = PB_BPF_FUNC_CTX;
		return;
	}
	/* libbpf's headers have the structure, but a declaration is enough */
	if (to && (pb_btf_kind(to) == BTF_KIND_STRUCT || pb_btf_kind(to) == BTF_KIND_FWD) &&
	    !strcmp(pb_bpf_btf_name(b, to), "bpf_dynptr")) {
		*kind = PB_BPF_FUNC_DYNPTR;
		return;
	}
	bytes = pb_bpf_btf_size(b, t->type);
	if (bytes >= 0) {
		*kind = PB_BPF_FUNC_MEM;
		*size = (uint32_t)bytes;
	}
}

static bool fill_func(struct chain *c, struct load_func *f, struct pb_bpf_func *out)
{
	const struct pb_bpf_btf *b = c->l->object.btf;
	const struct btf_type *t = pb_bpf_btf_type(b, f->btf), *proto = pb_bpf_btf_type(b, t->type),
		*ret;

	*out = (struct pb_bpf_func){ .insn = f->at };
	out->name = load_text(c->l, pb_bpf_btf_name(b, t));
	out->global = pb_btf_vlen(t) == BTF_FUNC_GLOBAL && !f->hidden;
	if (!out->name || !proto || pb_btf_kind(proto) != BTF_KIND_FUNC_PROTO)
		return out->name;
	ret = pb_bpf_btf_skip(b, proto->type, true, NULL);
	out->returns_void = !ret || (pb_btf_kind(ret) != BTF_KIND_INT && !pb_btf_is_enum(ret));
	/* PB_BPF_FUNC_ARGS + 1 stands for all larger numbers */
	out->nr_args = pb_btf_vlen(proto) <= PB_BPF_FUNC_ARGS ? pb_btf_vlen(proto) :
		       PB_BPF_FUNC_ARGS + 1;
	for (uint32_t i = 0; i < out->nr_args && i < PB_BPF_FUNC_ARGS; i++) {
		const struct btf_type *arg =
			pb_bpf_btf_skip(b, pb_btf_params(proto)[i].type, true, NULL);

		set_arg(b, c->prog->type, pb_btf_params(proto)[i].type, &out->args[i].kind,
			&out->args[i].size);
		if (f->ctx_args >> i & 1 && arg && pb_btf_kind(arg) == BTF_KIND_PTR)
			out->args[i].kind = PB_BPF_FUNC_CTX;
		else if (f->sure_args >> i & 1 && out->args[i].kind == PB_BPF_FUNC_MEM)
			out->args[i].kind = PB_BPF_FUNC_MEM_SURE;
	}
	return true;
}

/* --- composing --------------------------------------------------------------------- */

static bool room_for_tables(struct chain *c)
{
	struct pb_bpf_object_prog *p = c->prog;

	p->insns = load_alloc(c->l, p->nr * sizeof(p->insns[0]));
	p->funcs = load_alloc(c->l, p->nr_funcs * sizeof(p->funcs[0]));
	p->lines = load_alloc(c->l, p->nr_lines * sizeof(p->lines[0]));
	p->poison = load_alloc(c->l, p->nr_poison * sizeof(p->poison[0]));
	p->nr_funcs = p->nr_lines = p->nr_poison = 0;
	return p->insns && p->funcs && p->lines && p->poison;
}

static void copy_insns(struct chain *c, struct load_func *f)
{
	memcpy(c->prog->insns + f->at, f->insns, f->nr * sizeof(f->insns[0]));
	for (uint32_t i = 0; i < f->nr_refs; i++) {
		uint32_t at = f->at + f->refs[i].insn;

		c->prog->insns[at].imm = (int32_t)(c->l->funcs[f->refs[i].func].at - at - 1);
		if (c->prog->insns[at].code == (BPF_LD | BPF_IMM | BPF_DW))
			c->prog->insns[at + 1].imm = 0;
	}
}

/* Rejects the program if it uses a map that can't be made. */
static void check_maps(struct chain *c)
{
	const struct pb_bpf_object *o = &c->l->object;
	struct pb_bpf_object_prog *p = c->prog;

	for (uint32_t i = 0; i < p->nr; i++) {
		const struct bpf_insn *insn = &p->insns[i];

		if (insn->code != (BPF_LD | BPF_IMM | BPF_DW))
			continue;
		if ((insn->src_reg == BPF_PSEUDO_MAP_FD || insn->src_reg == BPF_PSEUDO_MAP_VALUE)) {
			if (insn->imm < 0 || (uint32_t)insn->imm >= o->nr_maps)
				load_error(c->l, &p->why, "%s: instruction %u has no map", p->name,
					   i);
			else if (o->maps[insn->imm].why)
				load_error(c->l, &p->why, "%s", o->maps[insn->imm].why);
		}
		i++;
	}
}

static int compose(struct chain *c)
{
	struct pb_bpf_object_prog *p = c->prog;

	if (!room_for_tables(c))
		return -ENOMEM;
	for (uint32_t n = 0; n < c->nr; n++) {
		struct load_func *f = c->funcs[n];

		copy_insns(c, f);
		if (f->btf && !fill_func(c, f, &p->funcs[p->nr_funcs++]))
			return -ENOMEM;
		for (uint32_t i = 0; i < f->nr_lines; i++) {
			p->lines[p->nr_lines] = f->lines[i];
			p->lines[p->nr_lines++].insn += f->at;
		}
		for (uint32_t i = 0; i < f->nr_poison; i++) {
			p->poison[p->nr_poison] = f->poison[i];
			p->poison[p->nr_poison++].insn += f->at;
		}
	}
	check_maps(c);
	return 0;
}

static int make_prog(struct chain *c, struct load_func *f)
{
	struct pb_bpf_object_prog *p = c->prog;

	p->name = f->name;
	p->section = load_text(c->l, pb_bpf_elf_name(&c->l->elf, f->section));
	if (!p->section)
		return -ENOMEM;
	load_section_name(c->l, p, c->l->opts.type);
	c->nr = c->depth = 0;
	collect(c, f);
	if (c->depth) {		/* collect() has stopped early, because the program is too large:
				 * keep nothing of it */
		p->nr = p->nr_funcs = p->nr_lines = p->nr_poison = 0;
		return 0;
	}
	return compose(c);
}

int load_progs(struct load *l)
{
	struct pb_bpf_object *o = &l->object;
	struct chain c = { .l = l };
	int ret = 0;

	read_tags(l);
	for (uint32_t i = 0; i < l->nr_funcs; i++)
		o->nr_progs += l->funcs[i].entry;
	o->progs = load_alloc(l, o->nr_progs * sizeof(o->progs[0]));
	c.funcs = load_alloc(l, l->nr_funcs * sizeof(c.funcs[0]));
	c.path = load_alloc(l, l->nr_funcs * sizeof(c.path[0]));
	if (!o->progs || !c.funcs || !c.path)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->nr_funcs && !ret; i++) {
		if (!l->funcs[i].entry)
			continue;
		c.prog = &o->progs[c.number++];
		ret = make_prog(&c, &l->funcs[i]);
	}
	return ret;
}

const char *pb_bpf_object_explain(const struct pb_bpf_object_prog *prog, const char *log)
{
	static const char bad[] = "unknown#195896080";
	const char *p = log ? strstr(log, bad) : NULL;
	unsigned long insn;

	if (!p)
		return NULL;
	/* Finds the instruction's number, at the start of this line or of an earlier line:
	 * "12: (85) call unknown#195896080". */
	for (const char *line = p;; line--) {
		if (line != log && line[-1] != '\n')
			continue;
		char *end;

		insn = strtoul(line, &end, 10);
		if (end != line && *end == ':')
			break;
		if (line == log)
			return NULL;
	}
	for (uint32_t i = 0; i < prog->nr_poison; i++)
		if (prog->poison[i].insn == insn || prog->poison[i].insn + 1 == insn)
			return prog->poison[i].text;
	return NULL;
}
