/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The control file snapshot_on: calls that ask the observer for a snapshot of the ring. Context:
 * start. */
#ifndef PB_ENGINE_SNAPSHOT_ON_H
#define PB_ENGINE_SNAPSHOT_ON_H
void pb_snapshot_on_register_files(void);
#endif
