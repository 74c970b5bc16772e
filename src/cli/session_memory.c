/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Gets descriptors of a session's ring and data directory from its recorder, and makes a snapshot
 * of them. The recorder only sends the descriptors; the traced process does nothing. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/messages.h"
#include "base/base.h"
#include "cli/cli.h"
#include "cli/session_memory.h"
#include "control/control.h"
#include "reader/snapshot.h"
#include "recorder/proc.h"
#include "recorder/ring_memory.h"
#include "recorder/tasks.h"

/* Finds the names of the threads. The ring's table has each thread's number in the pid namespace of
 * the traced process. In the pid namespace of this command, another thread may have this number. */
struct namer {
	struct record_ring ring;
	struct record_names names;
	bool further;			/* other pid namespaces were searched */
	uint32_t pid;			/* the last process that thread_ended() was called for */
	bool here;			/* that process is in the pid namespace of this command */
};

static void thread_name(void *arg, uint32_t index, const struct pb_ring_thread *t,
			char comm[PB_SNAPSHOT_COMM])
{
	struct namer *n = arg;

	_Static_assert(PB_SNAPSHOT_COMM == RECORD_COMM, "record_names_get() fills the name");
	/* Search other namespaces only if the process isn't in this namespace, because the search
	 * takes time. If the process is in this namespace and a thread's name isn't found, the
	 * thread has ended. */
	if (!n->further && record_proc_maps(&n->ring, (pid_t)t->pid) != RECORD_MAPS) {
		record_names_end(&n->names);
		record_names_begin(&n->names, &n->ring, true);
		n->further = true;
	}
	record_names_get(&n->names, t->pid, t->tid, NULL, comm);
}

static bool thread_ended(void *arg, uint32_t pid, uint32_t tid)
{
	struct namer *n = arg;
	char path[64];

	if (n->pid != pid)
		n->here = record_proc_maps(&n->ring, (pid_t)pid) == RECORD_MAPS;
	n->pid = pid;
	snprintf(path, sizeof(path), "/proc/%u/task/%u", pid, tid);
	return n->here && access(path, F_OK) && errno == ENOENT;
}

/* Checks that the ring's sizes agree with each other and with the size of the file. */
static bool geometry_ok(const struct pb_msg_ring *r, int fd)
{
	struct stat st;
	uint64_t taken = pb_ring_taken_offset(r->threads_offset, r->nr_threads);

	return !fstat(fd, &st) && (uint64_t)st.st_size >= r->ring_size && r->nr_chunks &&
	       r->nr_threads && r->threads_offset >= sizeof(struct pb_ring) &&
	       r->threads_offset < r->ring_size && !(r->threads_offset % 64) &&
	       !(r->chunks_offset % 64) &&
	       taken + pb_ring_taken_words(r->nr_chunks) * 8 <= r->chunks_offset &&
	       r->chunks_offset <= r->ring_size &&
	       r->nr_chunks <= (r->ring_size - r->chunks_offset) / PB_CHUNK_SIZE;
}

/* Reports that a snapshot is impossible, because the records are written to a file and don't stay
 * in the ring. */
static int has_file(const char *command, int data_fd)
{
	char link[40], dir[PATH_MAX];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", data_fd);
	ssize_t n = readlink(link, dir, sizeof(dir) - 1);
	dir[n > 0 ? n : 0] = 0;
	return pb_error(command, "all records go to a file; say patchbay replay -d %s (a snapshot "
			"needs a buffer that is overwritten: patchbay attach, flight, or record "
			"--overwrite)", n > 0 ? dir : "DIR");
}

static int copy(const char *command, const struct pb_msg_ring *r, int ring_fd, const char *dir,
		struct pb_snapshot *s)
{
	struct namer n = { .ring.fd = ring_fd, .ring.foreign = true };
	char err[PATH_MAX + 200];
	struct stat st;
	void *map = mmap(NULL, r->ring_size, PROT_READ, MAP_SHARED, ring_fd, 0);

	if (map == MAP_FAILED)
		return pb_error(command, "can't map the buffer: %s", strerror(errno));
	s->ring = map;
	s->geometry = (struct pb_ring){
		.mode = r->mode, .nr_threads = r->nr_threads, .nr_chunks = r->nr_chunks,
		.nr_buffer = r->nr_buffer, .threads_offset = r->threads_offset,
		.chunks_offset = r->chunks_offset, .size = r->ring_size,
	};
	if (!fstat(ring_fd, &st)) {
		n.ring.dev = st.st_dev;
		n.ring.ino = st.st_ino;
	}
	record_names_begin(&n.names, &n.ring, false);
	s->arg = &n;
	int ret = pb_snapshot_write(s, dir, err, sizeof(err));
	s->arg = NULL;
	record_names_end(&n.names);
	munmap(map, r->ring_size);
	return ret ? pb_error(command, "%s", err) : 0;
}

int cli_session_snapshot(const char *command, struct pb_control *c, enum cli_snapshot which,
			 const char *dir, struct pb_snapshot *s)
{
	struct pb_msg_ring ring;
	int ring_fd, data_fd, ret;
	char err[600];

	if (pb_control_memory(c, &ring, &ring_fd, &data_fd, err, sizeof(err)))
		return pb_error(command, "%s", err);
	*s = (struct pb_snapshot){
		.from = data_fd, .newest = which == CLI_SNAPSHOT_OPEN, .thread_name = thread_name,
		.thread_ended = thread_ended,
		.why = "patchbay snapshot asked for it",
	};
	if (!geometry_ok(&ring, ring_fd))
		ret = pb_error(command, "the recorder's answer is damaged");
	else if (which == CLI_SNAPSHOT_ALL && ring.mode != PB_RING_OVERWRITE)
		ret = has_file(command, data_fd);
	else
		ret = copy(command, &ring, ring_fd, dir, s);
	close(ring_fd);
	close(data_fd);
	return ret;
}
