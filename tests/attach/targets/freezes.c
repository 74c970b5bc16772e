/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A ptrace() that is preloaded into the injector. Before the injector sets registers for the first
 * time, writes "1" to the file that the variable FREEZE names.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

static void freeze(void)
{
	int fd = open(getenv("FREEZE"), O_WRONLY);

	if (fd < 0 || write(fd, "1", 1) != 1)
		abort();
	close(fd);
}

long ptrace(enum __ptrace_request request, ...)
{
	static int frozen;
	va_list args;

	va_start(args, request);
	pid_t pid = va_arg(args, pid_t);
	void *addr = va_arg(args, void *), *data = va_arg(args, void *);

	va_end(args);
	if (request == PTRACE_SETREGS && !frozen++)
		freeze();
	return syscall(SYS_ptrace, (long)request, pid, addr, data);
}
