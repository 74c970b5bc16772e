/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory that the engine, in the traced program, and the recorder share.
 *
 *   offset 0                 struct pb_ring                      (one page)
 *   ring->threads_offset     struct pb_ring_thread[nr_threads]
 *   after it, aligned to 64  uint64_t taken[], a bit for each chunk
 *   ring->chunks_offset      chunk 0, chunk 1, ... each PB_CHUNK_SIZE bytes:
 *                            struct pb_chunk, then records (entries.h)
 *
 * One ring serves a whole session: every process that is traced, through fork and exec. The
 * observer creates the ring as a memfd, sets its size, and seals the size. The engine maps the
 * ring. The engine trusts no sizes but its own copy of them. The recorder trusts nothing that
 * it reads.
 *
 * States of a chunk, and the side that makes each transition:
 *
 *        engine         engine               engine
 *   FREE ------> TAKEN ------> OPEN ----------------------------> FULL
 *    ^             |           |  \                               ^ |
 *    |             |           |   `--> HELD ---------------------' |
 *    |   recorder: its thread  |         |  engine: chunk has holes; |
 *    |   is dead   |           |         |  FULL when they are filled|
 *    |             v           v         v                          v
 *    `------------------- READING <------'--------------------------'
 *         recorder                          recorder
 *
 * Each transition is a cmpxchg, except that the recorder leaves READING with a store-release. An
 * engine may also give a chunk back: TAKEN or OPEN -> FREE. A jump out of a signal handler may end
 * the code that opened a chunk, before the thread's position moves to the chunk. Then the same
 * thread may take the chunk over: OPEN -> TAKEN (take_over() in ring/change.c).
 *
 * In overwrite mode, an engine takes over FULL chunks (FULL -> TAKEN). In this mode the recorder
 * also makes a dead thread's chunk FULL (READING -> FULL), unless the chunk is empty. It frees old
 * FULL chunks that no engine may take over, because their index is too high (FULL -> READING).
 *
 * - The change to FULL is a release, which publishes the data. The recorder finds the end of the
 *   data itself: the last word that isn't zero.
 * - `used` is the size of the data when the chunk became OPEN. An OPEN chunk counts as empty if it
 *   has no more data than `used`, and its leaf_start is 0. An empty chunk may stay empty for good:
 *   a handler may have put another chunk with the same `seq` into its place.
 * - A HELD chunk has holes: words that interrupted code has reserved, and may still fill.
 * - An engine zeroes a TAKEN chunk, unless the chunk was never used (`uses` == 0).
 * - If the recorder dies, its READING chunks are never used again. Nothing else is lost.
 *
 * A chunk that isn't FREE has its bit in taken[] set. So both sides find chunks without looking at
 * each chunk. The engine sets the bit before it changes FREE to TAKEN. After the change, it checks
 * that the bit is still set. To free a READING chunk, the recorder clears the bit, then stores
 * FREE. The bit of a FREE chunk is set in three cases: an engine is about to take the chunk, an
 * engine was stopped before it took the chunk, or an engine gave the chunk back. The recorder takes
 * such a chunk (READING) and frees it.
 *
 * Chunks below nr_buffer are the buffer. Chunks from nr_buffer to nr_chunks are the reserve. The
 * reserve makes up for chunks that idle threads hold, so that other threads still have the whole
 * buffer. For this, an engine uses the chunks below pb_ring_usable(). This number is nr_buffer,
 * plus the number of chunks that threads hold, plus the number of threads that started lately.
 */
#ifndef PB_ABI_RING_H
#define PB_ABI_RING_H

#define PB_RING_MAGIC		0x31474e4952425031ull	/* "1PBRING1" */
#define PB_RING_VERSION		3
#define PB_CHUNK_SIZE		16384
#define PB_CHUNK_HEADER		128
#define PB_CHUNK_DEAD_ZONE	512	/* the chunk's last bytes: a record may end in them, but not
					 * begin */

#define PB_CHUNK_OPEN_MAX	128	/* limit on PB_EXT_OPEN records at a chunk's start; if more
					 * calls are open, only the innermost are listed */

#define PB_CHUNK_FREE		0
#define PB_CHUNK_OPEN		1
#define PB_CHUNK_FULL		2
#define PB_CHUNK_READING	3
#define PB_CHUNK_HELD		4
#define PB_CHUNK_TAKEN		5

#define PB_RING_DISCARD		0	/* if no chunk is free: drop records, and count them */
#define PB_RING_OVERWRITE	1	/* if no chunk is free: take over the next full chunk, round
					 * robin */
#define PB_RING_WAIT		2	/* if no chunk is free: wait for the recorder */

#ifndef __ASSEMBLER__
#include <stdint.h>

struct pb_chunk {
	uint32_t state;
	uint32_t serial;	/* serial of the thread that writes the chunk, unique in the
				 * session. One 64-bit cmpxchg changes `state` and `serial`
				 * together. So a writer's change fails if another thread has taken
				 * the chunk meanwhile */
	uint32_t buffer;	/* 0: the main buffer, the only one at present */
	uint32_t image;		/* program image (one per exec), which determines the table of
				 * sites */
	uint32_t pid, tid;
	uint32_t used;		/* in the ring: bytes of data when the chunk became OPEN; in a data
				 * directory: bytes of data */
	uint32_t depth;		/* count of calls that are open at `start` and whose ENTRY was
				 * written */
	uint64_t seq;		/* 0, 1, 2 ... for each thread; a gap means that chunks were
				 * overwritten or lost */
	uint64_t start;		/* time of the chunk's start; the first record has only the low bits
				 * of its time, and its full time is the nearest one to `start` */
	uint64_t stack;		/* the stack that the chunk's first records belong to */
	uint64_t lost;		/* total of calls that the thread lost before this chunk */
	uint64_t no_return;	/* total of the thread's calls that were recorded without a
				 * return */
	/* leaf_start and leaf_site describe the open leaf: the call that was entered last, if it
	 * may still run and has no ENTRY. If a record in the chunk has a time that isn't before
	 * leaf_start, these fields are stale. leaf_start is written after leaf_site. */
	uint64_t leaf_start;
	uint32_t leaf_site;
	uint32_t missed;	/* total of the thread's records that weren't written although their
				 * calls don't count as lost; for example, the EXIT of a call whose
				 * ENTRY was written */
	uint32_t uses;		/* how often this chunk was opened */
	uint32_t pad[9];
};
_Static_assert(sizeof(struct pb_chunk) == PB_CHUNK_HEADER, "chunk header");

/* One for each thread that has ever recorded. Only the thread itself writes it. */
struct pb_ring_thread {
	uint32_t serial;	/* 0 = unused */
	uint32_t pid, tid;
	uint32_t image;
	uint64_t lost;		/* total of the thread's calls without any record */
	uint64_t no_return;	/* total of the thread's calls that were recorded without a
				 * return */
	uint64_t start;		/* time of the thread's first hit */
	uint64_t late;		/* total of calls whose ENTRY found no room while they were open */
	uint64_t missed;	/* as in struct pb_chunk */
	uint64_t regained;	/* how many of these calls got a record after all, or are counted in
				 * `lost` by now */
};
_Static_assert(sizeof(struct pb_ring_thread) == 64, "ring thread");

/* Kinds of executed files into which the agent can't be loaded. */
#define PB_UNFIT_STATIC		0	/* names no loader */
#define PB_UNFIT_LOADER		1	/* names no loader, and is position-independent: a loader
					 * itself, or linked with -static-pie */
#define PB_UNFIT_SETID		2	/* setuid or setgid */
#define PB_UNFIT_MACHINE	3	/* 32-bit, or for another machine */
#define PB_UNFIT_LIBC		4	/* linked with another libc than glibc */
#define PB_UNFIT_UNREADABLE	5	/* the process can execute the file, but can't read it */
#define PB_UNFIT_FORMAT		6	/* neither ELF nor a script: run by a program that was
					 * registered with binfmt_misc */
#define PB_UNFIT_NR		7

#define PB_UNFIT_NAMING		1
#define PB_UNFIT_NAMED		2

/* Images that aren't traced because of their file's kind. */
struct pb_ring_unfit {
	uint32_t images;	/* their count */
	uint32_t named;		/* 0; PB_UNFIT_NAMING: the name is being written; PB_UNFIT_NAMED */
	char name[56];		/* the path of one of them, or the path's end; "": not known */
};

struct pb_ring {
	/* written by the observer before any process maps it */
	uint64_t magic;
	uint32_t version, mode;			/* PB_RING_* */
	uint32_t nr_threads, nr_chunks;
	uint64_t threads_offset, chunks_offset, size;
	uint64_t wait_ticks;			/* TSC ticks without a heartbeat after which the
						 * recorder counts as gone */
	uint32_t wait_pauses;			/* the same limit, counted in pauses; for use if the
						 * TSC mustn't be read */
	uint32_t nr_buffer;
	/* written by the engines */
	_Alignas(64) uint32_t next_serial;	/* a thread's serial is 1 + the result of a
						 * fetch_add */
	uint32_t next_chunk;			/* overwrite mode: the index of the next chunk to
						 * take over, round robin; if it isn't below
						 * pb_ring_usable(), chunk 0 is next */
	uint32_t threads_lost;			/* count of threads that found no free
						 * pb_ring_thread */
	uint32_t processes;			/* count of images that started and of children that
						 * were forked */
	uint32_t latched;			/* an engine turned itself off; latch_reason says
						 * why */
	char latch_reason[100];
	uint64_t max_stop_ns;	/* the longest stop for a change of text */
	/* counts of calls of threads that have no pb_ring_thread, or no state in their process */
	uint64_t calls_lost, calls_no_return;
	uint64_t chunks_overwritten;	/* overwrite mode: count of FULL chunks that were taken
					 * over, by engines or to free their memory */
	/* for a recorder that doesn't answer in time */
	uint64_t silent;	/* 1 + the heartbeat at which an engine gave up; until the heartbeat
				 * changes, no engine waits for an answer */
	uint32_t missed_modules, missed_images;		/* count of modules and images that aren't
							 * traced because the recorder didn't answer
							 * in time */
	uint32_t waits_in_vain;	/* PB_RING_WAIT: how often the writers of a process stopped waiting
				 * for a chunk, because the heartbeat had stopped */
	uint32_t sandboxed_images;	/* count of images that aren't traced because a seccomp
					 * filter was set before their exec */
	uint32_t cramped_images;	/* count of images that aren't traced because no memory
					 * could be mapped for the agent, or because the arguments
					 * left no room for the agent's variables */
	uint32_t remote_images;	/* count of images that aren't traced because they can't read the
				 * agent's file, or can't reach the recorder's socket */
	/* For snapshot_on. `snapshot_by` names the last call that asked for a snapshot:
	 * PB_SNAPSHOT_BY(). It is stored before the count changes. */
	uint32_t snapshots_asked;
	uint32_t remote_modules;	/* like remote_images: count of modules that aren't traced
					 * because the process can't reach the recorder's socket */
	uint64_t snapshot_by;
	struct pb_ring_unfit unfit[PB_UNFIT_NR];
	uint64_t calls_late, calls_regained;	/* like calls_lost; see struct pb_ring_thread */
	uint32_t nested_images;	/* count of images that aren't traced because a traced recorder has
				 * started them for its own recording */
	/* written by the observer */
	_Alignas(64) uint64_t heartbeat;	/* the observer changes it every 10 ms; on a busy
						 * machine the change may be late */
	uint32_t closing;			/* the session ends: waiting threads give up, and
						 * count the calls that they lose */
	uint32_t owner;				/* TID of the heartbeat's thread; when this thread
						 * dies, the kernel adds PB_OWNER_DIED */
	uint64_t usable;			/* low half: a number of chunks; high half: an older
						 * value of next_serial; see pb_ring_usable() */
	uint32_t free_word;			/* a hint: the first word of taken[] with a free
						 * chunk; engines and observer write it */
	uint64_t heartbeat_ns;			/* the time of the last heartbeat, from the
						 * observer's CLOCK_MONOTONIC */
};
_Static_assert(sizeof(struct pb_ring) <= 4096, "one page");

#define PB_OWNER_DIED	0x40000000u	/* FUTEX_OWNER_DIED */

/* A call in one word: how many microseconds it took (at most 2^32 - 1; 0: it has only begun), the
 * low 12 bits of its image's number, and its site. */
#define PB_SNAPSHOT_BY(us, image, site)	((us) << 32 | ((image) & 0xfff) << 20 | (site))
#define PB_SNAPSHOT_BY_US(word)		((word) >> 32)
#define PB_SNAPSHOT_BY_IMAGE(word)	((uint32_t)((word) >> 20) & 0xfff)
#define PB_SNAPSHOT_BY_SITE(word)	((uint32_t)(word) & 0xfffff)

/* The number of calls that are open and have no record. late, regained: sums over all threads; a
 * coroutine's call may be late in one thread and be regained in another. Never negative: the ring
 * may be damaged, and its counts may change while they are added up. */
static inline uint64_t pb_ring_open_late(uint64_t late, uint64_t regained)
{
	return (int64_t)(late - regained) > 0 ? late - regained : 0;
}

/* pb_ring_taken_offset() returns the offset of taken[], pb_ring_taken_words() its size in words. */
static inline uint64_t pb_ring_taken_offset(uint64_t threads_offset, uint32_t nr_threads)
{
	return (threads_offset + nr_threads * sizeof(struct pb_ring_thread) + 63) & ~63ull;
}

static inline uint64_t pb_ring_taken_words(uint32_t nr_chunks)
{
	return ((uint64_t)nr_chunks + 63) / 64;
}

/* Returns how many chunks may be in use, at most nr. The low half of `usable` is this number
 * without the threads that started lately. The high half is an older value of next_serial. Each
 * thread that got its serial after that value adds one chunk. */
static inline uint32_t pb_ring_usable(const struct pb_ring *ring, uint32_t nr)
{
	uint64_t word = __atomic_load_n(&ring->usable, __ATOMIC_RELAXED);
	uint32_t more = __atomic_load_n(&ring->next_serial, __ATOMIC_RELAXED) -
			(uint32_t)(word >> 32);
	uint64_t all = (uint64_t)(uint32_t)word + more;

	return all < 1 ? 1 : all < nr ? (uint32_t)all : nr;
}
#endif
#endif
