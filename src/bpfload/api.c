/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Implements the public interface. include/patchbay/bpf.h documents it. */
#include "patchbay/bpf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/core/host.h"
#include "bpf/map/map_sys.h"
#include "bpf/run/test_run.h"
#include "bpfload/load_make.h"

#define CPU_SLOT_WORDS	(PB_BPF_MAX_CPU_SLOTS / 64)

struct pb_bpf_machine {
	struct pb_bpf_machine_opts opts;
	struct pb_bpf_object *object;
	struct pb_bpf_made *made;
	struct pb_bpf_host host;
	uint32_t cpu_slots;
	bool *asked;			/* programs that pb_bpf_machine_load() has loaded */
	bool locks;			/* a map has spin locks, so each run needs the id of its
					 * thread */
	uint64_t busy[CPU_SLOT_WORDS];	/* a bit for each per-CPU slot that a run owns */
};

/* --- opening ------------------------------------------------------------------------ */

static void trace(struct pb_bpf_run *run, const char *text, uint32_t len)
{
	const struct pb_bpf_machine *m = run->host->arg;

	m->opts.trace(m->opts.arg, text, len);
}

static void adjust(void *arg, const struct pb_bpf_object_map *map, struct pb_bpf_map_spec *spec)
{
	const struct pb_bpf_machine *m = arg;

	if (!spec->attr.max_entries && m->opts.entries)
		spec->attr.max_entries = m->opts.entries(m->opts.arg, map->name);
}

static struct pb_bpf_machine *new_machine(const struct pb_bpf_machine_opts *opts)
{
	struct pb_bpf_machine *m = calloc(1, sizeof(*m));
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	if (!m)
		return NULL;
	if (opts)
		memcpy(&m->opts, opts, opts->size && opts->size < sizeof(*opts) ? opts->size :
		       sizeof(*opts));
	m->cpu_slots = cpus < 1 ? 1 : cpus > PB_BPF_MAX_CPU_SLOTS ? PB_BPF_MAX_CPU_SLOTS :
		       (uint32_t)cpus;
	m->host = *pb_bpf_host_linux();
	m->host.arg = m;
	if (m->opts.trace)
		m->host.trace = trace;
	return m;
}

static int no_memory(char *why, size_t size)
{
	if (size)
		snprintf(why, size, "no memory");
	return -ENOMEM;
}

/* Copies the caller's sizes. Each size must name a map of the object. */
static int take_sizes(const struct pb_bpf_machine *m, struct pb_bpf_make_size *sizes, char *why,
		      size_t size)
{
	for (size_t i = 0; i < m->opts.nr_sizes; i++) {
		const struct pb_bpf_map_sizes *s = &m->opts.sizes[i];

		if (!s->map || pb_bpf_object_map(m->object, s->map) < 0) {
			if (size)
				snprintf(why, size, "sizes of map %s: the object has no such map",
					 s->map ? s->map : "(null)");
			return -EINVAL;
		}
		sizes[i] = (struct pb_bpf_make_size){ s->map, s->key_size, s->value_size,
			s->max_entries };
	}
	return 0;
}

static int make(struct pb_bpf_machine *m, int err, struct pb_bpf_machine **machine, char *why,
		size_t size)
{
	struct pb_bpf_make_size *sizes = calloc(m->opts.nr_sizes + 1, sizeof(*sizes));
	struct pb_bpf_make_opts opts = {
		.caps = m->opts.unprivileged ? 0 : PB_BPF_CAP_ALL, .cpu_slots = m->cpu_slots,
		.interpret = m->opts.interpret, .adjust = adjust, .arg = m, .sizes = sizes,
		.nr_sizes = (uint32_t)m->opts.nr_sizes,
	};

	if (!err)
		err = !sizes ? -ENOMEM : take_sizes(m, sizes, why, size);
	if (!err)
		err = pb_bpf_make(m->object, &opts, &m->made);
	if (!err) {
		m->asked = calloc(m->object->nr_progs + 1, sizeof(*m->asked));
		err = m->asked ? 0 : -ENOMEM;
	}
	free(sizes);
	if (err) {
		pb_bpf_machine_close(m);
		return err == -ENOMEM ? no_memory(why, size) : err;
	}
	for (uint32_t i = 0; i < m->object->nr_maps; i++)
		m->locks |= m->object->maps[i].types.spin_lock_off >= 0;
	*machine = m;
	return 0;
}

static struct pb_bpf_object_opts object_opts(const struct pb_bpf_machine *m)
{
	return (struct pb_bpf_object_opts){
		.target = m->opts.types, .kconfig = m->opts.kconfig, .type = m->opts.type,
	};
}

int pb_bpf_machine_open(const char *path, const struct pb_bpf_machine_opts *opts,
			struct pb_bpf_machine **machine, char *why, size_t size)
{
	struct pb_bpf_machine *m = new_machine(opts);
	struct pb_bpf_object_opts o;

	*machine = NULL;
	if (!m)
		return no_memory(why, size);
	o = object_opts(m);
	return make(m, pb_bpf_object_open(path, &o, &m->object, why, size), machine, why, size);
}

int pb_bpf_machine_open_memory(const void *bytes, size_t nr, const struct pb_bpf_machine_opts *opts,
			       struct pb_bpf_machine **machine, char *why, size_t size)
{
	struct pb_bpf_machine *m = new_machine(opts);
	struct pb_bpf_object_opts o;

	*machine = NULL;
	if (!m)
		return no_memory(why, size);
	o = object_opts(m);
	return make(m, pb_bpf_object_open_memory(bytes, nr, &o, &m->object, why, size), machine,
		    why, size);
}

void pb_bpf_machine_close(struct pb_bpf_machine *m)
{
	if (!m)
		return;
	pb_bpf_made_free(m->made);
	pb_bpf_object_close(m->object);
	free(m->asked);
	free(m);
}

/* --- programs ------------------------------------------------------------------------ */

uint32_t pb_bpf_machine_programs(const struct pb_bpf_machine *m)
{
	return m->object->nr_progs;
}

int pb_bpf_machine_program(const struct pb_bpf_machine *m, const char *name)
{
	return pb_bpf_object_prog(m->object, name);
}

int pb_bpf_machine_program_info(const struct pb_bpf_machine *m, uint32_t nr,
				struct pb_bpf_program_info *info)
{
	const struct pb_bpf_object_prog *p;
	const struct pb_bpf_made_prog *made;

	if (nr >= m->object->nr_progs)
		return -EINVAL;
	p = &m->object->progs[nr];
	made = &m->made->progs[nr];
	*info = (struct pb_bpf_program_info){
		.name = p->name, .section = p->section, .target = p->target, .type = p->type,
		.attach_type = p->attach_type, .loaded = made->prog, .native = made->prog &&
		made->prog->jited,
		.why = made->why ? made->why : p->why, .insns = p->nr,
	};
	return 0;
}

int pb_bpf_machine_load(struct pb_bpf_machine *m, uint32_t nr, uint32_t level, char *log,
			size_t size)
{
	struct pb_bpf_text text = { .buf = log, .size = size > UINT32_MAX ? UINT32_MAX :
		(uint32_t)size };
	int err;

	if (nr >= m->object->nr_progs)
		return -EINVAL;
	if (m->asked[nr])
		return -EALREADY;
	if (size)
		log[0] = 0;
	err = pb_bpf_make_chain(m->made, nr, size && level ? &text : NULL, level);
	m->asked[nr] = !err;
	return err;
}

/* Takes a free per-CPU slot: sets its bit in `busy`. UINT32_MAX: no slot is free, so the run must
 * share the last slot with another run. */
static uint32_t cpu_slot_take(struct pb_bpf_machine *m, uint32_t first)
{
	for (uint32_t i = 0; i < m->cpu_slots; i++) {
		uint32_t cpu_slot = (first + i) % m->cpu_slots;
		uint64_t bit = 1ull << cpu_slot % 64;

		if (!(__atomic_load_n(&m->busy[cpu_slot / 64], __ATOMIC_RELAXED) & bit) &&
		    !(__atomic_fetch_or(&m->busy[cpu_slot / 64], bit, __ATOMIC_ACQUIRE) & bit))
			return cpu_slot;
	}
	return UINT32_MAX;
}

static void cpu_slot_give(struct pb_bpf_machine *m, uint32_t cpu_slot)
{
	if (cpu_slot != UINT32_MAX)
		__atomic_fetch_and(&m->busy[cpu_slot / 64], ~(1ull << cpu_slot % 64),
				   __ATOMIC_RELEASE);
}

static bool sees_packets(uint32_t type)
{
	const struct pb_bpf_type *t = pb_bpf_type_of(type);

	return !t || t->packet || type == BPF_PROG_TYPE_SOCKET_FILTER ||
	       type == BPF_PROG_TYPE_CGROUP_SKB;
}

int pb_bpf_machine_run(struct pb_bpf_machine *m, uint32_t nr, void *ctx, uint64_t *result)
{
	struct pb_bpf_run run = { .host = &m->host, .ctx = ctx };
	uint32_t cpu_slot;

	if (nr >= m->object->nr_progs)
		return -EINVAL;
	run.prog = m->made->progs[nr].prog;
	if (!run.prog)
		return -ENOENT;
	if (sees_packets(m->object->progs[nr].type))
		return -EOPNOTSUPP;
	cpu_slot = cpu_slot_take(m, m->host.cpu(&run));
	run.cpu_slot = cpu_slot == UINT32_MAX ? m->cpu_slots - 1 : cpu_slot;
	run.thread = m->locks ? (uint32_t)syscall(SYS_gettid) : 0;
	*result = pb_bpf_enter(&run);
	cpu_slot_give(m, cpu_slot);
	return 0;
}

int pb_bpf_machine_test(struct pb_bpf_machine *m, uint32_t nr, struct pb_bpf_machine_test *test)
{
	struct pb_bpf_test_run t = {
		.host = &m->host, .interpret = m->opts.interpret, .data_in = test->data_in,
		.ctx_in = test->ctx_in, .data_size_in = test->data_size_in,
		.ctx_size_in = test->ctx_size_in, .repeat = test->repeat,
		.data_out = test->data_out, .ctx_out = test->ctx_out,
		.data_size_out = test->data_size_out, .ctx_size_out = test->ctx_size_out,
	};
	uint32_t cpu_slot;
	int err;

	if (nr >= m->object->nr_progs)
		return -EINVAL;
	t.prog = m->made->progs[nr].prog;
	t.attach_type = m->object->progs[nr].attach_type;
	if (!t.prog)
		return -ENOENT;
	cpu_slot = cpu_slot_take(m, 0);
	t.cpu_slot = cpu_slot == UINT32_MAX ? m->cpu_slots - 1 : cpu_slot;
	err = pb_bpf_test_run(&t);
	cpu_slot_give(m, cpu_slot);
	test->retval = t.retval;
	test->duration = t.duration;
	test->data_size_out = t.data_size_out;
	test->ctx_size_out = t.ctx_size_out;
	return err;
}

bool pb_bpf_machine_fault(uint64_t *ip)
{
	uint64_t to = pb_bpf_fault(*ip);

	*ip = to ? to : *ip;
	return to;
}

/* --- maps ----------------------------------------------------------------------------- */

uint32_t pb_bpf_machine_maps(const struct pb_bpf_machine *m)
{
	return m->object->nr_maps;
}

int pb_bpf_machine_map(const struct pb_bpf_machine *m, const char *name)
{
	return pb_bpf_object_map(m->object, name);
}

/* Returns NULL if the object has no map with this number (*err is -EINVAL), or if the map wasn't
 * made (*err is -ENOENT). */
static struct pb_bpf_map *map_of(const struct pb_bpf_machine *m, uint32_t nr, int *err)
{
	*err = nr < m->object->nr_maps ? -ENOENT : -EINVAL;
	return nr < m->object->nr_maps ? m->made->maps[nr].map : NULL;
}

int pb_bpf_machine_map_info(const struct pb_bpf_machine *m, uint32_t nr,
			    struct pb_bpf_map_info *info)
{
	int err;
	const struct pb_bpf_map *map = map_of(m, nr, &err);
	struct pb_bpf_map_attr a;

	if (nr >= m->object->nr_maps)
		return err;
	a = map ? map->attr : m->object->maps[nr].attr;
	*info = (struct pb_bpf_map_info){
		.name = m->object->maps[nr].name, .type = a.type, .key_size = a.key_size,
		.value_size = a.value_size, .max_entries = a.max_entries, .flags = a.flags,
		.outside_size = map ? pb_bpf_map_value_size(map) : 0, .made = map,
		.why = m->made->maps[nr].why,
	};
	return 0;
}

int pb_bpf_machine_lookup(struct pb_bpf_machine *m, uint32_t nr, const void *key, void *value,
			  uint64_t flags)
{
	int err;
	struct pb_bpf_map *map = map_of(m, nr, &err);

	return map ? pb_bpf_map_lookup_elem(map, key, value, flags) : err;
}

int pb_bpf_machine_update(struct pb_bpf_machine *m, uint32_t nr, const void *key, const void *value,
			  uint64_t flags)
{
	int err;
	struct pb_bpf_map *map = map_of(m, nr, &err);

	return map ? pb_bpf_map_update_elem(map, key, value, flags) : err;
}

int pb_bpf_machine_delete(struct pb_bpf_machine *m, uint32_t nr, const void *key)
{
	int err;
	struct pb_bpf_map *map = map_of(m, nr, &err);

	return map ? pb_bpf_map_delete_elem(map, key) : err;
}

int pb_bpf_machine_next_key(struct pb_bpf_machine *m, uint32_t nr, const void *key, void *next)
{
	int err;
	struct pb_bpf_map *map = map_of(m, nr, &err);

	return map ? pb_bpf_map_get_next_key(map, key, next) : err;
}
