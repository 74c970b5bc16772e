/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps in files: memory that processes share. Uses libc.
 *
 * Each process that may write a map holds a lock on one byte of its file after all
 * data, the byte's number being its `owner`. The lock belongs to the open file, which
 * lives as long as the mapping does, whatever becomes of descriptors: so it shows others
 * that this process lives, in any PID namespace, and is gone with it.
 *
 * Context: not inside a run, not in signal handlers. Errors are -errno.
 */
#ifndef PB_BPF_MAP_MAP_FILE_H
#define PB_BPF_MAP_MAP_FILE_H
#include "bpf/map/map.h"

/* A new map in memory of its own, which other processes get by its descriptor. */
int pb_bpf_map_create(struct pb_bpf_map *map, const struct pb_bpf_map_spec *spec);
/* The same in this file, which is empty and open for reading and writing; it is kept. */
int pb_bpf_map_create_at(struct pb_bpf_map *map, const struct pb_bpf_map_spec *spec, int fd,
			 uint32_t id);

/*
 * A view of the map in a file that another process made. fd is kept, and must be of an
 * open() of its own (not inherited, not sent: processes would share one lock); access:
 * enum pb_bpf_map_access, what the view is for. -EINVAL: no map. -EUSERS: as many
 * processes have it as can.
 */
int pb_bpf_map_attach(struct pb_bpf_map *map, int fd, uint8_t access);

/* Opens the file after a descriptor once more; -errno, or a descriptor. */
int pb_bpf_map_reopen(int fd, uint8_t access);

/* Whether any process has the map in this file, opened by open(). */
bool pb_bpf_map_file_used(int fd);

/* Unmaps it. No run may use it any more. */
void pb_bpf_map_close(struct pb_bpf_map *map);
#endif
