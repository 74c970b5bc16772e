/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A main() for hostile programs that are attached to (tests/torture/run_hostile_attached). Most
 * hostile programs end before anything can attach to them. Here, the program's own main(), which
 * is called program_main(), runs again and again, or waits until it may begin.
 *
 * The file PROGRAM.again is mapped: the program may close all descriptors, change its root or
 * forbid system calls, and can still read and write these bytes. Arguments and environment stay as
 * they are, because some programs look at them. Without the file, and in all processes but the
 * first that has reached main(), program_main() runs once.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct again {
	volatile uint32_t begun;	/* the runner: program_main() may run */
	volatile uint32_t end;		/* the runner: this run is the last one */
	uint32_t waits;			/* main() has been reached */
	volatile uint32_t runs;		/* how many times program_main() has returned */
};

int program_main(int argc, char **argv, char **envp);

/* Returns NULL if this process isn't the first. */
static struct again *shared(const char *program)
{
	struct again *a = MAP_FAILED;
	char *path;
	int fd;

	if (asprintf(&path, "%s.again", program) < 0)
		return NULL;
	fd = open(path, O_RDWR | O_CLOEXEC);
	free(path);
	if (fd < 0)
		return NULL;
	a = mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return a != MAP_FAILED && !__atomic_exchange_n(&a->waits, 1, __ATOMIC_RELAXED) ? a : NULL;
}

int main(int argc, char **argv, char **envp)
{
	const struct timespec nap = { 0, 1000000 };
	pid_t self = getpid();
	struct again *a = argc ? shared(argv[0]) : NULL;
	int status;

	if (!a)
		return program_main(argc, argv, envp);
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
