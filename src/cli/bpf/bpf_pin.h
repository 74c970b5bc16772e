/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads and writes pins: programs and maps that have a name in the tree of pins (bpf/map/pin.h).
 * The tree is the directory `bpf` beside the directories of sessions (record_session_base()). A
 * path is relative to the tree's root, or absolute and inside the tree. A map's file is the map's
 * memory. A program's file has the program as it was before verification, and counts the program's
 * runs. Each process that runs the program verifies it again.
 */
#ifndef PB_CLI_BPF_PIN_H
#define PB_CLI_BPF_PIN_H
#include "bpf/map/pin.h"
#include "cli/bpf/bpf_common.h"

#define BPF_PIN_MAGIC	0x3147525046504250ull	/* "PBPFPRG1" */


struct bpf_pin_prog {
	uint64_t magic;
	uint32_t version, id, type, attach_type, gpl, nr_funcs, nr_insns, nr_maps, xlated, jited;
	uint64_t loaded_at, runs, ns;
	char name[BPF_OBJ_NAME_LEN];
	/* The file continues with the program's functions, its instructions, and the ids of its
	 * maps (4 bytes each). */
};

struct bpf_pin_func {
	struct pb_bpf_func func;	/* without the function's name */
	char name[64];
};

static inline const uint32_t *bpf_pin_map_ids(const struct bpf_pin_prog *p)
{
	const char *funcs = (const char *)(p + 1);

	return (const uint32_t *)(funcs + p->nr_funcs * sizeof(struct bpf_pin_func) +
				  p->nr_insns * sizeof(struct bpf_insn));
}

struct bpf_pinned {
	const char *path;
	/* One of prog and map is set, the other is NULL. The pointer is valid only during the
	 * callback. */
	const struct bpf_pin_prog *prog;
	const struct pb_bpf_map_head *map;
};

/* Opens the tree. If the tree doesn't exist, makes it. After an error, prints a message, sets
 * errno, and returns NULL. */
struct pb_bpf_pins *bpf_pins(const char *command);
/* Closes the tree, if bpf_pins() has opened it. Frees the memory of maps that have no pin and that
 * no process has open. bpf_session_end() calls it. */
void bpf_pins_end(void);
/* Stores the absolute path of the pin `name`. The part below the tree's root must have no dot, so
 * the path can't lead out of the tree. Returns 0, or 1 after a message. */
int bpf_pin_place(const char *command, const char *name, char path[BPF_PIN_PATH]);
/* Notes that the session has made this pin. Returns 0. If there is no memory, removes the pin and
 * returns -ENOMEM. */
int bpf_pin_note(struct bpf_session *s, const char *path);
/* Removes the pins that the session has made. */
void bpf_pin_undo(struct bpf_session *s);
/* Calls fn for each pin in the tree. If fn returns a value that isn't 0, stops and returns this
 * value. If the tree can't be opened, returns 1 after a message. */
int bpf_pin_each(const char *command, int (*fn)(void *arg, const struct bpf_pinned *pin),
		 void *arg);
/* Returns whether the text is a number in decimal digits, and so is no path. *id: the number; 0 if
 * it is too large. No map or program has the id 0. */
bool bpf_pin_number(const char *text, uint32_t *id);
/* Finds the path of the program with this id. Returns false if there is no such program. */
bool bpf_pin_find(const char *command, uint32_t id, char path[BPF_PIN_PATH]);

/* Writes a program's file. `maps` has the ids of nr_maps maps. An instruction names a map by the
 * index of the map's id in `maps`. The id 0 means that the map wasn't made. *id becomes the
 * program's id. Returns 0, or 1 after a message. */
int bpf_pin_write(const char *command, const char *path, const struct bpf_unit *u,
		  const struct bpf_loaded *l, const uint32_t *maps, uint32_t nr_maps, uint32_t *id);
/* Maps a program's file, writable. The file stays mapped until the process ends. Returns NULL after
 * a message. */
struct bpf_pin_prog *bpf_pin_read(const char *command, const char *path, size_t *size);

/* --- bpf_session_maps.c --- */

/* Opens a pinned map as the session's next map. Finds the map by its path, or by its id if path is
 * NULL. Returns 0, or 1 after a message. */
int bpf_pin_map(struct bpf_session *s, const char *path, uint32_t id, uint8_t access);
/* Returns the map with this id. If the map isn't open, opens it as the session's next map. NULL:
 * there is no such map, or it can't be opened. */
struct pb_bpf_map *bpf_pin_map_id(struct bpf_session *s, uint32_t id);

/* --- bpf_pin_load.c --- */

/* Reads the program in the file `path` into *u, and opens its maps. The caller must call
 * bpf_pin_unit_free(), even after an error. Returns 0, or 1 after a message. */
int bpf_pin_unit(struct bpf_session *s, const char *path, struct bpf_unit *u,
		 struct bpf_pin_prog **file);
void bpf_pin_unit_free(struct bpf_unit *u);
/* The elements of prog arrays and of maps of maps are ids. Loads the programs and opens the maps
 * with these ids, for all maps of the session, including those that it opens. To be called before
 * a run. Returns 0, or 1 after a message. */
int bpf_pin_elements(struct bpf_session *s);
#endif
