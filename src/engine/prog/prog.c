/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Attaches eBPF programs to sites, and runs them on hits. The tables are filled at the start and
 * when modules arrive. The hit path only reads the tables: a link or a site is complete before it
 * is published. A struct prog_site is never freed, because a thread may still use it. Instead it is
 * marked as gone, and is used again for a later site.
 */
#include <errno.h>
#include <link.h>
#include "abi/analysis_access.h"
#include "abi/progs.h"
#include "arch/arch.h"
#include "base/base.h"
#include "base/glob.h"
#include "base/mem.h"
#include "base/sys.h"
#include "bpf/core/host.h"
#include "bpf/run/fixup.h"
#include "engine/graph/calls.h"
#include "engine/graph/enter.h"
#include "engine/text/ftrace.h"
#include "engine/graph/interrupt.h"
#include "engine/latch.h"
#include "engine/prog/prog.h"
#include "engine/prog/prog_priv.h"
#include "engine/graph/thread.h"

/* size of the table of sites; unused pages cost nothing */
#define SLOTS		(1u << PB_PROG_HASH_BITS)
#define MOST_SITES	(PB_WATCH_BELOW - 1)
#define HIT_ROOM	1024		/* bytes of stack between the return slot and a program's
					 * frame */

struct link {
	const struct pb_progs_link *link;
	const struct pb_bpf_prog *prog;
	bool per_cpu;			/* the program may use per-CPU maps */
};

#define GONE ((struct pb_site *)1)

static struct pb_bpf_map maps[PB_PROGS_MAX_MAPS];
static struct pb_bpf_prog *progs[PB_PROGS_MAX_PROGS];
static struct link links[PB_PROGS_MAX_LINKS];
bool pb_prog_returns;
static uint32_t nr_maps, nr_progs, nr_links, nr_sites, nr_cpu_slots;
struct prog_site *pb_prog_sites[SLOTS];
static struct prog_site *by_watch[PB_WATCH_BELOW];
static const struct pb_bpf_host *host;
static const struct pb_progs_map *map_paths;

/* ---- objects in maps ----------------------------------------------------------------- */

/* id: for a program or a map, its number in the file plus 1. An event isn't looked up, because all
 * events go to the output map. So any id that isn't 0 is an event. */
static void *find_object(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id)
{
	switch (kind) {
	case PB_BPF_OBJECT_PROG:
		return id && id <= nr_progs ? progs[id - 1] : NULL;
	case PB_BPF_OBJECT_MAP:
		return id && id <= nr_maps ? &maps[id - 1] : NULL;
	case PB_BPF_OBJECT_EVENT:
		return (void *)(uint64_t)id;
	default:
		return NULL;
	}
}

static int64_t get_object(const struct pb_bpf_objects *o, uint32_t kind, uint32_t handle)
{
	return -EBADF;
}

static void put_object(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id)
{
}

static const struct pb_bpf_objects objects = { find_object, get_object, put_object, NULL };

/* ---- the observer's file ------------------------------------------------------------------- */

/* Returns whether a program that names the map may use a per-CPU map: the map itself, a map in a
 * map, or a map of a program that it reaches by a tail call. Maps and programs are added to maps
 * and prog arrays at any time, but they are always among those of the observer's file. */
static bool leads_to_per_cpu(const struct pb_bpf_map *m)
{
	switch (m->attr.type) {
	case BPF_MAP_TYPE_PROG_ARRAY:
	case BPF_MAP_TYPE_ARRAY_OF_MAPS:
	case BPF_MAP_TYPE_HASH_OF_MAPS:
		return nr_cpu_slots > 1;
	default:
		return m->cpu_slots > 1;
	}
}

static int open_maps(const struct pb_prog_file *f)
{
	for (; nr_maps < f->head->nr_maps; nr_maps++) {
		struct pb_bpf_map *m = &maps[nr_maps];
		int err = pb_prog_map(m, f->maps[nr_maps].path);

		if (err)
			return err;
		m->id = nr_maps + 1;
		m->objects = &objects;
		if (m->cpu_slots > nr_cpu_slots)
			nr_cpu_slots = m->cpu_slots;
	}
	return 0;
}

/* Gives a forked child mappings of its own. */
static void map_again(void)
{
	for (uint32_t i = 0; i < nr_maps; i++)
		pb_prog_map_again(&maps[i], map_paths[i].path, true);
}

/* If libc's code has made a hit in the child, the child has its own mappings already. If a file
 * can't be opened, the child keeps the parent's mapping. */
void pb_prog_forked(void)
{
	for (uint32_t i = 0; i < nr_maps && !pb_prog_runs_ready(); i++)
		pb_prog_map_again(&maps[i], map_paths[i].path, false);
}

void pb_prog_leave(void)
{
	for (uint32_t i = 0; i < nr_maps; i++)
		pb_prog_map_zeros(&maps[i]);
}

static void make_links(const struct pb_prog_file *f)
{
	for (; nr_links < f->head->nr_links; nr_links++) {
		struct link *l = &links[nr_links];

		l->link = &f->links[nr_links];
		l->prog = progs[l->link->prog];
		pb_prog_returns |= l->link->returns;
		pb_calls_watching |= l->link->returns;
		for (uint32_t i = 0; i < l->prog->nr_maps; i++)
			l->per_cpu |= leads_to_per_cpu(l->prog->maps[i]);
	}
}

static struct pb_bpf_map *map_of(uint32_t number, uint32_t type)
{
	return number < nr_maps && maps[number].attr.type == type ? &maps[number] : NULL;
}

static uint64_t wrap(struct pb_site *site, uint64_t next, uint64_t idle);

int pb_prog_start(const void *file, uint64_t size, const char **why)
{
	struct pb_prog_file f;
	int err = -EINVAL;

	*why = "the file of eBPF programs is damaged";
	if (!pb_prog_file_check(&f, file, size))
		return err;
	*why = "the memory of an eBPF map can't be mapped";
	/* another thread may fork meanwhile: its child reads the paths of the maps that are open */
	map_paths = f.maps;
	err = pb_prog_runs_start(map_again);
	if (!err)
		err = open_maps(&f);
	pb_bpf_settings.jit_enable = f.head->jit_enable;
	pb_bpf_settings.jit_harden = f.head->jit_harden;
	pb_bpf_settings.stats = f.head->stats;
	pb_bpf_settings.show = pb_prog_show_code;
	host = pb_prog_host(map_of(f.head->output, BPF_MAP_TYPE_RINGBUF),
			    map_of(f.head->counts, BPF_MAP_TYPE_ARRAY), maps);
	pb_prog_use_pages();
	pb_ftrace_regs = wrap;
	for (; !err && nr_progs < f.head->nr_progs; nr_progs++) {
		if (!f.progs[nr_progs].nr)
			continue;
		err = pb_prog_make(&f, nr_progs, host, maps, nr_maps, &progs[nr_progs], why);
		if (err)
			break;
	}
	if (err)
		return err;
	make_links(&f);
	for (uint32_t i = 0; i < pb_nr_modules; i++)
		pb_prog_module(&pb_modules[i]);
	return 0;
}

/* ---- sites ---------------------------------------------------------------------------------- */

static uint32_t hash(const struct pb_site *s)
{
	return (uint32_t)(((uint64_t)s >> PB_PROG_HASH_ALIGN) * PB_PROG_HASH_FACTOR >>
			  (64 - PB_PROG_HASH_BITS));
}

static struct prog_site *site_of(const struct pb_site *s)
{
	for (uint32_t i = hash(s), n = 0; n < SLOTS; i = (i + 1) % SLOTS, n++) {
		struct prog_site *p = __atomic_load_n(&pb_prog_sites[i], __ATOMIC_ACQUIRE);

		if (!p)
			return NULL;
		if (__atomic_load_n(&p->site, __ATOMIC_ACQUIRE) == s)
			return p;
	}
	return NULL;
}

static struct prog_site *make_site(struct pb_module *m, struct pb_site *s)
{
	struct prog_site **table = pb_prog_sites, *p = site_of(s);
	uint32_t i = hash(s);
	uint16_t watch;

	if (p)
		return p;
	/* finds a free entry, or the entry of a site whose module is gone */
	for (; table[i] && __atomic_load_n(&table[i]->site, __ATOMIC_RELAXED) != GONE;
	     i = (i + 1) % SLOTS)
		;
	p = table[i];
	watch = p ? p->watch : (uint16_t)(nr_sites + 1);
	if (!p && nr_sites < MOST_SITES)
		p = pb_arena_alloc(sizeof(*p));
	if (!p)
		return NULL;
	memset(p, 0, sizeof(*p));
	p->watch = watch;
	by_watch[watch] = p;
	p->room = PB_PROG_ROOM;
	p->ip = m->bias + pb_site_func(m, s)->addr;
	p->number = m->first_site + (uint32_t)(s - m->sites);
	p->next = p->idle = pb_site_idle(m, s);
	__atomic_store_n(&p->site, s, __ATOMIC_RELEASE);
	if (!table[i]) {
		__atomic_store_n(&table[i], p, __ATOMIC_RELEASE);
		nr_sites++;
	}
	return p;
}

static void attach_site(struct pb_module *m, struct pb_site *s, const struct link *l)
{
	struct prog_site *p;
	uint32_t *nr;

	if (s->flags & (FTRACE_FL_REFUSED | FTRACE_FL_DIRECT) ||
	    pb_site_func(m, s)->refused != PB_REFUSED_NOT ||
	    pb_site_func(m, s)->kind == PB_SITE_CYG)
		return;
	if (l->link->returns && !pb_site_returns(m, s)) {
		pb_prog_no_return();
		return;
	}
	p = make_site(m, s);
	nr = !p ? NULL : l->link->returns ? &p->nr_return : &p->nr_entry;
	if (!p || *nr == PB_PROG_AT_ONE) {
		pb_prog_left_out();
		return;
	}
	if (p->room < HIT_ROOM + l->prog->room)
		p->room = HIT_ROOM + l->prog->room;
	(l->link->returns ? p->at_return : p->entry)[*nr] = l;
	__atomic_store_n(nr, *nr + 1, __ATOMIC_RELEASE);
	s->flags |= FTRACE_FL_REGS | (l->link->returns ? FTRACE_FL_RETURNS : 0);
	pb_prog_attached((uint32_t)(l - links));
}

_Static_assert(PB_PROGS_MAX_LINKS <= 64 * PB_MSG_LINKS, "abi/messages.h");

static bool is_for(const struct link *l, const struct pb_module *m)
{
	size_t i = (size_t)(l - links);

	return m->links[i / 64] >> i % 64 & 1;
}

void pb_prog_module(struct pb_module *m)
{
	const struct pb_func *f = pb_analysis_funcs(m->analysis);

	if (!m->present || !m->sites)
		return;
	for (const struct link *l = links; l < links + nr_links; l++) {
		if (!is_for(l, m))
			continue;
		for (uint32_t i = 0; i < m->analysis->nr_funcs; i++)
			if (pb_function_has_name(m, &f[i], l->link->function) ||
			    pb_glob_match(l->link->function, pb_func_name(m->analysis, &f[i])))
				attach_site(m, &m->sites[i], l);
	}
}

void pb_prog_module_gone(struct pb_module *m)
{
	for (uint32_t i = 0; m->sites && nr_sites && i < m->analysis->nr_funcs; i++) {
		struct prog_site *p = NULL;

		if (m->sites[i].flags & FTRACE_FL_REGS)
			p = site_of(&m->sites[i]);
		if (p)
			__atomic_store_n(&p->site, GONE, __ATOMIC_RELEASE);
	}
}

/* Returns the handler of a site with programs. pb_watch_entry() jumps to site->body, not to the
 * next handler, and checks only for PB_PROG_ROOM. So it serves only sites that need no next handler
 * and no more room, and have no programs at their entry. */
static uint64_t wrap(struct pb_site *site, uint64_t next, uint64_t idle)
{
	struct prog_site *p = site_of(site);

	if (!p)
		return next;
	p->idle = idle;
	p->call = pb_open_fields(site->id, PB_ENTRY_PROG, p->watch);
	__atomic_store_n(&p->next, next, __ATOMIC_RELEASE);
	return (uint64_t)(next == idle && idle == site->body && !p->nr_entry &&
			  p->room == PB_PROG_ROOM ? pb_watch_entry : pb_prog_entry);
}

bool pb_prog_holds(uint64_t pc)
{
	for (uint32_t i = 0; i < nr_progs; i++)
		if (progs[i] && progs[i]->jited &&
		    pc - (uint64_t)progs[i]->jited < progs[i]->jited_len)
			return true;
	return false;
}

/* ---- hits --------------------------------------------------------------------- */

/* Sets the fields one by one, because a run reads only a few fields of the struct. */
static inline void begin(struct pb_prog_run *r, const struct pb_thread *t,
			 const struct prog_site *p)
{
	r->run.host = host;
	r->run.thread = t->w.tid;
	r->run.stack_end = t->stack->lo + t->stack->guard;
	r->run.cpu_slot = 0;
	r->at = p;
	r->overridden = false;
}

/* Doesn't call pb_bpf_enter_counted(), because the frame of that function would hinder
 * unwinders. */
static uint64_t run_counted(struct pb_prog_run *r, const struct pb_bpf_prog *prog)
{
	uint64_t from = host->clock(&r->run, PB_BPF_MONOTONIC);
	uint64_t ret = pb_prog_call(r->run.ctx, &r->run, prog->enter);

	__atomic_add_fetch(&prog->stats->ns, host->clock(&r->run, PB_BPF_MONOTONIC) - from,
			   __ATOMIC_RELAXED);
	__atomic_add_fetch(&prog->stats->runs, 1, __ATOMIC_RELAXED);
	return ret;
}

static uint64_t run_one(struct pb_prog_run *r, const struct pb_thread *t, const struct link *l,
			struct pt_regs *regs, const uint64_t *slot)
{
	uint64_t ret;

	r->run.prog = l->prog;
	r->run.ctx = regs;
	r->run.cookie = l->link->cookie;
	r->run.tail_calls = 0;
	r->run.lock_missed = false;
	r->open = pb_prog_open(t, (uint64_t)slot, r);
	if (pb_unlikely(r->open == PB_PROG_NOT_READY)) {
		__atomic_add_fetch(pb_prog_missed, 1, __ATOMIC_RELAXED);
		return 1;
	}
	if (l->per_cpu)
		r->run.cpu_slot = pb_prog_cpu_slot(r->open, host->cpu(&r->run), nr_cpu_slots);
	ret = pb_unlikely(pb_bpf_settings.stats) ? run_counted(r, l->prog) :
						   pb_prog_call(regs, &r->run, l->prog->enter);
	pb_prog_close(t, r->open);
	return ret;
}

static inline bool has_room(const struct pb_stack *s, const struct prog_site *p, uint64_t slot)
{
	return slot - s->lo >= p->room + s->guard;
}

static struct pb_prog_room missed(struct prog_site *p)
{
	__atomic_add_fetch(pb_prog_missed, 1, __ATOMIC_RELAXED);
	return (struct pb_prog_room){ p, __atomic_load_n(&p->next, __ATOMIC_ACQUIRE) };
}

/* The slow path of pb_prog_room(): the thread is new or on another stack, or there isn't enough
 * room. */
static __attribute__((noinline))
struct pb_prog_room room_elsewhere(struct prog_site *p, uint64_t slot)
{
	const struct pb_stack *s;
	struct pb_thread *t;

	t = pb_latched ? NULL : pb_thread_get(slot);
	s = t ? pb_calls_stack(t, slot) : NULL;
	if (s && s->exact && has_room(s, p, slot))
		return (struct pb_prog_room){ p, 0 };
	/* t is NULL if tracing is off, or the thread can't be traced */
	return t ? missed(p) :
	       (struct pb_prog_room){ p, __atomic_load_n(&p->next, __ATOMIC_ACQUIRE) };
}

/* Programs run on the thread's stack, as signal handlers do. If the stack has too little room left,
 * the programs aren't run. */
struct pb_prog_room pb_prog_room(struct pb_site *site, uint64_t slot)
{
	struct prog_site *p = site_of(site);
	struct pb_thread *t = pb_tls;
	const struct pb_stack *s = t->stack;

	if (!p)
		return (struct pb_prog_room){ NULL, site->body };
	if (pb_likely(t->top && s->exact && pb_stack_holds(s, slot) &&
		      has_room(s, p, slot) && !pb_latched))
		return (struct pb_prog_room){ p, 0 };
	/* there isn't even room for the slow path */
	if (slot - t->bottom < PB_HIT_ROOM)
		return missed(p);
	return room_elsewhere(p, slot);
}

/* Opens the call, because programs run at its return. If the handler `next` would open the call for
 * the graph tracer, this function does so, too, and the call goes on at the idle handler in place
 * of `next`. If `next` is pb_list, the call always goes on at the idle handler, because
 * pb_graph_mode() has called all tracers of the list. Returns the address at which the call goes
 * on. */
static uint64_t watch(const struct prog_site *p, uint64_t *slot, uint64_t next)
{
	unsigned mode = next == p->idle ? PB_ENTER_LIST : pb_graph_mode(p->site, next, *slot);

	if (!pb_calls_watch(p->site, slot, mode, p->watch))
		__atomic_add_fetch(pb_prog_missed, 1, __ATOMIC_RELAXED);
	return mode == PB_ENTER_LIST && next != (uint64_t)pb_list ? next : p->idle;
}

struct pb_prog_target pb_prog_hit(struct prog_site *p, struct pt_regs *regs)
{
	uint64_t *slot = (uint64_t *)pb_regs_sp(regs);
	uint64_t next = __atomic_load_n(&p->next, __ATOMIC_ACQUIRE);
	struct pb_thread *t = pb_tls;
	struct pb_prog_run r;
	bool record = true;

	pb_regs_finish(regs, p->ip);
	begin(&r, t, p);
	r.at_entry = true;
	for (uint32_t i = 0; i < p->nr_entry && !r.overridden; i++)
		record &= run_one(&r, t, p->entry[i], regs, slot) != 0;
	if (pb_unlikely(r.overridden))
		return (struct pb_prog_target){ r.value, PB_PROG_RETURN };
	/* If a program has returned 0, the call isn't recorded. But pb_open_silent (for functions
	 * in set_graph_notrace) must still run, because it also keeps the callees unrecorded. */
	if (!record && next != (uint64_t)pb_open_silent)
		next = p->idle;
	return (struct pb_prog_target){ p->nr_return ? watch(p, slot, next) : next, PB_PROG_JUMP };
}

static void run_returned(struct pb_thread *t, const struct prog_site *p, struct pt_regs *regs,
			 const uint64_t *slot)
{
	struct pb_prog_run r;

	begin(&r, t, p);
	r.at_entry = false;
	for (uint32_t i = 0; i < p->nr_return; i++)
		run_one(&r, t, p->at_return[i], regs, slot);
}

void pb_prog_returned(struct pb_open_call *c, struct pt_regs *regs)
{
	uint64_t *slot = (uint64_t *)pb_regs_sp(regs);

	pb_regs_finish(regs, *slot);
	pb_regs_return(regs);
	for (; c; c = pb_calls_watched(c, slot))
		if (!pb_latched)
			run_returned(pb_tls, by_watch[c->watch], regs, slot);
}
