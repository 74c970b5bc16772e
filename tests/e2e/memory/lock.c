/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * lock STEP...: after each step, prints the results of the step's calls, the amount of locked
 * memory (VmLck), and the number of resident pages in 1 MB of the program's own memory. Steps:
 *   current future both onfault future-onfault both-onfault none unlock bad
 *                      mlockall() with these flags, munlockall()
 *   range range-onfault  mlock(), mlock2() of 1 MB
 *   map thread dlopen    makes a mapping of 1 MB, starts a thread, loads two libraries. The
 *                        program keeps all of them
 *   limit=KB             sets RLIMIT_MEMLOCK; if the program is root, it becomes an ordinary user
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define MB (1 << 20)

static unsigned long locked(void)
{
	unsigned long n = 0;
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmLck: %lu", &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

static int resident(char *p)
{
	unsigned char there[MB / 4096];
	int n = 0;

	mincore(p, MB, there);
	for (unsigned i = 0; i < sizeof(there); i++)
		n += there[i] & 1;
	return n;
}

static void *wait_for_end(void *arg)
{
	pause();
	return arg;
}

static int limit(unsigned long kb)
{
	struct rlimit r = { kb * 1024, kb * 1024 };

	if (setrlimit(RLIMIT_MEMLOCK, &r))
		return -1;
	return getuid() ? 0 : setuid(65534);
}

static int step(const char *s)
{
	static const struct {
		const char *name;
		int flags;
	} all[] = {
		{ "current", MCL_CURRENT }, { "future", MCL_FUTURE },
		{ "both", MCL_CURRENT | MCL_FUTURE }, { "onfault", MCL_CURRENT | MCL_ONFAULT },
		{ "future-onfault", MCL_FUTURE | MCL_ONFAULT },
		{ "both-onfault", MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT },
		{ "none", 0 }, { "bad", 64 | MCL_CURRENT },
	};
	static char *region;
	pthread_t t;

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(s, all[i].name))
			return mlockall(all[i].flags);
	if (!strcmp(s, "unlock"))
		return munlockall();
	if (!strncmp(s, "limit=", 6))
		return limit(strtoul(s + 6, NULL, 10));
	if (!strcmp(s, "thread"))
		return errno = pthread_create(&t, NULL, wait_for_end, NULL);
	if (!strcmp(s, "dlopen"))
		return dlopen("libm.so.6", RTLD_NOW) && dlopen("libz.so.1", RTLD_NOW) ? 0 : -1;
	if (!strcmp(s, "map") || !region) {
		region = mmap(NULL, MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (region == MAP_FAILED) {
			region = NULL;
			return -1;
		}
	}
	if (!strcmp(s, "range"))
		return mlock(region, MB);
	if (!strcmp(s, "range-onfault"))
		return mlock2(region, MB, MLOCK_ONFAULT);
	if (!strcmp(s, "map"))
		printf("resident %d\n", resident(region));
	return 0;
}

int main(int argc, char **argv)
{
	/* memory that the program has from its start */
	static char old[2 * MB];
	char *mine = (char *)(((unsigned long)old + 4095) & -4096ul);

	setvbuf(stdout, NULL, _IONBF, 0);
	for (int i = 1; i < argc; i++) {
		int ret;

		errno = 0;
		ret = step(argv[i]);
		printf("%s: %d %s\n", argv[i], ret, strerror(ret ? errno : 0));
		printf("locked %lu kB, of mine %d\n", locked(), resident(mine));
	}
	return 0;
}
