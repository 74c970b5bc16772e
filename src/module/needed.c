/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Follows DT_NEEDED from file to file (needed.h). The search is breadth-first, because ld.so loads
 * the files in this order. Each name is searched for once, in ld.so's directories and in ld.so's
 * order.
 */
#include "module/needed.h"
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "module/elf/elf_file.h"
#include "module/elf/vec.h"

#define MAX_FILES 1024	/* limit of the libraries of one program, because of hostile files */

typedef PB_VEC(char *) list;

struct search {
	list files;	/* the files found so far, the program first */
	list names;	/* the sonames that were searched for */
	list dirs;	/* the system's directories */
	const struct pb_needed_ops *ops;
	void *arg;
};

static void add(list *l, const char *s, size_t len)
{
	char *copy = strndup(s, len);

	if (copy)
		pb_vec_push(l, copy);
	else
		l->failed = true;
}

static bool contains(const list *l, const char *s)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->v[i], s))
			return true;
	return false;
}

static void free_list(list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	pb_vec_free(l);
}

/* Reads a file such as ld.so.conf. A line names a directory, or files to include. */
static void read_conf(list *dirs, const char *file, unsigned depth)
{
	FILE *f = depth < 4 ? fopen(file, "re") : NULL;
	char line[PATH_MAX];

	while (f && fgets(line, sizeof(line), f)) {
		char *p = line + strspn(line, " \t");
		glob_t g;

		p[strcspn(p, "#\n")] = 0;
		if (*p == '/')
			add(dirs, p, strcspn(p, " \t"));
		if (strncmp(p, "include ", 8) || glob(p + 8, 0, NULL, &g))
			continue;
		for (size_t i = 0; i < g.gl_pathc; i++)
			read_conf(dirs, g.gl_pathv[i], depth + 1);
		globfree(&g);
	}
	if (f)
		fclose(f);
}

static void system_dirs(list *dirs)
{
	static const char *const usual[] = {
		"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64",
		"/lib", "/usr/lib",
	};

	read_conf(dirs, "/etc/ld.so.conf", 0);
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		add(dirs, usual[i], strlen(usual[i]));
}

static bool is_elf(const char *path)
{
	static const uint8_t want[5] = { 0x7f, 'E', 'L', 'F', ELFCLASS64 };
	uint8_t got[5];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool ok = fd >= 0 && pread(fd, got, 5, 0) == 5 && !memcmp(got, want, 5);

	if (fd >= 0)
		close(fd);
	return ok;
}

static bool try_dir(char *out, const char *dir, size_t len, const char *name)
{
	int n = snprintf(out, PATH_MAX, "%.*s/%s", (int)len, dir, name);

	return len && n < PATH_MAX && is_elf(out);
}

/* Looks for name in dirs, a list such as "a:b". $ORIGIN or ${ORIGIN} at the start of an element
 * means the directory of the file `of`. */
static bool try_path_list(char *out, const char *dirs, const char *of, const char *name)
{
	const char *slash = strrchr(of, '/');
	int origin = slash ? (int)(slash - of) : 1;

	for (const char *p = dirs, *end; *p; p = end + (*end == ':')) {
		char dir[PATH_MAX];
		size_t skip;
		int n;

		end = p + strcspn(p, ":");
		skip = !strncmp(p, "$ORIGIN", 7) ? 7 : !strncmp(p, "${ORIGIN}", 9) ? 9 : 0;
		n = skip ? snprintf(dir, sizeof(dir), "%.*s%.*s", origin, slash ? of : ".",
				    (int)(end - p - (long)skip), p + skip)
			 : snprintf(dir, sizeof(dir), "%.*s", (int)(end - p), p);
		if (n > 0 && n < PATH_MAX && try_dir(out, dir, (size_t)n, name))
			return true;
	}
	return false;
}

static const char *dynamic_string(struct pb_elf *e, int64_t tag)
{
	struct pb_elf_strings strings;
	uint64_t v;

	pb_elf_dynamic_strings(e, &strings);
	return pb_elf_dynamic(e, tag, &v) ? pb_elf_string(&strings, v) : NULL;
}

static bool find(struct search *s, struct pb_elf *e, const char *of, const char *name, char *out)
{
	const char *runpath = dynamic_string(e, DT_RUNPATH), *rpath = dynamic_string(e, DT_RPATH);
	const char *env = getenv("LD_LIBRARY_PATH");

	if (strchr(name, '/'))
		return snprintf(out, PATH_MAX, "%s", name) < PATH_MAX && is_elf(out);
	if (rpath && !runpath && try_path_list(out, rpath, of, name))
		return true;
	if (env && try_path_list(out, env, of, name))
		return true;
	if (runpath && try_path_list(out, runpath, of, name))
		return true;
	for (size_t i = 0; i < s->dirs.n; i++)
		if (try_dir(out, s->dirs.v[i], strlen(s->dirs.v[i]), name))
			return true;
	return false;
}

static void needs_of(struct search *s, struct pb_elf *e, const char *of)
{
	struct pb_elf_strings strings;

	pb_elf_dynamic_strings(e, &strings);
	for (uint64_t i = 0; i < e->nr_dyn; i++) {
		const char *name = e->dyn[i].d_tag == DT_NEEDED ?
				   pb_elf_string(&strings, e->dyn[i].d_un.d_val) : NULL;
		char path[PATH_MAX];

		if (!name || !*name || contains(&s->names, name) || s->names.n >= MAX_FILES)
			continue;
		add(&s->names, name, strlen(name));
		if (!find(s, e, of, name, path)) {
			s->ops->missing(s->arg, name, of);
		} else if (!contains(&s->files, path)) {
			add(&s->files, path, strlen(path));
			s->ops->found(s->arg, path);
		}
	}
}

static int one_file(struct search *s, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;
	struct pb_elf e;
	const char *why;

	if (fd < 0)
		return -errno;
	err = pb_elf_open(&e, fd, false, &why);
	if (!err) {
		needs_of(s, &e, path);
		pb_elf_close(&e);
	}
	close(fd);
	return err;
}

int pb_module_needed(const char *path, const struct pb_needed_ops *ops, void *arg)
{
	struct search s = { .ops = ops, .arg = arg };
	int err;

	system_dirs(&s.dirs);
	add(&s.files, path, strlen(path));
	err = one_file(&s, path);
	for (size_t i = 1; !err && i < s.files.n; i++)
		one_file(&s, s.files.v[i]);
	if (!err && (s.files.failed || s.names.failed || s.dirs.failed))
		err = -ENOMEM;
	free_list(&s.files);
	free_list(&s.names);
	free_list(&s.dirs);
	return err;
}
