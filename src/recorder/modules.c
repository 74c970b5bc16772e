/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeps the modules of a session. Each file is analysed once. A module is identified by build-id
 * and path, so a file that was rebuilt during the session becomes another module.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/agent_name.h"
#include "abi/analysis_access.h"
#include "base/glob.h"
#include "module/module.h"
#include "reader/say.h"
#include "recorder/analyse_ahead.h"
#include "recorder/modules.h"
#include "recorder/settings.h"
#include "recorder/texts.h"

#define MAX_MODULES 65536

static int64_t ctime_of(const struct stat *st)
{
	return (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec;
}

static struct record_module *find_file(struct record_modules *m, const struct stat *st,
				       const char *path)
{
	for (uint32_t i = 0; i < m->nr; i++) {
		struct record_module *e = m->list[i];

		if (e->ino == st->st_ino && e->dev == st->st_dev && e->ctime_ns == ctime_of(st) &&
		    !strcmp(e->path, path))
			return e;
	}
	return NULL;
}

/* Returns the module whose analysis equals that of `e`, for example if the file was copied. An
 * equal build-id isn't enough: a file that is changed after it was linked keeps the build-id. */
static struct record_module *find_equal(struct record_modules *m, const struct record_module *e)
{
	for (uint32_t i = 0; i < m->nr; i++)
		if (m->list[i]->size == e->size && !strcmp(m->list[i]->path, e->path) &&
		    !memcmp(m->list[i]->map, e->map, e->size))
			return m->list[i];
	return NULL;
}

static void module_free(struct record_module *e)
{
	if (!e)
		return;
	if (e->map)
		munmap((void *)e->map, e->size);
	if (e->fd >= 0)
		close(e->fd);
	if (e->marked_fd >= 0)
		close(e->marked_fd);
	if (e->stubs_fd >= 0)
		close(e->stubs_fd);
	free(e->path);
	free(e);
}

static struct record_module *module_load(struct record_modules *m, int elf_fd,
					 const struct stat *elf_st, const char *path, char *err,
					 size_t errlen)
{
	struct pb_module_options o = {
		.flags = m->options ? record_module_flags(m->options) : 0,
	};
	struct record_module *e = calloc(1, sizeof(*e));
	struct stat st;
	void *map;

	snprintf(err, errlen, "out of memory");
	if (!e)
		return NULL;
	e->path = strdup(path);
	e->marked_fd = e->stubs_fd = -1;
	*err = 0;
	e->fd = record_ahead_take(m->ahead, elf_st, path, &e->stubs_fd);
	if (e->fd < 0)
		e->fd = pb_module_open(elf_fd, path, &o, err, errlen);
	if (e->fd < 0) {
		if (!*err)
			snprintf(err, errlen, "%s", strerror(-e->fd));
		snprintf(err + strlen(err), errlen - strlen(err), "%s", pb_say_limit(e->fd));
		goto fail;
	}
	if (!e->path || fstat(e->fd, &st))
		goto fail;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, e->fd, 0);
	if (map == MAP_FAILED) {
		snprintf(err, errlen, "can't map its analysis: %s", strerror(errno));
		goto fail;
	}
	/* pb_analysis_check() has already accepted the analysis */
	e->map = map;
	e->size = (uint64_t)st.st_size;
	return e;
fail:
	module_free(e);
	return NULL;
}

struct record_module *record_module_get(struct record_modules *m, int elf_fd, const char *path,
					char *err, size_t errlen)
{
	struct record_module *e, *known;
	struct stat st;

	if (fstat(elf_fd, &st)) {
		snprintf(err, errlen, "%s", strerror(errno));
		return NULL;
	}
	e = find_file(m, &st, path);
	if (e)
		return e;
	e = module_load(m, elf_fd, &st, path, err, errlen);
	if (!e)
		return NULL;
	known = find_equal(m, e);
	if (known) {
		module_free(e);
		return known;
	}
	struct record_module **list = m->nr < MAX_MODULES ?
		realloc(m->list, (m->nr + 1) * sizeof(*list)) : NULL;
	if (!list) {
		snprintf(err, errlen, "too many modules");
		module_free(e);
		return NULL;
	}
	m->list = list;
	list[m->nr++] = e;
	e->number = m->nr;
	e->dev = st.st_dev;
	e->ino = st.st_ino;
	e->ctime_ns = ctime_of(&st);
	if (m->datadir)
		e->written = !pb_datadir_module(m->datadir, e->number, e->fd, e->size);
	return e;
}

/* True if elf_fd is still the file that was analysed. If it isn't, the stubs must not be cached. */
static bool is_its_file(const struct record_module *e, int elf_fd)
{
	struct stat st;

	return elf_fd >= 0 && !fstat(elf_fd, &st) && e->ino == st.st_ino && e->dev == st.st_dev &&
	       e->ctime_ns == ctime_of(&st);
}

int record_module_stubs(struct record_modules *m, struct record_module *e, int elf_fd)
{
	struct pb_module_options o = { .flags = m->options ? record_module_flags(m->options) : 0 };
	struct stat st;

	if (e->stubs_fd < 0) {
		if (!is_its_file(e, elf_fd)) {
			o.flags |= PB_MODULE_NO_CACHE;
			elf_fd = -1;
		}
		e->stubs_fd = pb_module_stubs(elf_fd, e->path, &o, e->map);
	}
	if (e->stubs_fd < 0)
		return e->stubs_fd;
	if (fstat(e->stubs_fd, &st))
		return -errno;
	e->stubs_size = (uint64_t)st.st_size;
	return 0;
}

int record_modules_write(struct record_modules *m, struct pb_datadir *w)
{
	int error = 0;

	m->datadir = w;
	for (uint32_t i = 0; i < m->nr; i++) {
		struct record_module *e = m->list[i];
		int ret = e->written ? 0 : pb_datadir_module(w, e->number, e->fd, e->size);

		e->written = !ret;
		error = error ? error : ret;
	}
	return error;
}

bool record_module_named(const struct record_options *o, const char *path)
{
	bool named = false;

	for (unsigned i = 0; i < o->nr_modules; i++)
		if (pb_glob_match(o->modules[i], record_base_name(path)) ||
		    pb_glob_match(o->modules[i], path))
			o->module_matched[i] = named = true;
	return named;
}

bool record_module_traced(const struct record_options *o, const struct record_module *e,
			  bool is_exe)
{
	const char *soname = pb_analysis_string(e->map, e->map->soname);
	bool traced = is_exe || o->all;

	if (pb_is_agent_name(soname) || !strncmp(soname, "linux-vdso.so", 13))
		return false;
	for (unsigned i = 0; i < o->nr_modules; i++)
		if (pb_glob_match(o->modules[i], soname))
			o->module_matched[i] = traced = true;
	return record_module_named(o, e->path) || traced;
}

void record_modules_free(struct record_modules *m)
{
	record_ahead_stop(m->ahead);
	m->ahead = NULL;
	for (uint32_t i = 0; i < m->nr; i++)
		module_free(m->list[i]);
	free(m->list);
	m->list = NULL;
	m->nr = 0;
}
