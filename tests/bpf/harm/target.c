// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Calls add() in threads with small stacks.
 *
 *   target THREADS CALLS STACK_KB          THREADS threads make CALLS calls each
 *   target write                           calls add() twice; before the second call, writes to the
 *                                          values of constant.bpf.c's constant map, wherever they
 *                                          are writable
 *   target fork ROUNDS                     forks ROUNDS children; in each child, 8 threads begin at
 *                                          once, and make 100 calls each
 *   target owners                          prints how many processes have the map `runs`, before a
 *                                          fork and in the child
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST	16

__attribute__((noipa)) int add(int a, int b)
{
	return a * 3 + b * 7 + (a ^ b);
}

__attribute__((noipa)) int other(int a)
{
	return a + 1;
}

static long calls;
static pthread_barrier_t barrier;

static void *run(void *arg)
{
	pthread_barrier_wait(&barrier);
	for (long i = 0; i < calls; i++)
		add((int)i, 2);
	return NULL;
}

static int run_threads(int nr, size_t stack)
{
	pthread_t threads[MOST];
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	if (nr > MOST || (stack && pthread_attr_setstacksize(&attr, stack)))
		return 1;
	pthread_barrier_init(&barrier, NULL, (unsigned)nr);
	for (int i = 0; i < nr; i++)
		if (pthread_create(&threads[i], &attr, run, NULL))
			return 1;
	for (int i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

/* Sets the word after each copy of the magic text to 3. Returns the number of copies. */
static int write_all(unsigned char *from, const unsigned char *to)
{
	int found = 0;

	for (unsigned char *p = from; p + 20 <= to; p += 4) {
		int i;

		/* the target itself doesn't contain the text */
		for (i = 0; i < 16 && p[i] == (unsigned char)(0xa0 + i); i++)
			;
		if (i < 16)
			continue;
		memcpy(p + 16, &(int){ 3 }, 4);
		found++;
	}
	return found;
}

static int write_shared(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[512], prot[8];
	int found = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %7s", &from, &to, prot) == 3 &&
		    prot[1] == 'w' && prot[3] == 's' && to - from <= 1 << 16)
			found += write_all((unsigned char *)from, (unsigned char *)to);
	if (f)
		fclose(f);
	return found;
}

static int count_lines(const char *path, const char *with)
{
	FILE *f = fopen(path, "r");
	char line[512];
	int nr = 0;

	while (f && fgets(line, sizeof(line), f))
		nr += !!strstr(line, with);
	if (f)
		fclose(f);
	return nr;
}

/* Returns how many processes have the programs' map `runs`. Each of them holds a lock on the map's
 * file. The kernel writes its list of locks in parts. If other locks come and go between two parts,
 * a line may be missing, or be there twice. */
static int count_owners(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512], inode[32] = "";
	struct stat st;
	int nr = 0, last = -1;

	while (f && fgets(line, sizeof(line), f)) {
		char *path = strchr(line, '/');

		line[strcspn(line, "\n")] = 0;
		if (path && strlen(path) > 5 && !strcmp(path + strlen(path) - 5, "/runs") &&
		    !stat(path, &st))
			snprintf(inode, sizeof(inode), ":%lu ", (unsigned long)st.st_ino);
	}
	if (f)
		fclose(f);
	while (*inode && nr != last) {
		last = nr;
		nr = count_lines("/proc/locks", inode);
	}
	return nr;
}

static int fork_once(void)
{
	int status = 1;
	pid_t child;

	add(1, 2);
	printf("owners %d", count_owners());
	fflush(stdout);
	child = fork();
	if (!child) {
		other(1);
		add(1, 2);
		printf(" %d\n", count_owners());
		return 0;
	}
	waitpid(child, &status, 0);
	return status;
}

static int run_children(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		int status;
		pid_t child = fork();

		if (!child) {
			other(i);
			calls = 100;
			_exit(run_threads(8, 0));
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "write")) {
		add(1, 2);
		printf("written %d\n", write_shared());
		add(1, 2);
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "owners"))
		return fork_once();
	if (argc == 3 && !strcmp(argv[1], "fork"))
		return run_children(atoi(argv[2]));
	if (argc != 4)
		return 2;
	calls = atol(argv[2]);
	return run_threads(atoi(argv[1]), (size_t)atol(argv[3]) * 1024);
}
