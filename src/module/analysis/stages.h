/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The state of one analysis, and its stages. The stages run in this order, and each stage fills
 * fields of struct pb_an that later stages read:
 *
 *   ranges    where code is, and which code is the linker's stubs
 *   cfi       .eh_frame
 *   symbols   candidates for functions, and labels, from every symbol table and from Go's table of
 *             functions
 *   imports   the pointers and the linker's stubs that lead to compilers' hooks (mcount,
 *             __fentry__, ...); the code addresses that relocations name
 *   depth     computes the stack's depth in assembly without .eh_frame, and writes it as FDEs
 *   lsda      where exceptions enter functions
 *   sequences restartable sequences, whose code must not change
 *   sweep     decodes all code once: branch targets, calls of hooks, instructions that use the
 *             return slot, padding
 *   functions candidates and FDEs become functions
 *   records   __mcount_loc and similar sections show which functions the compiler prepared
 *   sites     each function's window, its recipe (struct pb_recipe: the code that the stub runs
 *             in place of the displaced instructions) and its trampoline slot, or the reason
 *             why the function is refused
 *   exits     each function's exits, and how they are hooked
 *   exit tables  the windows of exits and each function's list of them, in the file's format
 *   emit      the file
 *
 * Context: one thread. The sweep may have a second thread. Both threads of the sweep write to the
 * bitmaps of ranges, and to the members `units` and `goes_on` of struct pb_an.
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

/* A range of executable bytes. Ranges are sorted and disjoint. */
struct pb_range {
	uint64_t addr, size;
	const uint8_t *bytes;
	bool stubs;		/* the range is .plt or a similar section: it holds no functions */
	/* bitmaps with a bit for each byte of the range. reached: control may come to the byte by
	 * other means than falling through from the instruction before it. called: a call leads to
	 * the byte, or an lea or a relocation takes the byte's address */
	uint64_t *reached, *called;
	/* bitmaps. starts: in code with an FDE or a symbol, linear decoding finds an instruction
	 * that begins at the byte. branched, which exists only during the sweep: a direct branch in
	 * such code leads to the byte */
	uint64_t *starts, *branched;
	/* a bitmap that exists only with PB_MODULE_RETURNS. used: the byte is part of a window, a
	 * trampoline slot or displaced code */
	uint64_t *used;
	/* a bitmap, also only with PB_MODULE_RETURNS. A bit is set if control may come to the byte
	 * by other means than falling through or a direct branch in known code. It is also set for
	 * a direct branch from another range of code. Known code has an FDE or a symbol */
	uint64_t *otherwise;
	/* a bitmap, also only with PB_MODULE_RETURNS. A bit is set if a direct call in known code
	 * leads to the byte */
	uint64_t *direct;
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
	size_t cand;		/* the index in cands of the function's first candidate, which has
				 * the best name. The function has nr_cands candidates in a row */
	uint32_t nr_cands;
	int32_t fde;		/* the FDE that starts at addr, or -1 */
	uint8_t flags;		/* PB_FUNC_* */
	uint8_t kind, refused;
	bool recorded;		/* the compiler prepared the function for tracing */
	uint8_t window, window_len;
	uint8_t second_len;	/* how many bytes of code are displaced for the function's slot; 0:
				 * the slot is not in code */
	uint8_t host;		/* PB_HOST_*: whether code of this function may be displaced for a
				 * slot */
	uint8_t inexit;		/* enum pb_inexit */
	int16_t via;		/* offset of the slot from the window; 0: no slot */
	uint32_t recipe;
};

#define PB_ENTRY_REACH 4	/* a window begins at most this many bytes after its entry, because
				 * of an endbr64 */

enum { PB_HOST_UNKNOWN, PB_HOST_YES, PB_HOST_NO };

/* The hooks that compilers call. Functions call CYG_EXIT at their ends, and the other hooks at
 * their starts. */
enum pb_hook { PB_HOOK_NONE, PB_HOOK_MCOUNT, PB_HOOK_FENTRY, PB_HOOK_CYG, PB_HOOK_CYG_EXIT };

struct pb_hook_at {
	uint64_t addr;
	uint8_t hook;
	uint8_t len;		/* the length of the call; 0: there is no call at addr */
};
typedef PB_VEC(struct pb_hook_at) pb_hook_vec;
typedef PB_VEC(uint64_t) pb_addr_vec;

/* A word that a relocation writes. */
struct pb_word {
	uint64_t addr, value;
};

/* A jump that leads out of its FDE's code. */
struct pb_cross_jump {
	uint64_t from, to;
};
typedef PB_VEC(struct pb_cross_jump) pb_cross_jump_vec;

/* Padding, between functions or inside a function. Control never falls through into the padding. */
struct pb_gap {
	uint64_t addr, end;
};
typedef PB_VEC(struct pb_gap) pb_gap_vec;
typedef PB_VEC(const Elf64_Shdr *) pb_section_vec;

struct pb_an {
	struct pb_elf elf;
	struct pb_elf debug[2];	/* the debug file and the mini debug info */
	unsigned nr_debug;
	int debug_fd;		/* the debug file's descriptor, or -1 */
	const char *path;
	unsigned flags;		/* PB_MODULE_* */
	uint32_t an_flags;	/* PB_AN_* */
	uint32_t runtimes;	/* bits of runtimes.h */
	const char *soname;
	bool is_loader, is_agent;

	PB_VEC(struct pb_range) ranges;
	size_t main_range;	/* the index of the biggest range */
	struct pb_cfi cfi;
	PB_VEC(struct pb_cand) cands;
	pb_addr_vec labels;	/* addresses of symbols in code that aren't candidates */
	pb_hook_vec hook_slots, hook_stubs; /* hook_slots: words that point to hooks. hook_stubs:
					     * the linker's stubs that jump to hooks */
	pb_addr_vec ifuncs;	/* addresses of IFUNC resolvers */
	pb_section_vec records;	/* the sections that hold the compiler's records */
	pb_section_vec sequence_sections; /* the sections that describe restartable sequences */
	PB_VEC(struct pb_word) words;	/* the words that relocations write in these sections */
	pb_addr_vec textrels;	/* addresses in code, where relocations change bytes */
	pb_gap_vec sequences;	/* ranges of bytes of restartable sequences, sorted and disjoint */

	pb_hook_vec hook_calls;
	pb_gap_vec gaps;	/* padding between functions */
	pb_cross_jump_vec cross_jumps;	/* sorted by target */
	pb_addr_vec tables;	/* addresses of data or code that instructions take with lea; only
				 * multiples of 4 */
	pb_addr_vec arrays;	/* in a program at a fixed address: addresses of arrays that
				 * instructions read; only multiples of 8; sorted */
	pb_addr_vec ra_reads;	/* addresses of instructions that use their function's return
				 * slot */
	pb_addr_vec below_stack; /* addresses of instructions that use memory below rsp where there
				 * is no frame; sorted */

	PB_VEC(struct pb_fn) fns;
	uint64_t slot_work;	/* number of steps that the search for slots in code has made */
	pb_addr_vec barriers;	/* addresses that no window may cross: labels, data objects, and the
				 * starts of functions, FDEs and ranges */
	PB_VEC(struct pb_nop) nops;

	PB_VEC(uint8_t) recipes;

	/* with PB_MODULE_RETURNS */
	uint32_t *units;	/* for each unit (the code of one FDE): why its exits can't be found
				 * or hooked. The bit 1 << R stands for the reason R of enum
				 * pb_inexit */
	bool *goes_on;		/* for each FDE: control may go from the FDE's code to a function's
				 * entry without passing an exit */
	PB_VEC(uint8_t) depth_rows; /* CFI instructions of the FDEs that depth.c makes */
	pb_exit_vec exits;
	pb_lag_vec lags;
	pb_restore_vec restores;
	pb_cross_jump_vec stray_jumps;	/* jumps from bytes without an FDE into a unit, but not to
					 * its entry. The bytes may be no code */
	pb_gap_vec pads;	/* padding in functions */
	PB_VEC(struct pb_an_window) exit_windows;
	struct pb_exit_tables exit_tables;
	uint64_t exit_work;	/* number of steps that searches around exits have made */
	pb_edge_vec edges;	/* sorted by `from` */
};

/* The functions of the stages. Each returns 0, or sets *why and returns -errno. */
int pb_ranges_read(struct pb_an *an, const char **why);
int pb_symbols_read(struct pb_an *an, const char **why);
int pb_imports_read(struct pb_an *an, const char **why);
int pb_depths_find(struct pb_an *an, const char **why);
int pb_lsda_read(struct pb_an *an, const char **why);
int pb_sequences_read(struct pb_an *an, const char **why);
int pb_sweep(struct pb_an *an, const char **why);
int pb_functions_make(struct pb_an *an, const char **why);
int pb_records_read(struct pb_an *an, const char **why);
int pb_sites_make(struct pb_an *an, const char **why);
int pb_exits_make(struct pb_an *an, const char **why);
int pb_exit_tables_make(struct pb_an *an, const char **why);
/* Finds the units that hold a function's code: its own unit, and all units that can be reached from
 * that unit by edges. Writes at most max units. Returns the number of units, or max + 1 if there
 * are more than max units. */
size_t pb_exits_units(const struct pb_an *an, const struct pb_fn *f, uint32_t *units, size_t max);
/* Returns the edges that begin in the unit. */
const struct pb_exit_edge *pb_exits_edges(const struct pb_an *an, uint32_t unit, size_t *nr);
/* Returns the index of the function's own unit, or -1. */
long pb_exits_unit(const struct pb_an *an, const struct pb_fn *f);
/* Returns the index in an->exits of the unit's first exit. */
size_t pb_exits_lower(const struct pb_an *an, uint32_t unit);
int pb_emit(struct pb_an *an, uint8_t **blob, size_t *size, const char **why);

/* Returns the index of the last function that begins at or before addr, or -1. */
long pb_fn_lower(const struct pb_an *an, uint64_t addr);
/* Returns the function that begins at addr, or NULL. */
const struct pb_fn *pb_fn_at(const struct pb_an *an, uint64_t addr);
/* Returns the function whose bytes include addr, or NULL. */
struct pb_fn *pb_fn_of(const struct pb_an *an, uint64_t addr);

/* An address where decoding restarts. */
struct pb_cut {
	uint64_t addr;
	bool code;		/* a symbol or an FDE says that the bytes after the cut are code */
};
typedef PB_VEC(struct pb_cut) pb_cut_vec;
/* ranges.c: collects all cuts, sorted by address. Sets cuts->failed if there is no memory. */
void pb_cuts_make(const struct pb_an *an, pb_cut_vec *cuts);

struct pb_range *pb_range_find(const struct pb_an *an, uint64_t addr);
static inline bool pb_bit_test(const uint64_t *bits, uint64_t i)
{
	return bits[i / 64] >> (i % 64) & 1;
}
static inline void pb_bit_set(uint64_t *bits, uint64_t i)
{
	/* Two threads may sweep, and most bits are already set, so the bit is tested first. */
	if (!(__atomic_load_n(&bits[i / 64], __ATOMIC_RELAXED) >> (i % 64) & 1))
		__atomic_fetch_or(&bits[i / 64], 1ull << (i % 64), __ATOMIC_RELAXED);
}
/* True if any bit of [from, to] is set. */
bool pb_bits_any(const uint64_t *bits, uint64_t from, uint64_t to);
/* Sets the address's bits in `reached` and `otherwise` of its range; if called is true, also in
 * `called`. Not for direct branches inside a range: for them, the sweep sets bits itself. */
void pb_mark(const struct pb_an *an, uint64_t addr, bool called);

int pb_addr_compare(const void *a, const void *b);
/* Returns the index of the first element >= addr. */
size_t pb_addr_lower(const pb_addr_vec *v, uint64_t addr);
/* True if a symbol in code has the address. Must be called after pb_functions_make(). */
bool pb_has_symbol(const struct pb_an *an, uint64_t addr);
void pb_hooks_sort(pb_hook_vec *v);
const struct pb_hook_at *pb_hook_find(const pb_hook_vec *v, uint64_t addr);

/* ranges.c: sorts an->cross_jumps by target, so that all jumps to a piece of code are neighbours.
 * These jumps show whether a piece without a name is a function or a part of another function. */
void pb_cross_jumps_sort(struct pb_an *an);
/* Returns the index of the first jump whose target is >= to. */
size_t pb_cross_jump_lower(const struct pb_an *an, uint64_t to);

/* labels.c: marks as reached the targets of jump tables whose elements are offsets from the table
 * itself. */
void pb_tables_follow(struct pb_an *an);
/* labels.c: finds jump tables whose elements are offsets from a label. Marks the targets of these
 * tables as reached. */
void pb_labels_follow(struct pb_an *an);

/* slots.c: removes from an->gaps the padding that can't hold slots. Must be called after
 * all windows are known (fn.window_len), including the windows of functions that will need a
 * slot. */
void pb_padding_prepare(struct pb_an *an);
/* Returns the address of a slot for the jmp rel8 at the address `window`, or 0. Must be called for
 * windows in the order of their addresses. *from is where the search continues. The caller must set
 * *from to 0 before the first call. */
uint64_t pb_padding_slot(struct pb_an *an, size_t *from, uint64_t window);

/* Finds code to displace for a slot that the jmp rel8 in f's window reaches. Must be called only if
 * there is no padding within reach. Returns the address where the displaced code begins, and sets
 * *w to the code's recipe. Returns 0 if there is no such code. */
struct pb_window_out;
uint64_t pb_code_slot(struct pb_an *an, struct pb_fn *f, struct pb_window_out *w);
/* True if the code at `at` may be displaced for a slot. The caller must check that no window, slot
 * or displaced code has these bytes already. */
bool pb_code_slot_fits(struct pb_an *an, uint64_t at, struct pb_window_out *w);
/* True if the code at `at` may be displaced for the second of two shared jumps. The caller must
 * make the same check as for pb_code_slot_fits(). */
bool pb_second_site_fits(struct pb_an *an, uint64_t at, struct pb_window_out *w);

/* windows.c: makes a window at `start` for a jump of jump_len bytes. `start` is at or after the
 * entry `from`. Returns enum pb_refused. */
uint8_t pb_window_at(struct pb_an *an, uint64_t from, uint64_t start, unsigned jump_len,
		     struct pb_window_out *w);
/* Like pb_window_at(), but the window holds at least `reach` bytes of instructions, unless it ends
 * earlier with an instruction that doesn't fall through. */
uint8_t pb_window_to(struct pb_an *an, uint64_t from, uint64_t start, unsigned jump_len,
		     unsigned reach, struct pb_window_out *w);
/* True if a call that becomes a nop has a byte in [start, end). */
bool pb_nops_in(const struct pb_an *an, uint64_t start, uint64_t end);

/* sequences.c */
/* True if a byte of [from, to) must not change because of a restartable sequence. */
bool pb_sequences_meet(const struct pb_an *an, uint64_t from, uint64_t to);

/* debug_file.c */
/* Opens the debug files that belong to an->elf. It is no error if there are none. */
void pb_debug_files_open(struct pb_an *an);

/* imports.c: reads the word of 8 bytes at a link-time address. If the word is in a section of
 * `records` or `sequence_sections`, *value is the word after relocation. Otherwise *value is the
 * word in the file. False if the word can't be read. */
bool pb_word_at(struct pb_an *an, uint64_t addr, uint64_t *value);

/* names.c: these functions find out from a function's name what kind of function it is. The name
 * has len bytes, and needs no NUL after them. */
enum pb_hook pb_name_hook(const char *name, size_t len);
bool pb_name_loader(const char *name, size_t len);
bool pb_name_start(const char *name, size_t len);
bool pb_name_memtest(const char *name, size_t len);
bool pb_name_stub(const char *name, size_t len);
bool pb_name_cold(const char *name, size_t len);
#endif
