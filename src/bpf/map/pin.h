/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pinned maps: names for maps in a tree of directories, with the rules and errors of
 * /sys/fs/bpf. A map's memory is a file; a pin is a link to it. Uses libc.
 *
 * Paths are those below the tree's root, or absolute ones that lie in it. No part of a path
 * may have a dot (-EPERM), and no link leads out of the tree (-EPERM). A map lives as long
 * as it is pinned or some process has it; until then it has a name of its own, its id, in
 * a directory beside the tree.
 *
 * Context: not inside a run, not in signal handlers. Errors are -errno.
 */
#ifndef PB_BPF_MAP_PIN_H
#define PB_BPF_MAP_PIN_H
#include "bpf/map/map.h"

#define PB_BPF_PIN_PATH 256

struct pb_bpf_pins {
	int root, ids;			/* directories */
	char path[PB_BPF_PIN_PATH];	/* the root's */
};

/* path NULL: $XDG_RUNTIME_DIR/patchbay/bpf, or /tmp/patchbay-UID/bpf. It is made if need be;
 * -EPERM: it is somebody else's. */
int pb_bpf_pins_open(struct pb_bpf_pins *pins, const char *path);
void pb_bpf_pins_close(struct pb_bpf_pins *pins);

/* A number that nothing here had as its id since the tree was made: for maps and programs. 0:
 * -errno in *err. */
uint32_t pb_bpf_pins_new_id(struct pb_bpf_pins *pins, int *err);
/* A new map that can be pinned; its id is none of any other map here. */
int pb_bpf_pins_create(struct pb_bpf_pins *pins, struct pb_bpf_map *map,
		       const struct pb_bpf_map_spec *spec);
/* The map of that id; -ENOENT: none. */
int pb_bpf_pins_get_id(struct pb_bpf_pins *pins, struct pb_bpf_map *map, uint32_t id,
		       uint8_t access);

/* -EEXIST; -ENOENT: no such directory; -EPERM; -EXDEV: it wasn't made by pb_bpf_pins_create
 * here. */
int pb_bpf_obj_pin(struct pb_bpf_pins *pins, const struct pb_bpf_map *map, const char *path);
/* flags: BPF_F_RDONLY, BPF_F_WRONLY or 0. -ENOENT; -EACCES: no map; -EINVAL; -EUSERS. */
int pb_bpf_obj_get(struct pb_bpf_pins *pins, struct pb_bpf_map *map, const char *path,
		   uint32_t flags);

/* Two names of one map are links to one file: a rename of one to the other leaves both, which
 * is so in the kernel only for names that were made by link. */
int pb_bpf_pins_link(struct pb_bpf_pins *pins, const char *from, const char *to);
int pb_bpf_pins_rename(struct pb_bpf_pins *pins, const char *from, const char *to);
int pb_bpf_pins_unlink(struct pb_bpf_pins *pins, const char *path);
int pb_bpf_pins_mkdir(struct pb_bpf_pins *pins, const char *path);
int pb_bpf_pins_rmdir(struct pb_bpf_pins *pins, const char *path);
#endif
