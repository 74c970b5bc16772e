/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * run_returns uses a special build of the agent, in which the linker replaces two functions by the
 * functions of this file. If the environment has TEST_RETURNS=FILE, the stubs of exits jump to code
 * that counts the exits. FILE has two counters of 8 bytes: returns and tail jumps.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include "base/mem.h"
#include "base/sys.h"
#include "engine/text/ftrace.h"
#include "engine/tracer.h"

void __real_pb_tracer_register_files(void);
void __wrap_pb_tracer_register_files(void);
void __real_pb_text_returns(uint64_t ret, uint64_t jump);
void __wrap_pb_text_returns(uint64_t ret, uint64_t jump);
void test_ret(void), test_jump(void);
uint64_t *test_count;

static const char *variable(const char *name, char *buf, size_t size)
{
	long fd = pb_sys(SYS_openat, AT_FDCWD, "/proc/self/environ", O_RDONLY | O_CLOEXEC, 0);
	long n = pb_sys_failed(fd) ? 0 : pb_sys(SYS_read, fd, buf, size - 1);
	size_t len = strlen(name);

	if (!pb_sys_failed(fd))
		pb_sys(SYS_close, fd);
	buf[n > 0 ? n : 0] = 0;
	for (long i = 0; i < n; i += (long)strlen(buf + i) + 1)
		if (strlen(buf + i) > len && !memcmp(buf + i, name, len) &&
		    buf[(size_t)i + len] == '=')
			return buf + i + len + 1;
	return NULL;
}

void __wrap_pb_tracer_register_files(void)
{
	static char buf[65536];
	const char *path = variable("TEST_RETURNS", buf, sizeof(buf));
	long fd = path ? pb_sys(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0) : -1, p;

	__real_pb_tracer_register_files();
	if (fd < 0)
		return;
	p = pb_sys(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	pb_sys(SYS_close, fd);
	if (pb_sys_failed(p))
		return;
	test_count = (uint64_t *)p;
}

void __wrap_pb_text_returns(uint64_t ret, uint64_t jump)
{
	if (test_count)
		__real_pb_text_returns((uint64_t)test_ret, (uint64_t)test_jump);
	else
		__real_pb_text_returns(ret, jump);
}
