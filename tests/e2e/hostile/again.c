/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A main() for hostile programs that are attached to (tests/torture/run_hostile_attached). Most
 * hostile programs end before anything can attach to them. Here, the program's own main(), which
 * is called program_main(), runs again and again, or waits until it may begin.
 *
 * HOSTILE_AGAIN names a file, which is mapped: the program may close all descriptors, change its
 * root or forbid system calls, and can still read and write these bytes. Without the variable,
 * program_main() runs once, as it is.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct again {
	volatile uint32_t begun;	/* the runner: program_main() may run */
	volatile uint32_t end;		/* the runner: this run is the last one */
	volatile uint32_t waits;	/* main() has been reached */
	volatile uint32_t runs;		/* how many times program_main() has returned */
};

int program_main(int argc, char **argv, char **envp);

static struct again *shared(const char *path)
{
	struct again *a;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	a = mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return a == MAP_FAILED ? NULL : a;
}

int main(int argc, char **argv, char **envp)
{
	const char *path = getenv("HOSTILE_AGAIN");
	const struct timespec nap = { 0, 1000000 };
	pid_t self = getpid();
	struct again *a;
	int status;

	if (!path)
		return program_main(argc, argv, envp);
	a = shared(path);
	unsetenv("HOSTILE_AGAIN");
	if (!a)
		return 98;
	a->waits = 1;
	while (!a->begun)
		nanosleep(&nap, NULL);
	do {
		status = program_main(argc, argv, envp);
		if (getpid() != self)
			return status;
		a->runs++;
	} while (!status && !a->end);
	return status;
}
