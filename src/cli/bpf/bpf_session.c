/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes maps, and verifies and makes programs, for all subcommands of bpf. */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/base.h"
#include "bpf/map/map_file.h"
#include "bpf/run/fixup.h"
#include "bpf/run/heap.h"
#include "cli/bpf/bpf_pin.h"

/* ---- the maps and programs that elements of maps refer to (struct pb_bpf_objects) --------- */

static void *object_find(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id)
{
	const struct bpf_session *s = o->arg;

	if (kind == PB_BPF_OBJECT_MAP)
		return bpf_session_map_of(s, id);
	for (uint32_t i = 0; kind == PB_BPF_OBJECT_PROG && i < s->nr_progs; i++)
		if (s->progs[i]->id == id)
			return s->progs[i];
	/* there is no structure for an event, so its id stands for it */
	return kind == PB_BPF_OBJECT_EVENT && id ? (void *)(uintptr_t)id : NULL;
}

/* Returns the id for a handle. The handle of a map or program is its id, even if the map or program
 * is pinned and this process hasn't opened it yet. An event's handle is its number, and the event's
 * id is the number plus 1. */
static int64_t object_get(const struct pb_bpf_objects *o, uint32_t kind, uint32_t handle)
{
	struct bpf_session *s = o->arg;
	char path[BPF_PIN_PATH];
	bool there;

	if (kind == PB_BPF_OBJECT_EVENT)
		return (int64_t)handle + 1;
	there = object_find(o, kind, handle) ||
		(kind == PB_BPF_OBJECT_MAP && bpf_pin_map_id(s, handle)) ||
		(kind == PB_BPF_OBJECT_PROG && bpf_pin_find(s->command, handle, path));
	return there ? (int64_t)handle : -EBADF;
}

static void object_put(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id)
{
}

/* ---- sessions -------------------------------------------------------------------------------- */

/* The handler for SIGSEGV and SIGBUS. If a load of an eBPF program faults, the program continues
 * after the load. Any other fault ends the process: the instruction faults again, then without a
 * handler. */
static void on_fault(int sig, siginfo_t *info, void *ctx)
{
	greg_t *ip = &((ucontext_t *)ctx)->uc_mcontext.gregs[REG_RIP];
	uint64_t to = pb_bpf_fault((uint64_t)*ip);

	if (to)
		*ip = (greg_t)to;
	else
		signal(sig, SIG_DFL);
}

void bpf_session_init(struct bpf_session *s, const char *command)
{
	struct sigaction act = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };

	s->command = command;
	s->caps = PB_BPF_CAP_ALL;
	s->log_level = PB_BPF_LOG_REFUSAL;
	s->objects = (struct pb_bpf_objects){ object_find, object_get, object_put, s };
	s->log = calloc(1, BPF_LOG_SIZE);
	sigaction(SIGSEGV, &act, NULL);
	sigaction(SIGBUS, &act, NULL);
}

void bpf_session_end(struct bpf_session *s)
{
	for (uint32_t i = 0; i < s->nr_maps; i++)
		if (s->map[i])
			pb_bpf_map_close(s->map[i]);
	pb_bpf_made_free(s->made);
	bpf_pins_end();
	pb_bpf_object_close(s->object);
	for (uint32_t i = 0; i < s->nr_pins; i++)
		free(s->pins[i]);
	free(s->pins);
	s->pins = NULL;
	s->nr_pins = 0;
	free(s->log);
	free(s->args);
	s->log = NULL;
	s->args = NULL;
}

int bpf_session_map(struct bpf_session *s, const struct pb_bpf_map_spec *spec)
{
	struct pb_bpf_map *map = &s->maps[s->nr_maps];
	int err;

	if (s->nr_maps == BPF_MAX_MAPS)
		return -E2BIG;
	err = pb_bpf_map_create(map, spec);
	if (err)
		return err;
	map->objects = &s->objects;
	s->map[s->nr_maps++] = map;
	return 0;
}

/* Reads TYPE,KEY,VALUE,ENTRIES[,FLAGS]. Returns false if the text has another form, or if a number
 * has more than 32 bits. */
static bool read_attr(const char *text, struct pb_bpf_map_attr *a)
{
	uint32_t *const to[] = { &a->type, &a->key_size, &a->value_size, &a->max_entries,
		&a->flags };

	for (size_t i = 0; i < pb_array_size(to); i++) {
		char *end;
		unsigned long n = strtoul(text, &end, 10);

		if (!isdigit((unsigned char)*text) || n > UINT32_MAX)
			return false;
		*to[i] = (uint32_t)n;
		if (*end != ',')
			return !*end && i >= 3;
		text = end + 1;
	}
	return false;
}

static int make_map(struct bpf_session *s, const char *text)
{
	struct pb_bpf_map_spec spec = { .types = { .spin_lock_off = -1, .timer_off = -1 } };
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int err;

	spec.cpu_slots = cpus > 0 ? (uint32_t)cpus : 1;
	if (!read_attr(text, &spec.attr)) {
		pb_error(s->command, "-m %s: TYPE,KEY,VALUE,ENTRIES[,FLAGS] are numbers from 0 to "
				     "%u", text, UINT32_MAX);
		return BPF_USAGE;
	}
	err = bpf_session_map(s, &spec);
	if (!err)
		return 0;
	pb_error(s->command, "map %s: %s%s", text, strerror(-err),
		 err == -EFBIG ? " (see ulimit -f)" : "");
	return BPF_USAGE;
}

int bpf_session_maps(struct bpf_session *s)
{
	int ret = 0;

	for (uint32_t i = 0; i < s->nr_map_specs && !ret; i++)
		ret = make_map(s, s->map_spec[i]);
	return ret;
}

static int make(struct bpf_session *s, const struct bpf_unit *u, struct pb_bpf_verify *v,
		struct bpf_loaded *out)
{
	struct pb_bpf_resolved r = { 0 };
	int err = pb_bpf_resolve(v, &r);

	if (err)
		return err;
	r.spec.name = u->name;
	r.spec.id = u->id ? u->id : s->nr_progs + 1;
	out->xlated = r.spec.nr * (uint32_t)sizeof(struct bpf_insn);
	err = pb_bpf_prog_make(&r.spec, &out->prog);
	pb_bpf_resolved_free(&r);
	return err;
}

struct pb_bpf_text bpf_session_log(struct bpf_session *s)
{
	s->log[0] = 0;
	return (struct pb_bpf_text){
		.buf = s->log, .size = s->log_level == PB_BPF_LOG_REFUSAL ? BPF_LOG_SHORT :
		BPF_LOG_SIZE,
	};
}

void bpf_session_show_log(const struct bpf_session *s)
{
	size_t n = strlen(s->log);

	if (s->log_gone)
		fprintf(stderr, "(the log is cut: %lu byte%s before this %s missing)\n",
			(unsigned long)s->log_gone, pb_plural(s->log_gone),
			s->log_gone == 1 ? "is" : "are");
	if (n)
		fprintf(stderr, "%s%s", s->log, s->log[n - 1] == '\n' ? "" : "\n");
}

int bpf_session_load(struct bpf_session *s, const struct bpf_unit *u, struct bpf_loaded *out)
{
	struct pb_bpf_text log = bpf_session_log(s);
	struct pb_bpf_verify v = {
		.type = u->type, .attach_type = u->attach_type, .flags = s->flags, .caps = s->caps,
		.gpl = u->gpl, .insns = u->insns, .nr = u->nr, .maps = u->maps ? u->maps : s->map,
		.nr_maps = u->maps ? u->nr_maps : s->nr_maps, .funcs = u->funcs,
		.nr_funcs = u->nr_funcs, .lines = u->lines, .nr_lines = u->nr_lines, .log = &log,
		.log_level = (uint32_t)s->log_level, .mem = &pb_bpf_heap,
	};
	int err;

	*out = (struct bpf_loaded){ 0 };
	err = pb_bpf_verify(&v);
	s->log_gone = log.gone;
	if (err)
		return err;
	out->verified = v.stats.insns;
	err = make(s, u, &v, out);
	pb_bpf_facts_free(&pb_bpf_heap, v.facts);
	if (!err && s->nr_progs < BPF_MAX_MAPS)
		s->progs[s->nr_progs++] = out->prog;
	return err;
}

const struct pb_bpf_type *bpf_type_of(const char *text)
{
	const struct pb_bpf_type *t = pb_bpf_type_named(text);
	char *end;
	unsigned long number = strtoul(text, &end, 0);

	return t || *end || !*text || number > UINT32_MAX ? t : pb_bpf_type_of((uint32_t)number);
}

/* True for lines that the verifier may write after the reason. */
static bool follows_reason(const char *line)
{
	return !strncmp(line, "processed ", 10) || !strncmp(line, "stack depth ", 12) ||
	       !strncmp(line, "cur state:", 10) || !strncmp(line, "old state:", 10);
}

const char *bpf_session_reason(const struct bpf_session *s)
{
	char *end = s->log + strlen(s->log), *line;

	for (;;) {
		while (end > s->log && end[-1] == '\n')
			*--end = 0;
		line = strrchr(s->log, '\n');
		line = line ? line + 1 : s->log;
		if (!follows_reason(line) || line == s->log)
			return line;
		end = line;
	}
}
