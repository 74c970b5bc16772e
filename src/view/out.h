/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Buffered output of the views to a file descriptor, with a few conversions that are
 * fast enough for a billion lines. An error (a full disk, a pager that the user quit)
 * is kept in `error` and ends the output.
 *
 * The pager starts with the first output, so that it doesn't hold the terminal while
 * a view still reads. Until then the terminal may show a progress line.
 *
 * Context: the observer, one thread.
 */
#ifndef PB_VIEW_OUT_H
#define PB_VIEW_OUT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#define PB_OUT_SIZE 65536

struct pb_out {
	int fd;
	int error;		/* errno of the first failed write */
	bool colour;
	bool want_pager;	/* the pager starts when there is something to show */
	bool begun;		/* something was written */
	bool progress;		/* the terminal shows a progress line */
	uint64_t progress_next;	/* when the progress line may change, monotonic ns; 0: never */
	const char *command;	/* named in the progress line */
	pid_t pager;		/* 0: none */
	size_t used;
	char buf[PB_OUT_SIZE];
};

/* Prepares output to stdout; with `pager`, through $PAGER (or less -FRX) if stdout is
 * a terminal. `command` is named in the progress line. */
void pb_out_open(struct pb_out *o, const char *command, bool pager);
/* Reports how far the view has read. After some time, prints a progress line to stderr if that is a
 * terminal and the view hasn't printed to the same terminal yet. */
void pb_out_progress(struct pb_out *o, uint64_t done, uint64_t total);
/* Writes what is left and waits for the pager. 0 or -errno; -EPIPE counts as 0. */
int pb_out_close(struct pb_out *o);
void pb_out_flush(struct pb_out *o);

void pb_out_mem(struct pb_out *o, const char *s, size_t len);
void pb_out_u64(struct pb_out *o, uint64_t value, unsigned width, char fill);
void pb_out_spaces(struct pb_out *o, size_t nr);
void pb_out_fmt(struct pb_out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A quoted and escaped string; bytes that aren't UTF-8 become U+FFFD. */
void pb_out_json(struct pb_out *o, const char *s);
/* A string, quoted if CSV requires it. */
void pb_out_csv(struct pb_out *o, const char *s);

static inline void pb_out_str(struct pb_out *o, const char *s)
{
	pb_out_mem(o, s, strlen(s));
}

static inline void pb_out_char(struct pb_out *o, char c)
{
	if (o->used == PB_OUT_SIZE)
		pb_out_flush(o);
	o->buf[o->used++] = c;
}
#endif
