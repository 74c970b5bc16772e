/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A main() for hostile programs, used when tests/torture/run_hostile_attached attaches to them.
 * Most hostile programs end before anything can attach to them. With this main(), the program's own
 * main(), which is renamed to program_main(), runs again and again, or waits until the runner lets
 * it begin.
 *
 * Program and runner share the file PROGRAM.again (struct again). It is mapped, so the program can
 * read and write it even after it has closed all descriptors, changed its root or forbidden system
 * calls. Arguments and environment aren't used for this, because some programs look at them. Only
 * the process that reaches main() first waits and repeats program_main(). All other processes run
 * it once. Without such a file, the first process runs it once, too.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct again {
	volatile uint32_t begun;	/* set by the runner: program_main() may run */
	volatile uint32_t end;		/* set by the runner: this run is the last one */
	uint32_t waits;			/* set by the program: main() has been reached */
	volatile uint32_t runs;		/* how many times program_main() has returned */
};

int program_main(int argc, char **argv, char **envp);

/* Returns NULL if there is no file, or if another process has reached main() before this one. */
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
