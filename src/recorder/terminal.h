/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds out whether the program shares the recorder's terminal. Context: any thread. */
#ifndef PB_RECORDER_TERMINAL_H
#define PB_RECORDER_TERMINAL_H
#include <stdbool.h>
#include <sys/types.h>

/* True if a descriptor of the process leads to the terminal of the recorder's descriptor fd.
 * Standard input doesn't count. Also true if this can't be found out, for example because the
 * process is ending and has no descriptors any more. */
bool record_procs_have_terminal(pid_t pid, int fd);
#endif
