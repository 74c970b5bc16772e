/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages between an agent and its observer, over a SOCK_SEQPACKET Unix socket whose path is in
 * PATCHBAY_SESSION. Each message is a struct pb_msg, followed by a body of `len` bytes (at most
 * PB_MSG_MAX). Strings are NUL-terminated inside the body. Both sides check every length. The agent
 * connects when it starts, and again for each later change of its modules. Without
 * PB_WELCOME_SERVE, the agent keeps no descriptor open between its connections.
 *
 *   agent                               observer
 *   connects -------------------------> accepted by a thread that does nothing else
 *   <--------------------------------- RING + ring fd, at once
 *   HELLO  ---------------------------> registers the process image
 *   <--------------------------------- WELCOME, or ERROR
 *   MODULE (each) --------------------> analysis from the cache, or made; for a module to patch
 *                                       also its stubs. Up to four requests may be on their way
 *   <--------------------------------- ANALYSIS + 1 or 2 fds, or ERROR (not traced)
 *   STUBS ----------------------------> stubs of a module that came without them, because only
 *                                       now a function of it is to be patched
 *   <--------------------------------- STUBS + fd (abi/stubs.h), or ERROR
 *   PROGS ----------------------------> with PB_WELCOME_PROGS, when all modules are known
 *   <--------------------------------- PROGS + fd (abi/progs.h), or ERROR
 *   REFUSED --------------------------> 0 or more messages: functions that the agent refused
 *   READY  --------------------------->
 *   then the agent closes the connection; with SERVE it stays, and answers WRITE, READ and DETACH.
 *
 * On a later connection, the agent sends MODULE only for new modules, and also sends GONE for each
 * unloaded module.
 *
 * An answer may take as long as an analysis. So the agent waits for an answer as long as the ring's
 * heartbeat changes. If the heartbeat hasn't changed for PB_PATIENCE_NS, the agent gives up. There
 * is one exception. If one of the recorder's threads is runnable or waits for a disk, the recorder
 * may only be short of processor time, and the agent waits up to PB_STARVED_NS. The heartbeat is in
 * the ring, so the RING message itself must come within PB_PATIENCE_NS.
 */
#ifndef PB_ABI_MESSAGES_H
#define PB_ABI_MESSAGES_H
#include <stdint.h>

#define PB_PROTOCOL	7
/* The name of the process that stops a program's threads (arch/x86_64/stop.c). The injector must
 * not take it for one of the program's processes. */
#define PB_STOP_HELPER	"patchbay-stop"
#define PB_MSG_MAX	65536

/* The documents promise that an agent waits at most 200 ms. PB_PATIENCE_NS is shorter, since an
 * agent on a busy machine may wake up late. */
#define PB_PATIENCE_NS	150000000ull
#define PB_STARVED_NS	2000000000ull	/* the limit if the recorder waits for processor or disk */
/* The limit until WELCOME, if the agent was brought into a running process. It may be long, because
 * no thread of the program waits for the agent then. From WELCOME to READY it takes the place of
 * PB_STARVED_NS. */
#define PB_ATTACH_NS	10000000000ull
/* A file in the socket's directory. An image that gave up before it had the ring can't be counted
 * in the ring, so it adds a byte to this file. The byte says why. */
#define PB_MISSED_FILE	"missed"
#define PB_MISSED_SILENT	's'	/* the recorder didn't answer in time */
#define PB_MISSED_CRAMPED	'm'	/* no memory could be mapped for the agent */
#define PB_MISSED_FILES	'f'	/* no descriptor was left for the agent */
#define PB_MISSED_SHADOW	'h'	/* the program has a shadow stack */

/* If PATCHBAY_SESSION is this prefix and a number, the injector has given the process a descriptor
 * of the socket's file. The number is that descriptor (attach/hand_over.h). */
#define PB_HANDED "/proc/self/fd/"

enum pb_msg_type {
	PB_MSG_HELLO = 1, PB_MSG_WELCOME, PB_MSG_MODULE, PB_MSG_ANALYSIS,
	PB_MSG_REFUSED, PB_MSG_READY, PB_MSG_ERROR, PB_MSG_GONE,
	PB_MSG_WRITE, PB_MSG_READ, PB_MSG_REPLY,
	PB_MSG_PROGS, PB_MSG_RING, PB_MSG_STUBS,
	PB_MSG_DETACH, PB_MSG_STATUS, PB_MSG_DATA,
};

struct pb_msg {
	uint32_t type;
	uint32_t len;		/* length of the body */
};

struct pb_msg_hello {
	uint32_t protocol;
	uint32_t pid, tid, ppid;
	uint32_t image;		/* 0 on the first connection; on later connections the number from
				 * WELCOME */
	uint32_t flags;
	uint64_t clock;
};

#define PB_WELCOME_SERVE	1	/* stay connected, and serve the control files */
#define PB_WELCOME_NO_FORK	2	/* don't follow children */
#define PB_WELCOME_NO_EXEC	4	/* don't pass the agent's environment variables on at
					 * exec */
#define PB_WELCOME_PROGS	8	/* there are eBPF programs: ask for them */

/*
 * Body: this structure, then nr_writes control writes, which the agent applies in order. Each write
 * is "PATH\0OP\0VALUE\0". OP is ">" or ">>". PATH is relative to tracing/.
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
	uint32_t nr_buffer;	/* the chunks below nr_buffer are the buffer (abi/ring.h); if
				 * address space is short, the agent needs to map only these
				 * chunks */
	uint64_t ring_size;
	uint32_t nr_threads, nr_chunks;
	uint64_t threads_offset, chunks_offset;
};

/* Body: this structure, then the module's path as the loader has it. The observer opens the path
 * through /proc/PID/root, and so in the agent's mount namespace and root directory. */
struct pb_msg_module {
	uint32_t image, pid;
	uint64_t bias;		/* load address minus link-time address */
	uint64_t clock;
	uint32_t flags;		/* PB_MODULE_* */
	uint32_t pad;
};
#define PB_MODULE_EXE	1
#define PB_MODULE_LDSO	2

#define PB_MSG_LINKS	4

/* Descriptors: the analysis (abi/analysis.h), and the file of stubs (abi/stubs.h) if stubs_size
 * isn't 0. Both are read-only. */
struct pb_msg_analysis {
	uint32_t first_site;	/* the site number of funcs[i] is first_site + i; 0: the module
				 * isn't traced (for example, no --module matches), but the fd still
				 * comes, for names */
	uint32_t module;	/* the module's number in the session */
	uint64_t size;
	uint64_t stubs_size;	/* 0: the module isn't traced, has no sites, or its stubs could not
				 * be made */
	uint64_t links[PB_MSG_LINKS];	/* bit i: link i of abi/progs.h applies to this module */
};

/* The agent sends this message with the number of a module that came without stubs. The observer
 * answers with the size, and with a read-only descriptor of the stubs. */
struct pb_msg_stubs {
	uint32_t image, module;
	uint64_t size;
};

/* Functions of one module: the agent refuses them, although the analysis doesn't. */
struct pb_msg_refused {
	uint32_t image, module, nr, pad;
	struct { uint32_t func; uint32_t reason; } list[];	/* func: index into funcs[]; reason:
								 * PB_REFUSED_* */
};

/* On the agent's first connection, these counts cover all modules. On a later connection they cover
 * the modules that the agent asked for. */
struct pb_msg_ready {
	uint32_t image, pid;
	uint32_t modules;
	uint32_t sites, patched, refused;
	uint64_t patch_ns;	/* time spent in writing text */
	uint64_t start_ns;	/* time from the first message to this message */
};

/* Says why a control file's read or write failed, or why a module is not traced. Body: this
 * structure, then a text ("set_ftrace_filter: nothing matches 'foo'"). */
struct pb_msg_error {
	int32_t error;		/* -errno */
	uint32_t of;		/* what failed: PB_ERROR_OF_* */
};
enum { PB_ERROR_OF_OTHERS, PB_ERROR_OF_PROGS };	/* PROGS: no eBPF program was started */

/* The agent sends this message without a body. The observer answers with this structure, and with
 * a read-only descriptor of a struct pb_progs. */
struct pb_msg_progs {
	uint64_t size;
};

struct pb_msg_gone {
	uint32_t image, pid;
	uint32_t module, pad;
	uint64_t clock;
};

/* DETACH has no body. The observer sends it to an agent. The agent first removes its tracers, while
 * the recorder still takes records. Then it restores the text and the signal handlers, and unmaps
 * the ring, unless a thread may still be in the agent's code. Last, it closes the connection. A
 * client may also send DETACH to the recorder. When the recording has ended, the recorder answers
 * with a REPLY and a line of text. */

/* A client sends RING and DATA without a body. The recorder answers RING with struct pb_msg_ring
 * and a descriptor of the ring, and DATA with a descriptor of the session's data directory. Both
 * descriptors are read-only. The ring's contents are untrusted: agents write them. */

/* A client sends STATUS without a body; agents don't send it. The recorder answers with this
 * structure. */
struct pb_msg_status {
	uint32_t pid;		/* the process whose agent serves this client */
	uint32_t pad;
	uint64_t since;		/* the time when the recording began (CLOCK_REALTIME, in seconds) */
	uint64_t bytes;		/* the number of bytes of records, including those in the ring and
				 * those that were overwritten since */
	uint64_t lost;		/* number of lost calls */
};

/* Body of WRITE: this structure, "PATH\0", then `size` bytes. Body of READ: this structure, then
 * "PATH\0". Body of REPLY: this structure. In the REPLY to a READ, bytes of the file follow, from
 * `offset` on: at most `size`, and no more than fit into PB_MSG_MAX. If result < 0, an error text
 * for users may follow instead. */
struct pb_msg_file {
	int32_t result;		/* REPLY: count of bytes, or -errno */
	uint32_t size;
	uint64_t offset;
	uint32_t append;	/* WRITE: 1 appends, as ">>" does */
	uint32_t pad;
};
#endif
