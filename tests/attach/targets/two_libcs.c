/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Has libc's file mapped twice, and answers each line of its input with the line "pulse". The
 * second mapping lies below the loader's. The argument is "mapped" (the program has mapped the file
 * itself, as programs do that read symbols) or "namespace" (dlmopen() has loaded another libc).
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static const struct link_map *libc_of(const struct link_map *list)
{
	for (; list; list = list->l_next)
		if (strstr(list->l_name, LIBC_SO))
			return list;
	return NULL;
}

static uintptr_t map_file(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st))
		return 0;
	return (uintptr_t)mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
}

static uintptr_t load_again(void)
{
	struct link_map *m = dlmopen(LM_ID_NEWLM, LIBM_SO, RTLD_NOW);
	const struct link_map *libc = libc_of(m);

	return libc ? libc->l_addr : 0;
}

int main(int argc, char **argv)
{
	const struct link_map *libc = libc_of(_r_debug.r_map);
	int mapped = argc > 1 && !strcmp(argv[1], "mapped");
	uintptr_t second = mapped ? map_file(libc->l_name) : load_again();

	if (!second || second > libc->l_addr)
		return 2;
	printf("ready\n");
	fflush(stdout);
	for (int c = getchar(); c != EOF; c = getchar())
		if (c == '\n') {
			printf("pulse\n");
			fflush(stdout);
		}
	return 0;
}
