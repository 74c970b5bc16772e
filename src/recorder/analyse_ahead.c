/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Separate threads analyse files before an agent asks for the analyses. The files are the program,
 * and the libraries that the dynamic loader would load for it. The loader lists these libraries
 * (ld.so --list, as in ldd). For a process that runs already, the files are those that the process
 * has loaded.
 *
 * Each file is a job. To look at a file means to search the cache for the file's analysis. If the
 * cache doesn't have the analysis, or if the file's stubs are needed (is_traced()), the thread that
 * looks also makes the kernel read the file ahead. The lock protects the job's state, which is one
 * of these:
 *
 *   NEW      no thread has looked at the file yet
 *   LOOKED   the file's analysis isn't in the cache; the kernel reads the file ahead
 *   BUSY     a thread looks at the file or analyses it
 *   DONE     the analysis is open and can be taken
 *   OVER     the main thread has taken the analysis, or analyses the file itself; or the file can't
 *            be opened or analysed; or the number of jobs had reached its limit
 *
 * One thread, the lister, lists the files. After that, the lister looks at all files, so that the
 * disk gets all requests at once. Looking at a file may block until the disk has served earlier
 * requests. So a worker looks at a file only if no file is ready to be analysed. If the main thread
 * needs a file whose job is BUSY, the main thread waits. If no worker has begun the job, the main
 * thread analyses the file itself. So the main thread never waits for a free worker. If an analysis
 * failed, the main thread repeats it to get the reason.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "module/module.h"
#include "recorder/analyse_ahead.h"
#include "recorder/loaded.h"
#include "recorder/running.h"
#include "recorder/settings.h"
#include "recorder/target.h"

#define MAX_WORKERS	16
#define MIN_FILES	128	/* if the limit of open files is lower than this, no file is
				 * analysed ahead */
#define LIST_SECONDS	10	/* how many seconds the main thread waits for the loader's list */
#define MAX_AT_ONCE	(1ull << 30)	/* limit of the bytes of all files that are being analysed;
					 * a single file may be larger */

enum state { NEW, LOOKED, BUSY, DONE, OVER };

struct job {
	char *path;
	enum state state;
	struct stat st;		/* the file's status when it was last opened; valid from the state
				 * LOOKED on */
	uint64_t weight;	/* BUSY: the bytes that the job adds to at_work */
	int fd;			/* DONE: descriptor of the analysis */
	int stubs_fd;		/* DONE: descriptor of the file of stubs, or -1 */
};

struct record_ahead {
	const struct record_options *options;
	const struct record_target *target;
	pthread_mutex_t lock;
	pthread_cond_t changed;	/* for the main thread: the list or a job that it waits for has
				 * changed */
	pthread_cond_t todo;	/* for the workers: a job needs a worker, or all jobs are done */
	struct job *awaited;	/* the job that the main thread waits for, or NULL */
	pthread_t lister, workers[MAX_WORKERS];
	int loader;		/* pidfd of the loader's process; -1: there is no process, or it has
				 * ended */
	unsigned nr_workers;
	/* listing: the lister was started. listed: the list is complete. first_start: the cache
	 * doesn't have the program's analysis, or the program runs already. */
	bool listing, listed, stop, first_start;
	struct job *jobs[RECORD_MAX_LIBRARIES + 1];
	unsigned nr;
	unsigned max;		/* limit of the jobs, because each finished job holds a
				 * descriptor */
	struct timespec deadline; /* until when the main thread waits for the list */
	uint64_t at_work;	/* number of bytes of the files that are being analysed */
	uint64_t read_ahead;	/* number of bytes that may still be read ahead */
};

unsigned record_module_flags(const struct record_options *o)
{
	return PB_MODULE_RETURNS | (o->all_sites ? PB_MODULE_ALL_SITES : 0u);
}

static struct pb_module_options module_options(const struct record_options *o)
{
	return (struct pb_module_options){ .flags = record_module_flags(o) };
}

/* ---- the list ------------------------------------------------------------- */

/* Returns the path in a line of the list: "\tlibc.so.6 => /lib/libc.so.6 (0x...)" or
 * "\t/lib64/ld.so (0x...)". */
static char *path_in_line(char *line)
{
	char *p = strstr(line, "=> "), *end;

	p = p ? p + 3 : line + strspn(line, " \t");
	end = strstr(p, " (0x");
	if (*p != '/' || !end)
		return NULL;
	*end = 0;
	return p;
}

static FILE *list_libraries(struct record_ahead *a)
{
	char *argv[] = { (char *)a->target->loader, "--list", a->jobs[0]->path, NULL };
	posix_spawn_file_actions_t actions;
	int fds[2], ret;
	FILE *f = NULL;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return NULL;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	pthread_mutex_lock(&a->lock);
	ret = a->stop ? ECANCELED : posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
	if (!ret)
		a->loader = (int)syscall(SYS_pidfd_open, pid, 0);
	pthread_mutex_unlock(&a->lock);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	if (!ret)
		f = fdopen(fds[0], "r");
	if (!f)
		close(fds[0]);
	return f;
}

static void job_free(struct job *j)
{
	if (!j)
		return;
	if (j->state == DONE)
		close(j->fd);
	if (j->state == DONE && j->stubs_fd >= 0)
		close(j->stubs_fd);
	free(j->path);
	free(j);
}

static void add_job(struct record_ahead *a, const char *path)
{
	struct job *j = calloc(1, sizeof(*j));

	if (!j)
		return;
	j->path = strdup(path);
	pthread_mutex_lock(&a->lock);
	if (j->path && a->nr <= RECORD_MAX_LIBRARIES) {
		j->state = a->nr < a->max ? NEW : OVER;
		a->jobs[a->nr++] = j;
		j = NULL;
	}
	pthread_cond_signal(&a->changed);
	pthread_cond_signal(&a->todo);
	pthread_mutex_unlock(&a->lock);
	job_free(j);
}

/* ---- work ----------------------------------------------------------------- */

static struct job *find_state(struct record_ahead *a, enum state state)
{
	for (unsigned i = 0; i < a->nr; i++)
		if (a->jobs[i]->state == state)
			return a->jobs[i];
	return NULL;
}

/* Returns the first LOOKED job, because the disk reads the files in this order. Returns NULL if
 * there is none, or if too many bytes are already in analysis. */
static struct job *find_work(struct record_ahead *a)
{
	struct job *j = find_state(a, LOOKED);

	return j && (!a->at_work || a->at_work + (uint64_t)j->st.st_size <= MAX_AT_ONCE) ? j : NULL;
}

/* True if no job needs a worker any more. A BUSY job may still need a worker, because it may become
 * LOOKED. */
static bool all_done(struct record_ahead *a)
{
	return a->listed && !find_state(a, NEW) && !find_state(a, LOOKED) && !find_state(a, BUSY);
}

/* Called when the work on a job has ended. Wakes a thread only if the thread may wait for this,
 * because there may be hundreds of jobs, and each thread that wakes up takes the lock. */
static void wake(struct record_ahead *a, const struct job *j)
{
	bool done = all_done(a);

	if (done || j == a->awaited || j == a->jobs[0])
		pthread_cond_signal(&a->changed);
	if (done || find_state(a, LOOKED))
		pthread_cond_broadcast(&a->todo);
}

static void set_state(struct record_ahead *a, struct job *j, enum state state)
{
	if (j->state == BUSY) {
		a->at_work -= j->weight;
	} else if (state == BUSY) {
		j->weight = (uint64_t)j->st.st_size;
		a->at_work += j->weight;
	}
	j->state = state;
	if (state != BUSY)
		wake(a, j);
}

/* Opens the file. If the process runs already, opens the file as the process sees it. (The
 * executable's file may have been deleted.) */
static int open_file(const struct record_ahead *a, struct job *j)
{
	pid_t pid = a->target->pid;
	int fd = !pid ? open(j->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) :
		 j == a->jobs[0] ? record_running_open_exe(pid) :
		 record_running_open_library(a->target, j->path, NULL);

	if (fd >= 0 && fstat(fd, &j->st)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* True if the stubs must be made, too. Without --all, most libraries are not patched. */
static bool is_traced(const struct record_ahead *a, const struct job *j)
{
	return j == a->jobs[0] || a->options->all;
}

/* Opens the file of stubs of a traced file, or makes it if the cache doesn't have it. Called
 * without the lock. */
static int open_stubs(struct job *j, int elf, int fd, const struct pb_module_options *o)
{
	struct stat st;
	void *map;
	int stubs;

	if (fstat(fd, &st))
		return -1;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return -1;
	stubs = pb_module_stubs(elf, j->path, o, map);
	munmap(map, (size_t)st.st_size);
	return stubs;
}

/* Looks for j's analysis in the cache. If the cache doesn't have it, or if j is traced, starts the
 * read-ahead of the file. If j is traced and its analysis was found, also opens the file of stubs.
 * Called with the lock held; the function releases the lock and takes it again. */
static void look(struct record_ahead *a, struct job *j)
{
	struct pb_module_options o = module_options(a->options);
	bool traced = is_traced(a, j);
	uint64_t max = a->read_ahead, asked = 0;
	int elf, fd = -1, stubs = -1;

	set_state(a, j, BUSY);
	pthread_mutex_unlock(&a->lock);
	elf = open_file(a, j);
	if (elf >= 0)
		fd = pb_module_find(elf, j->path, &o);
	if (elf >= 0 && (fd < 0 || traced))
		asked = pb_module_read_ahead(elf, fd >= 0, max);
	if (fd >= 0 && traced)
		stubs = open_stubs(j, elf, fd, &o);
	if (elf >= 0)
		close(elf);
	pthread_mutex_lock(&a->lock);
	a->read_ahead -= asked < a->read_ahead ? asked : a->read_ahead;
	j->fd = fd;
	j->stubs_fd = stubs;
	if (fd < 0 && j == a->jobs[0])
		a->first_start = true;
	set_state(a, j, fd >= 0 ? DONE : elf >= 0 ? LOOKED : OVER);
}

static void analyse(struct record_ahead *a, struct job *j)
{
	struct pb_module_options o = module_options(a->options);
	int elf, fd = -1, stubs = -1;

	set_state(a, j, BUSY);
	pthread_mutex_unlock(&a->lock);
	elf = open_file(a, j);
	if (elf >= 0) {
		fd = pb_module_open(elf, j->path, &o, NULL, 0);
		if (fd >= 0 && is_traced(a, j))
			stubs = open_stubs(j, elf, fd, &o);
		close(elf);
	}
	pthread_mutex_lock(&a->lock);
	j->fd = fd;
	j->stubs_fd = stubs;
	set_state(a, j, fd >= 0 ? DONE : OVER);
}

/* Kills the loader's process and waits until the process has ended. Called after the loader has
 * closed its output, or when its list isn't needed any more. The main thread reaps all children,
 * and may have reaped the loader. The loader's PID may then belong to another process. So the pidfd
 * is used: it never refers to another process. */
static void end_loader(struct record_ahead *a)
{
	siginfo_t info;

	if (a->loader < 0)
		return;
	syscall(SYS_pidfd_send_signal, a->loader, SIGKILL, NULL, 0);
	waitid((idtype_t)P_PIDFD, (id_t)a->loader, &info, WEXITED);
	close(a->loader);
	a->loader = -1;
}

static bool is_listed(struct record_ahead *a, const char *path)
{
	for (unsigned i = 0; i < a->nr; i++)
		if (!strcmp(a->jobs[i]->path, path))
			return true;
	return false;
}

static bool add_loaded(void *arg, const char *path)
{
	struct record_ahead *a = arg;

	if (!is_listed(a, path))
		add_job(a, path);
	return !a->stop && a->nr <= RECORD_MAX_LIBRARIES;
}

static void add_libraries(struct record_ahead *a)
{
	char *line = NULL, *path;
	size_t cap = 0;
	FILE *f = list_libraries(a);

	while (f && getline(&line, &cap, f) > 0) {
		path = path_in_line(line);
		if (path)
			add_job(a, path);
	}
	free(line);
	if (f)
		fclose(f);
}

static void *list(void *arg)
{
	struct record_ahead *a = arg;
	struct job *j;

	if (a->target->pid)
		record_loaded_each(a->target->pid, add_loaded, a);
	else
		add_libraries(a);
	pthread_mutex_lock(&a->lock);
	end_loader(a);
	a->listed = true;
	pthread_cond_signal(&a->changed);
	pthread_cond_broadcast(&a->todo);
	while (!a->stop && (j = find_state(a, NEW)))
		look(a, j);
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

static void *work(void *arg)
{
	struct record_ahead *a = arg;
	struct job *j;

	pthread_mutex_lock(&a->lock);
	while (!a->stop) {
		if ((j = find_work(a)))
			analyse(a, j);
		else if ((j = find_state(a, NEW)))
			look(a, j);
		else if (all_done(a))
			break;
		else
			pthread_cond_wait(&a->todo, &a->lock);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

/* ---- for the recorder's main thread ---------------------------------------- */

static bool start_thread(pthread_t *t, void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(t, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return !err;
}

/* The deadline is on CLOCK_MONOTONIC, because CLOCK_REALTIME can be set. */
static void init_changed(struct record_ahead *a)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&a->changed, &attr);
	pthread_condattr_destroy(&attr);
	clock_gettime(CLOCK_MONOTONIC, &a->deadline);
	a->deadline.tv_sec += LIST_SECONDS;
}

struct record_ahead *record_ahead_start(const struct record_options *o,
					const struct record_target *t)
{
	struct record_ahead *a = calloc(1, sizeof(*a));
	long cpus = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_AVPHYS_PAGES);
	struct rlimit files = { .rlim_cur = 256 };
	char exe[PATH_MAX];

	/* for a process that runs already, t->exe is already the path that its agent will send */
	if (!a || (!t->pid && !realpath(t->exe, exe))) {
		free(a);
		return NULL;
	}
	a->options = o;
	a->target = t;
	a->loader = -1;
	/* a process that runs already goes on while its files are analysed, so the main thread may
	 * wait for all of them */
	a->first_start = t->pid;
	getrlimit(RLIMIT_NOFILE, &files);
	a->max = files.rlim_cur < MIN_FILES ? 0 :
		 files.rlim_cur / 2 < UINT_MAX ? (unsigned)(files.rlim_cur / 2) : UINT_MAX;
	a->read_ahead = pages > 0 ? (uint64_t)pages / 2 * 4096 : 0;
	pthread_mutex_init(&a->lock, NULL);
	init_changed(a);
	pthread_cond_init(&a->todo, NULL);
	add_job(a, t->pid ? t->exe : exe);
	if (!a->nr || !a->max)
		return a;
	a->listing = start_thread(&a->lister, list, a);
	for (long i = 0; a->listing && i < cpus && i < MAX_WORKERS; i++)
		a->nr_workers += start_thread(&a->workers[a->nr_workers], work, a);
	return a;
}

/* Waits until a job or the list has changed. False if the list took too long. */
static bool wait_change(struct record_ahead *a)
{
	if (a->listed)
		return !pthread_cond_wait(&a->changed, &a->lock);
	return pthread_cond_timedwait(&a->changed, &a->lock, &a->deadline) != ETIMEDOUT;
}

const char *record_ahead_path(struct record_ahead *a, unsigned i)
{
	const char *path = NULL;

	if (!a || !a->nr)
		return NULL;
	/* no lister was started, so this thread lists the libraries */
	if (i && !a->listing && !a->listed)
		list(a);
	pthread_mutex_lock(&a->lock);
	while (i >= a->nr && !a->listed && wait_change(a))
		;
	if (i < a->nr)
		path = a->jobs[i]->path;
	pthread_mutex_unlock(&a->lock);
	return path;
}

static struct job *find_path(struct record_ahead *a, const char *path)
{
	for (unsigned i = 0; i < a->nr; i++)
		if (a->jobs[i]->state != OVER && !strcmp(a->jobs[i]->path, path))
			return a->jobs[i];
	return NULL;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

int record_ahead_take(struct record_ahead *a, const struct stat *st, const char *path,
		      int *stubs_fd)
{
	struct job *j;
	int fd = -1;

	if (!a)
		return -1;
	pthread_mutex_lock(&a->lock);
	j = find_path(a, path);
	a->awaited = j;
	while (j && j->state == BUSY)
		pthread_cond_wait(&a->changed, &a->lock);
	a->awaited = NULL;
	if (j && j->state == DONE && same_file(&j->st, st)) {
		fd = j->fd;
		*stubs_fd = j->stubs_fd;
		set_state(a, j, OVER);
	} else if (j && j->state < BUSY) {
		set_state(a, j, OVER);
	}
	pthread_mutex_unlock(&a->lock);
	return fd;
}

void record_ahead_wait(struct record_ahead *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	while (a->nr_workers && (a->jobs[0]->state == NEW || a->jobs[0]->state == BUSY ||
				 (a->first_start && !all_done(a))) && wait_change(a))
		;
	pthread_mutex_unlock(&a->lock);
}

void record_ahead_stop(struct record_ahead *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	end_loader(a);
	pthread_cond_broadcast(&a->todo);
	pthread_mutex_unlock(&a->lock);
	if (a->listing)
		pthread_join(a->lister, NULL);
	for (unsigned i = 0; i < a->nr_workers; i++)
		pthread_join(a->workers[i], NULL);
	for (unsigned i = 0; i < a->nr; i++)
		job_free(a->jobs[i]);
	pthread_cond_destroy(&a->changed);
	pthread_cond_destroy(&a->todo);
	pthread_mutex_destroy(&a->lock);
	free(a);
}
