/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes an object's maps and fills them. Makes a program of the object, alone or together with the
 * programs that it may reach by tail calls. */
#include "bpfload/load_make.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "bpf/map/map_file.h"
#include "bpf/map/map_names.h"
#include "bpf/map/map_sys.h"
#include "bpf/run/fixup.h"
#include "bpf/run/heap.h"

#define OWN_LOG	(64u << 10)	/* size of the verifier's log, in bytes, if the caller gave no
				 * buffer */

struct making {
	struct pb_bpf_made made;	/* must be the first member, since callers hold a pointer to
					 * it */
	struct pb_bpf_make_opts opts;
	struct pb_bpf_map *map, **map_of;	/* indexed by the map's number; map_of[i] is NULL if
						 * map i wasn't made */
	bool *found;			/* indexed by the map's number. Set if opts.find() has
					 * returned 0, so that the map keeps its contents */
	struct pb_bpf_objects objects;
	uint64_t memory;	/* how many more bytes new maps may take when they are made */
};

static void say(const char **why, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const char **why, const char *format, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		text = NULL;
	va_end(ap);
	free((char *)*why);
	*why = text;
}

/* --- elements of maps refer to maps and programs by ids: 1 + the number in the object --- */

static void *object_find(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id)
{
	const struct making *m = o->arg;

	if (kind == PB_BPF_OBJECT_MAP)
		return id && id <= m->made.object->nr_maps ? m->map_of[id - 1] : NULL;
	if (kind == PB_BPF_OBJECT_PROG)
		return id && id <= m->made.object->nr_progs ? m->made.progs[id - 1].prog : NULL;
	return kind == PB_BPF_OBJECT_EVENT && id ? (void *)(uintptr_t)id : NULL;
}

static int64_t object_get(const struct pb_bpf_objects *o, uint32_t kind, uint32_t handle)
{
	return object_find(o, kind, handle + 1) ? (int64_t)handle + 1 : -EBADF;
}

static void object_put(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id)
{
}

/* --- maps ------------------------------------------------------------------------ */

static struct pb_bpf_map_attr attr_of(const struct making *m, const struct pb_bpf_object_map *o)
{
	struct pb_bpf_map_attr a = o->attr;

	for (uint32_t i = 0; i < m->opts.nr_sizes; i++) {
		const struct pb_bpf_make_size *s = &m->opts.sizes[i];

		if (strcmp(s->map, o->name))
			continue;
		a.key_size = s->key_size ? s->key_size : a.key_size;
		a.value_size = s->value_size ? s->value_size : a.value_size;
		a.max_entries = s->max_entries ? s->max_entries : a.max_entries;
	}
	return pb_bpf_map_attr_settle(a, m->opts.cpu_slots);
}

/* Sets the names of the structures to which a map's kernel pointers point. A map that find() has
 * attached doesn't have these names, because its file doesn't. Without them, the verifier would
 * take all kernel pointers of the map for pointers to the same structure. */
static void name_kptrs(struct pb_bpf_map_types *to, const struct pb_bpf_map_types *from)
{
	for (uint32_t i = 0; i < to->nr_kptrs; i++)
		for (uint32_t k = 0; k < from->nr_kptrs; k++)
			if (to->kptrs[i].off == from->kptrs[k].off &&
			    to->kptrs[i].btf_id == from->kptrs[k].btf_id)
				to->kptrs[i].name = from->kptrs[k].name;
}

/* Returns how many bytes are written at once when the map is made and filled. */
static uint64_t written(const struct pb_bpf_object_map *o, const struct pb_bpf_map_spec *spec)
{
	return pb_bpf_map_written(spec) + (o->contents ? spec->attr.value_size : 0);
}

/* Finds the map or makes a new one, if the bytes that are written at once aren't too many. */
static int find_or_create(struct making *m, uint32_t nr, const struct pb_bpf_map_spec *spec)
{
	const struct pb_bpf_object_map *o = &m->made.object->maps[nr];
	uint64_t bytes = written(o, spec);
	int err = -ENOENT;

	if (bytes > m->memory)
		return -ENOMEM;
	if (m->opts.find)
		err = m->opts.find(m->opts.arg, o, spec, &m->map[nr]);
	m->found[nr] = !err;
	if (err == -ENOENT)
		err = pb_bpf_map_create(&m->map[nr], spec);
	if (err >= 0 && !m->found[nr])
		m->memory -= bytes;
	return err;
}

static int make_map(struct making *m, uint32_t nr)
{
	static const struct pb_bpf_map_types no_types = { .spin_lock_off = -1, .timer_off = -1 };
	const struct pb_bpf_object_map *o = &m->made.object->maps[nr];
	struct pb_bpf_map_spec spec = { .attr = attr_of(m, o), .types = o->types,
		.cpu_slots = m->opts.cpu_slots };
	int err;

	/* the caller may have given another size than the object */
	if (o->nr_slots && spec.attr.key_size > sizeof(o->slots->index))
		return -EINVAL;
	/* If the caller gave other sizes, drop the map's types, as libbpf does: they describe keys
	 * and values of the declared sizes. */
	if (spec.attr.key_size != o->attr.key_size || spec.attr.value_size != o->attr.value_size)
		spec.types = no_types;
	if (o->inner)
		spec.inner = pb_bpf_object_map_attr(o->inner, m->opts.cpu_slots);
	/* the NUMA node is only a hint, which is ignored */
	spec.attr.flags &= ~(uint32_t)BPF_F_NUMA_NODE;
	spec.inner.flags &= ~(uint32_t)BPF_F_NUMA_NODE;
	snprintf(spec.name, sizeof(spec.name), "%s", o->name);
	if (m->opts.adjust)
		m->opts.adjust(m->opts.arg, o, &spec);
	/* If a map of this type can't have the types, libbpf makes it without them. The verifier
	 * then rejects programs that need them. */
	if (!pb_bpf_map_size(&spec, &err))
		spec.types = no_types;
	err = find_or_create(m, nr, &spec);
	if (err < 0)
		return err;
	name_kptrs(&m->map[nr].types, &spec.types);
	m->map[nr].objects = &m->objects;
	m->map_of[nr] = &m->map[nr];
	return 0;
}

/* Fills a map of variables, which has one element. If the caller has chosen another value size than
 * that of the contents, cuts the contents or pads them with zeros. */
static int fill_variables(struct pb_bpf_map *map, const struct pb_bpf_object_map *o)
{
	uint32_t zero = 0, size = map->attr.value_size, has = o->attr.value_size;
	uint8_t *value = calloc(1, size);
	int err = -ENOMEM;

	if (value) {
		memcpy(value, o->contents, has < size ? has : size);
		err = pb_bpf_map_update_elem(map, &zero, value, BPF_ANY);
	}
	free(value);
	return err;
}

/* Stores the map's initial elements, except programs, which fill_slots() stores when they are
 * made. */
static int fill_map(struct making *m, uint32_t nr)
{
	const struct pb_bpf_object_map *o = &m->made.object->maps[nr];
	int err = 0;

	if (o->contents)
		err = fill_variables(&m->map[nr], o);
	for (uint32_t i = 0; i < o->nr_slots && !err; i++)
		if (!o->slots[i].prog)
			err = pb_bpf_map_update_elem(&m->map[nr], &o->slots[i].index,
						     &o->slots[i].number, BPF_ANY);
	if (!err && (o->kind == PB_BPF_MAP_RODATA || o->kind == PB_BPF_MAP_KCONFIG))
		err = pb_bpf_map_freeze(&m->map[nr]);
	return err;
}

static void drop_map(struct making *m, uint32_t nr)
{
	if (m->map_of[nr])
		pb_bpf_map_close(m->map_of[nr]);
	m->map_of[nr] = NULL;
}

/* Sets the reason why the map can't be made. The reason names the sizes, since they may come from
 * the caller. */
static void cannot_make(struct making *m, uint32_t nr, int err)
{
	const struct pb_bpf_object_map *o = &m->made.object->maps[nr];
	struct pb_bpf_map_attr a = attr_of(m, o);

	say(&m->made.maps[nr].why, "map %s (%s): %s%s: key_size %u, value_size %u, max_entries %u",
	    o->name, pb_bpf_map_type_name(a.type), err == -E2BIG ? "too large" :
	    strerror(err == -PB_BPF_ENOTSUPP ? EOPNOTSUPP : -err),
	    err == -EFBIG ? " (see ulimit -f)" : "", a.key_size, a.value_size, a.max_entries);
}

static void make_maps(struct making *m)
{
	const struct pb_bpf_object *o = m->made.object;

	for (uint32_t i = 0; i < o->nr_maps; i++) {
		const char *type = pb_bpf_map_type_name(o->maps[i].attr.type);
		int err = o->maps[i].why ? -EINVAL : make_map(m, i);

		if (err && o->maps[i].why)
			say(&m->made.maps[i].why, "%s", o->maps[i].why);
		else if (err && !pb_bpf_map_ops_of(o->maps[i].attr.type))
			say(&m->made.maps[i].why, "map %s: Patchbay has no maps of type %s",
			    o->maps[i].name, type);
		else if (err == -EBADF && !o->maps[i].inner)
			say(&m->made.maps[i].why,
			    "map %s (%s): the object doesn't define its inner maps",
			    o->maps[i].name, type);
		else if (err)
			cannot_make(m, i, err);
	}
	for (uint32_t i = 0; i < o->nr_maps; i++) {
		int err = m->map_of[i] && !m->found[i] ? fill_map(m, i) : 0;

		if (err) {
			say(&m->made.maps[i].why, "map %s: its contents: %s", o->maps[i].name,
			    strerror(-err));
			drop_map(m, i);
		}
		m->made.maps[i].map = m->map_of[i];
	}
}

int pb_bpf_make(const struct pb_bpf_object *object, const struct pb_bpf_make_opts *opts,
		struct pb_bpf_made **made)
{
	struct making *m = calloc(1, sizeof(*m));
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	*made = NULL;
	if (!m)
		return -ENOMEM;
	for (uint32_t i = 0; i < opts->nr_sizes; i++)
		if (pb_bpf_object_map(object, opts->sizes[i].map) < 0) {
			free(m);
			return -ENOENT;
		}
	m->made.object = object;
	m->opts = *opts;
	if (!m->opts.cpu_slots)
		m->opts.cpu_slots = cpus > 0 ? (uint32_t)cpus : 1;
	m->objects = (struct pb_bpf_objects){ object_find, object_get, object_put, m };
	m->memory = pb_bpf_make_memory(opts->memory);
	m->made.maps = calloc(object->nr_maps + 1, sizeof(m->made.maps[0]));
	m->made.progs = calloc(object->nr_progs + 1, sizeof(m->made.progs[0]));
	m->map = calloc(object->nr_maps + 1, sizeof(m->map[0]));
	m->map_of = calloc(object->nr_maps + 1, sizeof(m->map_of[0]));
	m->found = calloc(object->nr_maps + 1, sizeof(m->found[0]));
	if (!m->made.maps || !m->made.progs || !m->map || !m->map_of || !m->found) {
		pb_bpf_made_free(&m->made);
		return -ENOMEM;
	}
	make_maps(m);
	*made = &m->made;
	return 0;
}

/* --- programs ---------------------------------------------------------------------- */

/* If a map that the program uses wasn't made, returns the reason. Else returns NULL. */
static const char *missing_map(const struct making *m, const struct pb_bpf_object_prog *p)
{
	for (uint32_t i = 0; i < p->nr; i++) {
		const struct bpf_insn *in = &p->insns[i];

		if (in->code != (BPF_LD | BPF_IMM | BPF_DW))
			continue;
		if ((in->src_reg == BPF_PSEUDO_MAP_FD || in->src_reg == BPF_PSEUDO_MAP_VALUE) &&
		    !m->map_of[in->imm])
			return m->made.maps[in->imm].why ? m->made.maps[in->imm].why : "no memory";
		i++;
	}
	return NULL;
}

/* Copies the log's last line to `line`, but skips lines of statistics. */
static void last_line(char *line, size_t size, const struct pb_bpf_text *log)
{
	const char *end = log->buf + log->len, *begin;

	line[0] = 0;
	while (end > log->buf) {
		while (end > log->buf && end[-1] == '\n')
			end--;
		for (begin = end; begin > log->buf && begin[-1] != '\n'; begin--)
			;
		if (strncmp(begin, "processed ", 10) && strncmp(begin, "stack depth ", 12) &&
		    begin != end) {
			snprintf(line, size, "%.*s", (int)(end - begin), begin);
			return;
		}
		end = begin;
	}
}

static int resolve_and_make(struct making *m, const struct pb_bpf_verify *v, uint32_t nr,
			    uint64_t begin)
{
	struct pb_bpf_resolved r = {};
	int err = pb_bpf_resolve(v, &r);

	m->made.progs[nr].ns = pb_now_ns() - begin;
	if (err)
		return err;
	r.spec.name = m->made.object->progs[nr].name;
	r.spec.id = nr + 1;
	r.spec.interpret = m->opts.interpret;
	err = pb_bpf_prog_make(&r.spec, &m->made.progs[nr].prog);
	pb_bpf_resolved_free(&r);
	return err;
}

static int verify(struct making *m, uint32_t nr, struct pb_bpf_text *log, uint32_t level)
{
	const struct pb_bpf_object *o = m->made.object;
	const struct pb_bpf_object_prog *p = &o->progs[nr];
	struct pb_bpf_verify v = {
		.type = pb_bpf_type_of(p->type), .attach_type = p->attach_type,
		.flags = p->flags | m->opts.flags, .caps = m->opts.caps, .gpl = o->gpl,
		.insns = p->insns, .nr = p->nr, .maps = m->map_of, .nr_maps = o->nr_maps,
		.funcs = p->funcs, .nr_funcs = p->nr_funcs, .lines = p->lines,
		.nr_lines = p->nr_lines, .log = log, .log_level = level, .mem = &pb_bpf_heap,
	};
	uint64_t begin;
	int err;

	if (!v.type) {
		say(&m->made.progs[nr].why, "Patchbay can't run programs of type %u", p->type);
		return -EINVAL;
	}
	begin = pb_now_ns();
	err = pb_bpf_verify(&v);
	m->made.progs[nr].verified = v.stats.insns;
	if (err)
		return err;
	if (!m->made.progs[nr].prog)
		err = resolve_and_make(m, &v, nr, begin);
	pb_bpf_facts_free(&pb_bpf_heap, v.facts);
	return err;
}

/*
 * Sets the reason why the verifier rejected the program: the CO-RE relocation that failed, or the
 * log's last line. If there is no log, verifies the program again, with a log. This second attempt
 * may succeed, if the first failed only because memory was short. Then it also makes the program.
 * Returns the final result.
 */
static int explain(struct making *m, uint32_t nr, int err, const struct pb_bpf_text *log)
{
	struct pb_bpf_text own = { .size = OWN_LOG, .buf = log &&
		log->len ? NULL : calloc(1, OWN_LOG) };
	const char *core = NULL;
	char line[256] = "";

	if (own.buf) {
		log = &own;
		err = verify(m, nr, &own, 1);
	}
	if (err && log && log->buf) {
		core = pb_bpf_object_explain(&m->made.object->progs[nr], log->buf);
		last_line(line, sizeof(line), log);
	}
	if (err && core)
		say(&m->made.progs[nr].why, "failed to resolve CO-RE relocation %s", core);
	else if (err)
		say(&m->made.progs[nr].why, "%s", line[0] ? line : strerror(-err));
	free(own.buf);
	return err;
}

/* Puts the program into its slots: the map elements that the object reserves for it. Ignores
 * errors, because fill_slot() reports them when pb_bpf_make_chain() makes a program that uses the
 * map. */
static void fill_slots(struct making *m, uint32_t nr)
{
	const struct pb_bpf_object *o = m->made.object;

	for (uint32_t i = 0; i < o->nr_maps; i++)
		for (uint32_t s = 0; s < o->maps[i].nr_slots; s++) {
			const struct pb_bpf_object_slot *slot = &o->maps[i].slots[s];

			if (m->map_of[i] && slot->prog && slot->number == nr)
				pb_bpf_map_update_elem(m->map_of[i], &slot->index, &nr, BPF_ANY);
		}
}

static int make_alone(struct making *m, uint32_t nr, struct pb_bpf_text *log, uint32_t level)
{
	const struct pb_bpf_object_prog *p = &m->made.object->progs[nr];
	const char *why = p->why ? p->why : missing_map(m, p);
	struct pb_bpf_text none = {};
	int err;

	free((char *)m->made.progs[nr].why);
	m->made.progs[nr].why = NULL;
	if (why) {
		say(&m->made.progs[nr].why, "%s", why);
		return p->why && p->err ? p->err : -EINVAL;
	}
	err = verify(m, nr, log ? log : &none, log ? level : 0);
	return err && !m->made.progs[nr].why ? explain(m, nr, err, log) : err;
}

static int make_once(struct making *m, uint32_t nr, struct pb_bpf_text *log, uint32_t level)
{
	return m->made.progs[nr].prog && !log ? 0 : make_alone(m, nr, log, level);
}

int pb_bpf_make_prog(struct pb_bpf_made *made, uint32_t nr, struct pb_bpf_text *log, uint32_t level)
{
	struct making *m = (struct making *)made;
	int err = make_once(m, nr, log, level);

	if (!err)
		fill_slots(m, nr);
	return err;
}

/* ---- chains of tail calls ------------------------------------------------------------- */

/* Programs that are made together. `list` has each program once, in the order in which the programs
 * are found. */
struct batch {
	struct making *m;
	struct {
		uint32_t number;
		bool was_made;		/* the program had been made before this batch */
	} *list;
	uint32_t nr, first;		/* first: the program whose `why` gets the errors of all
					 * programs */
};

static bool uses_map(const struct pb_bpf_object_prog *p, uint32_t map)
{
	for (uint32_t i = 0; i < p->nr; i++) {
		const struct bpf_insn *in = &p->insns[i];

		if (in->code != (BPF_LD | BPF_IMM | BPF_DW))
			continue;
		if (in->src_reg == BPF_PSEUDO_MAP_FD && in->imm == (int32_t)map)
			return true;
		i++;
	}
	return false;
}

static void batch_add(struct batch *b, uint32_t nr)
{
	for (uint32_t i = 0; i < b->nr; i++)
		if (b->list[i].number == nr)
			return;
	b->list[b->nr].was_made = b->m->made.progs[nr].prog;
	b->list[b->nr++].number = nr;
}

/* Adds the slot's program to the batch. The slot is in map `nr`, an array that program `from` uses.
 * Returns 0 or -errno. After an error, `why` of the program b->first has the reason. */
static int add_slot(struct batch *b, uint32_t from, uint32_t nr,
		    const struct pb_bpf_object_slot *slot)
{
	const struct pb_bpf_object_prog *progs = b->m->made.object->progs,
		*to = &progs[slot->number];
	const struct pb_bpf_object_map *map = &b->m->made.object->maps[nr];
	struct pb_bpf_made_prog *made = b->m->made.progs;

	if (to->type != progs[from].type) {
		say(&made[b->first].why, "map %s: slot %u: program %s is of another type than %s",
		    map->name, slot->index, to->name, progs[from].name);
		return -EINVAL;
	}
	if (!to->autoload && !made[slot->number].prog) {
		say(&made[b->first].why,
		    "map %s: slot %u: program %s isn't loaded automatically: its section name "
		    "\"%s\" begins with ?", map->name, slot->index, to->name, to->section);
		return -EBADF;
	}
	batch_add(b, slot->number);
	return 0;
}

static int fill_slot(struct batch *b, uint32_t from, uint32_t nr,
		     const struct pb_bpf_object_slot *slot)
{
	int err = pb_bpf_map_update_elem(b->m->map_of[nr], &slot->index, &slot->number, BPF_ANY);

	if (err)
		say(&b->m->made.progs[b->first].why, "map %s: slot %u: %s",
		    b->m->made.object->maps[nr].name, slot->index, strerror(-err));
	return err;
}

/* Calls fn for each slot of each program array that the program uses. Stops when fn fails. */
static int each_slot(struct batch *b, uint32_t nr,
		     int (*fn)(struct batch *b, uint32_t from, uint32_t map,
			       const struct pb_bpf_object_slot *slot))
{
	const struct pb_bpf_object *o = b->m->made.object;
	int err = 0;

	for (uint32_t i = 0; i < o->nr_maps && !err; i++) {
		if (o->maps[i].attr.type != BPF_MAP_TYPE_PROG_ARRAY || !o->maps[i].nr_slots ||
		    !uses_map(&o->progs[nr], i))
			continue;
		for (uint32_t s = 0; s < o->maps[i].nr_slots && !err; s++)
			err = fn(b, nr, i, &o->maps[i].slots[s]);
	}
	return err;
}

static int make_batch(struct batch *b, struct pb_bpf_text *log, uint32_t level)
{
	struct pb_bpf_made_prog *progs = b->m->made.progs;
	uint32_t nr = b->first;
	int err = 0;

	for (uint32_t i = 0; i < b->nr && !err; i++) {
		nr = b->list[i].number;
		err = make_once(b->m, nr, nr == b->first ? log : NULL, level);
		if (!err)
			err = each_slot(b, nr, add_slot);
	}
	for (uint32_t i = 0; i < b->nr && !err; i++)
		err = each_slot(b, b->list[i].number, fill_slot);
	if (err && nr != b->first && !progs[b->first].why)
		say(&progs[b->first].why, "program %s, which it reaches by tail calls: %s",
		    b->m->made.object->progs[nr].name, progs[nr].why ? progs[nr].why :
		    strerror(-err));
	return err;
}

int pb_bpf_make_chain(struct pb_bpf_made *made, uint32_t nr, struct pb_bpf_text *log,
		      uint32_t level)
{
	struct batch b = { .m = (struct making *)made, .first = nr };
	int err;

	b.list = calloc(made->object->nr_progs, sizeof(*b.list));
	if (!b.list)
		return -ENOMEM;
	batch_add(&b, nr);
	err = make_batch(&b, log, level);
	/* After an error, free the new programs. A slot may keep the number of a freed program, but
	 * then acts as an empty slot. */
	for (uint32_t i = 0; err && i < b.nr; i++) {
		if (b.list[i].was_made)
			continue;
		pb_bpf_prog_free(made->progs[b.list[i].number].prog);
		made->progs[b.list[i].number].prog = NULL;
	}
	free(b.list);
	return err;
}

void pb_bpf_made_free(struct pb_bpf_made *made)
{
	struct making *m = (struct making *)made;

	if (!m)
		return;
	for (uint32_t i = 0; made->progs && i < made->object->nr_progs; i++) {
		pb_bpf_prog_free(made->progs[i].prog);
		free((char *)made->progs[i].why);
	}
	for (uint32_t i = 0; made->maps && m->map_of && i < made->object->nr_maps; i++) {
		drop_map(m, i);
		free((char *)made->maps[i].why);
	}
	free(made->maps);
	free(made->progs);
	free(m->map);
	free(m->map_of);
	free(m->found);
	free(m);
}
