/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * At its start, the program closes every descriptor from 3 up, and uses these numbers for its own
 * files. The agent must not write to, read from, or close these files. This also holds while
 * modules are loaded and unloaded, and when a child is forked.
 * @plugin plugin.c
 * @libs -ldl
 * @markers 110 main
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "../hostile.h"

#define NR 200
static KEEP int twice(int n) { return opaque(n) * 2; }

int main(int argc, char **argv)
{
	static ino_t inodes[NR];
	static int fds[NR];
	char path[4096], text[32], back[32];
	struct stat st;
	int i, status;
	pid_t pid;

	for (i = 3; i < 1024; i++)
		close(i);
	for (i = 0; i < NR; i++) {
		strcpy(path, "/tmp/patchbay-hostile-XXXXXX");
		fds[i] = mkstemp(path);
		check_eq(fds[i], i + 3);
		check(!unlink(path));
		check(!fstat(fds[i], &st));
		inodes[i] = st.st_ino;
		sprintf(text, "file %d", i);
		check(write(fds[i], text, strlen(text)) == (ssize_t)strlen(text));
		check(lseek(fds[i], 2, SEEK_SET) == 2);
	}
	strcpy(path, argv[0]);
	strcpy(strrchr(path, '/') + 1, "plugin.so");
	for (i = 0; i < 10; i++) {
		void *h = dlopen(path, RTLD_NOW);
		int (*call)(int, int (*)(int));

		check(h);
		call = (int (*)(int, int (*)(int)))dlsym(h, "plugin_call");
		check_eq(call(i, twice), (i + 41) * 2 + 1);
		dlclose(h);
		pid = fork();
		check(pid >= 0);
		if (!pid) {
			marker_begin(i);
			_exit(fcntl(fds[0], F_GETFD) ? 1 : 0);
		}
		check(waitpid(pid, &status, 0) == pid && !status);
	}
	for (i = 0; i < NR; i++) {
		if (i % 2 == 0)
			marker_begin(i);
		check(!fstat(fds[i], &st) && st.st_ino == inodes[i]);
		check_eq(lseek(fds[i], 0, SEEK_CUR), 2);
		sprintf(text, "file %d", i);
		check_eq(st.st_size, strlen(text));
		check(pread(fds[i], back, sizeof(back), 0) == (ssize_t)strlen(text));
		check(!memcmp(text, back, strlen(text)));
	}
	for (i = 3 + NR; i < 1024; i++)
		check(close(i) == -1 && errno == EBADF);
	puts("200 files untouched");
	return 0;
}
