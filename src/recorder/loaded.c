/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Walks the list of the dynamic loader in another process's memory. The program headers of the
 * executable lead to its dynamic section. DT_DEBUG there leads to struct r_debug, which has the
 * head of the list.
 *
 * The process runs on, so the list may change while it is read. The list may also be damaged. Each
 * step reads through /proc/PID/mem, which fails for bad addresses, and the number of steps is
 * limited. A wrong path does no harm: it names a file that is analysed in vain. A wrong bias may do
 * harm. So before a caller uses a bias, it must check that the library is mapped there.
 */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "recorder/loaded.h"
#include "recorder/proc.h"

#define MAX_HEADERS	64
#define MAX_DYNAMIC	8192		/* limit of the dynamic section's entries. Many may come
					 * before DT_DEBUG: one for each needed library */
#define MAX_LIBRARIES	4096
#define DELETED		" (deleted)"	/* the end of a path in a maps file */

static bool read_at(int mem, uint64_t at, void *to, size_t size)
{
	return pread(mem, to, size, (off_t)at) == (ssize_t)size;
}

/* Reads a string. The memory after the string may not be mapped, so a short read is no error. */
static bool read_string(int mem, uint64_t at, char *to, size_t size)
{
	ssize_t n = pread(mem, to, size, (off_t)at);

	return n > 0 && memchr(to, 0, (size_t)n);
}

/* Returns the address of the executable's program headers. *nr gets their number. */
static uint64_t program_headers(pid_t pid, uint64_t *nr)
{
	char path[40];
	Elf64_auxv_t v;
	uint64_t at = 0;

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && read(fd, &v, sizeof(v)) == sizeof(v)) {
		if (v.a_type == AT_PHDR)
			at = v.a_un.a_val;
		else if (v.a_type == AT_PHNUM)
			*nr = v.a_un.a_val;
	}
	if (fd >= 0)
		close(fd);
	return at;
}

/* Returns the address of the executable's dynamic section, or 0. */
static uint64_t dynamic_section(int mem, pid_t pid)
{
	Elf64_Phdr ph[MAX_HEADERS];
	uint64_t nr = 0, at = program_headers(pid, &nr), bias = 0, dynamic = 0;

	if (!at || !nr || nr > MAX_HEADERS || !read_at(mem, at, ph, nr * sizeof(*ph)))
		return 0;
	for (uint64_t i = 0; i < nr; i++) {
		if (ph[i].p_type == PT_PHDR)
			bias = at - ph[i].p_vaddr;
		else if (ph[i].p_type == PT_DYNAMIC)
			dynamic = ph[i].p_vaddr;
	}
	return dynamic ? bias + dynamic : 0;
}

/* Returns the address of the first element of the loader's list, or 0. */
static uint64_t list_head(int mem, pid_t pid)
{
	uint64_t at = dynamic_section(mem, pid), debug = 0, head = 0;
	Elf64_Dyn d;

	for (unsigned i = 0; at && i < MAX_DYNAMIC && read_at(mem, at, &d, sizeof(d)); i++) {
		if (d.d_tag == DT_NULL || debug)
			break;
		if (d.d_tag == DT_DEBUG)
			debug = d.d_un.d_ptr;
		at += sizeof(d);
	}
	if (debug && !read_at(mem, debug + offsetof(struct r_debug, r_map), &head, sizeof(head)))
		head = 0;
	return head;
}

static int open_memory(pid_t pid)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* A walk over the loader's list. */
struct walk {
	int mem;
	uint64_t at;		/* the next element, or 0 */
	unsigned left;		/* number of steps that are still allowed */
	uint64_t bias;
	char path[PATH_MAX];
};

static void walk_begin(struct walk *w, pid_t pid)
{
	w->mem = open_memory(pid);
	w->at = w->mem < 0 ? 0 : list_head(w->mem, pid);
	w->left = MAX_LIBRARIES;
	w->bias = 0;
}

static void walk_end(struct walk *w)
{
	if (w->mem >= 0)
		close(w->mem);
}

/* Goes on to the next library, and stores its path and bias. Returns false if there is none. */
static bool walk_next(struct walk *w)
{
	struct link_map m;

	while (w->at && w->left-- && read_at(w->mem, w->at, &m, sizeof(m))) {
		w->at = (uint64_t)m.l_next;
		w->bias = m.l_addr;
		/* the executable has the name "", and the vDSO has no file */
		if (read_string(w->mem, (uint64_t)m.l_name, w->path, sizeof(w->path)) &&
		    strchr(w->path, '/'))
			return true;
	}
	return false;
}

bool record_loaded_bias(pid_t pid, bool (*is)(const char *path), uint64_t *bias)
{
	struct walk w;
	bool found = false;

	walk_begin(&w, pid);
	while (!found && walk_next(&w))
		found = is(w.path);
	walk_end(&w);
	*bias = w.bias;
	return found;
}

char *record_loaded_file(char *line)
{
	struct record_map m;

	return record_map_parse(line, &m) && m.exec && *m.path == '/' ? m.path : NULL;
}

static void each_mapping(pid_t pid, bool (*visit)(void *arg, const char *path), void *arg)
{
	char name[40], *line = NULL, *path;
	size_t cap = 0;

	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	FILE *f = fopen(name, "re");
	while (f && getline(&line, &cap, f) > 0) {
		path = record_loaded_file(line);
		if (path && !visit(arg, path))
			break;
	}
	free(line);
	if (f)
		fclose(f);
}

void record_loaded_each(pid_t pid, bool (*visit)(void *arg, const char *path), void *arg)
{
	bool any = false, more = true;
	struct walk w;

	walk_begin(&w, pid);
	while (more && walk_next(&w)) {
		any = true;
		more = visit(arg, w.path);
	}
	walk_end(&w);
	if (!any)
		each_mapping(pid, visit, arg);
}

/* --- deleted files ---------------------------------------------------------- */

static bool is_deleted(const char *path)
{
	size_t len = strlen(path), n = sizeof(DELETED) - 1;

	return *path == '/' && len > n && !strcmp(path + len - n, DELETED);
}

/* Lists the mappings of the first pages of deleted files. Their paths aren't set. */
static unsigned list_mappings(pid_t pid, struct record_deleted **list)
{
	char name[40], *line = NULL;
	struct record_deleted *more;
	struct record_map m;
	unsigned nr = 0;
	size_t cap = 0;

	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	FILE *f = fopen(name, "re");
	while (f && nr < MAX_LIBRARIES && getline(&line, &cap, f) > 0) {
		if (!record_map_parse(line, &m) || m.offset || !is_deleted(m.path))
			continue;
		more = realloc(*list, (nr + 1) * sizeof(**list));
		if (!more)
			break;
		*list = more;
		more[nr++] = (struct record_deleted){ .start = m.start, .end = m.end };
	}
	free(line);
	if (f)
		fclose(f);
	return nr;
}

/* The names in the list of mappings aren't used. They may differ from those in the loader's list,
 * because the loader follows symbolic links. The first page of a library is mapped at its bias,
 * unless it was linked for another address than 0. Such libraries aren't found. */
unsigned record_loaded_deleted(pid_t pid, struct record_deleted **list)
{
	struct record_deleted *l = NULL;
	unsigned nr = list_mappings(pid, &l), found = 0;
	struct walk w = { .mem = -1 };

	if (nr)
		walk_begin(&w, pid);
	while (nr && walk_next(&w))
		for (unsigned i = found; i < nr; i++) {
			struct record_deleted d = l[i];

			if (d.start != w.bias || !(d.path = strdup(w.path)))
				continue;
			d.bias = w.bias;
			l[i] = l[found];
			l[found++] = d;
			break;
		}
	walk_end(&w);
	*list = l;
	return found;
}

void record_loaded_free(struct record_deleted *list, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		free(list[i].path);
	free(list);
}

/* --- replaced files --------------------------------------------------------- */

unsigned record_loaded_firsts(pid_t pid, struct record_first **list)
{
	char name[40], *line = NULL;
	struct record_first *more;
	struct record_map m;
	unsigned nr = 0;
	size_t cap = 0;

	*list = NULL;
	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	FILE *f = fopen(name, "re");
	while (f && nr < MAX_LIBRARIES && getline(&line, &cap, f) > 0) {
		if (!record_map_parse(line, &m) || m.offset || !m.ino)
			continue;
		more = realloc(*list, (nr + 1) * sizeof(**list));
		if (!more)
			break;
		*list = more;
		more[nr++] = (struct record_first){ m.start, makedev(m.major, m.minor), m.ino };
	}
	free(line);
	if (f)
		fclose(f);
	return nr;
}

/* Returns the number of program headers; 0: the file isn't a usable ELF file. */
static unsigned read_headers(int fd, Elf64_Phdr *ph)
{
	Elf64_Ehdr e;

	if (pread(fd, &e, sizeof(e), 0) != sizeof(e) || memcmp(e.e_ident, ELFMAG, SELFMAG) ||
	    e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_phnum > MAX_HEADERS ||
	    pread(fd, ph, e.e_phnum * sizeof(*ph), (off_t)e.e_phoff) !=
		    (ssize_t)(e.e_phnum * sizeof(*ph)))
		return 0;
	return e.e_phnum;
}

static bool is_same(int mem, uint64_t at, int fd, uint64_t offset, uint64_t size)
{
	char have[16384], want[sizeof(have)];

	for (uint64_t done = 0; done < size; done += sizeof(have)) {
		size_t n = size - done < sizeof(have) ? size - done : sizeof(have);

		if (pread(fd, want, n, (off_t)(offset + done)) != (ssize_t)n ||
		    !read_at(mem, at + done, have, n) || memcmp(have, want, n))
			return false;
	}
	return true;
}

/* Compares the segments that the process can't write. Leaves out the ELF header, because a strip
 * changes it, and nothing else there. */
static bool has_contents(pid_t pid, uint64_t bias, int fd, const Elf64_Phdr *ph, unsigned nr)
{
	int mem = open_memory(pid);
	bool same = mem >= 0;

	for (unsigned i = 0; i < nr && same; i++) {
		uint64_t skip = ph[i].p_offset ? 0 : sizeof(Elf64_Ehdr);

		if (ph[i].p_type == PT_LOAD && !(ph[i].p_flags & PF_W) && ph[i].p_filesz > skip)
			same = is_same(mem, bias + ph[i].p_vaddr + skip, fd, ph[i].p_offset + skip,
				       ph[i].p_filesz - skip);
	}
	if (mem >= 0)
		close(mem);
	return same;
}

bool record_loaded_is(pid_t pid, const struct record_first *list, unsigned nr, uint64_t bias,
		      int fd)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned nr_headers, i = 0, k = 0;
	Elf64_Phdr ph[MAX_HEADERS];
	struct stat st;

	nr_headers = fstat(fd, &st) ? 0 : read_headers(fd, ph);
	while (i < nr_headers && ph[i].p_type != PT_LOAD)
		i++;
	if (i == nr_headers)
		return true;	/* the analysis reports what is wrong with the file */
	while (k < nr && list[k].start != ((bias + ph[i].p_vaddr) & ~(page - 1)))
		k++;
	return k == nr || (list[k].dev == st.st_dev && list[k].ino == st.st_ino) ||
	       has_contents(pid, bias, fd, ph, nr_headers);
}
