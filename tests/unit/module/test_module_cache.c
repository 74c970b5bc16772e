/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests the cache of analyses (src/module/cache.c) with two processes that store files at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../test_dir.h"
#include "module/module.h"

static int go[2], done[2];
static bool paused;

/* Replaces libc's function. Processes of two containers may have one PID. */
pid_t getpid(void)
{
	return 7;
}

/* Replaces libc's function. At the first bytes that the parent stores, the child stores its whole
 * file. */
ssize_t write(int fd, const void *p, size_t n)
{
	char c = 0;

	if (paused) {
		paused = false;
		syscall(SYS_write, go[1], &c, 1);
		while (read(done[0], &c, 1) < 0)
			;
	}
	return syscall(SYS_write, fd, p, n);
}

static int analyse(const char *path, bool find)
{
	struct pb_module_options o = { .cache_dir = dir };
	int elf = open(path, O_RDONLY | O_CLOEXEC), fd;
	char err[300];

	fd = find ? pb_module_find(elf, path, &o) : pb_module_open(elf, path, &o, err, sizeof(err));
	close(elf);
	return fd;
}

/* Processes with one PID that store analyses of different files get a file each. */
static void one_pid(void **state)
{
	const char *mine = "/bin/cat", *other = "/bin/ls";
	int status;
	pid_t pid;
	char c;

	assert_int_equal(pipe(go) || pipe(done), 0);
	pid = fork();
	if (!pid) {
		if (read(go[0], &c, 1) != 1)
			_exit(1);
		status = analyse(other, false);
		syscall(SYS_write, done[1], &c, 1);
		_exit(status < 0);
	}
	paused = true;
	assert_true(analyse(mine, false) >= 0);
	assert_false(paused);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(analyse(mine, true) >= 0);
	assert_true(analyse(other, true) >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(one_pid) };

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
