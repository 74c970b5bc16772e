/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A data directory (patchbay.data). It is self-contained: it can be replayed on another machine,
 * and after the program was rebuilt.
 *
 *   chunks      struct pb_data_header, then chunks as they were drained: struct
 *               pb_chunk with `used` set, then `used` bytes of records. The chunks are in
 *               any order; readers sort them by (serial, seq). If the last chunk is
 *               truncated, readers use all of its complete words.
 *   meta        struct pb_data_header, then struct pb_meta records in the order of
 *               their arrival: about the session, images, modules, threads and the ends of
 *               processes. An image is a program that a process runs. Each exec begins a
 *               new image; a forked child has the image of its parent.
 *   open        only while a recording runs, or after the recorder was killed: struct
 *               pb_data_header, then places of PB_CHUNK_SIZE bytes from offset PB_CHUNK_SIZE on.
 *               A place is empty, or holds a chunk that wasn't full yet. If `chunks` has a chunk
 *               with the same serial and seq, the chunk in `chunks` is newer.
 *   modules/N   the analysis (abi/analysis.h) of module number N: its symbols.
 *
 * The recorder only appends to `chunks` and `meta`. If the recorder is killed, all that it wrote
 * remains.
 * All integers are little-endian. Readers skip meta types they don't know.
 */
#ifndef PB_ABI_DATADIR_H
#define PB_ABI_DATADIR_H
#include <stdint.h>

#define PB_DEFAULT_DIR "patchbay.data"

#define PB_DATA_MAGIC_CHUNKS	0x314b4e4843425031ull	/* "1PBCHNK1" */
#define PB_DATA_MAGIC_META	0x314154454d425031ull	/* "1PBMETA1" */
#define PB_DATA_MAGIC_OPEN	0x314e45504f425031ull	/* "1PBOPEN1" */
#define PB_DATA_VERSION		1

struct pb_data_header {
	uint64_t magic;
	uint32_t version;
	uint32_t pad;
};

enum pb_meta_type {
	PB_META_SESSION =
		1,	/* text: "key=value\n"... (cmdline, exe, cwd, host, kernel, user, tracer,
				 * clock, mode, version, started (ISO time), buffer, cpus; an
				 * "option=PATH OP VALUE" for each control write; "snapshot=WHY"
				 * in a snapshot) */
	PB_META_CLOCK,		/* struct pb_meta_clock: two records at the start, one at the end,
				 * and more in between */
	PB_META_IMAGE,		/* struct pb_meta_image + exe path */
	PB_META_MODULE,		/* struct pb_meta_module + path */
	PB_META_MODULE_GONE,	/* struct pb_meta_module + path */
	PB_META_REFUSED,	/* struct pb_meta_refused: a function that an agent refused */
	PB_META_READY,		/* struct pb_msg_ready */
	PB_META_THREAD,		/* struct pb_ring_thread + the thread's name, written at the end */
	PB_META_EXIT,		/* struct pb_meta_exit */
	PB_META_NOTE,		/* text for users: a limit that was reached, or why a module isn't
				 * traced */
	PB_META_END,		/* struct pb_meta_end; only written if the recorder ended
				 * normally */
	PB_META_DISCARDED,	/* struct pb_meta_discarded; follows the PB_META_THREAD of the same
				 * thread, if the recorder discarded calls of the thread */
};

struct pb_meta {
	uint32_t type;
	uint32_t len;		/* length of the body, which follows; the file pads the body to a
				 * multiple of 8 */
};

/* One instant on several clocks. tsc is in ticks, the other four times are in ns. */
struct pb_meta_clock {
	uint64_t tsc, monotonic, monotonic_raw, boottime, realtime;
};

/* In this structure and the following ones, `clock` is the time of the event in TSC ticks. */
struct pb_meta_image {
	uint32_t image, pid, ppid;	/* pid, ppid: as the process itself sees them */
	uint32_t outer_pid;		/* the process's pid in the recorder's pid namespace; 0: not
					 * known. Old recorders don't write it */
	uint64_t clock;
};

struct pb_meta_module {
	uint32_t image, module, pid;
	uint32_t first_site;	/* in the image, funcs[i] has site number first_site + i; 0: the
				 * module isn't traced and gives only names */
	uint64_t bias, clock;
	uint32_t nr_funcs, flags;	/* PB_MODULE_* */
};

struct pb_meta_refused {
	uint32_t image, module, func, reason;
};

/* Calls that the program recorded, but the recorder couldn't keep. The thread's `lost` includes
 * them. */
struct pb_meta_discarded {
	uint32_t serial;
	uint32_t error;		/* errno of the write that failed; 0: --max-size was reached */
	uint64_t calls;
};

struct pb_meta_exit {
	uint32_t pid;
	int32_t status;		/* wait status, as from waitpid() */
	uint64_t clock;
};

struct pb_meta_end {
	uint64_t records;	/* count of the records in `chunks` that begin or end calls; a
				 * record of several words counts once */
	uint64_t lost, no_return, bytes;	/* lost: count of calls without any record;
						 * no_return: count of calls that were recorded
						 * without a return; bytes: size of `chunks` */
	uint32_t threads, processes;
	uint32_t flags;		/* PB_END_* */
	uint32_t pad;
	uint64_t max_stop_ns;	/* the longest stop of a thread, for an attach or a change of
				 * text */
	/* Old recorders don't write the members `overwritten` and `chunks_overwritten`. */
	uint64_t overwritten;	/* overwrite mode: count of calls in chunks for which --max-size had
				 * no room */
	uint64_t chunks_overwritten;	/* overwrite mode: how many chunks of the ring were
					 * overwritten, also of threads of which no chunk remains */
};
#define PB_END_MAX_SIZE		1	/* recording stopped because of --max-size */
#define PB_END_DISK_FULL	2
#define PB_END_LATCHED		4	/* an agent turned itself off */
#endif
