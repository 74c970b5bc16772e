/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tells processes apart that have the same PID at the same time, because they are in different PID
 * namespaces.
 *
 * Context: the observer, one thread.
 */
#ifndef PB_VIEW_SAME_PIDS_H
#define PB_VIEW_SAME_PIDS_H
#include "reader/data.h"

/* Numbers the processes that have another process' PID. numbers[i], which the caller has set to 0,
 * becomes the number of the process of data->threads[i]: 1, 2, ...; or it remains 0, if the process
 * is the only one or the first one with its PID. Adds the count of these processes to *nr. Returns
 * 0 or -ENOMEM. */
int pb_same_pids(struct pb_data *d, uint32_t *numbers, uint32_t *nr);
#endif
