/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Buffered output of the views to a file descriptor. pb_out_str() and pb_out_u64() are fast enough
 * for a billion lines. If an error occurs (the disk is full, the user has quit the pager), `error`
 * keeps the errno and the output ends.
 *
 * The pager starts with the first output. So the pager doesn't hold the terminal before the view
 * has something to show. Before the first output, the terminal may show a progress line.
 *
 * Context: the observer, one thread.
 */
#ifndef PB_VIEW_OUT_H
#define PB_VIEW_OUT_H
#include <signal.h>
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
	bool want_pager;	/* the pager starts with the first output */
	bool begun;		/* something was written */
	bool progress;		/* the terminal shows a progress line */
	uint64_t progress_next;	/* the earliest time for the next change of the progress line,
				 * monotonic ns; 0: never */
	const char *command;	/* the command's name for the progress line */
	pid_t pager;		/* 0: none */
	sighandler_t old_pipe;	/* how SIGPIPE was handled before; for programs that are started
				 * while the output is open */
	size_t used;
	char buf[PB_OUT_SIZE];
};

/* Prepares output to stdout, and ignores SIGPIPE. If `pager` is true and stdout is a terminal, the
 * output goes through $PAGER (or less -FRX). The progress line names `command`. */
void pb_out_open(struct pb_out *o, const char *command, bool pager);
/* Reports how far the view has read. After some time, prints a progress line to stderr if stderr is
 * a terminal. If the view has already written output to a terminal, prints no progress line. */
void pb_out_progress(struct pb_out *o, uint64_t done, uint64_t total);
/* Writes the rest of the buffer and waits for the pager. Returns 0 or -errno; -EPIPE counts as
 * 0. */
int pb_out_close(struct pb_out *o);
void pb_out_flush(struct pb_out *o);

void pb_out_mem(struct pb_out *o, const char *s, size_t len);
/* Writes a number. If it has fewer digits than `width`, writes `fill` characters before it. */
void pb_out_u64(struct pb_out *o, uint64_t value, unsigned width, char fill);
/* Writes a number with a comma before each three digits. */
void pb_out_commas(struct pb_out *o, uint64_t value);
void pb_out_spaces(struct pb_out *o, size_t nr);
void pb_out_fmt(struct pb_out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Writes a quoted and escaped string; bytes that aren't UTF-8 become U+FFFD. */
void pb_out_json(struct pb_out *o, const char *s);
/* Writes a string. Quotes it if CSV requires quotes. */
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
