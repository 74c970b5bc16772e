/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What an architecture supplies to the agent and to the module analysis. They include this
 * header and nothing of the architecture's own folder; scripts/check-layers knows. What is
 * `static inline` here is defined in that folder's headers, which stand at the end; the rest in
 * its sources. doc/design/porting.md goes through the list for a processor that isn't x86-64.
 *
 * Context, unless said otherwise: hit path, which is any thread, also in a signal handler, at
 * any instruction of the program: no lock, allocation, library, system call, vector register or
 * errno.
 */
#ifndef PB_ARCH_ARCH_H
#define PB_ARCH_ARCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <ucontext.h>
#include "abi/analysis_place.h"
#include "arch/layout.h"
#include "arch/machine.h"
#include "arch/open_call.h"
#include "arch/site.h"

struct pb_bpf_run;
struct pt_regs;

/* ---- words against signal handlers --------------------------------------- */

/*
 * Each is atomic against the handlers of its own thread, which is the only other one to write
 * the word: a handler finds it done or not begun. Other threads may read the word. They are
 * barriers for the compiler, not for the processor.
 */

/* *p from `old` to `new`; false: it was another. */
static inline bool pb_cmpxchg_local(uint64_t *p, uint64_t old, uint64_t new);
/* Adds; returns what was there before. */
static inline uint64_t pb_xadd_local(uint64_t *p, uint64_t add);
/* Adds one. */
static inline void pb_count_local(uint64_t *p);

/* ---- writing text (doc/design/text.md) ----------------------------------- */

/* Context: start (one thread), the loader's hook (text that nobody runs yet), or the helper of a
 * stop. After each of them every processor runs the new bytes: where its caches need to be told,
 * they are. */
struct pb_patch {
	uint64_t addr;
	uint8_t len;		/* 1..10 */
	uint8_t slot;		/* a thread at its first byte is inside of it, too */
	uint8_t bytes[10];
	uint8_t old[12];	/* what stood there, for taking it back */
};

/* Sorted by address, not overlapping. By pages through /proc/self/mem, which `mem_fd` is open on
 * (-1: opened here); where that can't be had, through mprotect. 0, or -errno with nothing or
 * whole patches written. */
int pb_text_poke(const struct pb_patch *p, size_t nr, int mem_fd);
/* The descriptor, or -errno. */
int pb_text_poke_open(void);
/* Any bytes, in memory that may be executable already but that nobody runs. 0 or -errno. */
int pb_text_write(uint64_t addr, const void *bytes, size_t len);

/* ---- stopping all threads (doc/design/text.md) --------------------------- */

/*
 * A helper that shares the memory but is no thread of the process stops them with ptrace, moves
 * program counters out of bytes that are replaced, writes, and lets them go. Context: the
 * agent's thread, or any thread that holds no lock that a stopped thread could need.
 */
extern uint32_t pb_agent_tid;		/* not to be stopped; 0: none */
extern uint32_t pb_observer_pid;	/* reaps its children; 0: unknown */
extern uint64_t pb_stop_longest_ns;
extern const char *pb_stop_why;		/* of the last -EAGAIN, for people */

/* Where a stopped thread stands, or will when a signal handler that it is in returns. */
struct pb_stopped {
	uint64_t pc, sp;
};

struct pb_stop {
	const struct pb_patch *p;	/* sorted; large numbers take several stops */
	size_t nr;
	size_t done;		/* how many of them were written, perhaps (the last group failed) */
	/* Where a thread that stands at pc, strictly inside bytes that are to be
	 * replaced, is to go on; 0: it may stay. */
	uint64_t (*moved)(uint64_t pc);
	/* Called under each stop, by the thread that requested it, with the places
	 * of threads for which ours() says yes. 0, or -errno: nothing is written. */
	bool (*ours)(uint64_t pc);
	int (*stopped)(const struct pb_stopped *at, size_t nr);
};

/* 0, or -errno: -EAGAIN when a thread could not be stopped in time, or another process shares
 * the memory. The group that `done` ends before was not written; try again. With nr = 0 one stop
 * for `stopped`. A system call that a stop interrupts is restarted: the program sees no EINTR. */
int pb_stop_world(struct pb_stop *s);

/* Starts a thread or process, by the raw system call, on a stack of its own, at fn(arg); it ends
 * when fn returns. Returns the new one's TID, or -errno, to the caller only. Context: start, the
 * agent's thread. */
long pb_clone(unsigned long flags, void *stack_top, int (*fn)(void *), void *arg, void *ctid);

/* ---- stubs (doc/design/text.md) ------------------------------------------ */

/*
 * The recorder makes most stubs ahead, into a file that is kept (module/stubs/stub_image.c): a
 * change of what is written here raises STUBS_REVISION (module/cache.c). bias: what is added to
 * the link-time addresses of the analysis. -ERANGE: something lies out of reach, and what was
 * written isn't to be used. Context: start, the agent's thread, the recorder; the looks
 * (pb_body_size() and after, and pb_stub_site()) any. Shapes: the architecture's frame.h.
 */

/* The code that stands in for what a place displaces is called its body: its recipe's, with its
 * exits hooked, and after it the second recipe's. Bytes of it; where the second begins. */
size_t pb_body_size(const struct pb_place *p);
unsigned pb_body_second(const struct pb_place *p);
/* Where the code begins that conditional exits lead to; all of it up to the second recipe's. */
unsigned pb_body_exits(const struct pb_place *p);
/* Writes to `out` what is to stand at `at`. words: where its exits go. */
int pb_body_emit(uint8_t *out, uint64_t at, const struct pb_place *p,
		 const struct pb_returns *words, uint64_t bias);
/* The link-time address of the instruction that the code at this offset stands for. *own: it
 * stands before an exit, and the frame holds what the stub has changed of the registers. */
uint64_t pb_body_original(const struct pb_place *p, unsigned off, bool *own);
/* The offset of the copy of the instruction at a link-time address, or -1. */
int pb_body_copy(const struct pb_place *p, uint64_t addr);

/* The stub of a site: bytes that it takes, a multiple of 16; the code, with the body at
 * PB_STUB_COPY, and at PB_STUB_IDLE where a site goes on that nobody wants. */
size_t pb_stub_size(const struct pb_place *p);
#define PB_STUB_MAX	704	/* no more than that */
int pb_stub_emit(uint8_t *out, uint64_t at, const struct pb_site *site, const struct pb_place *p,
		 const struct pb_returns *words, uint64_t bias);
/* The site of the stub at `at`, if one begins there (any address, for finding the stub of a
 * PC); whether it does. */
const struct pb_site *pb_stub_site(const uint8_t *at);
int pb_stub_is(const uint8_t *at, const struct pb_site *site);

/* ---- jumps in text (abi/analysis.h) -------------------------------------- */

/* The jump to put over the window at `from`. -ERANGE. */
int pb_jump_emit(uint8_t out[PB_JUMP_LEN], uint64_t from, uint64_t to);
/* The two jumps to put over a code slot at `from`, to the copy of what is displaced
 * there and to the stub. -ERANGE. */
int pb_code_slot_emit(uint8_t out[PB_CODE_SLOT_LEN], uint64_t from, uint64_t copy, uint64_t stub);
/* The jump to put over a window whose slot is `via` bytes after it. */
void pb_jump_emit_short(uint8_t out[PB_JUMP_SHORT], int via);
/* The first of two shared jumps: its first PB_JUMP_SHARED bytes. The second's follow. */
static inline void pb_jump_emit_first(uint8_t out[PB_JUMP_SHARED]);
/* Where the two lead, the first one at `first`, if the second's displacement is `rel`. */
static inline void pb_shared_targets(uint64_t first, uint32_t rel, uint64_t target[2]);

/* ---- instructions -------------------------------------------------------- */

/* from: where the code before an exit that is no plain return goes on. Does that exit pop
 * arguments, so that the stack pointer is another one after it than after a plain return? */
static inline bool pb_exit_pops(const void *from);
/* Is it a jump through a word of memory that the instruction names, with or without prefixes? */
static inline bool pb_jumps_through_word(const uint8_t *code);
/* If it is the linker's stub of a function of another module: the word with that function's
 * address. Else NULL. PB_LINKER_STUB bytes must be readable. */
static inline const uint64_t *pb_linker_stub_word(const uint8_t *code);

/* ---- gates (doc/design/open-calls.md) ------------------------------------ */

/*
 * Code in assembly between the program and C. What it needs of the engine is listed in
 * doc/design/porting.md. None of these is called by C: their addresses are what C uses.
 *
 * Handlers of a site, for site->handler. They are entered from its stub: all registers and flags
 * are the program's, but for the one that names the site, and they go on at site->body with all
 * of them as they were. By what they record: graph, graph below traced calls only (nested), the
 * same without a clock (none), duration filter (lazy), set_graph_notrace (silent), the entry
 * only (call), the function tracer, several tracers (list), nothing (direct), eBPF programs
 * (prog_entry).
 */
void pb_open_graph(void);
void pb_open_graph_nested(void);
void pb_open_none(void);
void pb_open_none_nested(void);
void pb_open_lazy(void);
void pb_open_lazy_nested(void);
void pb_open_silent(void);
void pb_open_call(void);
void pb_open_call_nested(void);
void pb_function(void);
void pb_list(void);
void pb_direct(void);
void pb_prog_entry(void);

/* Writes into the code of the handlers, and of what exits' stubs go to, what is known only once the
 * agent is loaded. If its text can't be written it stays as it is, which is slower. Context: start,
 * before a site is patched. */
void pb_hot_link_tls(void);

/* Where stubs of exits go, for struct pb_returns: a plain return, and any other exit, which goes
 * on in its stub. The idle ones record nothing; the others end the call. */
void pb_exit_ret_idle(void);
void pb_exit_jump_idle(void);
void pb_open_ret(void);
void pb_open_jump(void);
void pb_open_ret_none(void);
void pb_open_jump_none(void);

/* PB_MAX_REPLACED pieces of PB_THUNK_SIZE bytes: thunk i calls pb_replacements[i], a C function
 * of at most six arguments, in place of a function, and goes where the stub of a plain return
 * goes. */
extern const uint8_t pb_replaced_thunks[];

/* In place of libc's functions of the same name: each calls pb_note_NAME() with the arguments,
 * and then jumps to pb_original_NAME with all registers as they were. pb_our_vfork() forgets
 * what is known of the signal mask instead (pb_unblocked), and uses no stack. */
void pb_our_makecontext(void);
void pb_our_setcontext(void);
void pb_our_swapcontext(void);
void pb_our_syscall(void);
void pb_our_pthread_exit(void);
void pb_our_pthread_cancel(void);
void pb_our_vfork(void);

/* What the kernel calls in place of the program's handlers: goes on where pb_signal_begin(sig,
 * info, context, slot) says, with these arguments. pb_signal_done() is such a place, with
 * nothing to do. */
void pb_signal_entry(int sig, siginfo_t *info, void *context);
void pb_signal_done(void);
/* What pthread_create() starts in place of the program's routine: goes on where
 * pb_thread_begins() says. No frame stays below. */
void *pb_thread_entry(void *box);

/* ---- a signal's context -------------------------------------------------- */

/* Where the interrupted code goes on, and its stack. */
static inline uint64_t pb_context_pc(const ucontext_t *uc);
static inline uint64_t pb_context_sp(const ucontext_t *uc);
static inline void pb_context_set_pc(ucontext_t *uc, uint64_t pc);

/* Is the interrupted code that of the hit path? Then perhaps that of an exit, of the call at that
 * address; nothing says that there is one. record: PB_OPEN_*, what is known of its record. */
struct pb_hot_exit {
	uint64_t call, slot;
	uint8_t record;
};
bool pb_context_exit(const ucontext_t *uc, struct pb_hot_exit *e);

/*
 * A handler that has interrupted the hit path or a stub is shown registers as they would be
 * without us:
 *
 *   pb_context_begin(&c, uc);
 *   one of pb_context_show_*(), which change uc
 *   pb_context_shown(&c);
 *   the handler
 *   pb_context_end(&c)
 *
 * Until one of the second line was called, uc is as the kernel gave it.
 */
struct pb_context;
void pb_context_begin(struct pb_context *c, ucontext_t *uc);

/* Where on the hit path. */
struct pb_hot_place {
	uint32_t of;			/* PB_HOT_*, layout.h */
	const struct pb_site *site;	/* PB_HOT_ENTRY: whose; may be stale */
	uint64_t goes_on;		/* PB_HOT_JUMP: where in the exit's stub */
};
/* False: it isn't there. The two show_ functions after it need true. */
bool pb_context_hit(struct pb_context *c, struct pb_hot_place *at);
/* A plain return has happened. */
void pb_context_show_return(struct pb_context *c);
/* The program's instruction at pc is next: a function's entry, or an exit. */
void pb_context_show_jump(struct pb_context *c, uint64_t pc);
/* In a stub: the program's instruction at pc is next. own: it is the stub's own code. */
void pb_context_show_stub(struct pb_context *c, uint64_t pc, bool own);

void pb_context_shown(struct pb_context *c);
/* What the handler left as it was shown is as it was interrupted; what it changed, the program
 * will find changed. False: the handler goes on elsewhere (pc or sp), and uc is left as it set
 * it. */
bool pb_context_end(const struct pb_context *c);

/* ---- loads that may fault (doc/design/reads.md) -------------------------- */

/* One load of 8 bytes. 0, -EFAULT (nothing is mapped there), -EACCES (it can't be read now).
 * When it may be used at all: engine/uaccess.h. */
int pb_fault_load(uint64_t address, uint64_t *value) __attribute__((visibility("hidden")));
/* In a handler of SIGSEGV or SIGBUS: if the signal is a fault of such a load, the context goes
 * on after it, and the load fails. info must be the kernel's (SA_SIGINFO). */
bool pb_fault_fixup(int sig, const siginfo_t *info, ucontext_t *uc);

/* ---- registers that eBPF programs see ------------------------------------ */

/* struct pt_regs is the kernel's for user space (<asm/ptrace.h>): the context of a kprobe
 * program. fp: the frame pointer, from which a word pair {caller's frame pointer, return
 * address} is found. */
static inline uint64_t pb_regs_pc(const struct pt_regs *r);
static inline uint64_t pb_regs_sp(const struct pt_regs *r);
static inline uint64_t pb_regs_fp(const struct pt_regs *r);
/* What the assembly leaves to C: flags, pc, what user space always has. */
static inline void pb_regs_finish(struct pt_regs *r, uint64_t pc);
/* As after the return: without its address on the stack. */
static inline void pb_regs_return(struct pt_regs *r);

/* Calls enter(ctx, run), native code of a program, where unwinders find the way out of it: `run`
 * lies right after a word that this function sets (struct pb_prog_run, engine/prog/prog_priv.h). */
uint64_t pb_prog_call(const void *ctx, struct pb_bpf_run *run,
		      uint64_t (*enter)(const void *ctx, struct pb_bpf_run *run));
/* PB_PROG_CODE bytes of executable pages for such code, with unwind tables that hold everywhere
 * in it. */
extern char pb_prog_code[];

#if defined(__x86_64__)
#include "arch/x86_64/code.h"
#include "arch/x86_64/frame.h"
#include "arch/x86_64/local.h"
#include "arch/x86_64/registers.h"
#else
#error "no architecture that Patchbay knows: doc/design/porting.md"
#endif
#endif
