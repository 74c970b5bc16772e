/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps in files: memory that processes share. Uses libc.
 *
 * Each process that has a map holds a lock on one byte after the end of the map's file; the
 * byte's number is the process's `owner`. The lock belongs to the open file description, which
 * lives as long as the mapping, whatever happens to descriptors. So the lock shows other
 * processes, in any PID namespace, that this process lives. The lock ends with the process.
 *
 * Context: not inside a run, not in signal handlers. Errors are -errno.
 */
#ifndef PB_BPF_MAP_MAP_FILE_H
#define PB_BPF_MAP_MAP_FILE_H
#include "bpf/map/map.h"

/* Creates a map in a memfd, whose descriptor other processes can get. */
int pb_bpf_map_create(struct pb_bpf_map *map, const struct pb_bpf_map_spec *spec);
/* Creates a map in an empty file that is open for reading and writing. Keeps fd. */
int pb_bpf_map_create_at(struct pb_bpf_map *map, const struct pb_bpf_map_spec *spec, int fd,
			 uint32_t id);

/*
 * Opens a view of a map in a file that another process made. Keeps fd, which must come from an
 * open() of this process: with an inherited or received descriptor, two processes would share one
 * lock. access: enum pb_bpf_map_access, what the view is for. -EINVAL: no map. -EUSERS: no more
 * processes can have the map.
 */
int pb_bpf_map_attach(struct pb_bpf_map *map, int fd, uint8_t access);

/* Whether any process has the map in this file. fd must come from an open() of this process. */
bool pb_bpf_map_file_used(int fd);

/* Unmaps the map, which no run may use any more. */
void pb_bpf_map_close(struct pb_bpf_map *map);
#endif
