/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps in files: memory that processes share. Uses libc.
 *
 * A process that has a map shows other processes, in any PID namespace, that it lives. For this,
 * each owner number has a lock byte, at the offset 2^56 + number of the map's file, far beyond the
 * file's end. The process holds a lock on the byte of its own `owner` number. The lock belongs to
 * the open file description, which lives as long as the mapping. So the program may close the
 * descriptor without losing the lock. The lock ends with the process.
 *
 * Context: not inside a run, not in signal handlers. Errors are -errno.
 */
#ifndef PB_BPF_MAP_MAP_FILE_H
#define PB_BPF_MAP_MAP_FILE_H
#include "bpf/map/map.h"

/* Creates a map in a memfd. Another process can open the memfd by /proc/PID/fd, and then call
 * pb_bpf_map_attach(). -EFBIG: this process's limit of file sizes (ulimit -f) is too low. */
int pb_bpf_map_create(struct pb_bpf_map *map, const struct pb_bpf_map_spec *spec);
/* Creates a map in an empty file that is open for reading and writing. The map keeps fd until
 * pb_bpf_map_close(). Gets room in the file system for the whole map, so that no store to the map
 * raises SIGBUS later, when the file system is full. -ENOSPC: there isn't enough room. */
int pb_bpf_map_create_at(struct pb_bpf_map *map, const struct pb_bpf_map_spec *spec, int fd,
			 uint32_t id);

/*
 * Opens a view of a map in a file that another process made. The map keeps fd until
 * pb_bpf_map_close(). fd must come from an open() of this process. With an inherited or received
 * fd, two processes would share one lock. access: the rights of the view (enum pb_bpf_map_access).
 * -EINVAL: the file has no map. -EUSERS: no more processes can have the map.
 */
int pb_bpf_map_attach(struct pb_bpf_map *map, int fd, uint8_t access);

/* Returns whether any process has the map in this file. fd must come from an open() of this
 * process. */
bool pb_bpf_map_file_used(int fd);

/* Unmaps the map. No run may use the map any more. */
void pb_bpf_map_close(struct pb_bpf_map *map);
#endif
