/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the process through /proc, and writes the line that tells the user what is wrong with the
 * process. Each file of /proc is opened, read and closed again. Only mem stays open, because it is
 * bound to one image of the process.
 */
#include "attach/subject.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/base.h"
#include "base/clean_text.h"
#include "base/sys.h"

void attach_subject_init(struct attach_subject *s, pid_t pid, char *err, size_t size)
{
	_Static_assert(sizeof(s->name) >= RECORD_COMM, "record_read_comm() fills the name");
	memset(s, 0, sizeof(*s));
	s->pid = pid;
	s->mem = -1;
	s->err = err;
	s->err_size = size;
	record_read_comm(pid, pid, s->name);
	pb_text_clean(s->name, '?', 0);
}

static void free_maps(struct attach_subject *s)
{
	for (size_t i = 0; i < s->nr_maps; i++)
		free(s->maps[i].path);
	free(s->maps);
	s->maps = NULL;
	s->nr_maps = 0;
}

void attach_subject_free(struct attach_subject *s)
{
	free_maps(s);
	if (s->mem >= 0)
		close(s->mem);
	s->mem = -1;
}

int attach_say(struct attach_subject *s, int error, const char *fmt, ...)
{
	va_list args;
	int n;

	if (!s->err_size)
		return -error;
	n = s->name[0] ? snprintf(s->err, s->err_size, "%s (%d) ", s->name, (int)s->pid) :
	    snprintf(s->err, s->err_size, "process %d ", (int)s->pid);
	if (n >= 0 && (size_t)n < s->err_size) {
		va_start(args, fmt);
		vsnprintf(s->err + n, s->err_size - (size_t)n, fmt, args);
		va_end(args);
	}
	pb_text_clean(s->err, ' ', 0);
	return -error;
}

int attach_say_gone(struct attach_subject *s)
{
	return attach_say(s, ESRCH, "ended, or started another program, during the attach");
}

ssize_t attach_proc_read(const struct attach_subject *s, const char *name, char *buf, size_t size)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)s->pid, name);
	return record_proc_read(path, buf, size);
}

int attach_proc_link(const struct attach_subject *s, const char *name, char *buf, size_t size)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)s->pid, name);
	ssize_t n = readlink(path, buf, size - 1);

	buf[n > 0 ? n : 0] = 0;
	return n < 0 ? -errno : 0;
}

int attach_mem_read(const struct attach_subject *s, uint64_t at, void *buf, size_t size)
{
	return pread(s->mem, buf, size, (off_t)at) == (ssize_t)size ? 0 : -EFAULT;
}

int attach_mem_write(const struct attach_subject *s, uint64_t at, const void *buf, size_t size)
{
	return pwrite(s->mem, buf, size, (off_t)at) == (ssize_t)size ? 0 : -EFAULT;
}

/* --- mappings ------------------------------------------------------------- */

static uint64_t hash_of(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3;
	return hash;
}

int attach_maps_read(struct attach_subject *s)
{
	char path[64], *line = NULL;
	size_t cap = 0, room = 0;
	int err = 0;

	free_maps(s);
	s->files = 0xcbf29ce484222325;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)s->pid);
	FILE *f = fopen(path, "re");

	if (!f)
		return -errno;
	while (!err && getline(&line, &cap, f) > 0) {
		if (s->nr_maps == room) {
			struct record_map *more;

			room = room ? room * 2 : 256;
			more = realloc(s->maps, room * sizeof(*more));
			if (!more) {
				err = -ENOMEM;
				break;
			}
			s->maps = more;
		}
		struct record_map *m = &s->maps[s->nr_maps];

		if (strchr(line, '/'))
			s->files = hash_of(s->files, line);

		if (!record_map_parse(line, m))
			continue;
		m->path = strdup(m->path);
		if (m->path)
			s->nr_maps++;
		else
			err = -ENOMEM;
	}
	free(line);
	fclose(f);
	return err;
}

bool attach_image_is_gone(const struct attach_subject *s)
{
	char status[512];
	uint8_t byte;

	if (attach_proc_read(s, "status", status, sizeof(status)) <= 0)
		return true;
	if (record_proc_is_dead(status))
		return true;
	/* Reads one byte of the process's memory, at address 0. If the image is there, nothing is
	 * mapped at 0, and the read fails. If the image is gone, the read returns 0, as at the end
	 * of a file. */
	return s->mem >= 0 && !pread(s->mem, &byte, 1, 0);
}

bool attach_image_goes(const struct attach_subject *s, uint64_t ns)
{
	uint64_t end = pb_now_ns() + ns;

	if (s->mem < 0)
		return false;
	while (!attach_image_is_gone(s)) {
		if (pb_now_ns() > end)
			return false;
		nanosleep(&(struct timespec) { .tv_nsec = 1000 * 1000 }, NULL);
	}
	return true;
}

const struct record_map *attach_map_at(const struct attach_subject *s, uint64_t addr)
{
	size_t at = pb_bisect(i, 0, s->nr_maps, s->maps[i].end <= addr);

	return at < s->nr_maps && s->maps[at].start <= addr ? &s->maps[at] : NULL;
}
