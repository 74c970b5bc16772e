/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loads each analysis when it is first needed, and looks up sites and addresses in the analyses. */
#include "reader/site_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/analysis_access.h"
#include "abi/analysis_check.h"
#include "base/base.h"
#include "base/clean_text.h"
#include "reader/data.h"

struct module {
	uint32_t number;
	bool tried, again;		/* again: to be loaded in the next round */
	const struct pb_analysis *map;	/* NULL if the analysis is missing or damaged */
	size_t size;
	const char **names;		/* demangled, [nr_funcs] */
	char *soname;
};

#define UNKNOWN 4096
#define MODULE_NOTES 64		/* limit of the notes about modules without names */

/* A site whose module isn't known. The text is "site:N". */
struct unknown {
	char *text;
	uint32_t site;
};

struct pb_symbols {
	struct pb_data *d;
	enum pb_demangle how;
	struct module *modules;		/* sorted by number */
	size_t nr;
	bool again;			/* a module has `again` set */
	unsigned notes;			/* number of notes about modules without names */
	struct unknown *unknown;	/* [UNKNOWN], or NULL if there was no unknown site yet; the
					 * index is the low bits of the site's number */
};

static int by_number(const void *a, const void *b)
{
	const struct module *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

struct pb_symbols *pb_symbols_new(struct pb_data *d)
{
	struct pb_symbols *s = calloc(1, sizeof(*s));
	size_t to = 0;

	if (!s)
		return NULL;
	s->d = d;
	s->modules = calloc(d->nr_maps + 1, sizeof(*s->modules));
	if (!s->modules) {
		free(s);
		return NULL;
	}
	for (size_t i = 0; i < d->nr_maps; i++)
		s->modules[i].number = d->maps[i].module;
	qsort(s->modules, d->nr_maps, sizeof(*s->modules), by_number);
	for (size_t i = 0; i < d->nr_maps; i++)
		if (!to || s->modules[to - 1].number != s->modules[i].number)
			s->modules[to++].number = s->modules[i].number;
	s->nr = to;
	return s;
}

void pb_symbols_free(struct pb_symbols *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nr; i++) {
		struct module *m = &s->modules[i];

		for (uint32_t f = 0; m->names && f < m->map->nr_funcs; f++)
			if (m->names[f] &&
			    m->names[f] != pb_func_name(m->map, &pb_analysis_funcs(m->map)[f]))
				free((char *)m->names[f]);
		free(m->names);
		free(m->soname);
		if (m->map)
			munmap((void *)m->map, m->size);
	}
	for (size_t i = 0; s->unknown && i < UNKNOWN; i++)
		free(s->unknown[i].text);
	free(s->unknown);
	free(s->modules);
	free(s);
}

void pb_symbols_demangle(struct pb_symbols *s, enum pb_demangle how)
{
	s->how = how;
}

enum pb_demangle pb_symbols_style(const struct pb_symbols *s)
{
	return s->how;
}

bool pb_symbols_again(struct pb_symbols *s)
{
	bool again = s->again;

	for (size_t i = 0; again && i < s->nr; i++) {
		struct module *m = &s->modules[i];

		m->tried &= !m->again;
		m->again = false;
	}
	s->again = false;
	return again;
}

void pb_symbols_move(struct pb_symbols *to, struct pb_symbols *from)
{
	to->d = from->d;
	to->how = from->how;
	for (size_t i = 0; i < from->nr; i++) {
		struct module *old = &from->modules[i];
		struct module *m = bsearch(old, to->modules, to->nr, sizeof(*m), by_number);

		if (!m || !old->map)
			continue;
		*m = *old;
		*old = (struct module){ .number = m->number };
	}
}

/* Returns 0 or -errno. */
static int map_file(int dir_fd, const char *path, void **map, size_t *size)
{
	int ret = -ENOENT, fd;
	struct stat st;

	fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0) {
		*size = (size_t)st.st_size;
		*map = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
		ret = *map == MAP_FAILED ? -errno : 0;
	}
	close(fd);
	return ret;
}

/* Adds a note about a module without names. */
static void note(struct pb_symbols *s, const char *path, const char *what)
{
	if (s->notes++ < MODULE_NOTES)
		pb_data_note(s->d, "%s%s: its functions have no names", path, what);
	else
		pb_data_note(s->d, "functions of more modules have no names");
}

/* The module can't be loaded now, because this process is short of descriptors or memory. A later
 * round may load it. If there are no more rounds, adds a note for the user. */
static void load_later(struct pb_symbols *s, struct module *m, const char *path, int error)
{
	char why[128];

	m->again = s->again = true;
	snprintf(why, sizeof(why), ": %s", strerror(-error));
	if (s->d->ended || !s->d->followed)
		note(s, path, why);
}

static void load(struct pb_symbols *s, struct module *m)
{
	char path[32];
	void *map;
	int ret;

	m->tried = true;
	snprintf(path, sizeof(path), "modules/%u", m->number);
	ret = map_file(s->d->dir_fd, path, &map, &m->size);
	if (pb_data_may_pass(ret)) {
		load_later(s, m, path, ret);
		return;
	}
	if (ret) {
		/* while a recording runs, or after its recorder was killed, the file may not have
		 * been written yet */
		s->d->damaged |= s->d->ended;
		note(s, path, " is missing");
		return;
	}
	if (pb_analysis_check(map, m->size)) {
		s->d->damaged = true;
		note(s, path, " is damaged or of another version");
		munmap(map, m->size);
		return;
	}
	m->map = map;
	m->names = calloc((size_t)m->map->nr_funcs + 1, sizeof(*m->names));
	m->soname = strdup(pb_analysis_string(m->map, m->map->soname));
	pb_text_clean(m->soname, '?', 0);
	if (m->soname && m->names)
		return;
	free(m->names);
	free(m->soname);
	m->names = NULL;
	m->soname = NULL;
	m->map = NULL;
	munmap(map, m->size);
	load_later(s, m, path, -ENOMEM);
}

static struct module *find_module(struct pb_symbols *s, uint32_t number)
{
	struct module key = { .number = number };
	struct module *m = bsearch(&key, s->modules, s->nr, sizeof(key), by_number);

	if (m && !m->tried)
		load(s, m);
	return m && m->map ? m : NULL;
}

const struct pb_analysis *pb_symbols_module(struct pb_symbols *s, uint32_t number)
{
	struct module *m = find_module(s, number);

	return m ? m->map : NULL;
}

static const char *func_name(const struct pb_symbols *s, struct module *m, uint32_t index)
{
	const struct pb_func *f = &pb_analysis_funcs(m->map)[index];
	const char *raw = pb_func_name(m->map, f);
	char *pretty;

	if (m->names[index])
		return m->names[index];
	pretty = pb_demangle(raw, s->how);
	if (pretty && !pb_text_printable(pretty)) {
		free(pretty);
		pretty = NULL;
	}
	if (!pretty && !pb_text_printable(raw)) {
		pretty = strdup(raw);
		pb_text_clean(pretty, '?', 0);
		if (!pretty)
			return "?";
	}
	return m->names[index] = pretty ? pretty : raw;
}

/* Returns the mapping of the module to which an image's site belongs, or NULL. */
static const struct pb_module_map *map_of_site(const struct pb_data *d, size_t image, uint32_t site)
{
	const struct pb_image *im = &d->images[image];
	size_t next = pb_bisect(i, im->first_map, im->first_map + im->nr_maps,
				  d->maps[i].first_site <= site);

	if (next == im->first_map)
		return NULL;
	const struct pb_module_map *map = &d->maps[next - 1];

	return map->first_site && site - map->first_site < map->nr_funcs ? map : NULL;
}

static struct pb_function unknown_site(struct pb_symbols *s, uint32_t site)
{
	struct pb_function f = { "?", "[unknown]", "?", 1ull << 63 | site };
	struct unknown *u;

	if (!s->unknown)
		s->unknown = calloc(UNKNOWN, sizeof(*s->unknown));
	if (!s->unknown)
		return f;
	u = &s->unknown[site % UNKNOWN];
	if (u->text && u->site == site) {
		f.name = u->text;
	} else if (!u->text) {
		if (asprintf(&u->text, "site:%u", site) < 0)
			u->text = NULL;
		u->site = site;
		f.name = u->text ? u->text : "?";
	}
	f.raw = f.name;
	return f;
}

struct pb_function pb_symbols_site(struct pb_symbols *s, size_t image, uint32_t site)
{
	const struct pb_module_map *map = map_of_site(s->d, image, site);
	struct module *m = map ? find_module(s, map->module) : NULL;

	if (!m || site - map->first_site >= m->map->nr_funcs)
		return unknown_site(s, site);
	return (struct pb_function){
		.name = func_name(s, m, site - map->first_site), .module = m->soname,
		.raw = pb_func_name(m->map, &pb_analysis_funcs(m->map)[site - map->first_site]),
		.id = (uint64_t)map->module << 32 | (site - map->first_site),
	};
}

static bool map_holds(const struct pb_module_map *map, const struct module *m, uint64_t address)
{
	uint64_t a = address - map->bias;

	return a >= m->map->image_start && a < m->map->image_end;
}

/* Whether mapping a is more likely than b to have held an address at the time `clock` in the
 * process `pid`. Both have held it at some time. A mapping that began later is the last choice. But
 * it counts, because the agent reports a module a little after it was mapped. A mapping of another
 * process counts, too, because the modules of a forked child are listed under its parent's pid. */
static bool fits_better(const struct pb_module_map *a, const struct pb_module_map *b, uint32_t pid,
			uint64_t clock)
{
	bool began = a->from <= clock;

	if (began != (b->from <= clock))
		return began;
	if ((a->pid == pid) != (b->pid == pid))
		return a->pid == pid;
	return began ? a->from > b->from : a->from < b->from;
}

/* Finds the mapping that held the address at the time `clock`. */
static const struct pb_module_map *map_of_address(struct pb_symbols *s, size_t image, uint32_t pid,
						  uint64_t clock, uint64_t address)
{
	const struct pb_image *im = &s->d->images[image];
	const struct pb_module_map *best = NULL;

	for (size_t i = im->first_map; i < im->first_map + im->nr_maps; i++) {
		const struct pb_module_map *map = &s->d->maps[i];
		struct module *m = find_module(s, map->module);

		if (!m || clock > map->to || !map_holds(map, m, address))
			continue;
		if (!best || fits_better(map, best, pid, clock))
			best = map;
	}
	return best;
}

/* What is at an address; NULL: unknown. */
struct place {
	const struct pb_module_map *map;
	struct module *m;
	const struct pb_func *f;
};

static struct place find_place(struct pb_symbols *s, size_t image, uint32_t pid, uint64_t clock,
			       uint64_t address)
{
	struct place p = { .map = map_of_address(s, image, pid, clock, address) };

	p.m = p.map ? find_module(s, p.map->module) : NULL;
	p.f = p.m ? pb_analysis_find(p.m->map, address - p.map->bias) : NULL;
	return p;
}

static void print_place(struct pb_symbols *s, const struct place *p, uint64_t address, char *buf,
			size_t len)
{
	if (p->f)
		snprintf(buf, len, "%s",
			 func_name(s, p->m, (uint32_t)(p->f - pb_analysis_funcs(p->m->map))));
	else if (p->m)
		snprintf(buf, len, "%s+%#llx", p->m->soname,
			 (unsigned long long)(address - p->map->bias));
	else
		snprintf(buf, len, "%#llx", (unsigned long long)address);
}

void pb_symbols_address(struct pb_symbols *s, size_t image, uint32_t pid, uint64_t clock,
			uint64_t address, char *buf, size_t len)
{
	struct place p = find_place(s, image, pid, clock, address);

	print_place(s, &p, address, buf, len);
}

/* If a call is the last instruction of its function, its return address is after the function. But
 * the return address of a signal handler is the first byte of a function (__restore_rt) to which no
 * call leads. libc puts a nop that belongs to no function before it. */
void pb_symbols_caller(struct pb_symbols *s, size_t image, uint32_t pid, uint64_t clock,
		       uint64_t address, char *buf, size_t len)
{
	struct place p = find_place(s, image, pid, clock, address);

	if (!p.f || p.f->addr == address - p.map->bias) {
		struct place before = find_place(s, image, pid, clock, address - 1);

		if (before.f)
			p = before;
	}
	print_place(s, &p, address, buf, len);
}
