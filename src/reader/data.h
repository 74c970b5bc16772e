/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An open data directory (abi/datadir.h): its meta data, the index of its chunks, its modules. No
 * file of the directory is trusted: each number is checked before use, and allocations are limited
 * by the size of the files. Missing or damaged parts are left out and reported in `notes`.
 *
 * Context: the observer, one thread. Strings belong to struct pb_data.
 */
#ifndef PB_READER_DATA_H
#define PB_READER_DATA_H
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/datadir.h"
#include "abi/messages.h"
#include "abi/ring.h"
#include "reader/trace_clock.h"

struct pb_symbols;

/* A chunk's place in the file. The array is sorted by (serial, seq). */
struct pb_chunk_ref {
	uint64_t offset;	/* where the chunk's header is in the file; with PB_CHUNK_REF_OPEN,
				 * the file is `open`, not `chunks` */
	uint64_t seq, start;
	uint32_t serial;
	uint32_t used;		/* number of bytes of records. In `chunks`, this is at most the
				 * number of bytes that the file has */
};

#define PB_CHUNK_REF_OPEN	(1ull << 63)
#define PB_CHUNK_REF_LEFT	(1ull << 62)	/* with OPEN: the reader doesn't wait for more
						 * records (follow.c) */

struct pb_thread {
	uint32_t serial, pid, tid;
	char comm[20];		/* the thread's name, or "" if it is unknown */
	size_t first, nr;	/* the thread's chunks in data->chunks */
	uint64_t start;		/* start time of the thread's first chunk. If the thread has no
				 * chunks, time of its first hit */
	uint64_t born;		/* time of the thread's first hit; 0: unknown */
	uint64_t lost, no_return, missed; /* the thread's own counts, as in struct pb_ring_thread */
	uint64_t discarded;	/* number of the lost calls that the recorder couldn't keep */
};

struct pb_module_map {
	uint32_t image, module, pid, first_site, nr_funcs, flags;
	uint64_t bias, from, to;	/* from, to: times at which the module was mapped and
					 * unmapped */
	char *path;
};

struct pb_image {
	uint32_t image, pid, ppid;
	uint32_t outer_pid;		/* as in struct pb_meta_image */
	uint64_t clock;
	char *path;
	size_t first_map, nr_maps;	/* the image's maps in data->maps, sorted by first_site */
	uint32_t nr_sites;		/* the numbers of the image's sites are below this number */
};

struct pb_exit {
	uint32_t pid;
	int32_t status;
};

/* A buffer of chunks. Recorders write only buffer 0. The format allows others (abi/ring.h). */
struct pb_buffer {
	uint32_t id;
	uint64_t chunks;
};

struct pb_data {
	char *dir;
	int dir_fd, chunks_fd;
	int open_fd;		/* the file `open`, or -1 */
	uint64_t chunks_size;

	struct pb_chunk_ref *chunks;
	size_t nr_chunks;
	uint32_t buffer;		/* number of the buffer that these chunks belong to; 0: the
					 * main buffer */
	struct pb_buffer *buffers;	/* all buffers of the directory */
	size_t nr_buffers;
	struct pb_thread *threads;	/* sorted by serial */
	size_t nr_threads;
	struct pb_image *images;	/* sorted; images[0] stands for all unknown images */
	size_t nr_images;
	struct pb_module_map *maps;
	size_t nr_maps;
	struct pb_exit *exits;
	size_t nr_exits;
	struct pb_msg_ready ready;	/* sums of the READY records. There is one READY record for
					 * each image's start, and one for each later load of
					 * modules */
	uint64_t refused_late;		/* number of PB_META_REFUSED records */
	uint32_t discard_error;		/* why calls were discarded (struct pb_meta_discarded) */
	struct pb_meta_end end;
	bool ended;			/* the recorder ended normally */
	bool followed;			/* rounds read what is new (follow.h) */
	bool unnoted;			/* part of a recording, for one pass over its chunks: errors
					 * add no notes. It isn't closed */
	bool damaged;			/* something was cut off or unreadable */
	bool whole;			/* no chunk is missing. So if the data has a call's end, it
					 * also has the call's ENTRY */
	struct pb_clock clock;
	char *session;			/* "key=value\n"... */

	/* NULL, or a function that is called from time to time while chunks are read. */
	void (*progress)(void *arg, uint64_t done, uint64_t total);
	void *progress_arg;
	uint64_t bytes_read, bytes_to_read;	/* progress of the current pass over the chunks */
	unsigned reads;

	char **notes;			/* lines for the user: what is missing, and why */
	size_t nr_notes;
	struct pb_symbols *symbols;
};

/* Opens one buffer of a directory. On failure, returns NULL, sets errno and writes one line to err:
 * what failed, why, and what to do. */
struct pb_data *pb_data_open(const char *dir, uint32_t buffer, char *err, size_t errlen);
void pb_data_close(struct pb_data *d);

/* Copies a key's value in the session's text to buf. If there is no such key, buf is "" and the
 * result is false. */
bool pb_data_session(const struct pb_data *d, const char *key, char *buf, size_t len);
bool pb_data_is_function_tracer(const struct pb_data *d);
/* True if calls have durations. */
bool pb_data_has_times(const struct pb_data *d);

/* Returns the file that has the chunk, and the chunk's offset there. */
static inline int pb_data_chunk_file(const struct pb_data *d, const struct pb_chunk_ref *ref,
				     uint64_t *offset)
{
	*offset = ref->offset & ~(PB_CHUNK_REF_OPEN | PB_CHUNK_REF_LEFT);
	return ref->offset & PB_CHUNK_REF_OPEN ? d->open_fd : d->chunks_fd;
}

struct pb_thread *pb_data_thread(const struct pb_data *d, uint32_t serial);
/* Returns the index of an image, or 0 if the image isn't known. */
size_t pb_data_image(const struct pb_data *d, uint32_t image);

/* True if an error may pass by itself: this process is short of descriptors or memory. */
static inline bool pb_data_may_pass(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

/* Adds a line to the notes, unless they have the same line. The caller limits the number of its
 * lines. */
void pb_data_note(struct pb_data *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* --- private to src/reader --- */
int pb_data_by_serial(const void *a, const void *b);	/* struct pb_thread */
void pb_thread_name_after(struct pb_thread *t, const struct pb_image *image);
bool pb_chunk_header_ok(const struct pb_chunk *c);
int pb_data_load_meta(struct pb_data *d, char *err, size_t errlen);
int pb_data_load_index(struct pb_data *d, char *err, size_t errlen);
/* Checks a file's header. Returns 0, or -errno with a line in err. */
int pb_data_check_header(const struct pb_data *d, const char *name, int fd, uint64_t magic,
			 char *err, size_t errlen);
#endif
