/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs and maps that have a name in the tree of pins (bpf/pin.h), which lies in the
 * runtime directory; paths are those below its root, or absolute ones that lie in it. A
 * map's file is its memory; a program's is what its loader gave, is verified again by
 * each process that runs it, and counts its runs.
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
	/* then its functions, its instructions, ids of its maps (4 bytes each) */
};

struct bpf_pin_func {
	struct pb_bpf_func func;	/* without its name */
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
	/* one of both, for as long as the callback lasts */
	const struct bpf_pin_prog *prog;
	const struct pb_bpf_map_head *map;
};

/* The tree, made if need be; NULL after a message. */
struct pb_bpf_pins *bpf_pins(const char *command);
/* Where that name is, absolute; 0, or 1 after a message. */
int bpf_pin_place(const char *command, const char *name, char path[BPF_PIN_PATH]);
/* fn for all pins in the tree; ends when it returns not 0, which is returned. */
int bpf_pin_each(const char *command, int (*fn)(void *arg, const struct bpf_pinned *pin),
		 void *arg);
/* The program of that id; false: none. */
bool bpf_pin_find(const char *command, uint32_t id, char path[BPF_PIN_PATH]);

/* Writes a program's file; maps: ids. 0, or 1 after a message. */
int bpf_pin_write(const char *command, const char *path, const struct bpf_unit *u,
		  const struct bpf_loaded *l, const uint32_t *maps, uint32_t nr_maps, uint32_t *id);
/* A program's file, writable, or NULL after a message; to be unmapped by the end of the process. */
struct bpf_pin_prog *bpf_pin_read(const char *command, const char *path, size_t *size);
/* Opens a pinned map as the session's next one: of that path, or NULL: of that id. 0, or 1
 * after a message. */
int bpf_pin_map(struct bpf_session *s, const char *path, uint32_t id, uint8_t access);
/* The map of that id, opened as the next one if it isn't open; NULL: there is none. */
struct pb_bpf_map *bpf_pin_map_id(struct bpf_session *s, uint32_t id);
/* The program in that file as a unit, with its maps opened; 0, or 1 after a message. */
int bpf_pin_unit(struct bpf_session *s, const char *path, struct bpf_unit *u,
		 struct bpf_pin_prog **file);
/* Makes what the session's maps hold ready for a run: pinned programs and maps, and what these
 * hold. 0, or 1 after a message. */
int bpf_pin_elements(struct bpf_session *s);
#endif
