/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the threads of a process, and their states, from /proc/PID/task. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "base/mem.h"
#include "base/sys.h"
#include "base/task.h"

static long open_dir(const char *path)
{
	return pb_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
}

int pb_proc_dirs_open(struct pb_proc_dirs *d)
{
	d->root = (int)open_dir("/proc");
	d->task = (int)open_dir("/proc/self/task");
	if (d->root >= 0 && d->task >= 0)
		return 0;
	int err = d->root < 0 ? d->root : d->task;

	pb_proc_dirs_close(d);
	return err;
}

void pb_proc_dirs_close(struct pb_proc_dirs *d)
{
	if (d->root >= 0)
		pb_sys(SYS_close, d->root);
	if (d->task >= 0)
		pb_sys(SYS_close, d->task);
	*d = (struct pb_proc_dirs){ -1, -1 };
}

int pb_task_dir(uint32_t pid)
{
	char path[64];
	size_t at = 0;

	pb_put_str(path, sizeof(path), &at, "/proc/");
	pb_put_u64(path, sizeof(path), &at, pid);
	pb_put_str(path, sizeof(path), &at, "/task");
	return (int)open_dir(path);
}

/* Stores "TID/NAME". */
static void put_name(char *path, size_t size, uint32_t tid, const char *name)
{
	size_t at = 0;

	pb_put_u64(path, size, &at, tid);
	pb_put_str(path, size, &at, "/");
	pb_put_str(path, size, &at, name);
}

char pb_task_state(int dir, uint32_t tid)
{
	char path[32], stat[256], state = 0;
	long fd, n, i;

	put_name(path, sizeof(path), tid, "stat");
	fd = pb_sys(SYS_openat, dir, path, O_RDONLY | O_CLOEXEC, 0);
	if (pb_sys_failed(fd))
		return fd == -ENOENT || fd == -ESRCH ? 'X' : 0;
	n = pb_sys(SYS_read, fd, stat, sizeof(stat));
	pb_sys(SYS_close, fd);
	/* "TID (comm) STATE": comm may hold any character, so the last ')' is its end */
	for (i = 0; i + 2 < n; i++)
		if (stat[i] == ')')
			state = stat[i + 2];
	return n == -ESRCH ? 'X' : state;
}

static bool is_held_up(char state)
{
	return state == 'R' || state == 'D';
}

bool pb_process_is_held_up(uint32_t pid)
{
	char buf[1024] __attribute__((aligned(8)));
	int fd = pb_task_dir(pid);
	bool is = false;
	long n;

	if (fd < 0)
		return false;
	while (!is && (n = pb_sys(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		/* in struct linux_dirent64, the record's length is at 16 and the name at 19 */
		for (long at = 0; at < n && !is; at += *(uint16_t *)(buf + at + 16)) {
			const char *name = buf + at + 19;
			int64_t tid = pb_parse_u64(name, strlen(name));

			is = tid > 0 && is_held_up(pb_task_state(fd, (uint32_t)tid));
		}
	}
	pb_sys(SYS_close, fd);
	return is;
}

/* The line that is being read: how many characters it has so far, and a hash of those after the
 * first PB_TASK_LINE. */
struct line {
	size_t len;
	uint64_t hash;
};

static void put(struct pb_task_status *s, char c)
{
	if (s->len < sizeof(s->text))
		s->text[s->len++] = c;
}

static void put_of_line(struct pb_task_status *s, struct line *l, char c)
{
	if (c == '\n') {
		for (; l->hash; l->hash /= 16)
			put(s, "0123456789abcdef"[l->hash % 16]);
		put(s, c);
		l->len = 0;
	} else if (l->len++ < PB_TASK_LINE) {
		put(s, c);
	} else {
		/* FNV-1a */
		l->hash = ((l->hash ? l->hash : 0xcbf29ce484222325) ^ (uint8_t)c) * 0x100000001b3;
	}
}

static bool read_status(struct pb_task_status *s, int dir, const char *path)
{
	struct line line = { 0 };
	char part[512];
	long n, fd = pb_sys(SYS_openat, dir, path, O_RDONLY | O_CLOEXEC, 0);

	s->len = 0;
	if (pb_sys_failed(fd))
		return false;
	while ((n = pb_sys(SYS_read, fd, part, sizeof(part))) > 0)
		for (long i = 0; i < n; i++)
			put_of_line(s, &line, part[i]);
	pb_sys(SYS_close, fd);
	return s->len && !n;
}

bool pb_task_read_status_at(struct pb_task_status *s, int dir, uint32_t tid)
{
	char path[32];

	put_name(path, sizeof(path), tid, "status");
	return read_status(s, dir, path);
}

bool pb_task_read_own_status(struct pb_task_status *s)
{
	return read_status(s, AT_FDCWD, "/proc/thread-self/status");
}

bool pb_task_read_status(struct pb_task_status *s, uint32_t tid)
{
	int dir = (int)open_dir("/proc/self/task");
	bool read = dir >= 0 && pb_task_read_status_at(s, dir, tid);

	if (dir >= 0)
		pb_sys(SYS_close, dir);
	return read;
}

const char *pb_task_status_line(const struct pb_task_status *s, const char *key, size_t *len)
{
	size_t n = strlen(key);

	for (size_t at = 0, end; at < s->len; at = end + 1) {
		for (end = at; end < s->len && s->text[end] != '\n'; end++)
			;
		if (end - at >= n && !memcmp(s->text + at, key, n)) {
			*len = end - at;
			return s->text + at;
		}
	}
	return NULL;
}

uint32_t pb_task_status_number(const struct pb_task_status *s, const char *key)
{
	size_t len, n = strlen(key) + 1;
	const char *line = pb_task_status_line(s, key, &len);
	int64_t number = line && len > n ? pb_parse_u64(line + n, len - n) : 0;

	return number > 0 ? (uint32_t)number : 0;
}
