/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the threads of a process, and their states, from /proc/PID/task. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "base/mem.h"
#include "base/sys.h"
#include "base/task.h"

void pb_task_dir(char *dir, size_t size, uint32_t pid)
{
	size_t at = 0;

	pb_put_str(dir, size, &at, "/proc/");
	pb_put_u64(dir, size, &at, pid);
	pb_put_str(dir, size, &at, "/task");
}

char pb_task_state(const char *dir, uint32_t tid)
{
	char path[96], stat[256], state = 0;
	size_t at = 0;
	long fd, n, i;

	pb_put_str(path, sizeof(path), &at, dir);
	pb_put_str(path, sizeof(path), &at, "/");
	pb_put_u64(path, sizeof(path), &at, tid);
	pb_put_str(path, sizeof(path), &at, "/stat");
	fd = pb_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
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
	char dir[64], buf[1024] __attribute__((aligned(8)));
	bool is = false;
	long fd, n;

	pb_task_dir(dir, sizeof(dir), pid);
	fd = pb_sys(SYS_openat, AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (pb_sys_failed(fd))
		return false;
	while (!is && (n = pb_sys(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		/* in struct linux_dirent64, the record's length is at 16 and the name at 19 */
		for (long at = 0; at < n && !is; at += *(uint16_t *)(buf + at + 16)) {
			const char *name = buf + at + 19;
			int64_t tid = pb_parse_u64(name, strlen(name));

			is = tid > 0 && is_held_up(pb_task_state(dir, (uint32_t)tid));
		}
	}
	pb_sys(SYS_close, fd);
	return is;
}

bool pb_task_read_status(struct pb_task_status *s, uint32_t tid)
{
	char path[96];
	size_t at = 0;
	long fd, n;

	pb_task_dir(path, sizeof(path), (uint32_t)pb_sys(SYS_getpid));
	at = strlen(path);
	pb_put_str(path, sizeof(path), &at, "/");
	pb_put_u64(path, sizeof(path), &at, tid);
	pb_put_str(path, sizeof(path), &at, "/status");
	fd = pb_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (pb_sys_failed(fd))
		return false;
	n = pb_sys(SYS_read, fd, s->text, sizeof(s->text));
	pb_sys(SYS_close, fd);
	s->len = n > 0 ? (size_t)n : 0;
	return n > 0;
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
