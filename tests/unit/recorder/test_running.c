/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests what the recorder finds out about a process that runs already: its arguments, its
 * executable, its libraries, and whether it has ended. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "recorder/loaded.h"
#include "recorder/proc.h"
#include "recorder/ring_memory.h"
#include "recorder/running.h"
#include "recorder/target.h"
#include "recorder/terminal.h"

static void lines(void **state)
{
	char text[] = "7f0000-7f1000 r-xp 00001000 fe:00 123   /lib/a b.so\n";
	char data[] = "7f0000-7f1000 rw-p 00001000 fe:00 123   /lib/a b.so\n";
	char heap[] = "7f0000-7f1000 r-xp 00000000 00:00 0     [heap]\n";
	char none[] = "7f0000-7f1000 r-xp 00000000 00:00 0 \n";
	char bad[] = "/", empty[] = "", only[] = "a /b";

	assert_string_equal(record_loaded_file(text), "/lib/a b.so");
	assert_null(record_loaded_file(data));
	assert_null(record_loaded_file(heap));
	assert_null(record_loaded_file(none));
	assert_null(record_loaded_file(bad));
	assert_null(record_loaded_file(empty));
	assert_null(record_loaded_file(only));
}

struct seen {
	unsigned nr, libc, limit;
};

static bool note(void *arg, const char *path)
{
	struct seen *s = arg;

	assert_non_null(strchr(path, '/'));
	s->libc += strstr(path, "/libc.so.6") != NULL;
	return ++s->nr != s->limit;
}

static void libraries(void **state)
{
	struct seen all = { .limit = 0 }, one = { .limit = 1 }, none = { .limit = 0 };

	record_loaded_each(getpid(), note, &all);
	assert_true(all.nr >= 2);
	assert_int_equal(all.libc, 1);
	record_loaded_each(getpid(), note, &one);
	assert_int_equal(one.nr, 1);
	record_loaded_each(INT32_MAX, note, &none);
	assert_int_equal(none.nr, 0);
}

/* Starts a process that executes cat with the arguments, and waits until cat has copied a byte. A
 * descriptor that exec closes would be too early a sign: the kernel closes it before it sets the
 * name and the arguments. */
static pid_t start(char *const *argv, int *to)
{
	int fds[2], out[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (!pid) {
		dup2(fds[0], 0);
		dup2(out[1], 1);
		close(fds[1]);
		close(out[0]);
		execv("/bin/cat", argv);
		_exit(127);
	}
	close(fds[0]);
	close(out[1]);
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(read(out[0], &c, 1), 1);
	close(out[0]);
	*to = fds[1];
	return pid;
}

static void arguments(void **state)
{
	char *argv[] = { "cat\n\033[2J", "", "-", "user=\nx", NULL };
	struct record_target t = { .pid = 0 };
	int to;
	pid_t pid = start(argv, &to);
	char **got = record_running_target(&t, pid);

	assert_non_null(got);
	for (unsigned i = 0; i < 4; i++)
		assert_string_equal(got[i], argv[i]);
	assert_null(got[4]);
	free(got[0]);
	free(got);
	assert_int_equal(t.pid, pid);
	assert_string_equal(t.name, "cat");
	assert_int_equal(record_running_state(&t), RECORD_RUNS);
	t.ino++;
	assert_int_equal(record_running_state(&t), RECORD_RUNS_OTHER);
	int exe = record_running_open_exe(pid);
	assert_true(exe >= 0);
	close(exe);
	kill(pid, SIGKILL);
	record_running_wait(&t, 60000);
	assert_int_equal(record_running_state(&t), RECORD_ENDED);
	record_running_close(&t);
	/* the zombie has no executable */
	assert_null(record_running_target(&t, pid));
	record_running_close(&t);
	close(to);
	waitpid(pid, NULL, 0);
	assert_null(record_running_target(&t, pid));
	record_running_close(&t);
}

/* A zombie has no descriptors. The file that they led to can't be found out. */
static void ended(void **state)
{
	pid_t pid = fork();
	siginfo_t info;

	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(record_procs_have_terminal(pid, 2));
	waitpid(pid, NULL, 0);
}

static void files(void **state)
{
	int fd = record_running_open(getpid(), "/bin/cat");

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(record_running_open(getpid(), "/dev/null"), -EACCES);
	assert_int_equal(record_running_open(getpid(), "/nowhere/at/all"), -ENOENT);
	assert_int_equal(record_open_regular("/dev/zero"), -EACCES);
}

/* A FIFO isn't opened, although its name is looked at. */
static void not_opened(void **state)
{
	char path[] = "/tmp/patchbay-test-XXXXXX", fifo[sizeof(path) + 8], event[512];
	int events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	assert_non_null(mkdtemp(path));
	snprintf(fifo, sizeof(fifo), "%s/fifo", path);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_true(inotify_add_watch(events, fifo, IN_OPEN) >= 0);
	assert_int_equal(record_open_regular(fifo), -EACCES);
	assert_int_equal(read(events, event, sizeof(event)), -1);
	assert_int_equal(errno, EAGAIN);
	close(events);
	unlink(fifo);
	rmdir(path);
}

/* Another user's process connects to this one. Returns this end of the connection. */
static int other_user(int listener, const struct sockaddr_un *at, pid_t *pid)
{
	*pid = fork();
	if (!*pid) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

		/* after a failure of the test, the child must end, too */
		if (setgroups(0, NULL) || setgid(65534) || setuid(65534) ||
		    prctl(PR_SET_PDEATHSIG, SIGKILL) ||
		    connect(fd, (const void *)at, sizeof(*at)))
			_exit(1);
		pause();
	}
	return accept(listener, NULL, NULL);
}

/* A recorder that runs as root reads no file for an agent that the agent may not read. */
static void rights(void **state)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "" };
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), peer, fd;
	int dumpable = prctl(PR_GET_DUMPABLE);
	char secret[] = "/tmp/patchbay-test-XXXXXX";
	struct record_rights r;
	pid_t pid;

	if (geteuid())
		skip();
	close(mkstemp(secret));		/* mode 0600 */
	snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "patchbay-test-%d", (int)getpid());
	assert_int_equal(bind(listener, (const void *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	peer = other_user(listener, &at, &pid);
	assert_true(peer >= 0);
	assert_int_equal(record_rights_take(&r, peer), 0);
	assert_int_equal(record_running_open(pid, secret), -EACCES);
	fd = record_running_open(pid, "/bin/cat");
	assert_true(fd >= 0);
	close(fd);
	record_rights_restore(&r);
	fd = record_running_open(pid, secret);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(prctl(PR_GET_DUMPABLE), dumpable);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(peer);
	close(listener);
	unlink(secret);
}

/* A process that is older than the recorder counts as recorded only if it was attached. Here the
 * child plays the recorder. It starts at least one clock tick after its parent, and the parent maps
 * the ring. */
static void older(void **state)
{
	struct record_ring r = { .fd = (int)syscall(SYS_memfd_create, "patchbay-ring", 0u) };
	pid_t parent = getpid();
	struct stat st;
	int status;

	assert_int_equal(fstat(r.fd, &st), 0);
	assert_int_equal(ftruncate(r.fd, 4096), 0);
	r.dev = st.st_dev;
	r.ino = st.st_ino;
	assert_true(mmap(NULL, 4096, PROT_READ, MAP_SHARED, r.fd, 0) != MAP_FAILED);
	usleep(50000);
	pid_t child = fork();
	if (!child) {
		int wrong = record_proc_maps(&r, parent) != RECORD_MAPS_NOT;

		r.attached = parent;
		wrong |= (record_proc_maps(&r, parent) != RECORD_MAPS) << 1;
		_exit(wrong);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(r.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines), cmocka_unit_test(libraries), cmocka_unit_test(arguments),
		cmocka_unit_test(files), cmocka_unit_test(not_opened), cmocka_unit_test(rights),
		cmocka_unit_test(older), cmocka_unit_test(ended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
