/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pinned maps: names for maps in a tree of directories, with the rules and errors of /sys/fs/bpf. A
 * map's memory is a file; a pin is a link to it. Uses libc.
 *
 * A path is relative to the tree's root, or absolute and inside the tree. No part of a path may
 * contain a dot (-EPERM), and no symbolic link may lead out of the tree (-EPERM). A map lives as
 * long as it is pinned or open in a process. During this time, a directory next to the tree has
 * another link to the map's file. The name of this link is the map's id.
 *
 * Context: not inside a run, not in signal handlers. Errors are -errno.
 */
#ifndef PB_BPF_MAP_PIN_H
#define PB_BPF_MAP_PIN_H
#include "bpf/map/map.h"

#define PB_BPF_PIN_PATH 256

struct pb_bpf_pins {
	int root, ids;			/* descriptors of directories. root: the tree's root; ids:
					 * the directory of links whose names are ids of maps */
	char path[PB_BPF_PIN_PATH];	/* the root's path */
};

/* Opens the tree at path, and creates the tree if it doesn't exist. -EPERM: another user owns the
 * tree, or may write to it. */
int pb_bpf_pins_open(struct pb_bpf_pins *pins, const char *path);
/* Closes the tree. Like pb_bpf_pins_open(), frees the memory of maps that have no pin and that no
 * process has open. */
void pb_bpf_pins_close(struct pb_bpf_pins *pins);

/* Returns an id for a map or a program. No earlier map or program of the tree has had this id. Ids
 * are reused only after INT32_MAX. 0: an error; *err is -errno. */
uint32_t pb_bpf_pins_new_id(struct pb_bpf_pins *pins, int *err);
/* Creates a map that can be pinned. The new map's id is unique in the tree. */
int pb_bpf_pins_create(struct pb_bpf_pins *pins, struct pb_bpf_map *map,
		       const struct pb_bpf_map_spec *spec);
/* Opens the map with this id. -ENOENT: there is no such map. */
int pb_bpf_pins_get_id(struct pb_bpf_pins *pins, struct pb_bpf_map *map, uint32_t id,
		       uint8_t access);

/* Pins the map at path. -EEXIST: the path exists. -ENOENT: the directory doesn't exist. -EPERM: the
 * path isn't allowed. -EXDEV: the map's file isn't on the tree's file system, for example because
 * pb_bpf_map_create() made the map. */
int pb_bpf_obj_pin(struct pb_bpf_pins *pins, const struct pb_bpf_map *map, const char *path);
/* Opens the map that is pinned at path. flags: BPF_F_RDONLY, BPF_F_WRONLY or 0. -ENOENT: the path
 * doesn't exist. -EACCES: the file isn't a map. -EINVAL: the flags are invalid. -EUSERS: no more
 * processes can have the map. */
int pb_bpf_obj_get(struct pb_bpf_pins *pins, struct pb_bpf_map *map, const char *path,
		   uint32_t flags);

/* The functions from here on act as in the kernel's file system, with one difference. Here all pins
 * of a map are links to one file. So a rename of one pin to another pin of the same map does
 * nothing, and both pins stay. In the kernel both pins stay only if link() has made one from the
 * other. */
int pb_bpf_pins_link(struct pb_bpf_pins *pins, const char *from, const char *to);
int pb_bpf_pins_rename(struct pb_bpf_pins *pins, const char *from, const char *to);
int pb_bpf_pins_unlink(struct pb_bpf_pins *pins, const char *path);
int pb_bpf_pins_mkdir(struct pb_bpf_pins *pins, const char *path);
int pb_bpf_pins_rmdir(struct pb_bpf_pins *pins, const char *path);
#endif
