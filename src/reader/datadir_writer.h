/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes a data directory (abi/datadir.h). Append-only: what was written stays
 * readable if the recorder is killed at any point.
 *
 * Context: the observer. Meta functions may be called by any thread (each
 * record is one write on an O_APPEND file); the chunks file has one writer,
 * the drain thread.
 */
#ifndef PB_READER_DATADIR_WRITER_H
#define PB_READER_DATADIR_WRITER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "abi/datadir.h"

struct pb_datadir {
	char dir[4096];
	bool moved;		/* a former directory of that name is DIR.old now */
	int dir_fd, chunks_fd, meta_fd, modules_fd;
	uint64_t chunks_size;	/* bytes in the chunks file; the drain thread's */
};

/* Makes DIR. A Patchbay data directory of that name becomes DIR.old; the former
 * DIR.old waits as DIR.old~ until it is clear that the program runs. 0 or
 * -errno with a text in err: then all is as it was. */
int pb_datadir_open(struct pb_datadir *w, const char *dir, char *err, size_t errlen);
/* The program runs: what DIR.old was before goes. */
void pb_datadir_commit(struct pb_datadir *w);

/* Appends one meta record: body, then tail (both may be empty). */
int pb_datadir_meta(struct pb_datadir *w, uint32_t type, const void *body, size_t len,
		    const void *tail, size_t tail_len);
int pb_datadir_note(struct pb_datadir *w, const char *text);
int pb_datadir_clock(struct pb_datadir *w);

/* Copies `size` bytes of an analysis into modules/NUMBER. */
int pb_datadir_module(struct pb_datadir *w, uint32_t number, int fd, uint64_t size);

/* Appends to the chunks file: all of it or nothing. 0 or -errno. */
int pb_datadir_chunks(struct pb_datadir *w, const struct iovec *iov, int nr, uint64_t bytes);

void pb_datadir_close(struct pb_datadir *w);
/* Closes, and takes back what open did: for a program that never started.
 * Instead of pb_datadir_commit() and pb_datadir_close(). */
void pb_datadir_undo(struct pb_datadir *w);

/* Removes a data directory: only what such a directory holds. */
int pb_datadir_remove(const char *dir);
#endif
