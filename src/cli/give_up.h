/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lets the user end a command whose output isn't read: when the recording has ended, a signal makes
 * the command give up the rest of its output. Context: see each function. */
#ifndef PB_CLI_GIVE_UP_H
#define PB_CLI_GIVE_UP_H

struct pb_out;

/* The calling thread writes the output from now on. Context: any thread. */
void cli_give_up_writer(void);
/* From now on, SIGINT, SIGQUIT, SIGTERM or SIGHUP makes writes to `out` fail with ECANCELED, also a
 * write that waits for its reader. The caller has blocked these signals. A signal that this process
 * ignores has no effect. Context: the main thread. */
void cli_give_up_begin(struct pb_out *out);
/* Ends the effect of cli_give_up_begin(), if it was called. Context: the main thread. */
void cli_give_up_end(void);
#endif
