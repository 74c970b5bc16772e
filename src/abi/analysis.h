/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The analysis of one module (ELF file). For each function it says where and how the function can
 * be patched, or why it can't. The observer makes the analysis (src/module) and caches it. The
 * agent maps it read-only. A data directory has a copy, which serves readers as the symbol table.
 * An analysis depends only on the module's file and path, on the separate debug file, and on the
 * flags of module/module.h.
 *
 * A window is the code that a jump to a stub replaces. The stub runs a copy of this code. The agent
 * can't decode instructions. So a window's recipe (struct pb_recipe) contains all that the agent
 * needs to know of them.
 *
 * The file is struct pb_analysis, followed by tables, whose offsets are in the structure. All
 * offsets are from the file's start. All addresses are link-time addresses, without the load bias.
 * A consumer checks every offset and count before use.
 */
#ifndef PB_ABI_ANALYSIS_H
#define PB_ABI_ANALYSIS_H
#include <stdint.h>

#define PB_ANALYSIS_MAGIC	0x31304c414e414250ull	/* "PBANAL01" */
#define PB_ANALYSIS_VERSION	7
#define PB_BUILD_ID_MAX		32

struct pb_analysis {
	uint64_t magic;
	uint32_t version;
	uint32_t flags;			/* PB_AN_* */
	uint64_t size;			/* size of this file */
	uint8_t build_id[PB_BUILD_ID_MAX]; /* without a build-id: a hash of the file */
	uint32_t build_id_len;
	uint32_t nr_funcs;
	uint32_t nr_sites;		/* count of the functions with PB_REFUSED_NOT */
	uint32_t nr_refused;		/* count of all other functions: nr_funcs - nr_sites */
	uint64_t funcs_offset;		/* struct pb_func[nr_funcs], sorted by addr */
	uint64_t recipes_offset;	/* recipe bytes */
	uint64_t recipes_size;
	uint64_t strings_offset;	/* NUL-terminated strings; offset 0 is "" */
	uint64_t strings_size;
	uint32_t soname;		/* string: DT_SONAME or the file's base name */
	uint32_t path;			/* string: the file that was analysed */
	/* the next seven members serve to check that the file in memory is the analysed file */
	uint64_t text_start, text_end;	/* extent of the executable PT_LOADs */
	uint64_t image_start, image_end;/* extent of all PT_LOADs */
	uint64_t data_start, data_end;	/* extent of the last PT_LOAD that stays writable */
	uint64_t note_vaddr;		/* address of the build-id's bytes; 0: they aren't in
					 * memory */
	uint64_t nops_offset;		/* struct pb_nop[nr_nops], sorted by addr */
	uint32_t nr_nops;
	uint32_t unknown_kib;		/* KiB of code that is in no function. 0 if that is less
					 * than half of the code, or less than 64 KiB. Older
					 * analyses also have 0 */
	/* Without PB_AN_RETURNS all members from windows_offset to nr_left_by are 0. */
	uint64_t windows_offset;	/* struct pb_exit_window[nr_windows], sorted by start */
	uint64_t exits_offset;		/* struct pb_window_exit[nr_exits], in the order of the
					 * windows */
	uint64_t leaves_offset;		/* uint32_t[nr_funcs + 1]: function i's windows begin at
					 * left_by[leaves[i]] */
	uint64_t left_by_offset;	/* uint32_t[nr_left_by]: indices of windows */
	uint64_t inexits_offset;	/* uint8_t[nr_funcs]: enum pb_inexit */
	uint32_t nr_windows, nr_exits, nr_left_by;
	uint32_t runtimes;		/* bits of module/elf/runtimes.h; valid without
					 * PB_AN_RETURNS too */
};

/* A call of __fentry__ or mcount that the compiler inserted, direct or through the GOT. When the
 * agent gets the module's analysis, it replaces the call with a nop of the same length. When the
 * agent detaches, it restores the call. */
struct pb_nop {
	uint64_t addr;
	uint8_t len;			/* 5 or 6 */
	uint8_t orig[7];
};

#define PB_AN_PIE		1	/* ET_DYN */
#define PB_AN_STATIC		2	/* no PT_INTERP and no PT_DYNAMIC */
#define PB_AN_TEXTREL		4
#define PB_AN_HAS_SYMTAB	8	/* names are complete: from .symtab, a debug link or mini
					 * debug info */

#define PB_AN_SYSCALLS		16	/* the module may make system calls without libc */
#define PB_AN_RETURNS		32	/* the exits of the module's functions were analysed */
#define PB_AN_SMALL_STACKS	64	/* the module's functions may run on stacks with little more
					 * room than they need themselves, for example Go's. Their
					 * signal handlers must have an alternate stack */

/* How the site was found. This determines the contents of the site's window. */
#define PB_SITE_SYMBOL		0	/* plain code: displaced instructions are kept */
#define PB_SITE_NOP		1	/* nops from the compiler: no instruction to keep */
#define PB_SITE_FENTRY		2	/* call of __fentry__ at the entry, in any form */
/* The function calls mcount after it has set up its frame. Even so, the function's window is at its
 * entry. The call of mcount is in the table of nops. */
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
	X(UNINSTRUMENTED, "not instrumented, although its module is (see --all-sites)") \
	X(AGENT,	"part of Patchbay") \
	X(TEXTREL,	"its bytes are changed by relocations") \
	X(RED_ZONE,	"a jump leads to its entry, and data may lie below the stack pointer") \
	X(MEMTEST,	"a memory test, which would overwrite Patchbay's memory, too") \
	X(COPIED,	"the program may run a copy of it at another address") \
	X(TRAP,		"an instruction that always traps, and that a handler may decode") \
	X(RSEQ,		"part of a restartable sequence (rseq)") \
	X(PREEMPTED,	"its runtime may stop it inside of the displaced bytes") \
	/* only the agent finds these reasons */ \
	X(DIFFERS,	"the bytes in memory are not those of the file") \
	X(RANGE,	"no memory for a stub within reach") \
	X(LIMIT,	"more functions than site numbers") \
	X(NO_NEW_CODE, \
	  "the kernel forbids the process to make memory executable (PR_SET_MDWE, SELinux)")

enum pb_refused {
#define X(name, text) PB_REFUSED_##name,
	PB_REFUSED_LIST(X)
#undef X
	PB_NR_REFUSED
};

#define PB_FUNC_GLOBAL		2
#define PB_FUNC_UNNAMED		4	/* found only in .eh_frame; the name is made from the
					 * address */
#define PB_FUNC_ENDBR		8	/* an endbr64 is at addr, and the window begins after it */
#define PB_FUNC_CODE_SLOT	16	/* the function's trampoline slot is in code (struct
					 * pb_recipe) */
#define PB_FUNC_SHARES		32	/* the function is one byte long; its jump shares bytes
					 * with the next function's jump (struct pb_recipe) */
#define PB_FUNC_EXITS		64	/* the function's window also holds exits; a struct
					 * pb_exit_window describes it too */
/* The function is complete (see "Exits" below). But control may continue to the function's own
 * entry, or to the next function's entry, without passing an exit. */
#define PB_FUNC_GOES_ON	128

struct pb_func {
	uint64_t addr;		/* function's entry */
	uint32_t size;		/* in bytes; 0 if unknown */
	uint32_t name;		/* string: the best of the function's names, mangled */
	uint16_t window;	/* offset of the first displaced byte from addr (4 after endbr64) */
	uint8_t window_len;	/* count of displaced bytes: whole instructions, and padding if the
				 * function is too short. At least pb_func_jump_len(), at most
				 * PB_WINDOW_MAX */
	uint8_t kind;		/* PB_SITE_* */
	uint8_t refused;	/* enum pb_refused */
	uint8_t flags;		/* PB_FUNC_* */
	int16_t via;		/* offset from the window's first byte to its trampoline slot; 0: no
				 * slot */
	uint32_t recipe;	/* offset of struct pb_recipe in the recipes, a multiple of 8 */
	uint32_t aliases;	/* string: the function's other names, "a\nb\n"; or 0 */
};

/*
 * Exits: the instructions that end a call, which are `ret` and tail jumps. A window that holds
 * exits is replaced by a jump to a stub, like the window of an entry. Before an exit runs, the stub
 * jumps to code of the agent that ends the call. A function is complete (PB_INEXIT_NOT) if all of
 * its exits lie in windows.
 * The elements left_by[leaves[i]] .. left_by[leaves[i + 1] - 1] belong to function i. They name the
 * windows that hold the exits of function i. Several functions may have the same window. The file
 * has only the windows of complete functions. See doc/design/returns.md.
 */
enum pb_exit_kind {
	PB_EXIT_RET,		/* ret, rep ret, bnd ret */
	PB_EXIT_RET_POPS,	/* ret N */
	PB_EXIT_JMP,		/* jmp to a known address */
	PB_EXIT_JCC,		/* conditional jump to a known address */
	PB_EXIT_INDIRECT,	/* jmp through a register or memory */
	PB_NR_EXIT_KINDS
};

/* How an exit is hooked. A window's `how` is never NONE or JOINED. */
#define PB_EXIT_HOW_LIST(X) \
	X(NONE,   "not hooked") \
	X(WINDOW, "a window of its own") \
	X(PADDED, "a window that reaches into padding") \
	X(JOINED, "in the window of the exit right before it") \
	X(ENTRY,  "in the copy of its function's entry") \
	X(PADDING_SLOT, "a short jump to a trampoline slot in padding") \
	X(CODE_SLOT, "a short jump to a trampoline slot in code") \
	X(SHARED, "a jump that shares its displacement with the next jump") \
	X(NEXT,   "a jump that shares its displacement with another site's jump")

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
	X(OVERLAP,  "two unwind tables cover its code") \
	X(UNPROVEN, "a return, and no proof that the return address is on top") \
	X(FAR,      "a far return") \
	X(COMPUTED, "a jump to a computed address") \
	X(WRITES,   "its return address is written to") \
	X(FRAME,    "a jump out of it with its frame in place") \
	X(LOST,     "a jump to bytes that may not be code") \
	X(FALLS,    "runs on into bytes that may not be code") \
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
 * A window that holds exits. `how` says how the window's jump is placed (see struct pb_recipe). The
 * size of the jump and the data after the recipe in the file depend on `how`:
 *
 *   WINDOW, PADDED  a jump of five bytes; no data
 *   PADDING_SLOT    a short jump; the slot's bytes. via is not 0
 *   CODE_SLOT       a short jump; the recipe of the code that the slot displaces. via is not 0
 *   SHARED          the first of two shared jumps, one byte; the recipe of the code right after
 *                   the window. The second jump replaces this code. The two jumps are one patch
 *   NEXT            the first of two shared jumps, one byte; no data. The second jump is in the
 *                   next window, which begins right after this one. The next window has a jump of
 *                   five bytes, no via and no endbr64. It is a WINDOW or PADDED window of exits, or
 *                   the window of a function's entry. The second jump is in place whenever the
 *                   first jump is. If the next window holds exits, each function that has this
 *                   window in left_by[] also has the next window there
 *   ENTRY           the window of a function's entry. The function's window_len and recipe
 *                   include the exits
 *
 * Windows, slots, and the code that slots displace don't overlap. Only an ENTRY window is also the
 * window of an entry.
 */
struct pb_exit_window {
	uint64_t start;
	uint32_t recipe;	/* offset in the recipes; ENTRY: the function's index */
	uint32_t first;		/* index of the window's first exit */
	int16_t via;		/* as in struct pb_func; ENTRY: 0 */
	uint8_t len;
	uint8_t how;		/* enum pb_exit_how */
	uint8_t nr;		/* count of exits, at least 1 */
	uint8_t pad[3];
};

/* An exit in a window. An exit that isn't a JCC is the recipe's last instruction. */
struct pb_window_exit {
	uint8_t off;		/* offset from the window's start; rises from exit to exit */
	uint8_t kind;		/* enum pb_exit_kind */
	uint8_t len;		/* the instruction's length; at least 2 for a JCC */
};

/*
 * An alias that begins with this character isn't a name from the program. It stands for a pattern
 * that the agent can't match itself: the observer gives the alias to all functions that match the
 * pattern. If a word of a filter begins with this character, it selects the functions that have
 * exactly this alias. No glob matches such an alias.
 */
#define PB_ALIAS_MARK		'='

#define PB_JUMP_LEN		5	/* jmp rel32 */
#define PB_JUMP_SHORT		2	/* jmp rel8 */
#define PB_JUMP_SHARED		1	/* the first byte of a jmp rel32 whose other bytes are
					 * shared */
#define PB_CODE_SLOT_LEN	10	/* two jmp rel32; the second is the slot */
#define PB_SLOT_REACH		160	/* a slot and its function's entry are less than this
					 * apart */
#define PB_WINDOW_MAX		24
#define PB_RECIPE_MAX		160

/*
 * The code that runs in a stub in place of the displaced bytes. It has `len` bytes, which are
 * copied to the stub. Then the fixups adapt them to the stub's and the module's addresses. The code
 * ends with a jump to addr + window + window_len, unless its last instruction never falls through.
 * The window's nops are not copied. Calls that are in the table of nops are not copied either.
 *
 * orig[] has the window's bytes in the file, for the check before patching. rest[] has the same
 * bytes, but with nops in place of the calls in the table of nops. When the jump is taken out of
 * the window, the window gets rest[]. rest[] nearly always equals orig[].
 *
 * pairs[] maps program counters. If an instruction starts at window + .orig in the program, its
 * copy starts at .copy in the code. pairs[] is sorted, and pairs[0] is {0, 0}. A PC from
 * pairs[k].copy up to pairs[k + 1].copy - 1 belongs to the instruction at pairs[k].orig. If one
 * instruction became several, a PC after the first of them has no exact counterpart in the program:
 * pb_body_original() (arch/arch.h) says what such code has done. Only the first of the instructions
 * can fault. (There is one exception: a displaced call of a non-canonical address faults in its
 * last instruction.)
 *
 * Layout in memory: struct pb_recipe, fixups, pairs, code bytes (len), orig bytes (window_len),
 * rest bytes (window_len), without padding. If via isn't 0, more data follows, aligned to 8.
 * Usually this data is the slot's bytes in the file (PB_JUMP_LEN). With PB_FUNC_CODE_SLOT it is a
 * second recipe, for the code that the slot displaces. (For a window of exits, the comment at
 * struct pb_exit_window says what follows the recipe.)
 *
 * If five bytes can't be displaced, two jumps lead to the stub. The first jump is in the window. It
 * leads to the second jump, which is in a trampoline slot:
 *
 *   window   jmp rel8 slot		2 bytes; the rest of the window stays
 *   slot     jmp rel32 stub		5 bytes of padding between functions
 *
 * The program never runs the slot's original bytes, and no symbol or reference points to them. A
 * slot serves one window. It overlaps no window and no other slot.
 *
 * If no padding is in reach, the slot is made in code: it is a code slot. Whole instructions are
 * displaced to make room for the slot, as in a window, with at least PB_CODE_SLOT_LEN bytes:
 *
 *   code     jmp rel32 copy	5 bytes; to the copy of the displaced instructions
 *   slot     jmp rel32 stub	5 bytes; any displaced bytes after the slot stay unchanged
 *
 * No displaced instruction begins at the address of the slot's jump. So a PC at this address always
 * belongs to the slot's jump, never to the program's code. The displaced bytes overlap no window
 * and no other slot.
 *
 * If a function is one byte long and the next function follows right after it, the two functions
 * get shared jumps (PB_FUNC_SHARES). The first jump's displacement is the first four bytes of the
 * second jump. The second jump is in place whenever the first jump is. The next function's window
 * has a jump of five bytes, no via and no endbr64:
 *
 *   first    e9			jmp rel32, where rel32 = e9 d0 d1 d2
 *   second   e9 d0 d1 d2 d3	jmp rel32
 *
 * So the second jump's displacement also determines the first jump's target. The agent needs
 * memory at both targets.
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
	uint8_t addend;		/* REL32: count of the instruction's bytes after the displacement */
	uint8_t pad[5];
};

struct pb_pair {
	uint8_t orig, copy;
};
#endif
