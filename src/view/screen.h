/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A table that is refreshed in place on a terminal, with keys. The table uses the terminal's
 * alternate screen. When that screen is closed, the terminal shows its former contents again. Keys
 * are read at once, without echo and without a newline. ^C still sends a signal, but ^Z doesn't.
 * The terminal is restored when the process calls exit(), if not earlier, but not when a signal
 * kills the process.
 *
 * Context: the observer. There is one screen in a process.
 */
#ifndef PB_VIEW_SCREEN_H
#define PB_VIEW_SCREEN_H
#include <stdbool.h>
#include "view/out.h"

/* If the output is a terminal, and TERM isn't "dumb", shows the screen and returns true. If `keys`
 * is true, standard input is a terminal, and this process is in the foreground, keys are read from
 * standard input. */
bool pb_screen_open(struct pb_out *o, bool keys);
void pb_screen_close(struct pb_out *o);
/* Returns the number of lines and columns. */
void pb_screen_size(const struct pb_out *o, unsigned *lines, unsigned *columns);
/* Begins and ends a refresh. Each line between them must end with pb_screen_line(). */
void pb_screen_begin(struct pb_out *o);
void pb_screen_line(struct pb_out *o);
void pb_screen_end(struct pb_out *o);
/* Returns the next key, or 0 if none was pressed. */
char pb_screen_key(void);
#endif
