/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages between an agent and its observer, over a SOCK_SEQPACKET Unix
 * socket whose path is in PATCHBAY_SESSION. Each is struct pb_msg, then `len`
 * bytes of body (at most PB_MSG_MAX). Strings are NUL-terminated inside the
 * body. Both sides check every length. The agent connects once for its start,
 * and once for each change of its modules later (it keeps no descriptor open
 * meanwhile, unless PB_WELCOME_SERVE).
 *
 *   agent                               observer
 *   connects -------------------------> accepted by a thread that does nothing else
 *   <--------------------------------- RING + ring fd, at once
 *   HELLO  ---------------------------> registers the process image
 *   <--------------------------------- WELCOME, or ERROR
 *   MODULE (each) --------------------> analysis from the cache, or made
 *   <--------------------------------- ANALYSIS + fd, or ERROR (not traced)
 *   STUBS ----------------------------> stubs of a module to patch, from the cache, or made
 *   <--------------------------------- STUBS + fd (abi/stubs.h), or ERROR
 *   PROGS ----------------------------> with PB_WELCOME_PROGS, when all modules are known
 *   <--------------------------------- PROGS + fd (abi/progs.h), or ERROR
 *   REFUSED* (what the agent refused)
 *   READY  --------------------------->  (on later connections: of new modules; GONE*)
 *   then the agent closes; with SERVE it stays, and answers WRITE and READ.
 *
 * An answer may take as long as an analysis takes. So the agent waits while the
 * ring's heartbeat changes, and gives up PB_PATIENCE_NS after the heartbeat has
 * stopped. The heartbeat is in the ring, so the RING message itself must come within
 * that time. A recorder that gets no processor doesn't count as stopped: while one of
 * its threads is runnable or waits for a disk, the agent waits up to PB_STARVED_NS.
 */
#ifndef PB_ABI_MESSAGES_H
#define PB_ABI_MESSAGES_H
#include <stdint.h>

#define PB_PROTOCOL	4
#define PB_MSG_MAX	65536

/* The documents promise that an agent waits 200 ms at most; the difference is for a busy
 * machine. */
#define PB_PATIENCE_NS	150000000ull
#define PB_STARVED_NS	2000000000ull	/* for a recorder without a processor, or at a disk */
/* A file in the socket's directory, with a byte for each image that gave up before it
 * had the ring. Such an image can't count itself in the ring. */
#define PB_MISSED_FILE	"missed"

enum pb_msg_type {
	PB_MSG_HELLO = 1, PB_MSG_WELCOME, PB_MSG_MODULE, PB_MSG_ANALYSIS,
	PB_MSG_REFUSED, PB_MSG_READY, PB_MSG_ERROR, PB_MSG_GONE,
	PB_MSG_WRITE, PB_MSG_READ, PB_MSG_REPLY,
	PB_MSG_PROGS, PB_MSG_RING, PB_MSG_STUBS,
};

struct pb_msg {
	uint32_t type;
	uint32_t len;		/* of the body */
};

struct pb_msg_hello {
	uint32_t protocol;
	uint32_t pid, tid, ppid;
	uint32_t image;		/* 0 at the start; on later connections the number from WELCOME */
	uint32_t flags;
	uint64_t clock;
};

#define PB_WELCOME_SERVE	1	/* stay connected, serve the control files */
#define PB_WELCOME_NO_FORK	2	/* don't follow children */
#define PB_WELCOME_NO_EXEC	4	/* don't pass the agent's variables on at exec */
#define PB_WELCOME_PROGS	8	/* there are eBPF programs: ask for them */

/*
 * Body: this, then the control writes to apply, in order: for each
 * "PATH\0OP\0VALUE\0" with OP ">" or ">>", PATH relative to tracing/.
 */
struct pb_msg_welcome {
	uint32_t image;		/* this program image's number in the session, from 1 */
	uint32_t flags;		/* PB_WELCOME_* */
	uint32_t nr_writes;
	uint32_t pad;
};

/* fd: the ring (abi/ring.h). The observer sends it first on every connection. */
struct pb_msg_ring {
	uint32_t mode;		/* PB_RING_* */
	uint32_t nr_buffer;	/* how many of the nr_chunks chunks, from chunk 0 on, are the buffer
				 * (abi/ring.h); with little address space, the agent may leave the
				 * others unmapped */
	uint64_t ring_size;
	uint32_t nr_threads, nr_chunks;
	uint64_t threads_offset, chunks_offset;
};

/* Body: this, then the path as the loader gives it. The observer opens it
 * through /proc/PID/root so that mount namespaces and chroots agree. */
struct pb_msg_module {
	uint32_t image, pid;
	uint64_t bias;		/* load address - link-time address */
	uint64_t clock;
	uint32_t flags;		/* PB_MODULE_* */
	uint32_t pad;
};
#define PB_MODULE_EXE	1
#define PB_MODULE_LDSO	2

#define PB_MSG_LINKS	4

/* fd: the analysis (abi/analysis.h), read-only. */
struct pb_msg_analysis {
	uint32_t first_site;	/* site number of funcs[i] is first_site + i; 0: not to be traced
				 * (no --module matches); the fd is still there for names */
	uint32_t module;	/* the module's number in the session */
	uint64_t size;
	uint64_t links[PB_MSG_LINKS];	/* bit i: link i of abi/progs.h is for this module */
};

/* The agent sends it with the module's number. The observer answers with the size and fd: the
 * stubs (abi/stubs.h), read-only. */
struct pb_msg_stubs {
	uint32_t image, module;
	uint64_t size;
};

/* The functions of a module that the agent refuses, besides those that the analysis refuses. */
struct pb_msg_refused {
	uint32_t image, module, nr, pad;
	struct { uint32_t func; uint32_t reason; } list[];	/* index into funcs[],
								 * PB_REFUSED_* */
};

/* Counts. At the start they cover all modules; on a later connection, the modules that the agent
 * asked for. */
struct pb_msg_ready {
	uint32_t image, pid;
	uint32_t modules;
	uint32_t sites, patched, refused;
	uint64_t patch_ns;	/* time spent in writing text */
	uint64_t start_ns;	/* from the first message to this one */
};

/* A control file's error, or why a module is not traced. Body: this + text
 * ("set_ftrace_filter: nothing matches 'foo'"). */
struct pb_msg_error {
	int32_t error;		/* -errno */
	uint32_t pad;
};

/* The agent sends it without a body. The observer answers with fd: struct pb_progs, read-only. */
struct pb_msg_progs {
	uint64_t size;
};

struct pb_msg_gone {
	uint32_t image, pid;
	uint32_t module, pad;
	uint64_t clock;
};

/* WRITE: this, then "PATH\0", then size bytes. READ: this, then "PATH\0".
 * REPLY: this, then (READ) up to PB_MSG_MAX - sizeof bytes from offset, or
 * (result < 0) an error text for users, if there is one. */
struct pb_msg_file {
	int32_t result;		/* REPLY: bytes, or -errno */
	uint32_t size;
	uint64_t offset;
	uint32_t append;	/* WRITE: 1 for >> */
	uint32_t pad;
};
#endif
