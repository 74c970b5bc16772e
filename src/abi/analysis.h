/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The analysis of one module (ELF file): its functions, where and how each can
 * be patched, and why not. Made by src/module in the observer, cached by
 * build-id, mapped read-only by the agent, copied into data directories as the
 * symbol table. A pure function of the file. The agent has no decoder: all it
 * needs of the instructions is here as recipes.
 *
 * The file: struct pb_analysis, then the tables at the offsets it names. All
 * offsets are from the file's start, all addresses are link-time (add the load
 * bias). A consumer checks every offset and count before use.
 */
#ifndef PB_ABI_ANALYSIS_H
#define PB_ABI_ANALYSIS_H
#include <stdint.h>

#define PB_ANALYSIS_MAGIC	0x31304c414e414250ull	/* "PBANAL01" */
#define PB_ANALYSIS_VERSION	5
#define PB_BUILD_ID_MAX		32

struct pb_analysis {
	uint64_t magic;
	uint32_t version;
	uint32_t flags;			/* PB_AN_* */
	uint64_t size;			/* of this file */
	uint8_t build_id[PB_BUILD_ID_MAX]; /* or a hash of the file where it has none */
	uint32_t build_id_len;
	uint32_t nr_funcs;
	uint32_t nr_sites;		/* funcs with PB_REFUSED_NOT */
	uint32_t nr_refused;		/* the others; nr_funcs = nr_sites + nr_refused */
	uint64_t funcs_offset;		/* struct pb_func[nr_funcs], sorted by addr */
	uint64_t recipes_offset;	/* recipe bytes */
	uint64_t recipes_size;
	uint64_t strings_offset;	/* NUL-terminated; offset 0 is "" */
	uint64_t strings_size;
	uint32_t soname;		/* string: DT_SONAME or the file's base name */
	uint32_t path;			/* string: the file that was analysed */
	/* To check that the file in memory is this one. */
	uint64_t text_start, text_end;	/* the executable PT_LOADs' extent */
	uint64_t image_start, image_end;/* all PT_LOADs' extent */
	uint64_t data_start, data_end;	/* of the last PT_LOAD that stays writable */
	uint64_t note_vaddr;		/* of the build-id's bytes in memory; 0 if none */
	uint64_t nops_offset;		/* struct pb_nop[nr_nops], sorted by addr */
	uint32_t nr_nops, pad;
	/* With PB_AN_RETURNS; else all of it is 0. */
	uint64_t windows_offset;	/* struct pb_exit_window[nr_windows], sorted by start */
	uint64_t exits_offset;		/* struct pb_window_exit[nr_exits], in the windows' order */
	uint64_t leaves_offset;		/* uint32_t[nr_funcs + 1]: where each function's windows
					 * begin */
	uint64_t left_by_offset;	/* uint32_t[nr_left_by]: indices of windows */
	uint64_t inexits_offset;	/* uint8_t[nr_funcs]: enum pb_inexit */
	uint32_t nr_windows, nr_exits, nr_left_by;
	uint32_t runtimes;		/* bits (module/runtimes.h); whatever the flags say */
};

/* A call that the compiler put in (__fentry__, mcount, through the GOT or not):
 * the agent makes it a nop of the same length at start, and puts it back at
 * the end. */
struct pb_nop {
	uint64_t addr;
	uint8_t len;			/* 5 or 6 */
	uint8_t orig[7];
};

#define PB_AN_PIE		1	/* ET_DYN */
#define PB_AN_STATIC		2	/* no PT_INTERP and no PT_DYNAMIC */
#define PB_AN_TEXTREL		4
#define PB_AN_HAS_SYMTAB	8	/* names are complete (.symtab, debug link, or mini debug
					 * info) */

#define PB_AN_SYSCALLS		16	/* it may make system calls past libc */
#define PB_AN_RETURNS		32	/* functions' exits were looked for */

/* How the site was found, and so what stands in its window. */
#define PB_SITE_SYMBOL		0	/* plain code: displaced instructions are kept */
#define PB_SITE_NOP		1	/* nops left by the compiler: nothing to keep */
#define PB_SITE_FENTRY		2	/* call __fentry__ at entry, any form */
/* calls mcount after the frame was set up; the window is at the entry all the same, the call is
 * in the table of nops */
#define PB_SITE_MCOUNT	3
#define PB_SITE_XRAY		4	/* XRay entry sled */
#define PB_SITE_CYG		5	/* plain code in an -finstrument-functions module */

#define PB_REFUSED_LIST(X) \
	X(NOT,		"patched") \
	X(SHORT,	"shorter than a jump, and the next function follows") \
	X(BRANCH,	"a branch leads into the displaced bytes") \
	X(CALL,		"a call's return address would lie in the displaced bytes") \
	X(CROSSES,	"the jump would cross another entry") \
	X(DECODE,	"the first instructions can't be decoded") \
	X(RELOCATE,	"an instruction can't be moved") \
	X(LOADER,	"part of the loader's resolver or TLS path") \
	X(START,	"process or thread start, or a signal restorer") \
	X(IFUNC,	"an IFUNC resolver") \
	X(NOTRACE,	"marked notrace (no_instrument_function)") \
	X(UNINSTRUMENTED, "not instrumented, in a module that is (see --all-sites)") \
	X(AGENT,	"part of Patchbay") \
	X(TEXTREL,	"its bytes are changed by relocations") \
	X(OVERLAP,	"overlaps another site's displaced bytes") \
	X(MEMTEST,	"tests memory by overwriting it, the state of tracing too") \
	/* found by the agent */ \
	X(DIFFERS,	"the bytes in memory are not those of the file") \
	X(RANGE,	"no memory for a stub within reach") \
	X(LIMIT,	"more functions than site numbers")

enum pb_refused {
#define X(name, text) PB_REFUSED_##name,
	PB_REFUSED_LIST(X)
#undef X
	PB_NR_REFUSED
};

#define PB_FUNC_GLOBAL		2
#define PB_FUNC_UNNAMED		4	/* found by .eh_frame only; name is made from the address */
#define PB_FUNC_ENDBR		8	/* endbr64 at addr, the window begins after it */
#define PB_FUNC_CODE_SLOT	16	/* its trampoline slot is in code (struct pb_recipe) */
#define PB_FUNC_SHARES		32	/* one byte; its jump shares the next one's bytes (struct
					 * pb_recipe) */
#define PB_FUNC_EXITS		64	/* its window holds exits, and is one of the windows of
					 * exits */
/* complete, and without an exit control may come to an entry, its own or the next function's */
#define PB_FUNC_GOES_ON	128

struct pb_func {
	uint64_t addr;		/* function's entry */
	uint32_t size;		/* bytes; 0 if unknown */
	uint32_t name;		/* string, mangled; the best of its aliases */
	uint16_t window;	/* offset from addr of the first displaced byte (4 after endbr64) */
	uint8_t window_len;	/* displaced bytes, a whole number of instructions:
				 * pb_func_jump_len() .. PB_WINDOW_MAX */
	uint8_t kind;		/* PB_SITE_* */
	uint8_t refused;	/* enum pb_refused */
	uint8_t flags;		/* PB_FUNC_* */
	int16_t via;		/* offset from the window's first byte to its trampoline slot;
				 * 0: none */
	uint32_t recipe;	/* offset of struct pb_recipe in the recipes (8-aligned) */
	uint32_t aliases;	/* string offset of the other names, "a\nb\n", or 0 */
};

/*
 * Exits: the instructions that end a call, `ret` and tail jumps. Where a window
 * holds some, a jump to a stub replaces it as at an entry, and the stub runs a
 * protocol before each. A function is complete (PB_INEXIT_NOT) if all of
 * its exits lie in such windows; left_by[leaves[i]] .. left_by[leaves[i + 1] - 1]
 * are the windows of function i. Functions share windows. Those that no complete
 * function needs aren't in the file. doc/design/returns.md.
 */
enum pb_exit_kind {
	PB_EXIT_RET,		/* ret, rep ret, bnd ret */
	PB_EXIT_RET_POPS,	/* ret N */
	PB_EXIT_JMP,		/* to a known address */
	PB_EXIT_JCC,		/* the same, conditional */
	PB_EXIT_INDIRECT,	/* jmp through a register or memory */
	PB_NR_EXIT_KINDS
};

/* How an exit is hooked; JOINED isn't one of windows. */
#define PB_EXIT_HOW_LIST(X) \
	X(NONE,   "not hooked") \
	X(WINDOW, "a window of its own") \
	X(PADDED, "a window that reaches into padding") \
	X(JOINED, "in the window before it, of another exit") \
	X(ENTRY,  "in the copy of its function's entry") \
	X(PADDING_SLOT, "a short jump to a trampoline slot in padding") \
	X(CODE_SLOT, "a short jump to a trampoline slot in code") \
	X(SHARED, "a jump that shares its displacement with the next one") \
	X(NEXT, \
	  "the same, and the next one is that of the next function's entry or of another exit")

enum pb_exit_how {
#define X(name, text) PB_EXIT_##name,
	PB_EXIT_HOW_LIST(X)
#undef X
	PB_NR_EXIT_HOW
};

/* Why a function's exits aren't hooked. */
#define PB_INEXIT_LIST(X) \
	X(NOT,      "all exits hooked") \
	X(REFUSED,  "its entry isn't hooked either") \
	X(UNWIND,   "no unwind table") \
	X(DECODE,   "its code can't be decoded for certain") \
	X(CFI,      "the unwind table contradicts its pushes and pops") \
	X(UNPROVEN, "a return, and no proof that the return address is on top") \
	X(FAR,      "a far return") \
	X(COMPUTED, "a jump to a computed address") \
	X(WRITES,   "its return address is written to") \
	X(FRAME,    "a jump out of it with its frame in place") \
	X(LOST,     "a jump to what isn't known to be code") \
	X(FALLS,    "runs on into what isn't known to be code") \
	X(LIMIT,    "too much to follow") \
	X(SHORT,    "no room for a jump at an exit") \
	X(NO_SLOT,  "no trampoline slot within reach of an exit")

enum pb_inexit {
#define X(name, text) PB_INEXIT_##name,
	PB_INEXIT_LIST(X)
#undef X
	PB_NR_INEXIT
};

/*
 * A window that holds exits. What its recipe is followed by depends on how its
 * jump is placed (see struct pb_recipe):
 *
 *   WINDOW, PADDED  five bytes; nothing
 *   PADDING_SLOT    via is not 0; the slot's bytes
 *   CODE_SLOT       via is not 0; the recipe of the code that the slot displaces
 *   SHARED          one byte; the recipe of the code right after it, which gets the second
 *                   of the two jumps, only together with this one
 *   NEXT            one byte; nothing. A function begins right after it, with five bytes, no
 *                   via and no endbr64, or if none does, a WINDOW or PADDED one: its jump
 *                   stands whenever this one does. Who is left by this one is left by that
 *   ENTRY           the window of a function's entry, whose window_len and recipe
 *                   hold the exits, too
 *
 * No two windows overlap but those of ENTRY, nor do slots and the code they displace.
 */
struct pb_exit_window {
	uint64_t start;
	uint32_t recipe;	/* offset in the recipes; ENTRY: the function's index */
	uint32_t first;		/* index of its first exit */
	int16_t via;		/* as in struct pb_func; ENTRY: 0 */
	uint8_t len;
	uint8_t how;		/* enum pb_exit_how */
	uint8_t nr;		/* exits, at least 1 */
	uint8_t pad[3];
};

/* An instruction of the window. One that isn't a JCC is the last of the recipe's. */
struct pb_window_exit {
	uint8_t off;		/* from the window's start, rising */
	uint8_t kind;		/* enum pb_exit_kind */
	uint8_t len;		/* a JCC's at least 2 */
};

/*
 * An alias that begins so is no name of the program's. The observer gave it to the
 * functions that match a pattern which the agent can't match by itself. A filter's
 * word that begins so means the functions that have just this alias; no glob does.
 */
#define PB_ALIAS_MARK		'='

#define PB_JUMP_LEN		5	/* jmp rel32 */
#define PB_JUMP_SHORT		2	/* jmp rel8 */
#define PB_JUMP_SHARED		1	/* the first byte of jmp rel32, when the rest is shared */
#define PB_CODE_SLOT_LEN	10	/* two jmp rel32, the second of them is the slot */
#define PB_SLOT_REACH		160	/* a slot is nearer than that to its function's entry */
#define PB_WINDOW_MAX		24
#define PB_RECIPE_MAX		160

/*
 * What stands in for the displaced bytes in a stub: `len` bytes of code to be
 * copied to any address in reach, then the fixups applied. It ends with a jump
 * to addr + window + window_len unless its last instruction never falls
 * through. Nops, and calls that are in the table of nops, leave nothing in it.
 *
 * orig[] are the window's bytes in the file, for the check before patching;
 * rest[] is what the window is once the table of nops was applied, and to what
 * it goes back when the site is unpatched (equal to orig[] nearly always).
 *
 * pairs[] maps program counters: an instruction that starts at window + .orig
 * in the program starts at .copy in the code. Sorted; the first is {0, 0}. A
 * PC in [copy_k, copy_k+1) belongs to the instruction orig_k. Instructions
 * that one original became several keep the original's PC semantics only at
 * their first (fault-capable ones are always a single instruction).
 *
 * In memory: struct pb_recipe, fixups, pairs, code bytes (len),
 * orig bytes (window_len), rest bytes (window_len); no padding between them.
 * After them, aligned to 8: with via the slot's bytes in the file
 * (PB_JUMP_LEN), with PB_FUNC_CODE_SLOT a second recipe, of the code that the slot displaces.
 *
 * Where five bytes can't be displaced, the jump takes two steps, through a trampoline slot:
 *
 *   window   jmp rel8 slot		2 bytes, the rest of the window stays
 *   slot     jmp rel32 stub		5 bytes of padding between functions
 *
 * Nothing runs, names or refers to a slot, and it serves one site. It lies outside
 * of all windows and of other slots.
 *
 * Where no padding is in reach, code makes room for the slot: a code slot. Whole instructions,
 * at least PB_CODE_SLOT_LEN bytes, are displaced as in a window:
 *
 *   code     jmp rel32 copy	5 bytes, of the displaced instructions
 *   slot     jmp rel32 stub	5 bytes; what is left of the displaced bytes stays
 *
 * Of the displaced instructions none begins where the slot's jump does: a PC
 * there is the jump's, never the program's own. The displaced bytes lie outside of all
 * windows and of other slots.
 *
 * A function of one byte, with the next function right after, gets a shared jump: the
 * displacement of its jump is the first bytes of the next one's jump, which stands whenever
 * the first does (PB_FUNC_SHARES; the next one has five bytes, no via, no endbr64):
 *
 *   first    e9			jmp rel32, where rel32 = e9 d0 d1 d2
 *   second   e9 d0 d1 d2 d3	jmp rel32
 *
 * So where the one goes settles where the other does: the agent finds memory
 * in both places.
 */
struct pb_recipe {
	uint8_t len, nr_fixups, nr_pairs, window_len;
	uint32_t pad;
};

#define PB_FIX_REL32	1	/* *(s32 *)(code+off) = bias + value - (code + off + 4 + addend) */
#define PB_FIX_ABS64	2	/* *(u64 *)(code+off) = bias + value */
#define PB_FIX_LO32	3	/* *(u32 *)(code+off) = low half of bias + value */
#define PB_FIX_HI32	4	/* *(u32 *)(code+off) = high half of bias + value */

struct pb_fixup {
	uint64_t value;		/* link-time address */
	uint8_t off, kind;
	uint8_t addend;		/* REL32: bytes of the instruction after the displacement */
	uint8_t pad[5];
};

struct pb_pair {
	uint8_t orig, copy;
};
#endif
