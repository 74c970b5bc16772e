/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One analysis at work. The stages, in this order; each fills what the next
 * ones read:
 *
 *   ranges    where code is, and which of it is the linker's stubs
 *   cfi       .eh_frame
 *   symbols   candidates for functions, and labels, from every symbol table
 *   imports   compiler hooks (mcount, __fentry__, ...): their slots and stubs;
 *             what relocations say of code addresses
 *   depth     the stack's depth in assembly without .eh_frame, as FDEs
 *   lsda      where exceptions land
 *   sweep     decodes all code once: branch targets, calls of hooks, readers
 *             of the return address, padding
 *   functions candidates and FDEs become functions
 *   records   __mcount_loc and the like say which of them the compiler prepared
 *   sites     window, recipe, hole, or the reason to refuse
 *   exits     where functions are left, and how that is hooked
 *   emit      the file
 */
#ifndef PB_MODULE_STAGES_H
#define PB_MODULE_STAGES_H
#include <stdbool.h>
#include <stdint.h>
#include "abi/analysis.h"
#include "module/analysis/exit_types.h"
#include "module/analysis/flags.h"
#include "module/elf/cfi.h"
#include "module/elf/elf_file.h"
#include "module/elf/vec.h"

/* Executable bytes. Sorted, disjoint. */
struct pb_range {
	uint64_t addr, size;
	const uint8_t *bytes;
	bool stubs;		/* .plt and the like: nothing in it is a function */
	/* a bit for each byte: control may come here; and that by a call */
	uint64_t *reached, *called;
	/* with PB_MODULE_RETURNS: an instruction begins (in code with an FDE); part of a
	 * window, a hole or a dig */
	uint64_t *starts, *used;
	/* and by more than direct branches in code that something vouches for */
	uint64_t *otherwise;
};

#define PB_CAND_GLOBAL	1
#define PB_CAND_IFUNC	2

/* A symbol that names a function. The name lies in the file's bytes. */
struct pb_cand {
	uint64_t addr, size;
	const char *name;
	uint32_t len;
	uint32_t flags;
};

struct pb_fn {
	uint64_t addr, size;
	size_t cand;		/* the first (best) of nr_cands */
	uint32_t nr_cands;
	int32_t fde;		/* that starts here, or -1 */
	uint8_t flags;		/* PB_FUNC_* */
	uint8_t kind, refused;
	bool recorded;		/* the compiler prepared it */
	uint8_t window, window_len;
	uint8_t dug_len;	/* of the code that its hole is dug into, or 0 */
	uint8_t host;		/* may code be dug away from it? PB_HOST_* */
	uint8_t inexit;		/* enum pb_inexit */
	int16_t via;
	uint32_t recipe;
};

#define PB_ENTRY_REACH 4	/* an entry's window begins there at the latest: after an endbr64 */

enum { PB_HOST_UNKNOWN, PB_HOST_YES, PB_HOST_NO };

/* What the compiler calls at a function's start (and, the last, at its end). */
enum pb_hook { PB_HOOK_NONE, PB_HOOK_MCOUNT, PB_HOOK_FENTRY, PB_HOOK_CYG, PB_HOOK_CYG_EXIT };

struct pb_hook_at {
	uint64_t addr;
	uint8_t hook;
	uint8_t len;		/* of the call, where that is what stands at addr */
};
typedef PB_VEC(struct pb_hook_at) pb_hook_vec;
typedef PB_VEC(uint64_t) pb_addr_vec;

struct pb_word {
	uint64_t addr, value;
};

/* A jump out of its FDE's code. */
struct pb_leap {
	uint64_t from, to;
};
typedef PB_VEC(struct pb_leap) pb_leap_vec;

/* Padding between functions that nothing falls into. */
struct pb_gap {
	uint64_t addr, end;
};
typedef PB_VEC(struct pb_gap) pb_gap_vec;

struct pb_an {
	struct pb_elf elf;
	struct pb_elf debug[2];	/* the debug file, the mini debug info */
	unsigned nr_debug;
	int debug_fd;		/* of the debug file, or -1 */
	const char *path;
	unsigned flags;		/* PB_MODULE_* */
	uint32_t an_flags;	/* PB_AN_* */
	uint32_t runtimes;	/* bits of runtimes.h */
	const char *soname;
	bool is_loader, is_agent;

	PB_VEC(struct pb_range) ranges;
	size_t main_range;	/* the biggest */
	struct pb_cfi cfi;
	PB_VEC(struct pb_cand) cands;
	pb_addr_vec labels;	/* in code, but no functions */
	pb_hook_vec hook_slots, hook_stubs; /* pointers to hooks; code that goes to hooks */
	pb_addr_vec ifuncs;	/* resolvers */
	PB_VEC(const Elf64_Shdr *) records; /* the sections that hold the compiler's records */
	PB_VEC(struct pb_word) words;	/* what relocations put into record sections */
	pb_addr_vec textrels;	/* relocated addresses inside ranges */

	pb_hook_vec hook_calls;
	pb_gap_vec gaps;
	pb_leap_vec leaps;	/* sorted by where they lead to */
	pb_addr_vec tables;	/* data whose address code takes */
	pb_addr_vec ra_reads;	/* instructions that read the return address's slot */

	PB_VEC(struct pb_fn) fns;
	uint64_t dig_work;	/* looking for places to dig */
	pb_addr_vec barriers;	/* every start of anything in code */
	PB_VEC(struct pb_nop) nops;

	PB_VEC(uint8_t) recipes;

	/* with PB_MODULE_RETURNS */
	uint32_t *units;	/* for each FDE: bits of enum pb_inexit */
	bool *goes_on;		/* for each FDE: without an exit control may come from it to a function's entry */
	PB_VEC(uint8_t) depth_rows; /* what FDEs that depth.c makes execute */
	pb_exit_vec exits;
	pb_gap_vec pads;	/* padding in functions */
	PB_VEC(struct pb_an_window) exit_windows;
	struct pb_exit_tables exit_tables;
	uint64_t exit_work;	/* looking for exits' surroundings */
	pb_edge_vec edges;	/* sorted by `from` */
};

/* Each returns 0 or -errno with *why set. */
int pb_ranges_read(struct pb_an *an, const char **why);
int pb_symbols_read(struct pb_an *an, const char **why);
int pb_imports_read(struct pb_an *an, const char **why);
int pb_depths_find(struct pb_an *an, const char **why);
int pb_lsda_read(struct pb_an *an, const char **why);
int pb_sweep(struct pb_an *an, const char **why);
int pb_functions_make(struct pb_an *an, const char **why);
int pb_records_read(struct pb_an *an, const char **why);
int pb_sites_make(struct pb_an *an, const char **why);
int pb_exits_make(struct pb_an *an, const char **why);
/* The units that a function's code is in: its own, and those that edges lead to.
 * At most max; returns how many there are, 0: none. */
size_t pb_exits_units(const struct pb_an *an, const struct pb_fn *f, uint32_t *units, size_t max);
/* The edges that begin in the unit. */
const struct pb_exit_edge *pb_exits_edges(const struct pb_an *an, uint32_t unit, size_t *nr);
/* The index of the function's own unit, or -1. */
long pb_exits_unit(const struct pb_an *an, const struct pb_fn *f);
/* The index of the unit's first exit. */
size_t pb_exits_lower(const struct pb_an *an, uint32_t unit);
int pb_emit(struct pb_an *an, uint8_t **blob, size_t *size, const char **why);

/* The index of the last function at or before addr, or -1. */
long pb_fn_lower(const struct pb_an *an, uint64_t addr);
/* The function whose bytes hold addr, or NULL. */
struct pb_fn *pb_fn_of(const struct pb_an *an, uint64_t addr);

struct pb_range *pb_range_find(const struct pb_an *an, uint64_t addr);
static inline bool pb_bit_test(const uint64_t *bits, uint64_t i)
{
	return bits[i / 64] >> (i % 64) & 1;
}
static inline void pb_bit_set(uint64_t *bits, uint64_t i)
{
	/* two threads may sweep; most bits are set already */
	if (!(__atomic_load_n(&bits[i / 64], __ATOMIC_RELAXED) >> (i % 64) & 1))
		__atomic_fetch_or(&bits[i / 64], 1ull << (i % 64), __ATOMIC_RELAXED);
}
void pb_mark(const struct pb_an *an, uint64_t addr, bool called);

int pb_addr_compare(const void *a, const void *b);
/* The index of the first element >= addr. */
size_t pb_addr_lower(const pb_addr_vec *v, uint64_t addr);
void pb_hooks_sort(pb_hook_vec *v);
const struct pb_hook_at *pb_hook_find(const pb_hook_vec *v, uint64_t addr);

/* cross_jumps.c. */
void pb_leaps_sort(struct pb_an *an);
/* The index of the first that leads to an address >= to. */
size_t pb_leap_lower(const struct pb_an *an, uint64_t to);

/* labels.c: marks what tables of offsets from labels lead to. */
void pb_labels_follow(struct pb_an *an);

/* padding_slots.c. Once all windows are known (fn.window_len), those of functions that
 * will need a hole, too. */
void pb_holes_prepare(struct pb_an *an);
/* A hole for the jmp rel8 in the window, or 0. Windows in rising order; *from
 * is where the search goes on, 0 at first. */
uint64_t pb_hole_take(struct pb_an *an, size_t *from, uint64_t window);

/* code_slots.c. Once all padding that is of use is taken: digs a hole for the jmp rel8
 * in f's window. Returns where the displaced code begins, w what becomes of it;
 * 0: nowhere. */
struct pb_window_out;
uint64_t pb_dig(struct pb_an *an, struct pb_fn *f, struct pb_window_out *w);
/* Can the code at `at` be dug away? Whether it is free the caller knows. */
bool pb_dig_fits(struct pb_an *an, uint64_t at, struct pb_window_out *w);
/* The same of a jump in its place, and no hole. */
bool pb_carrier_fits(struct pb_an *an, uint64_t at, struct pb_window_out *w);

/* sites.c. A window at `start`, after the entry `from` or at it, for jump_len
 * bytes; enum pb_refused. */
uint8_t pb_window_at(struct pb_an *an, uint64_t from, uint64_t start, unsigned jump_len,
		     struct pb_window_out *w);
/* The same; the window holds at least `reach` bytes of instructions. */
uint8_t pb_window_to(struct pb_an *an, uint64_t from, uint64_t start, unsigned jump_len,
		     unsigned reach, struct pb_window_out *w);
/* Is there a call that becomes a nop? */
bool pb_nops_in(const struct pb_an *an, uint64_t start, uint64_t end);

/* debug_file.c */
/* Opens what belongs to the file; absence is no error. */
void pb_debug_files_open(struct pb_an *an);

/* The 8 bytes at a link-time address as they are after relocation. */
bool pb_word_at(struct pb_an *an, uint64_t addr, uint64_t *value);

/* names.c: what is known by name. name need not end at len. */
enum pb_hook pb_name_hook(const char *name, size_t len);
bool pb_name_loader(const char *name, size_t len);
bool pb_name_start(const char *name, size_t len);
bool pb_name_memtest(const char *name, size_t len);
bool pb_name_stub(const char *name, size_t len);
bool pb_name_cold(const char *name, size_t len, bool *numbered);
#endif
