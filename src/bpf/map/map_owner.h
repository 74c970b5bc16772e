/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Owners of maps in files. An owner is a process that has the map. Each owner holds a lock on one
 * byte after the file's end (map_file.h). Uses no libc. Makes system calls. Context: not on a hit.
 */
#ifndef PB_BPF_MAP_MAP_OWNER_H
#define PB_BPF_MAP_MAP_OWNER_H
#include "bpf/map/map.h"

/* Locks, unlocks or tests the bytes of nr owners from `first` on. cmd: F_OFD_SETLK or F_OFD_GETLK.
 * *type: F_WRLCK or F_UNLCK. Returns 0 or -errno. After F_OFD_GETLK, *type is F_UNLCK if no other
 * open file description holds a lock on these bytes. */
long pb_bpf_owner_lock(int fd, int cmd, short *type, uint32_t first, uint32_t nr);

/* Takes an owner number for this process. The process keeps the number as long as the open file
 * description of fd lives. If a previous owner of the number has died, repairs the map. The repair
 * uses the map's callbacks `alive`, `claim` and `unclaim`. If the map is to have them, the caller
 * must set them before this call. Returns 0 or -errno; -EUSERS: no more processes can have the
 * map. */
int pb_bpf_become_owner(struct pb_bpf_map *map, int fd);
#endif
