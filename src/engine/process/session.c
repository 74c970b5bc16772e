/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The agent's messages to the recorder, and the answers. The connection gives up on a recorder that
 * shows no sign of life (wire.h): any call may return -ETIMEDOUT. After one call has returned this
 * error, all later calls return it at once.
 */
#include <asm/errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include "engine/process/session.h"
#include "engine/process/creds.h"
#include "engine/files.h"
#include "engine/text/ftrace.h"
#include "engine/graph/thread.h"
#include "arch/arch.h"
#include "base/mem.h"
#include "base/pages.h"
#include "base/sys.h"

/* Message buffers. The first is for the session at the start, which the agent's thread takes over.
 * The second is for modules that arrive later; it is used under the lock of the text. */
static uint8_t buffers[2][PB_WIRE_BUFFER] __attribute__((aligned(16)));

static void *body(const struct pb_session *s)
{
	return s->wire.buffer + sizeof(struct pb_msg);
}

/* Whether the file has at least the size that the recorder says. A mapping past a file's end would
 * kill the program. */
static bool has_size(int fd, uint64_t size)
{
	struct stat st;

	return !pb_sys(SYS_fstat, fd, &st) && st.st_size >= 0 && (uint64_t)st.st_size >= size;
}

/* The address range that is reserved for the ring. Inside this range the ring is aligned to the
 * size of a chunk, because positions are masked. */
static struct { uint64_t at, size; } reserved;
static uint32_t nr_buffer;	/* number of chunks that the process mapped in any case */

#define LEAST_CHUNKS	64	/* if the program lowers a limit, at least so many chunks stay */

/* How far the ring is below the agent. The stubs of a library are made for an address at most 2 GiB
 * below the library. If the ring took this address, the stubs would have to be made again for
 * another address. So the ring is farther away. */
#define RING_BELOW	0x200000000ul

/* Returns how many chunks of the reserve to map (abi/ring.h). If address space is limited, most
 * of it is left to the program. */
static uint32_t reserve_within(uint64_t limit, uint32_t most)
{
	limit /= 16 * PB_CHUNK_SIZE;
	return limit < most ? (uint32_t)limit : most;
}

static uint32_t reserve_chunks(const struct pb_msg_ring *r)
{
	struct rlimit limit = { .rlim_cur = RLIM_INFINITY };

	pb_sys(SYS_prlimit64, 0, RLIMIT_AS, NULL, &limit);
	return reserve_within(limit.rlim_cur, r->nr_chunks - r->nr_buffer);
}

static long map_aligned(int fd, uint64_t size)
{
	uint64_t want = size + PB_CHUNK_SIZE, hint = ((uint64_t)&reserved - RING_BELOW) & ~0xffful;
	long p = pb_pages_map(hint, want, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			      -1, 0), at;

	if (pb_sys_failed(p))
		return p;
	at = pb_pages_map(pb_align_up((uint64_t)p, (uint64_t)PB_CHUNK_SIZE), size,
			  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	if (pb_sys_failed(at)) {
		pb_pages_unmap((uint64_t)p, want);
		return at;
	}
	reserved.at = (uint64_t)p;
	reserved.size = want;
	return at;
}

static int map_ring(const struct pb_msg_ring *r, int fd)
{
	uint64_t size, chunks;
	uint32_t reserve;
	long base;

	if (r->nr_buffer > r->nr_chunks || r->chunks_offset > r->ring_size ||
	    !has_size(fd, r->ring_size))
		return -EINVAL;
	for (reserve = reserve_chunks(r);; reserve /= 4) {
		chunks = (uint64_t)r->nr_buffer + reserve;
		size = r->chunks_offset + chunks * PB_CHUNK_SIZE;
		if (size > r->ring_size)
			return -EINVAL;
		base = map_aligned(fd, size);
		if (!pb_sys_failed(base) || !reserve)
			break;
	}
	if (pb_sys_failed(base))
		return (int)base;
	nr_buffer = r->nr_buffer;
	return pb_ring_attach((void *)base, size, r->nr_threads, (uint32_t)chunks,
			      r->threads_offset, r->chunks_offset, r->mode);
}

/* Returns how many chunks to keep. A part of the buffer may go, too, because the program needs the
 * space more than this process needs all chunks. */
static uint32_t chunks_within(uint64_t limit)
{
	uint32_t nr = pb_ring_map.nr_chunks, buffer = nr < nr_buffer ? nr : nr_buffer;
	uint64_t most = limit / (8 * PB_CHUNK_SIZE);

	most = most < LEAST_CHUNKS ? LEAST_CHUNKS : most;
	return (most < buffer ? (uint32_t)most : buffer) + reserve_within(limit, nr - buffer);
}

void pb_session_limit_ring(uint64_t limit)
{
	uint64_t from, end = reserved.at + reserved.size;

	if (!reserved.size || !pb_ring_map.ring)
		return;
	from = pb_ring_cut(chunks_within(limit));
	if (from + PB_CHUNK_SIZE >= end)	/* that much is left by the alignment of the ring */
		return;
	/* as in pb_session_leave_ring() */
	reserved.size = from - reserved.at;
	pb_barrier();
	pb_pages_cut(from, end);
}

/* Unmaps the ring, because a process that maps the ring counts as traced. */
void pb_session_leave_ring(void)
{
	uint64_t size = reserved.size;

	pb_ring_map = (struct pb_ring_map){ 0 };
	/* if another thread forks now, the child must not unmap this range: the program may map
	 * memory there later */
	reserved.size = 0;
	pb_barrier();
	if (size)
		pb_pages_unmap(reserved.at, size);
}

/* Without a ring, or if the process could open only one file, an untraced image is counted in a
 * file in the socket's directory. */
static void count_in_file(const char *socket, char reason)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + sizeof(PB_MISSED_FILE)];
	size_t dir = strlen(socket), at;
	long fd;

	while (dir && socket[dir - 1] != '/')
		dir--;
	at = dir;
	if (dir + sizeof(PB_MISSED_FILE) > sizeof(path))
		return;
	memcpy(path, socket, dir);
	pb_put_str(path, sizeof(path), &at, PB_MISSED_FILE);
	fd = pb_sys(SYS_openat, AT_FDCWD, path,
		    O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (pb_sys_failed(fd))
		return;
	pb_sys(SYS_write, fd, &reason, 1);
	pb_sys(SYS_close, fd);
}

void pb_session_missed(struct pb_session *s, const char *path, int error)
{
	struct pb_ring *ring = pb_ring_map.ring;
	bool missed = pb_wire_missed(&s->wire);
	bool cramped = error == -ENOMEM && !missed && !pb_recording_ended();

	if (ring && (missed || cramped))
		__atomic_fetch_add(missed ? &ring->missed_images : &ring->cramped_images, 1,
				   __ATOMIC_RELAXED);
	else if (missed || cramped)
		count_in_file(path, missed ? PB_MISSED_SILENT : PB_MISSED_CRAMPED);
	else if (error == -EMFILE && !pb_recording_ended())
		count_in_file(path, PB_MISSED_FILES);
	pb_session_leave_ring();
}

void pb_session_shadow_stack(const char *path)
{
	count_in_file(path, PB_MISSED_SHADOW);
}

/* Receives the ring, which the recorder sends before it is asked for anything. Maps the ring if
 * this is the first connection. */
static int receive_ring(struct pb_session *s, bool first)
{
	const struct pb_msg_ring *r = body(s);
	uint32_t len;
	int fd, type = pb_wire_receive(&s->wire, &fd, &len), err = 0;

	if (type != PB_MSG_RING || len < sizeof(*r) || fd < 0)
		err = type < 0 ? type : -EPROTO;
	else if (first)
		err = map_ring(r, fd);
	if (fd >= 0)
		pb_sys(SYS_close, fd);
	return err;
}

static int say_hello(struct pb_session *s, bool first, uint32_t *len)
{
	struct pb_msg_hello hello = {
		.protocol = PB_PROTOCOL, .pid = (uint32_t)pb_sys(SYS_getpid),
		.tid = (uint32_t)pb_sys(SYS_gettid), .ppid = (uint32_t)pb_sys(SYS_getppid),
		.image = first ? 0 : pb_image, .clock = pb_cpu_counter(),
	};
	int fd, type, err = pb_wire_send(&s->wire, PB_MSG_HELLO, &hello, sizeof(hello), NULL, 0);

	if (err)
		return err;
	type = pb_wire_receive(&s->wire, &fd, len);
	if (fd >= 0)
		pb_sys(SYS_close, fd);
	if (type != PB_MSG_WELCOME || *len < sizeof(struct pb_msg_welcome))
		return type < 0 ? type : -EPROTO;
	return 0;
}

/* A write consists of three strings. */
static int keep_writes(const struct pb_msg_welcome *w, uint32_t len, const char **writes,
		       uint32_t *nr_writes)
{
	uint32_t size = len - sizeof(*w), strings = 0;
	char *copy = pb_arena_alloc(size + 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, w + 1, size);
	for (uint32_t i = 0; i < size; i++)
		strings += !copy[i];
	if (strings / 3 < w->nr_writes)
		return -EPROTO;
	*writes = copy;
	*nr_writes = w->nr_writes;
	pb_image = w->image;
	return 0;
}

/* The session that was opened last, for ask_late(). NULL: it is closed again, or there was none. */
static struct pb_session *talking;

int pb_session_open(struct pb_session *s, const char *path, bool first,
		    const char **writes, uint32_t *nr_writes)
{
	const struct pb_msg_welcome *w;
	uint32_t len;
	int err;

	s->wire.buffer = buffers[!first];
	w = body(s);
	err = pb_wire_connect(&s->wire, path);
	if (!err && first)
		pb_observer_pid = s->wire.recorder;
	if (!err)
		err = receive_ring(s, first);
	if (!err)
		err = say_hello(s, first, &len);
	if (!err) {
		talking = s;
		s->flags = w->flags;
		s->serve = w->flags & PB_WELCOME_SERVE;
		if (first)
			err = keep_writes(w, len, writes, nr_writes);
	}
	if (err)
		pb_wire_close(&s->wire);
	return err;
}

void pb_session_close(struct pb_session *s)
{
	if (talking == s)
		talking = NULL;
	pb_wire_close(&s->wire);
}

static int send_error(struct pb_session *s, int error, uint32_t of, const char *what,
		      const char *why)
{
	struct pb_msg_error head = { error, of };
	char text[512];
	size_t at = 0;

	pb_put_str(text, sizeof(text), &at, what);
	pb_put_str(text, sizeof(text), &at, ": ");
	pb_put_str(text, sizeof(text), &at, why ? why : "failed");
	return pb_wire_send(&s->wire, PB_MSG_ERROR, &head, sizeof(head), text, at + 1);
}

int pb_session_error(struct pb_session *s, int error, const char *what, const char *why)
{
	return send_error(s, error, PB_ERROR_OF_OTHERS, what, why);
}

int pb_session_progs_error(struct pb_session *s, int error, const char *why)
{
	return send_error(s, error, PB_ERROR_OF_PROGS, "bpf", why);
}

/* Receives a message that brings files. Returns 0 if at least one descriptor came with it. Returns
 * 1 if the observer has no file to send; the observer already knows the reason. Otherwise returns
 * -errno. */
static int receive_files(struct pb_session *s, uint32_t answer, size_t answer_len,
			 int fds[PB_WIRE_FDS])
{
	uint32_t len;
	int got = pb_wire_receive_fds(&s->wire, fds, &len);

	if (got == (int)answer && len >= answer_len && fds[0] >= 0)
		return 0;
	pb_wire_close_fds(fds);
	return got == PB_MSG_ERROR ? 1 : got < 0 ? got : -EPROTO;
}

/* Gives the module its stubs and sites. Returns the reason if they can't be mapped. */
static const char *map_stubs(struct pb_module *m, int fd, uint64_t size)
{
	return has_size(fd, size) ? pb_stubs_map(m, fd, size) : "its stubs are cut off";
}

static int ask_stubs(struct pb_session *s, struct pb_module *m)
{
	struct pb_msg_stubs ask = { .image = pb_image, .module = m->number };
	const struct pb_msg_stubs *answer = body(s);
	int fds[PB_WIRE_FDS];
	int err = pb_wire_send(&s->wire, PB_MSG_STUBS, &ask, sizeof(ask), NULL, 0);

	if (!err)
		err = receive_files(s, PB_MSG_STUBS, sizeof(*answer), fds);
	if (err)
		return err;
	if (map_stubs(m, fds[0], answer->size))
		err = -ENOEXEC;
	pb_wire_close_fds(fds);
	return err;
}

static bool ask_late(struct pb_module *m)
{
	return talking && m->analysis->nr_sites && !ask_stubs(talking, m) && m->sites;
}

int pb_session_ask_stubs(struct pb_session *s, struct pb_module *m, const char *path)
{
	int err = 0;

	if (m->stubs_missed && !m->sites && m->analysis->nr_sites)
		err = ask_stubs(s, m);
	m->stubs_missed = false;
	return err < 0 ? pb_session_error(s, err, path, err == -EMFILE ? "not traced: no file "
					  "descriptor is left for its stubs (see ulimit -n)" :
					  "not traced: its stubs can't be mapped") : 0;
}

/* Returns the reason if the module can't be traced. */
static const char *add_module(const struct pb_msg_analysis *a, const void *analysis, int stubs,
			      uint64_t bias, uint64_t link_map, struct pb_module **m)
{
	const char *why = NULL;

	*m = pb_text_add(analysis, a->size, bias, link_map, a->first_site, a->module, &why);
	if (!*m)
		return why;
	memcpy((*m)->links, a->links, sizeof(a->links));
	/* if the process has no descriptor left for the stubs, they are asked for again later */
	(*m)->stubs_missed = a->stubs_size && stubs < 0;
	if (a->stubs_size && stubs >= 0)
		why = map_stubs(*m, stubs, a->stubs_size);
	if (why) {
		pb_text_drop(*m);
		*m = NULL;
	}
	return why;
}

int pb_session_ask(struct pb_session *s, const char *path, uint64_t bias, uint32_t flags)
{
	struct pb_msg_module ask = { .image = pb_image, .pid = (uint32_t)pb_sys(SYS_getpid),
				     .bias = bias, .clock = pb_cpu_counter(), .flags = flags };

	pb_text_ask = ask_late;
	return pb_wire_send(&s->wire, PB_MSG_MODULE, &ask, sizeof(ask), path, strlen(path) + 1);
}

int pb_session_take(struct pb_session *s, const char *path, uint64_t bias, uint64_t link_map,
		    struct pb_module **m)
{
	struct pb_msg_analysis answer;
	const char *why = NULL;
	int fds[PB_WIRE_FDS], err;
	long p;

	*m = NULL;
	err = receive_files(s, PB_MSG_ANALYSIS, sizeof(answer), fds);
	if (err)
		return err < 0 ? err : 0;
	memcpy(&answer, body(s), sizeof(answer));
	p = !has_size(fds[0], answer.size) ? -EPROTO :
	    pb_pages_map(0, answer.size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fds[0], 0);
	if (!pb_sys_failed(p))
		why = add_module(&answer, (void *)p, fds[1], bias, link_map, m);
	pb_wire_close_fds(fds);
	if (pb_sys_failed(p))
		return (int)p;
	if (!*m)
		pb_pages_unmap((uint64_t)p, answer.size);
	return why && answer.first_site ? pb_session_error(s, -ENOEXEC, path, why) : 0;
}

int pb_session_progs(struct pb_session *s, const void **file, uint64_t *size)
{
	const struct pb_msg_progs *answer = body(s);
	int fds[PB_WIRE_FDS], err = pb_wire_send(&s->wire, PB_MSG_PROGS, NULL, 0, NULL, 0);
	long p;

	if (!err)
		err = receive_files(s, PB_MSG_PROGS, sizeof(*answer), fds);
	if (err)
		return err < 0 ? err : -EPROTO;
	*size = answer->size;
	p = !has_size(fds[0], *size) ? -EPROTO :
	    pb_pages_map(0, *size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fds[0], 0);
	pb_wire_close_fds(fds);
	if (pb_sys_failed(p))
		return (int)p;
	*file = (const void *)p;
	return 0;
}

int pb_session_gone(struct pb_session *s, uint32_t module)
{
	struct pb_msg_gone gone = { .image = pb_image, .pid = (uint32_t)pb_sys(SYS_getpid),
				    .module = module, .clock = pb_cpu_counter() };

	return pb_wire_send(&s->wire, PB_MSG_GONE, &gone, sizeof(gone), NULL, 0);
}

int pb_session_refused(struct pb_session *s, const struct pb_module *m)
{
	struct { struct pb_msg_refused head; struct { uint32_t func, reason; } list[4096]; } *r =
		(void *)s->wire.buffer;
	uint32_t nr = 0;
	int err = 0;

	if (!m->sites)
		return 0;
	for (uint32_t i = 0; i <= m->analysis->nr_funcs && !err; i++) {
		if (i < m->analysis->nr_funcs && m->sites[i].flags & FTRACE_FL_REFUSED) {
			uint32_t why = (uint32_t)(m->sites[i].flags >> FTRACE_FL_REASON_SHIFT);

			/* the recorder already knows the refusals of the analysis */
			if (why >= PB_REFUSED_DIFFERS) {
				r->list[nr].func = i;
				r->list[nr++].reason = why;
			}
		}
		if (nr == 4096 || (nr && i == m->analysis->nr_funcs)) {
			r->head = (struct pb_msg_refused){ pb_image, m->number, nr, 0 };
			err = pb_wire_send(&s->wire, PB_MSG_REFUSED, r, sizeof(r->head) + nr * 8,
					   NULL, 0);
			nr = 0;
		}
	}
	return err;
}

static int send_ready(struct pb_session *s, const struct pb_ftrace_totals *t, uint64_t patch_ns,
		      uint64_t start_ns)
{
	struct pb_msg_ready ready = {
		.image = pb_image, .pid = (uint32_t)pb_sys(SYS_getpid), .modules = t->modules,
		.sites = t->sites, .patched = t->patched, .refused = t->refused,
		.patch_ns = patch_ns, .start_ns = start_ns,
	};

	return pb_wire_send(&s->wire, PB_MSG_READY, &ready, sizeof(ready), NULL, 0);
}

int pb_session_ready(struct pb_session *s, uint64_t start_ns)
{
	struct pb_ftrace_totals t = pb_ftrace_totals();

	return send_ready(s, &t, pb_text_ns, start_ns);
}

int pb_session_arrived(struct pb_session *s, struct pb_module *const *list, uint32_t nr,
		       uint64_t patch_ns)
{
	struct pb_ftrace_totals t = { 0 };

	for (uint32_t i = 0; i < nr; i++)
		pb_ftrace_totals_add(&t, list[i]);
	return t.modules ? send_ready(s, &t, patch_ns, 0) : 0;
}

/* Serves a read or write of a control file. The message consists of the head and the path; a WRITE
 * also has the text. */
static int serve_one(struct pb_session *s, uint32_t type, uint32_t len)
{
	static char reply[PB_MSG_MAX];
	struct pb_msg_file head, answer = { 0 };
	char *path = (char *)body(s) + sizeof(head), *text;
	size_t n;

	if (len < sizeof(head) + 1)
		return -EPROTO;
	memcpy(&head, body(s), sizeof(head));
	n = len - sizeof(head);
	path[n] = 0;	/* buffer is larger than any message */
	text = path + strlen(path) + 1;
	if (type == PB_MSG_READ) {
		size_t max = sizeof(reply) - sizeof(head);

		pb_text_lock();
		answer.result = (int32_t)pb_file_read(path, reply,
						      head.size < max ? head.size : max,
						      head.offset);
		pb_text_unlock();
		return pb_wire_send(&s->wire, PB_MSG_REPLY, &answer, sizeof(answer), reply,
				answer.result > 0 ? (size_t)answer.result : 0);
	}
	if (type != PB_MSG_WRITE || text > path + n || head.size > (size_t)(path + n - text))
		return -EPROTO;
	text[head.size] = 0;
	pb_text_lock();
	answer.result = pb_file_write(path, text, head.append, true);
	pb_text_unlock();
	if (answer.result && pb_file_error)
		return pb_wire_send(&s->wire, PB_MSG_REPLY, &answer, sizeof(answer), pb_file_error,
				strlen(pb_file_error) + 1);
	if (!answer.result)
		answer.result = (int32_t)head.size;
	return pb_wire_send(&s->wire, PB_MSG_REPLY, &answer, sizeof(answer), NULL, 0);
}

bool pb_session_serve(struct pb_session *s)
{
	s->wire.idle = pb_creds_serve;
	for (;;) {
		uint32_t len;
		int fd, type = pb_wire_receive(&s->wire, &fd, &len);

		if (fd >= 0)
			pb_sys(SYS_close, fd);
		if (!pb_creds_serve())
			return true;
		if (type == PB_MSG_DETACH)
			return true;
		if (type < 0 || serve_one(s, (uint32_t)type, len))
			break;
	}
	pb_session_close(s);
	return false;
}
