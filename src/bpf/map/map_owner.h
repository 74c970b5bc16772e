/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Owners of maps in files: locks of single bytes after all data (map_file.h). Without
 * libc. Context: not on a hit: system calls.
 */
#ifndef PB_BPF_MAP_MAP_OWNER_H
#define PB_BPF_MAP_MAP_OWNER_H
#include "bpf/map/map.h"

/* cmd: F_OFD_SETLK, F_OFD_GETLK; type: F_WRLCK, F_UNLCK. Of nr owners from the first on.
 * 0 or -errno; with F_OFD_GETLK *type becomes F_UNLCK if no process holds one. */
long pb_bpf_owner_lock(int fd, int cmd, short *type, uint32_t first, uint32_t nr);

/* Takes a number for this process, which holds it while the open file after fd lives.
 * What a previous owner left undone is repaired. 0; -errno; -EUSERS: as many have the map
 * as can. map->alive and the like, if wanted, are set before. */
int pb_bpf_become_owner(struct pb_bpf_map *map, int fd);
#endif
