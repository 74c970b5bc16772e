/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Registers the control file snapshot_on. The file names functions whose calls make the observer
 * take a snapshot of the ring. Context: start. */
#ifndef PB_ENGINE_SNAPSHOT_ON_H
#define PB_ENGINE_SNAPSHOT_ON_H
void pb_snapshot_on_register_files(void);
#endif
