/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes a data directory (abi/datadir.h). The files `chunks` and `meta` are only appended to. So
 * the records in them stay readable, even if the recorder is killed at any point.
 *
 * Context: the observer. Any thread may write the meta file: a lock is held while a record is
 * written. If a record doesn't fit on the disk, no part of it stays in the file. Only the drain
 * thread writes the chunks file.
 */
#ifndef PB_READER_DATADIR_WRITER_H
#define PB_READER_DATADIR_WRITER_H
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "abi/datadir.h"

struct pb_datadir {
	char dir[4096];
	bool moved;		/* an existing directory was renamed to DIR.old */
	int dir_fd, chunks_fd, meta_fd, modules_fd;
	pthread_mutex_t meta_lock;
	uint64_t meta_size;	/* number of bytes of whole records in the meta file; under
				 * meta_lock */
	bool meta_torn;		/* the meta file has a part of a record at its end; under
				 * meta_lock */
	uint64_t chunks_size;	/* number of bytes in the chunks file; only the drain thread uses
				 * it */
};

/* Makes DIR. If a Patchbay data directory DIR exists, it is renamed to DIR.old. If DIR.old exists
 * as well, DIR.old is first renamed to DIR.old~, which is kept until pb_datadir_commit(). If a
 * recording is being written to one of them, fails with -EBUSY. Until pb_datadir_close(), the new
 * DIR is locked. Returns 0, or -errno with a text in err. On failure, DIR and DIR.old are as they
 * were before. */
int pb_datadir_open(struct pb_datadir *w, const char *dir, char *err, size_t errlen);
/* Removes DIR.old~. Must be called once the program runs and is traced. */
void pb_datadir_commit(struct pb_datadir *w);

/* These functions append a record to the meta file. They return 0 or -errno.
 * pb_datadir_meta(): the record consists of `body` and then `tail`; either may be empty. */
int pb_datadir_meta(struct pb_datadir *w, uint32_t type, const void *body, size_t len,
		    const void *tail, size_t tail_len);
/* Appends a text for users, for example why a module isn't traced. */
int pb_datadir_note(struct pb_datadir *w, const char *text);
/* Appends one time, as all clocks show it. */
int pb_datadir_clock(struct pb_datadir *w);

/* Copies `size` bytes of an analysis into modules/NUMBER. */
int pb_datadir_module(struct pb_datadir *w, uint32_t number, int fd, uint64_t size);

/* Appends all of the bytes to the chunks file, or none. Returns 0 or -errno. */
int pb_datadir_chunks(struct pb_datadir *w, const struct iovec *iov, int nr, uint64_t bytes);

/* Makes a file with a header. Returns its descriptor or -errno. */
int pb_datadir_file(struct pb_datadir *w, const char *name, uint64_t magic);

void pb_datadir_close(struct pb_datadir *w);
/* Closes the directory and undoes pb_datadir_open(). If the program never started, the caller calls
 * this function instead of pb_datadir_commit() and pb_datadir_close(). */
void pb_datadir_undo(struct pb_datadir *w);

/* Removes a data directory. Only files of a data directory are removed. Fails with -EBUSY if a
 * recording is being written to it. */
int pb_datadir_remove(const char *dir);
#endif
