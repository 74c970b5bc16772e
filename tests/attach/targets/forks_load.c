/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Forks children that load libraries. The first argument is a library. The second argument says
 * when:
 *
 *   often     every 20 ms, if fewer than MOST_LIVE children live. Each child loads and unloads the
 *             library again and again, for a moment
 *   attached  MOST_ATTACHED times, as soon as a part of the agent is mapped. Each child loads the
 *             library
 *
 * Ends when its input has ended and these children are made. Prints how many children there were,
 * and how many of them failed, and whether the agent has DF_1_INITFIRST.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_LIVE	8
#define MOST_ATTACHED	10

static int children, ended, failed;

static int load(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW);

	return !handle || dlclose(handle);
}

static int load_often(const char *library)
{
	for (int i = 0; i < 50; i++) {
		if (load(library))
			return 1;
		usleep(1000);
	}
	return 0;
}

static void collect(int flags)
{
	int status;

	while (waitpid(-1, &status, flags) > 0) {
		ended++;
		failed += status != 0;
		if (WIFSIGNALED(status))
			fprintf(stderr, "a child was killed by signal %d\n", WTERMSIG(status));
	}
}

static int agent_is_mapped(void)
{
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	int mapped = 0;

	while (fgets(line, sizeof(line), maps))
		mapped |= strstr(line, "libpatchbay.so") != NULL;
	fclose(maps);
	return mapped;
}

static int find_flag(struct dl_phdr_info *info, size_t size, void *found)
{
	if (!strstr(info->dlpi_name, "libpatchbay.so"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		ElfW(Dyn) *d = (void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);

		for (; info->dlpi_phdr[i].p_type == PT_DYNAMIC && d->d_tag; d++)
			if (d->d_tag == DT_FLAGS_1)
				*(int *)found = !!(d->d_un.d_val & DF_1_INITFIRST);
	}
	return 0;
}

static void fork_one(const char *library, int (*use)(const char *library))
{
	if (!fork())
		_exit(use(library));
	children++;
}

static void fork_often(const char *library)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };

	while (poll(&input, 1, 20) == 0) {
		if (children - ended < MOST_LIVE)
			fork_one(library, load_often);
		collect(WNOHANG);
	}
}

static void fork_attached(const char *library)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	int over, mapped;

	do {
		over = poll(&input, 1, 0);
		mapped = children < MOST_ATTACHED && agent_is_mapped();
		if (mapped)
			fork_one(library, load);
	} while (!over || mapped);
}

int main(int argc, char **argv)
{
	int flag = -1;

	printf("ready\n");
	fflush(stdout);
	if (argc > 2 && !strcmp(argv[2], "often"))
		fork_often(argv[1]);
	else
		fork_attached(argv[1]);
	collect(0);
	dl_iterate_phdr(find_flag, &flag);
	printf("%d children, %d failed, flag %d\n", children, failed, flag);
	return 0;
}
