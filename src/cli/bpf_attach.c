/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/bpf_attach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/progs.h"
#include "base/base.h"
#include "bpf/map_sys.h"
#include "cli/bpf_pin.h"

#define OUTPUT_SIZE	(1u << 20)
#define LANES		16		/* of per-CPU values, at least */

/* ---- maps ---------------------------------------------------------------------------- */

/* DIR/OBJECT-PID: agents take paths of PB_PROGS_PATH bytes, a map's name included. */
static int make_dir(struct bpf_attach *a, const char *object)
{
	const char *name = record_base_name(object);
	char root[BPF_PIN_PATH];
	size_t room = PB_PROGS_PATH - BPF_OBJ_NAME_LEN;

	if (bpf_pin_root(a->session.command, root))
		return 1;
	if ((size_t)snprintf(a->dir, room, "%s/%.*s-%d", root, (int)strcspn(name, "."), name, (int)getpid()) >= room)
		errno = ENAMETOOLONG;
	else if (!mkdir(a->dir, 0700))
		a->session.map_dir = a->dir;
	return a->session.map_dir ? 0 : pb_error(a->session.command, "%s: %s", a->dir, strerror(errno));
}

/* What programs print goes to a ring buffer; behind it a counter of what found no room there. */
static int make_output(struct bpf_attach *a)
{
	struct pb_bpf_map_spec output = {
		.attr = { .type = BPF_MAP_TYPE_RINGBUF, .max_entries = OUTPUT_SIZE }, .name = ".output", .lanes = 1,
		.types = { .spin_lock_off = -1, .timer_off = -1 },
	};
	struct pb_bpf_map_spec lost = {
		.attr = { .type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 1 }, .name = ".lost",
		.lanes = 1, .types = { .spin_lock_off = -1, .timer_off = -1 },
	};
	int err;

	a->nr_maps = a->session.nr_maps;
	err = bpf_session_map(&a->session, &output);
	if (!err)
		err = bpf_session_map(&a->session, &lost);
	return err ? pb_error(a->session.command, "%s: %s", a->dir, strerror(-err)) : 0;
}

/* Every processor's events go the same way. */
static int fill_event_arrays(struct bpf_attach *a)
{
	uint32_t event = 0;
	int err = 0;

	for (uint32_t i = 0; i < a->nr_maps; i++)
		for (uint32_t k = 0; a->session.map[i]->attr.type == BPF_MAP_TYPE_PERF_EVENT_ARRAY && !err &&
				     k < a->session.map[i]->attr.max_entries; k++)
			err = pb_bpf_map_update_elem(a->session.map[i], &k, &event, BPF_ANY);
	return err ? pb_error(a->session.command, "perf event array: %s", strerror(-err)) : 0;
}

/* ---- programs -------------------------------------------------------------------------- */

/* A function's name, perhaps with a path before it; NULL after a message. */
static int parse_target(struct bpf_attach *a, const struct pb_bpf_object_prog *p, struct record_hook *h)
{
	/* kept with the hook until the process ends: functions' names are part of it */
	char *text = strdup(p->target), *colon, *plus;

	if (!text)
		return pb_error(a->session.command, "out of memory");
	h->section = p->section;
	colon = p->user ? strrchr(text, ':') : NULL;
	if (p->user && !colon)
		return pb_error(a->session.command, "%s: PATH:FUNCTION is wanted behind the slash", p->section);
	if (colon)
		*colon = 0;
	h->module = colon ? text : "";
	h->function = colon ? colon + 1 : text;
	plus = strchr(h->function, '+');
	if (plus && strtoul(plus + 1, NULL, 0))
		return pb_error(a->session.command, "%s: programs are attached at functions' entries and returns only",
				p->section);
	if (plus)
		*plus = 0;
	return 0;
}

static bool is_attached(const struct pb_bpf_object_prog *p)
{
	return p->type == BPF_PROG_TYPE_KPROBE && p->target && *p->target && p->autoload;
}

static int load_prog(struct bpf_attach *a, uint32_t nr, uint32_t *number)
{
	struct pb_bpf_object_prog *p = &a->object->progs[nr];
	struct bpf_unit u = bpf_object_unit(&a->session, a->object, nr);
	struct bpf_loaded l;

	if (p->why)
		return pb_error(a->session.command, "%s: %s", p->name, p->why);
	if (a->session.nr_progs == PB_PROGS_MAX_PROGS || u.nr > PB_PROGS_MAX_INSNS)
		return pb_error(a->session.command, "%s: more than %d programs, or than %d instructions", p->name,
				PB_PROGS_MAX_PROGS, PB_PROGS_MAX_INSNS);
	*number = a->session.nr_progs;
	if (!bpf_session_load(&a->session, &u, &l))
		return 0;
	fprintf(stderr, "%s", a->session.log);
	return pb_error(a->session.command, "%s: refused: %s", p->name, bpf_session_reason(&a->session));
}

/* Those that others call by tail calls, although they are attached nowhere. */
static bool is_in_slot(const struct pb_bpf_object *o, uint32_t nr)
{
	for (uint32_t i = 0; i < o->nr_maps; i++)
		for (uint32_t k = 0; k < o->maps[i].nr_slots; k++)
			if (o->maps[i].slots[k].prog && o->maps[i].slots[k].number == nr)
				return true;
	return false;
}

static int fill_slots(struct bpf_attach *a)
{
	for (uint32_t i = 0; i < a->nr_maps; i++) {
		const struct pb_bpf_object_map *m = &a->object->maps[i];

		for (uint32_t k = 0; k < m->nr_slots; k++) {
			const struct pb_bpf_object_slot *slot = &m->slots[k];
			int err = slot->prog ? pb_bpf_map_update_elem(a->session.map[i], &slot->index,
								      &a->numbers[slot->number], BPF_ANY) : 0;

			if (err)
				return pb_error(a->session.command, "map %s: its programs: %s", m->name, strerror(-err));
		}
	}
	return 0;
}

static int load_progs(struct bpf_attach *a, struct record_options *o)
{
	int ret = 0;

	for (uint32_t i = 0; i < a->object->nr_progs && !ret; i++) {
		const struct pb_bpf_object_prog *p = &a->object->progs[i];
		struct record_hook *h;

		a->numbers[i] = PB_PROGS_NONE;
		if (!is_attached(p)) {
			if (is_in_slot(a->object, i))
				ret = load_prog(a, i, &a->numbers[i]);
			else
				pb_error(a->session.command, "%s: SEC(\"%s\") names no function here: not attached", p->name,
					 p->section);
			continue;
		}
		h = &o->hooks[o->nr_hooks++];
		ret = load_prog(a, i, &a->numbers[i]);
		if (!ret)
			ret = parse_target(a, p, h);
		h->prog = a->numbers[i];
		h->returns = p->returns;
	}
	if (!ret && !o->nr_hooks)
		ret = pb_error(a->session.command, "%s: no program in it is for a function", a->object->name);
	return ret ? ret : fill_slots(a);
}

/* ---- the file for agents ------------------------------------------------------------------- */

static bool put(FILE *f, const void *p, size_t size)
{
	return fwrite(p, size, 1, f) == 1;
}

static bool write_maps(struct bpf_attach *a, FILE *f)
{
	bool ok = true;

	for (uint32_t i = 0; i < a->session.nr_maps; i++) {
		struct pb_progs_map m = { 0 };

		bpf_session_map_path(&a->session, a->session.map[i]->name, m.path, sizeof(m.path));
		ok &= put(f, &m, sizeof(m));
	}
	return ok;
}

static bool write_progs(struct bpf_attach *a, FILE *f, uint64_t at)
{
	bool ok = true;

	for (uint32_t i = 0; i < a->object->nr_progs; i++) {
		const struct pb_bpf_object_prog *o = &a->object->progs[i];
		struct pb_progs_prog p = {
			.type = o->type, .attach_type = o->attach_type, .gpl = a->object->gpl, .nr = o->nr,
			.nr_funcs = o->nr_funcs, .insns = at, .funcs = at + sizeof(struct bpf_insn) * o->nr,
		};

		if (a->numbers[i] == PB_PROGS_NONE)
			continue;
		strncpy(p.name, o->name, sizeof(p.name) - 1);
		at = p.funcs + sizeof(struct pb_progs_func) * o->nr_funcs;
		ok &= put(f, &p, sizeof(p));
	}
	return ok;
}

static bool write_links(const struct record_options *o, FILE *f)
{
	bool ok = true;

	for (uint32_t i = 0; i < o->nr_hooks; i++) {
		const struct record_hook *h = &o->hooks[i];
		struct pb_progs_link l = { .prog = h->prog, .returns = h->returns };

		ok &= snprintf(l.function, sizeof(l.function), "%s", h->function) < (int)sizeof(l.function) &&
		      snprintf(l.module, sizeof(l.module), "%s", record_base_name(h->module)) < (int)sizeof(l.module) &&
		      put(f, &l, sizeof(l));
	}
	return ok;
}

static bool write_funcs(FILE *f, const struct pb_bpf_object_prog *p)
{
	bool ok = true;

	for (uint32_t i = 0; i < p->nr_funcs; i++) {
		const struct pb_bpf_func *from = &p->funcs[i];
		struct pb_progs_func to = {
			.insn = from->insn, .global = from->global, .returns_void = from->returns_void,
			.nr_args = (uint8_t)from->nr_args,
		};

		for (int k = 0; k < 5; k++) {
			to.kind[k] = from->args[k].kind;
			to.size[k] = from->args[k].size;
		}
		ok &= put(f, &to, sizeof(to));
	}
	return ok;
}

static bool write_code(struct bpf_attach *a, FILE *f)
{
	bool ok = true;

	for (uint32_t i = 0; i < a->object->nr_progs; i++) {
		const struct pb_bpf_object_prog *p = &a->object->progs[i];

		if (a->numbers[i] != PB_PROGS_NONE)
			ok &= put(f, p->insns, sizeof(struct bpf_insn) * p->nr) && write_funcs(f, p);
	}
	return ok;
}

static bool write_all(struct bpf_attach *a, const struct record_options *o, FILE *f, uint64_t size)
{
	struct pb_progs head = {
		.magic = PB_PROGS_MAGIC, .size = size, .nr_maps = a->session.nr_maps, .nr_progs = a->session.nr_progs,
		.nr_links = o->nr_hooks, .output = a->nr_maps, .lost = a->nr_maps + 1,
		.jit_enable = pb_bpf_settings.jit_enable, .jit_harden = pb_bpf_settings.jit_harden,
	};
	uint64_t code = sizeof(head) + head.nr_maps * sizeof(struct pb_progs_map) +
			head.nr_progs * sizeof(struct pb_progs_prog) + head.nr_links * sizeof(struct pb_progs_link);

	rewind(f);
	return put(f, &head, sizeof(head)) && write_maps(a, f) && write_progs(a, f, code) && write_links(o, f) &&
	       write_code(a, f) && !fflush(f);
}

/* Nobody changes it any more: agents check it once. */
static int write_file(struct bpf_attach *a, struct record_options *o)
{
	int fd = memfd_create("patchbay-progs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	FILE *f = fd < 0 ? NULL : fdopen(dup(fd), "w");
	bool ok = f && write_all(a, o, f, 0);

	if (ok) {
		o->progs_size = (uint64_t)ftell(f);
		ok = write_all(a, o, f, o->progs_size);
	}
	if (f)
		fclose(f);
	ok = ok && !fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
	o->progs_fd = fd;
	return ok ? 0 : pb_error(a->session.command, "programs for the agent: %s", strerror(errno));
}

/* A thread has a lane to itself while its program runs, and may be preempted then: others
 * go on in further ones. */
static uint32_t lanes(void)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	return n < LANES / 2 ? LANES : n < PB_BPF_MAX_LANES / 2 ? 2 * (uint32_t)n : PB_BPF_MAX_LANES;
}

int bpf_attach_open(struct bpf_attach *a, struct record_options *o)
{
	int ret;

	bpf_session_init(&a->session, a->command);
	a->session.lanes = lanes();
	ret = make_dir(a, a->path);
	if (!ret)
		ret = bpf_open_object(&a->session, a->path, &a->object);
	if (!ret)
		ret = make_output(a);
	if (!ret)
		ret = fill_event_arrays(a);
	if (ret)
		return ret;
	o->hooks = calloc(a->object->nr_progs + 1, sizeof(*o->hooks));
	a->numbers = calloc(a->object->nr_progs + 1, sizeof(*a->numbers));
	if (!o->hooks || !a->numbers)
		return pb_error(a->session.command, "out of memory");
	return load_progs(a, o);
}

int bpf_attach_publish(struct bpf_attach *a, struct record_options *o)
{
	o->welcome_flags |= PB_WELCOME_PROGS;
	return write_file(a, o) || bpf_output_start(a);
}

static void remove_maps(struct bpf_attach *a)
{
	char path[PB_PROGS_PATH];

	for (uint32_t i = 0; i < a->session.nr_maps; i++) {
		bpf_session_map_path(&a->session, a->session.map[i]->name, path, sizeof(path));
		unlink(path);
	}
	rmdir(a->dir);
}

void bpf_attach_close(struct bpf_attach *a, struct record_options *o)
{
	bpf_output_end(a);
	if (a->show && o->recorded)
		bpf_output_maps(a);
	if (a->session.map_dir)
		remove_maps(a);
	bpf_session_end(&a->session);
	if (a->object)
		pb_bpf_object_close(a->object);
	if (o->progs_size)
		close(o->progs_fd);
	free(a->numbers);
}
