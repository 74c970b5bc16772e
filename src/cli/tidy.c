/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Removes a command's temporary directories if a signal ends the command. The signal's handler
 * removes them, and then raises the signal again with its default action. The handler may interrupt
 * any code of the main thread, so it makes only system calls. The other threads of a command block
 * all signals. A child that a command forks has the handler until it executes a program, but it
 * must not remove anything.
 */
#include "cli/tidy.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"

#define MAX_DIRS 4
#define MAX_DEPTH 3		/* a temporary directory has a data directory, which has directories
				 * itself */

static const int ending[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };
static const char *volatile dirs[MAX_DIRS];
static pid_t owner;
static sigset_t before;

/* The kernel's struct linux_dirent64. */
struct entry {
	uint64_t ino;
	int64_t off;
	unsigned short len;
	unsigned char type;
	char name[];
};

static void remove_dir(int at, const char *name, unsigned depth);

static void remove_entry(int dir, const char *name, unsigned depth)
{
	if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2])))
		return;
	if (unlinkat(dir, name, 0) && errno == EISDIR && depth < MAX_DEPTH)
		remove_dir(dir, name, depth + 1);
}

/* The list of a directory may skip entries if other entries are removed meanwhile. So the list is
 * read again until it has no entry that can be removed. */
static void remove_dir(int at, const char *name, unsigned depth)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_Alignas(struct entry) char list[2048];
	long n = 0;

	for (unsigned i = 0; fd >= 0 && i < 100 && unlinkat(at, name, AT_REMOVEDIR); i++) {
		lseek(fd, 0, SEEK_SET);
		while ((n = syscall(SYS_getdents64, fd, list, sizeof(list))) > 0)
			for (long pos = 0; pos < n; ) {
				const struct entry *e = (const void *)(list + pos);

				remove_entry(fd, e->name, depth);
				pos += e->len;
			}
	}
	if (fd >= 0)
		close(fd);
}

static void on_signal(int sig)
{
	sigset_t set;

	if (getpid() == owner)
		for (unsigned i = 0; i < MAX_DIRS; i++)
			if (dirs[i])
				remove_dir(AT_FDCWD, dirs[i], 0);
	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(sig);
}

/* A signal that is ignored stays ignored, for example SIGHUP under nohup. */
static void install(void)
{
	struct sigaction act = { .sa_handler = on_signal }, old;

	if (owner)
		return;
	owner = getpid();
	sigfillset(&act.sa_mask);
	for (unsigned i = 0; i < pb_array_size(ending); i++)
		if (!sigaction(ending[i], NULL, &old) && old.sa_handler == SIG_DFL)
			sigaction(ending[i], &act, NULL);
}

void cli_tidy_begin(void)
{
	sigset_t set;

	install();
	sigemptyset(&set);
	for (unsigned i = 0; i < pb_array_size(ending); i++)
		sigaddset(&set, ending[i]);
	sigprocmask(SIG_BLOCK, &set, &before);
}

void cli_tidy_end(const char *dir)
{
	for (unsigned i = 0; dir && i < MAX_DIRS; i++)
		if (!dirs[i]) {
			dirs[i] = dir;
			break;
		}
	sigprocmask(SIG_SETMASK, &before, NULL);
}

void cli_tidy_forget(const char *dir)
{
	for (unsigned i = 0; i < MAX_DIRS; i++)
		if (dirs[i] == dir)
			dirs[i] = NULL;
}
