/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Resolves a CO-RE relocation: finds the candidates in the target by name, and the value that they
 * agree on. */
#include "bpfload/load_core.h"

#include <errno.h>
#include <string.h>

/* A relocation that is being resolved. */
struct core {
	struct load *l;
	struct load_func *f;
	uint32_t insn;
	struct core_path from, to;	/* from: the path in the object's types; to: the same path
					 * in the first candidate that has it */
	struct core_value old, value;	/* the values that these two paths yield */
	bool found;			/* a candidate has the path */
};

static void core_error(struct core *c, const char *what)
{
	if (!c->f->why)
		load_error(c->l, &c->f->why, "%s: CO-RE relocation %s at instruction %u: %s",
			   c->f->name, core_path_text(c->l, &c->from), c->insn, what);
}

/* Takes the value that a matching candidate gives. Returns false if the value can't be computed, or
 * if it differs from an earlier candidate's value. */
static bool take(struct core *c, const struct core_path *to)
{
	struct core_value v;

	if (core_value_of(to, c->from.kind, &v)) {
		core_error(c, "the target's member can't be read in this way");
		return false;
	}
	if (!c->found) {
		c->found = true;
		c->to = *to;
		c->value = v;
		return true;
	}
	if (to->bits != c->to.bits || v.value != c->value.value || v.poison != c->value.poison) {
		core_error(c, "several target types have this name, and give different values");
		return false;
	}
	return true;
}

/* Lists the types in b that have the same name and kind as the relocation's type. A flavour (the
 * end of a name, from "___") is ignored. Returns NULL, or the text of an error. */
static const char *fill(struct core *c, struct core_candidates *list, const struct pb_bpf_btf *b)
{
	const struct btf_type *t = pb_bpf_btf_type(c->from.btf, c->from.root);
	const char *name = pb_bpf_btf_name(c->from.btf, t), *why = NULL;
	uint32_t first = b->first[pb_bpf_btf_hash(name, pb_bpf_btf_essential(name)) & b->mask],
		n = 0;

	for (uint32_t id = first; id; id = b->next[id], n++)
		if (!load_work(c->l, 64, &why))
			return "there are too many types of that name";
	list->types = load_alloc(c->l, (n + 1) * sizeof(list->types[0]));
	if (!list->types)
		return "no memory";
	list->btf = b;
	for (uint32_t id = first; id; id = b->next[id])
		if (core_same_kind(t, b->types[id]) &&
		    core_same_name(name, pb_bpf_btf_name(b, b->types[id])))
			list->types[list->nr++] = id;
	return NULL;
}

/*
 * Lists the candidates for the relocation's type. First searches the types of opts.types, usually
 * the traced program's. If there is no type with this name and kind, searches the types from
 * load_target(), usually the kernel's. struct pt_regs is an exception: it is the eBPF program's
 * context, which has the kernel's layout. So its candidates are always from load_target(). Returns
 * NULL after an error; f->why is set.
 */
static struct core_candidates *list_candidates(struct core *c)
{
	const struct pb_bpf_btf *own = c->from.btf, *types = c->l->types, *target;
	const char *name = pb_bpf_btf_name(own, pb_bpf_btf_type(own, c->from.root));
	struct core_candidates *list;
	const char *wrong = NULL;

	if (!c->l->candidates)
		c->l->candidates = load_alloc(c->l, own->nr * sizeof(c->l->candidates[0]));
	if (!c->l->candidates) {
		core_error(c, "no memory");
		return NULL;
	}
	list = &c->l->candidates[c->from.root];
	if (list->types)
		return list;
	if (types && !core_same_name(name, "pt_regs"))
		wrong = fill(c, list, types);
	if (!wrong && !list->nr) {
		target = load_target(c->l);
		if (target)
			wrong = fill(c, list, target);
		else if (!list->types)
			wrong = c->l->no_target;
	}
	if (!wrong)
		return list;
	list->types = NULL;	/* the next relocation of the type tries again */
	list->nr = 0;
	core_error(c, wrong);
	return NULL;
}

/*
 * Looks the path up in all candidates. A candidate without the path is dropped for later
 * relocations of this type, too, since all relocations of one type must be resolved by the same
 * candidates. But if no candidate has the path, none is dropped, because the relocation may only
 * ask whether the path exists. After an error, none is dropped either, because the error concerns
 * only one function.
 */
static bool look_up(struct core *c)
{
	const struct pb_bpf_btf *own = c->from.btf;
	struct core_candidates *list;
	struct core_path to;
	uint32_t kept = 0;

	if (!pb_bpf_btf_name(own, pb_bpf_btf_type(own, c->from.root))[0]) {
		core_error(c, "the type has no name");
		return false;
	}
	list = list_candidates(c);
	if (!list)
		return false;
	for (uint32_t i = 0; i < list->nr; i++) {
		const char *spent = NULL;
		int ret = !load_work(c->l, 1, &spent) ? -E2BIG :
			  core_find_path(c->l, &c->from, list->btf, list->types[i], &to);

		if (ret < 0)
			core_error(c, spent ? spent :
				   "a chain of the target's types is too long or broken");
		if (ret < 0 || (ret && !take(c, &to)))
			return false;
		if (ret) {	/* swap, since the list must stay whole until the loop's end */
			uint32_t type = list->types[i];

			list->types[i] = list->types[kept];
			list->types[kept++] = type;
		}
	}
	if (kept)
		list->nr = kept;
	if (!c->found && core_value_of(NULL, c->from.kind, &c->value)) {
		core_error(c, "the kind isn't known");
		return false;
	}
	return true;
}

static int note_poison(struct core *c)
{
	struct load_func *f = c->f;
	struct pb_bpf_object_poison *p = load_grow(c->l, f->poison, f->nr_poison, &f->room_poison,
						   sizeof(*p));
	const char *text = core_path_text(c->l, &c->from);

	if (!p || !text)
		return -ENOMEM;
	f->poison = p;
	p[f->nr_poison++] = (struct pb_bpf_object_poison){ c->insn, text };
	return 0;
}

int load_core(struct load *l, struct load_func *f, uint32_t insn, const struct bpf_core_relo *relo)
{
	const struct pb_bpf_btf *b = l->object.btf;
	struct core c = { .l = l, .f = f, .insn = insn };
	const char *why = "";

	if (core_read_path(b, relo->type_id, relo->kind, pb_bpf_btf_str(b, relo->access_str_off),
			   &c.from) ||
	    core_value_of(&c.from, relo->kind, &c.old)) {
		load_error(l, &f->why, "%s: the CO-RE relocation at instruction %u is malformed",
			   f->name, insn);
		return 0;
	}
	if (relo->kind == BPF_CORE_TYPE_ID_LOCAL)
		c.value = c.old;
	else if (!look_up(&c))
		return 0;
	/* the object's type, not the target's, decides whether the old value is checked */
	c.value.checked = c.old.checked;
	if (core_patch(f, insn, &c.from, &c.old, c.found ? &c.to : NULL, &c.value, &why)) {
		core_error(&c, why);
		return 0;
	}
	return c.value.poison ? note_poison(&c) : 0;
}
