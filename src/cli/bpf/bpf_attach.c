/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens an object whose programs are to be attached to functions (bpf_attach.h). Makes the object's
 * maps as files, verifies its programs, and writes the file that agents read. */
#include "cli/bpf/bpf_attach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/messages.h"
#include "abi/progs.h"
#include "base/base.h"
#include "bpf/core/host.h"
#include "bpf/map/map_file.h"
#include "bpf/map/map_sys.h"
#include "bpf/run/fixup.h"
#include "cli/bpf/bpf_pin.h"
#include "cli/tidy.h"
#include "recorder/bpf_hooks.h"
#include "recorder/texts.h"

#define OUTPUT_SIZE	(1u << 20)
/* Names of the two maps that Patchbay adds. No map of a C program has such a name: the name of a
 * variable can't contain a '+', and the loader replaces a '+' in the name of a section. */
#define OUTPUT		"bpf+output"
#define COUNTS		"bpf+counts"
#define MAX_DIRS	1000		/* most directories of killed recorders with one PID */
#define MAX_OBJECT	64		/* bytes of the object's name in the directory's name */
#define CPU_SLOTS	16		/* smallest count of per-CPU slots */

/* ---- maps ---------------------------------------------------------------------------- */

/* Makes PINS/OBJECT-PID, a directory for maps. A recorder that was killed leaves its directory. If
 * this process has the PID of such a recorder, it makes PINS/OBJECT-PID-2 and so on. The file for
 * agents has only PB_PROGS_PATH bytes for the path of a map's file. So the object's name is cut, to
 * leave room for the names of maps. */
static int make_dir(struct bpf_attach *a)
{
	struct pb_bpf_pins *pins = bpf_pins(a->command);
	const char *name = record_base_name(a->path);
	int len = (int)strcspn(name, ".");
	size_t room = PB_PROGS_PATH - BPF_OBJ_NAME_LEN;
	char number[16] = "";
	int err = -EEXIST;

	if (!pins)
		return 1;
	cli_tidy_begin();
	for (int i = 2; err == -EEXIST && i < MAX_DIRS; i++) {
		if ((size_t)snprintf(a->dir, room, "%s/%.*s-%d%s", pins->path,
				     len < MAX_OBJECT ? len : MAX_OBJECT, name, (int)getpid(),
				     number) >= room)
			err = -ENAMETOOLONG;
		else
			err = pb_bpf_pins_mkdir(pins, a->dir);
		snprintf(number, sizeof(number), "-%d", i);
	}
	cli_tidy_end(err ? NULL : a->dir);
	if (err)
		return pb_error(a->command, "%s: %s", a->dir, strerror(-err));
	a->session.map_dir = a->dir;
	return 0;
}

/* Makes two more maps: a ring buffer and an array. eBPF programs print into the ring buffer. Agents
 * keep counts in the array, for example of output for which the ring buffer had no room. */
static int make_output(struct bpf_attach *a)
{
	struct pb_bpf_map_spec output = {
		.attr = { .type = BPF_MAP_TYPE_RINGBUF, .max_entries = OUTPUT_SIZE },
		.name = OUTPUT, .cpu_slots = 1, .types = { .spin_lock_off = -1, .timer_off = -1 },
	};
	struct pb_bpf_map_spec counts = {
		.attr = { .type = BPF_MAP_TYPE_ARRAY, .key_size = 4,
			  .value_size = sizeof(struct pb_progs_counts), .max_entries = 1 },
			  .name = COUNTS,
		.cpu_slots = 1, .types = { .spin_lock_off = -1, .timer_off = -1 },
	};
	int err = bpf_object_pin(&a->session, OUTPUT, &output, &a->output);

	if (!err) {
		a->has_output = true;
		err = bpf_object_pin(&a->session, COUNTS, &counts, &a->counts);
	}
	a->has_counts = !err;
	return err ? pb_error(a->command, "%s: %s%s", a->dir, strerror(-err),
			      err == -EFBIG ? " (see ulimit -f)" : "") : 0;
}

/* Puts an event into each element of each perf event array. The helper bpf_perf_event_output()
 * fails if the program chooses an element without an event. Otherwise it writes the data to the
 * output map. */
static int fill_event_arrays(struct bpf_attach *a)
{
	uint32_t event = 0;
	int err = 0;

	for (uint32_t i = 0; i < a->session.object->nr_maps; i++) {
		struct pb_bpf_map *m = a->session.made->maps[i].map;

		if (!m)
			return 1;	/* the reason has been printed */
		if (m->attr.type != BPF_MAP_TYPE_PERF_EVENT_ARRAY)
			continue;
		for (uint32_t k = 0; !err && k < m->attr.max_entries; k++)
			err = pb_bpf_map_update_elem(m, &k, &event, BPF_ANY);
	}
	return err ? pb_error(a->command, "perf event array: %s", strerror(-err)) : 0;
}

/* ---- programs -------------------------------------------------------------------------- */

/* Sets in *h the functions and the module that the program is to be attached to. Returns 0, or 1
 * after a message. */
static int parse_target(struct bpf_attach *a, const struct pb_bpf_object_prog *p,
			struct record_hook *h)
{
	struct pb_bpf_target t;
	int err = pb_bpf_object_target(p, &t);

	if (err || (p->user && !t.path))
		return pb_error(a->command, "%s: needs %s after the slash", p->section,
				p->user ? "PATH:FUNCTION" : "FUNCTION");
	if (t.off)
		return pb_error(a->command, "%s: programs are attached at functions' entries and "
					    "returns only, not at offsets in them", p->section);
	if (t.func_len >= sizeof(((struct pb_progs_link *)NULL)->function))
		return pb_error(a->command, "%s: the name of the function is too long: it has %zu "
				"bytes, of at most %zu; give a glob", p->section, t.func_len,
				sizeof(((struct pb_progs_link *)NULL)->function) - 1);
	h->section = p->section;
	h->function = strndup(t.func, t.func_len);	/* record_hooks_free() frees both strings */
	h->module = strndup(t.path ? t.path : "", t.path ? t.path_len : 0);
	h->returns = p->returns;
	return h->function && h->module ? 0 : pb_error(a->command, "out of memory");
}

/* Returns the reason why a program isn't attached, or NULL if the program is attached. */
static const char *not_attached(const struct pb_bpf_object_prog *p)
{
	switch (p->type) {
	case BPF_PROG_TYPE_KPROBE:
		break;
	case BPF_PROG_TYPE_SOCKET_FILTER: case BPF_PROG_TYPE_SCHED_CLS:
	case BPF_PROG_TYPE_SCHED_ACT:
	case BPF_PROG_TYPE_XDP: case BPF_PROG_TYPE_CGROUP_SKB:
		return "only the kernel has packets; to give the program a packet, use patchbay "
		       "bpf run";
	case BPF_PROG_TYPE_TRACEPOINT: case BPF_PROG_TYPE_RAW_TRACEPOINT:
		return "tracepoints are the kernel's";
	case BPF_PROG_TYPE_PERF_EVENT:
		return "perf events are the kernel's";
	default:
		return p->why ? p->why : "only the kernel calls programs of its type";
	}
	if (p->special)
		return p->user ? "USDT markers can't be probed here; probe a function" :
				 "system calls can't be probed here; probe the library function "
				 "that makes the system call";
	if (p->session)
		return "sessions need the kernel's functions bpf_session_is_return and "
		       "bpf_session_cookie; probe entry and return by two programs";
	if (!p->autoload)
		return "its section begins with ?";	/* take_loaded() doesn't print this */
	return p->target && *p->target ? NULL : "its section names no function";
}

static int load_prog(struct bpf_attach *a, uint32_t nr)
{
	const struct pb_bpf_object_prog *p = &a->session.object->progs[nr];
	struct bpf_loaded l;
	const char *why;

	if (!bpf_object_load(&a->session, nr, &l, &why))
		return 0;
	bpf_session_show_log(&a->session);
	return pb_error(a->command, "%s: rejected: %s", p->name, why);
}

/* Notes the programs that agents get: the attached programs, and the programs that an attached
 * program may reach by tail calls. Refuses programs whose helpers the agent's host, which is made
 * from pb_bpf_host_linux(), can't serve. For each other program of the object, prints why it isn't
 * attached, unless its section begins with "?". */
static int take_loaded(struct bpf_attach *a)
{
	const struct pb_bpf_object *obj = a->session.object;
	const char *helper = NULL;

	for (uint32_t i = 0; i < obj->nr_progs; i++) {
		const struct pb_bpf_prog *prog = a->session.made->progs[i].prog;
		const struct pb_bpf_object_prog *p = &obj->progs[i];

		a->loaded[i] = prog;
		if (a->loaded[i] && p->nr > PB_PROGS_MAX_INSNS)
			return pb_error(a->command, "%s: more than %d instructions", p->name,
					PB_PROGS_MAX_INSNS);
		if (prog)
			helper = pb_bpf_host_lacks(pb_bpf_host_linux(), prog->calls,
						   prog->nr_calls);
		if (helper)
			return pb_error(a->command, "%s: rejected: %s works only in the kernel",
					p->name, helper);
		if (!a->loaded[i] && p->autoload)
			pb_error(a->command, "%s: SEC(\"%s\"): not attached: %s", p->name,
				 p->section, not_attached(p));
	}
	return 0;
}

static int load_progs(struct bpf_attach *a, struct record_options *o)
{
	const struct pb_bpf_object *obj = a->session.object;
	int ret = 0;

	for (uint32_t i = 0; i < obj->nr_progs && !ret; i++) {
		if (not_attached(&obj->progs[i]))
			continue;
		o->hooks[o->nr_hooks].prog = i;
		ret = load_prog(a, i) || parse_target(a, &obj->progs[i], &o->hooks[o->nr_hooks++]);
	}
	if (!ret)
		ret = take_loaded(a);
	if (!ret && !o->nr_hooks)
		ret = pb_error(a->command, "%s: no program in it is for a function", a->path);
	return ret;
}

/* ---- the file for agents ------------------------------------------------------------------- */

static bool put(FILE *f, const void *p, size_t size)
{
	return fwrite(p, size, 1, f) == 1;
}

static bool write_map(struct bpf_attach *a, FILE *f, const char *name)
{
	struct pb_progs_map m = { 0 };

	if (bpf_object_map_path(&a->session, name, m.path, sizeof(m.path)))
		return put(f, &m, sizeof(m));
	errno = ENAMETOOLONG;
	return false;
}

static bool write_maps(struct bpf_attach *a, FILE *f)
{
	bool ok = true;

	for (uint32_t i = 0; i < a->session.object->nr_maps; i++)
		ok &= write_map(a, f, a->session.object->maps[i].name);
	return ok && write_map(a, f, OUTPUT) && write_map(a, f, COUNTS);
}

/* Writes all programs, in the order of their numbers in the object. A program that isn't loaded is
 * written without instructions. */
static bool write_progs(struct bpf_attach *a, FILE *f, uint64_t at)
{
	const struct pb_bpf_object *obj = a->session.object;
	bool ok = true;

	for (uint32_t i = 0; i < obj->nr_progs; i++) {
		const struct pb_bpf_object_prog *o = &obj->progs[i];
		struct pb_progs_prog p = {
			.type = o->type, .attach_type = o->attach_type, .gpl = obj->gpl,
			.nr = o->nr, .nr_funcs = o->nr_funcs, .insns = at,
			.funcs = at + sizeof(struct bpf_insn) * o->nr,
		};

		if (!a->loaded[i])
			p = (struct pb_progs_prog){ 0 };
		else
			at = p.funcs + sizeof(struct pb_progs_func) * o->nr_funcs;
		strncpy(p.name, o->name, sizeof(p.name) - 1);
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

		snprintf(l.function, sizeof(l.function), "%s", h->function);
		ok &= put(f, &l, sizeof(l));
	}
	return ok;
}

static bool write_funcs(FILE *f, const struct pb_bpf_object_prog *p)
{
	bool ok = true;

	for (uint32_t i = 0; i < p->nr_funcs; i++) {
		const struct pb_bpf_func *from = &p->funcs[i];
		struct pb_progs_func to = {
			.insn = from->insn, .global = from->global,
			.returns_void = from->returns_void, .nr_args = (uint8_t)from->nr_args,
		};

		for (int k = 0; k < PB_BPF_FUNC_ARGS; k++) {
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

	for (uint32_t i = 0; i < a->session.object->nr_progs; i++) {
		const struct pb_bpf_object_prog *p = &a->session.object->progs[i];

		if (a->loaded[i])
			ok &= put(f, p->insns, sizeof(struct bpf_insn) * p->nr) &&
			      write_funcs(f, p);
	}
	return ok;
}

static bool write_all(struct bpf_attach *a, const struct record_options *o, FILE *f, uint64_t size)
{
	struct pb_progs head = {
		.magic = PB_PROGS_MAGIC, .size = size, .nr_maps = a->session.object->nr_maps + 2,
		.nr_progs = a->session.object->nr_progs, .nr_links = o->nr_hooks,
		.output = a->session.object->nr_maps, .counts = a->session.object->nr_maps + 1,
		.jit_enable = pb_bpf_settings.jit_enable, .jit_harden = pb_bpf_settings.jit_harden,
		.stats = pb_bpf_settings.stats,
	};
	uint64_t code = sizeof(head) + head.nr_maps * sizeof(struct pb_progs_map) +
			head.nr_progs * sizeof(struct pb_progs_prog) + head.nr_links *
			sizeof(struct pb_progs_link);

	rewind(f);
	return put(f, &head, sizeof(head)) && write_maps(a, f) && write_progs(a, f, code) &&
	       write_links(o, f) && write_code(a, f) && !fflush(f);
}

/* Writes the file and seals it. A sealed file can't change, so agents check it only once. */
static int write_file(struct bpf_attach *a, struct record_options *o)
{
	int fd = memfd_create("patchbay-progs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	FILE *f = fd < 0 ? NULL : fdopen(dup(fd), "w");
	bool ok = f && write_all(a, o, f, 0);	/* this pass finds the size */
	int err;

	if (ok) {
		o->progs_size = (uint64_t)ftell(f);
		ok = write_all(a, o, f, o->progs_size);
	}
	ok = ok && !fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
	err = errno;	/* before fclose() changes it */
	if (f)
		fclose(f);
	o->progs_fd = fd;
	return ok ? 0 : pb_error(a->session.command, "programs for the agent: %s%s", strerror(err),
				 err == EFBIG ? " (see ulimit -f)" : "");
}

/* Returns the number of per-CPU slots: twice the number of processors, but at least CPU_SLOTS and
 * at most PB_BPF_MAX_CPU_SLOTS. A thread owns a slot while its eBPF program runs, even if the
 * thread is preempted. Other threads then need other slots. */
static uint32_t cpu_slots(void)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	return n < CPU_SLOTS / 2 ? CPU_SLOTS : n < PB_BPF_MAX_CPU_SLOTS / 2 ? 2 * (uint32_t)n :
	       PB_BPF_MAX_CPU_SLOTS;
}

/* Applies the eBPF settings of --set to this process. This process compiles the programs, too,
 * before any agent does. And write_all() copies the settings from here to the file that agents
 * read. */
static void apply_settings(const struct record_options *o)
{
	for (unsigned i = 0; i < o->nr_sets; i++) {
		uint32_t *setting = o->sets[i].file == PB_CF_BPF_JIT_ENABLE ?
				    &pb_bpf_settings.jit_enable :
				    o->sets[i].file == PB_CF_BPF_JIT_HARDEN ?
				    &pb_bpf_settings.jit_harden :
				    o->sets[i].file == PB_CF_BPF_STATS_ENABLED ?
				    &pb_bpf_settings.stats : NULL;

		if (setting)
			*setting = (uint32_t)atoi(o->sets[i].value);
	}
}

int bpf_attach_open(struct bpf_attach *a, struct record_options *o)
{
	int ret;

	apply_settings(o);
	bpf_session_init(&a->session, a->command);
	a->session.cpu_slots = cpu_slots();
	for (unsigned i = 0; i < o->nr_map_sizes; i++)
		if (bpf_sizes_add(&a->session.sizes, a->command, o->map_sizes[i]))
			return 2;
	for (unsigned i = 0; i < o->nr_globals; i++)
		if (bpf_globals_add(&a->session, o->globals[i]))
			return 2;
	a->session.btf = o->btf;
	ret = make_dir(a);
	if (!ret)
		ret = bpf_open_object(&a->session, a->path);
	if (!ret)
		ret = fill_event_arrays(a) || make_output(a);
	if (ret)
		return ret;
	if (a->session.object->nr_progs > PB_PROGS_MAX_PROGS ||
	    a->session.object->nr_maps + 2 > PB_PROGS_MAX_MAPS)
		return pb_error(a->command, "%s: more than %d programs, or than %d maps", a->path,
				PB_PROGS_MAX_PROGS, PB_PROGS_MAX_MAPS - 2);
	o->hooks = calloc(a->session.object->nr_progs + 1, sizeof(*o->hooks));
	return o->hooks ? load_progs(a, o) : pb_error(a->command, "out of memory");
}

int bpf_attach_publish(struct bpf_attach *a, struct record_options *o)
{
	struct pb_progs_counts *counts;
	uint32_t zero = 0;

	counts = a->counts.ops->lookup(&a->counts, &zero, NULL);
	o->attached = counts ? counts->links : NULL;
	o->welcome_flags |= PB_WELCOME_PROGS;
	return write_file(a, o) || bpf_output_start(a);
}

static void remove_maps(struct bpf_attach *a)
{
	bpf_pin_undo(&a->session);
	pb_bpf_pins_rmdir(bpf_pins(a->command), a->dir);
	cli_tidy_forget(a->dir);
}

void bpf_attach_close(struct bpf_attach *a, struct record_options *o)
{
	o->attached = NULL;
	bpf_output_end(a);
	if (a->show && o->recorded)
		bpf_output_maps(a, o->dir);
	if (a->session.map_dir)
		remove_maps(a);
	if (a->has_output)
		pb_bpf_map_close(&a->output);
	if (a->has_counts)
		pb_bpf_map_close(&a->counts);
	if (o->progs_size)
		close(o->progs_fd);
	bpf_session_end(&a->session);
}
