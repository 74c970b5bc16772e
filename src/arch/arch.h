/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The interface that an architecture supplies to the agent and to the module analysis. Their code
 * includes only this header, and no file of the architecture's own folder. scripts/check-layers
 * enforces this rule. The `static inline` functions are defined in headers of that folder, which
 * are included at the end of this one. All other functions are defined in that folder's sources.
 * doc/design/porting.md explains what to write for another processor than x86-64.
 *
 * Context, unless a comment says otherwise: the hit path. It runs in any thread, also in a signal
 * handler, at any instruction of the program. So these functions take no lock, allocate nothing,
 * call no library, make no system call, and change neither vector registers nor errno.
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

/* ---- words shared with signal handlers ----------------------------------- */

/*
 * Each operation is atomic against signal handlers of the same thread: a handler finds the
 * operation either done or not begun. No other thread writes the word, but other threads may read
 * it. The operations are barriers for the compiler, not for the processor.
 */

/* Changes *p from `old` to `new`. False: *p has another value, and keeps it. */
static inline bool pb_cmpxchg_local(uint64_t *p, uint64_t old, uint64_t new);
/* Adds to *p. Returns the former value of *p. */
static inline uint64_t pb_xadd_local(uint64_t *p, uint64_t add);
/* Adds one to *p. */
static inline void pb_count_local(uint64_t *p);

/* ---- stores that only their owner makes (doc/design/writer.md) -------------- */

/*
 * The ring is shared with forked children. A signal handler may interrupt code that is about to
 * store into a chunk, and the handler may fork. In the child, the handler returns to the same code.
 * A writer has a serial, a number that is unique in the session. A forked child's writer gets
 * another one. So C code that is going to store into the ring first notes the address and the value
 * of its writer's serial (struct pb_owner), and passes both to each store. In a child, the word at
 * that address has another value, so nothing is stored. pb_own_resume() ensures this, whichever
 * instruction the handler has interrupted.
 */
struct pb_owner {
	const uint32_t *now;	/* the writer's present serial */
	uint32_t serial;	/* its value when the code began */
};

/* pb_own_store() stores a word, and pb_own_zero() zeroes n words. Both do nothing if *o.now isn't
 * o.serial, as in a child that continues its parent's code. They also do nothing if the chunk that
 * holds `at` has another serial in its header than the owner's. pb_own_store() returns whether it
 * stored. */
bool pb_own_store(struct pb_owner o, uint64_t *at, uint64_t value)
	__attribute__((visibility("hidden")));
void pb_own_zero(struct pb_owner o, uint64_t *at, size_t n) __attribute__((visibility("hidden")));
/* Changes a word of the ring or of the writer from `old` to `new`. Does nothing if *o.now isn't
 * o.serial. Unlike pb_own_store(), it doesn't compare the chunk's serial. The change is atomic for
 * all threads, with acquire and release order. Returns whether the word was changed. */
bool pb_own_change(struct pb_owner o, uint64_t *at, uint64_t old, uint64_t new)
	__attribute__((visibility("hidden")));
/* Adds one to *shared, a word of the ring, then to *own, a word of the writer. Each addition is
 * atomic against signal handlers. */
void pb_own_count(struct pb_owner o, uint64_t *shared, uint64_t *own)
	__attribute__((visibility("hidden")));

/* Must be called in a child when a handler returns to code that it interrupted before the fork. If
 * that code belongs to the hit path or to a pb_own_*() function, it no longer stores into the ring.
 * The ring has `size` bytes from address `ring` on. */
void pb_own_resume(ucontext_t *uc, uint64_t ring, uint64_t size);

/* ---- writing text (doc/design/text.md) ----------------------------------- */

/* Context: start (one thread), the loader's hook (engine/process/loader.h; for text that no thread
 * runs yet), or the helper of a stop. When one of these functions returns, every processor
 * runs the new bytes: the function flushes caches where the processor requires it. */
struct pb_patch {
	uint64_t addr;
	uint8_t len;		/* 1..10 */
	uint8_t slot;		/* true: the patch is in a trampoline slot, so a thread at its first
				 * byte counts as inside the patch */
	uint8_t bytes[10];
	uint8_t old[12];	/* the bytes that the patch overwrites, to undo it */
};

/* Writes nr patches, which are sorted by address and don't overlap. Writes whole pages to
 * /proc/self/mem. If that file can't be written, the function uses mprotect(2). Returns 0 or
 * -errno. After an error, none or some of the patches are written, each of them completely. Pages
 * that the program may write to stay writable. */
int pb_text_poke(const struct pb_patch *p, size_t nr);
/* Gives the process private copies of the pages that pb_text_poke() is about to write, so that a
 * stop needs no page faults. For this, the function writes one byte of a patch on each page, with
 * the value that the byte has. Context: the text's lock is held; other threads run. */
void pb_text_prepare(const struct pb_patch *p, size_t nr);
/* Writes bytes to memory that no thread runs yet. The memory may already be executable. Returns 0
 * or -errno. */
int pb_text_write(uint64_t addr, const void *bytes, size_t len);

/* ---- stacks for C code at sites with FTRACE_FL_SMALL (doc/design/threads.md) ---- */

/* Called in a forked child by the thread that forked. Frees the stacks that the parent's other
 * threads had taken. epoch: the child's. Context: hit path. */
void pb_hit_stacks_forked(uint32_t epoch);

/* ---- stopping all threads (doc/design/text.md) --------------------------- */

/*
 * The helper is a process that shares the program's memory but isn't one of the program's threads.
 * It stops the threads with ptrace, moves program counters out of bytes that are replaced, writes,
 * and lets the threads go on. Context: the agent's thread, or any thread that holds no lock that a
 * stopped thread could need.
 */
extern uint32_t pb_agent_tid;		/* the thread that every stop leaves running; 0: none */
extern uint32_t pb_observer_pid;	/* the recorder. If it is the program's parent, it is also
					 * the parent of the helpers, and reaps them. 0: unknown */
extern uint64_t pb_stop_longest_ns;
extern const char *pb_stop_why;		/* the reason of the last failure, as text for users */
/* Opens the directories of /proc that stops need, for all stops that the calling thread requests.
 * These stops then don't depend on the program's root directory and its limit of open files.
 * Context: a thread that has a descriptor table of its own. */
void pb_stop_keep_dirs(void);
/* Forgets that a thread keeps the directories open. Called in a forked child, where that thread
 * doesn't exist. */
void pb_stop_forget_dirs(void);
/* The argument of the program's last successful prctl(PR_SET_PTRACER); 0: none. A stop may call
 * this prctl, too, and then restores the program's setting. */
extern uint64_t pb_program_ptracer;

/* pc and sp of a stopped thread: the present values, or those that the return from a signal handler
 * will restore. */
struct pb_stopped {
	uint64_t pc, sp;
};

struct pb_stop {
	const struct pb_patch *p;	/* sorted by address; many patches take several stops */
	size_t nr;
	size_t done;		/* number of patches, from p[0] on, that were handled. They are
				 * written, with one exception: after an error other than -EAGAIN,
				 * each patch of the last stop may or may not be written. */
	/* Called with a thread's pc that is strictly inside bytes that are replaced. Returns the
	 * address at which the thread continues. 0: the thread may stay at pc. */
	uint64_t (*moved)(uint64_t pc);
	/* Like moved(), but for a pc at the first of these bytes: the instruction there has
	 * faulted, and the signal's handler runs. */
	uint64_t (*moved_fault)(uint64_t pc);
	/* If stopped() isn't NULL, the thread that requested the stop isn't stopped. It calls
	 * stopped() during each stop, with those stopped PCs for which ours() is true. If
	 * stopped() returns -errno, nothing is written. */
	bool (*ours)(uint64_t pc);
	int (*stopped)(const struct pb_stopped *at, size_t nr);
};

/* Returns 0 or -errno. -EAGAIN: all tries have failed. For example, a thread could not be stopped
 * in time, another process traces a thread, another process shares the memory, or stopped() has
 * returned -EAGAIN. In this case the patches from p[done] on were not written, and the caller may
 * try again. If nr is 0, there is one stop, which only serves stopped(). A system call that a stop
 * interrupts is restarted: the program sees no EINTR. */
int pb_stop_world(struct pb_stop *s);

/* Sets the calling thread's thread pointer, and the word by which libc finds it. Context: a thread
 * of the agent that libc doesn't know. Returns 0 or -errno. */
int pb_thread_pointer_set(uint64_t tp);
/* Whether the calling thread has a shadow stack. Other threads have one, too, if libc has turned it
 * on. Context: start. */
bool pb_shadow_stack_is_on(void);
/* Returns whether the code has an instruction that loads nr into the register of a system call's
 * number. The code isn't decoded, so other bytes that look like this instruction count, too. */
bool pb_code_calls(const uint8_t *code, size_t size, uint32_t nr);

/* Starts a thread or process with the raw system call. The new thread runs fn(arg) on the given
 * stack, and ends when fn returns. ctid: the word for CLONE_CHILD_CLEARTID. Returns the new
 * thread's TID, or -errno. Context: start, the agent's thread, or the loader's hook. */
long pb_clone(unsigned long flags, void *stack_top, int (*fn)(void *), void *arg, void *ctid);

/* ---- stubs (doc/design/text.md) ------------------------------------------ */

/*
 * The recorder makes most stubs in advance, in a file that it keeps (module/stubs/stub_image.c). So
 * a change of the code that is emitted here must raise STUBS_REVISION (module/cache.c). The
 * architecture's frame.h shows the layouts.
 *
 * bias: the load bias, which is added to the link-time addresses of the analysis. -ERANGE: a target
 * is out of reach, and the bytes that were written must not be used. Context of the functions that
 * emit: start, the agent's thread, the recorder. Context of the other functions in this part: any.
 */

/* A place (abi/analysis_place.h) is a function's entry or a window of exits. Its body is the code
 * that replaces its displaced instructions. The analysis describes the relocated copy of displaced
 * instructions as a recipe (struct pb_recipe). The body begins with the code of the place's recipe,
 * in which the exits are hooked. If the place has a second recipe, for the code that a code slot or
 * the second shared jump displaces, that recipe's code follows. pb_body_size() returns the body's
 * size in bytes. pb_body_second() returns the offset of the second recipe's code. In a stub, an
 * instruction that restores r11 comes before the body; site->body usually points to it. */
size_t pb_body_size(const struct pb_place *p);
unsigned pb_body_second(const struct pb_place *p);
/* Returns the offset of the code that conditional exits jump to. That code ends at
 * pb_body_second(). */
unsigned pb_body_exits(const struct pb_place *p);
/* Writes the body to `out`, for the address `at`. The exits in the body jump through `words`. */
int pb_body_emit(uint8_t *out, uint64_t at, const struct pb_place *p,
		 const struct pb_returns *words, uint64_t bias);
/* What the code at an address of a stub is for the program. The addresses are link-time addresses
 * in a result of pb_body_original(), and addresses in memory in one of pb_text_original_pc(). */
struct pb_original {
	uint64_t pc;		/* address of the instruction that the code replaces */
	uint64_t next;		/* address of the instruction that comes next for the program. It
				 * differs from pc if the code has already done the instruction's
				 * work: it has counted, and has decided whether to branch */
	uint8_t pushed;		/* number of bytes that the code has already pushed, although the
				 * program's instruction at `next` hasn't pushed them yet */
	bool own;		/* the code was inserted before the instruction at pc, which is an
				 * exit. The frame in the red zone (the architecture's frame.h) has
				 * the program's values of the registers that this code changed */
};
/* Looks up the code at offset `off`. */
struct pb_original pb_body_original(const struct pb_place *p, unsigned off);
/* Looks for the copy of the instruction whose link-time address is `addr`. Returns the copy's
 * offset in the body, or -1. */
int pb_body_copy(const struct pb_place *p, uint64_t addr);

/* Returns the size of a site's stub, a multiple of 16. */
size_t pb_stub_size(const struct pb_place *p);
#define PB_STUB_MAX	704	/* the largest size */
/* Writes the stub. The instruction that restores r11 is at PB_STUB_IDLE, and the body at
 * PB_STUB_COPY. site->handler is the address of that instruction if the site is idle. */
int pb_stub_emit(uint8_t *out, uint64_t at, const struct pb_site *site, const struct pb_place *p,
		 const struct pb_returns *words, uint64_t bias);
/* pb_stub_site() returns the site of the stub that begins at `at`. If no stub begins there, the
 * result may be any address. pb_stub_is() returns whether the stub of `site` begins at `at`. */
const struct pb_site *pb_stub_site(const uint8_t *at);
int pb_stub_is(const uint8_t *at, const struct pb_site *site);

/* ---- jumps in text (abi/analysis.h) -------------------------------------- */

/* Writes the jump from `from` to `to`. -ERANGE: `to` is too far. */
int pb_jump_emit(uint8_t out[PB_JUMP_LEN], uint64_t from, uint64_t to);
/* Writes the two jumps of a code slot at `from`: to the copy of the displaced instructions, and to
 * the stub. -ERANGE: a target is too far. */
int pb_code_slot_emit(uint8_t out[PB_CODE_SLOT_LEN], uint64_t from, uint64_t copy, uint64_t stub);
/* Writes the short jump of a window to its slot, which is `via` bytes after the window's start. */
void pb_jump_emit_short(uint8_t out[PB_JUMP_SHORT], int via);
/* Writes the bytes of the first shared jump that aren't also bytes of the second. */
static inline void pb_jump_emit_first(uint8_t out[PB_JUMP_SHARED]);
/* Stores the targets of two shared jumps in `target`. The first jump is at `first`, and the second
 * jump's displacement is `rel`. */
static inline void pb_shared_targets(uint64_t first, uint32_t rel, uint64_t target[2]);

/* ---- instructions -------------------------------------------------------- */

/* from: the address in an exit's stub to which pb_open_jump() jumps back. Returns whether the exit
 * after this address pops arguments (ret N). Such an exit leaves the stack pointer higher than a
 * plain return does. */
static inline bool pb_exit_pops(const void *from);
/* Returns whether `code` is a jump that loads its target from a word at a fixed address. The jump
 * may have one prefix. */
static inline bool pb_jumps_through_word(const uint8_t *code);
/* If `code` is the linker's stub for a function of another module, returns the word that holds the
 * function's address; else NULL. PB_LINKER_STUB bytes of `code` must be readable. */
static inline const uint64_t *pb_linker_stub_word(const uint8_t *code);

/* ---- assembly of the hit path, of libc's functions, of signals ----------- */

/*
 * Assembly between the program and C. doc/design/porting.md lists what the assembly needs of the
 * engine. C code never calls these functions; it only uses their addresses.
 *
 * Handlers of a site, for site->handler. The site's stub jumps to them. At that point one register
 * holds the site, and all other registers and the flags are the program's. A handler restores the
 * other registers and the flags, and jumps to site->body. The code there restores the site's
 * register. The handler's name says what it records:
 *
 *   graph		the function graph
 *   none		the function graph without a clock
 *   lazy		the function graph; a call's exit decides whether the call is recorded
 *   silent		neither this call nor any call below it (set_graph_notrace)
 *   call		the entry only
 *   NAME_nested	like NAME, but only below traced calls
 *   function		the function tracer
 *   list		several tracers
 *   direct		nothing: the agent replaces the function
 *   prog_entry		eBPF programs
 *   watch_entry	eBPF programs, at the return only; no tracer selects the function
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
void pb_watch_entry(void);

/* Copies of some handlers, and of code that the stubs of exits jump to. They lie in the first
 * PB_STUBS_HEAD bytes of a module's stubs, at `head`, so that the jumps to them are cheaper.
 * pb_near_make() writes the copies. False: the module needs no copies, or there can be none. In
 * both cases the other two functions must not be called. Context: start, or the thread that loads
 * a module; after pb_hot_link_tls(), and before the stubs are executable. */
bool pb_near_make(uint8_t *head);
/* Returns the copy of a handler, or `handler` itself if it has no copy. Context: any. */
uint64_t pb_near_of(const uint8_t *head, uint64_t handler);
/* If pc is in a copy, returns the same place in the original; else 0. The agent's tables of code
 * describe only the originals, so C code looks up the result in them. Context: any. */
uint64_t pb_near_original(const uint8_t *head, uint64_t pc);

/* Writes the offset of the agent's TLS into the code of the handlers, and into the code that the
 * stubs of exits jump to. The offset is known only after the agent was loaded. If the code can't be
 * written, it works unchanged, but more slowly. Context: start, before a site is patched. */
void pb_hot_link_tls(void);

/* The code that the stubs of exits jump to, for struct pb_returns. A function with _ret in its name
 * executes the plain return that it serves. A function with _jump serves any other exit, and jumps
 * back to the exit's stub. The idle functions record nothing; the others end the call. */
void pb_exit_ret_idle(void);
void pb_exit_jump_idle(void);
void pb_open_ret(void);
void pb_open_jump(void);
void pb_open_ret_none(void);
void pb_open_jump_none(void);
/* Ends calls that are open only for eBPF programs at their returns. If the call that returns isn't
 * open, only executes the return. In all other cases goes on at pb_open_ret(). */
void pb_watch_ret(void);

/* PB_MAX_REPLACED thunks of PB_THUNK_SIZE bytes. Thunk i runs in place of a function. It calls
 * pb_replacements[i], a C function of at most six arguments. Then it makes the same jump as the
 * stub of a plain return. */
extern const uint8_t pb_replaced_thunks[];

/* These run in place of libc's functions of the same name. Each calls pb_note_NAME() with the
 * arguments, restores all registers that may hold arguments, and jumps to pb_original_NAME.
 * pb_our_vfork() calls nothing and uses no stack: it only clears pb_unblocked (what is known of the
 * signal mask), and jumps. */
void pb_our_makecontext(void);
void pb_our_setcontext(void);
void pb_our_swapcontext(void);
void pb_our_syscall(void);
void pb_our_pthread_exit(void);
void pb_our_pthread_cancel(void);
void pb_our_vfork(void);
/* Runs in place of libc's clone(). If the child gets a TLS that isn't libc's, the child starts at
 * pb_clone_entry(). This sets pb_tls to &pb_foreign_thread, clears pb_unblocked, and jumps to the
 * program's function. Neither function calls anything. */
void pb_our_clone(void);
void pb_clone_entry(void);

/* The kernel calls pb_signal_entry() in place of the program's handlers. It calls
 * pb_signal_begin(sig, info, context, slot), which returns an address and a word. If the word is 0,
 * pb_signal_entry() jumps to the address with the arguments that the kernel passed. Otherwise it
 * calls the address with these arguments, and then pb_signal_end(context, word).
 * pb_signal_done() is a handler that does nothing. */
void pb_signal_entry(int sig, siginfo_t *info, void *context);
void pb_signal_done(void);
/* pthread_create() starts this function in place of the program's routine. It jumps to the routine
 * that pb_thread_begins() returns, and leaves no frame of its own on the stack. */
void *pb_thread_entry(void *box);

/* ---- a signal's context -------------------------------------------------- */

/* The program counter and stack pointer of the interrupted code. */
static inline uint64_t pb_context_pc(const ucontext_t *uc);
static inline uint64_t pb_context_sp(const ucontext_t *uc);
static inline void pb_context_set_pc(ucontext_t *uc, uint64_t pc);

/* Returns whether the interrupted code is on the hit path. If it is, sets *e as if the code
 * belonged to an exit. The function can't tell an exit from other code of the hit path. So the
 * caller must check that there is an open call at e->call. record: PB_OPEN_*, the state of the
 * exit's record. */
struct pb_hot_exit {
	uint64_t call, slot;
	uint8_t record;
};
bool pb_context_exit(const ucontext_t *uc, struct pb_hot_exit *e);

/*
 * A handler that has interrupted the hit path or a stub is shown the registers that it would see
 * without Patchbay. For this, call:
 *
 *   pb_context_begin(&c, uc);
 *   one of pb_context_show_*(), which change uc
 *   pb_context_shown(&c);
 *   the handler
 *   pb_context_end(&c)
 *
 * Before a pb_context_show_*() is called, uc is as the kernel passed it.
 */
struct pb_context;
void pb_context_begin(struct pb_context *c, ucontext_t *uc);

/* The part of the hit path that was interrupted. */
struct pb_hot_place {
	uint32_t of;			/* PB_HOT_*, layout.h */
	const struct pb_site *site;	/* PB_HOT_ENTRY: the site that was entered; its module
					 * may be gone */
	uint64_t goes_on;		/* PB_HOT_JUMP: the next address in the exit's stub */
};
/* False: the interrupted code isn't on the hit path. pb_context_show_return() and
 * pb_context_show_jump() may be called only after this function has returned true. */
bool pb_context_hit(struct pb_context *c, struct pb_hot_place *at);
/* Shows that a plain return has happened. */
void pb_context_show_return(struct pb_context *c);
/* Shows that the program's instruction at pc is next: a function's entry, or an exit. */
void pb_context_show_jump(struct pb_context *c, uint64_t pc);
/* Like pb_context_show_jump(), but for an interrupted stub. o: the result of pb_text_original_pc()
 * for the interrupted pc. */
void pb_context_show_stub(struct pb_context *c, const struct pb_original *o);

void pb_context_shown(struct pb_context *c);
/* If the handler didn't change a register, the register gets back the value that it had at the
 * interruption. If the handler changed the register, the program gets the handler's value. False:
 * the handler has changed pc or sp, and uc stays as the handler left it. */
bool pb_context_end(const struct pb_context *c);

/* ---- loads that may fault (doc/design/reads.md) -------------------------- */

/* Loads 8 bytes. Returns 0, -EFAULT if nothing is mapped at the address, or -EACCES if the bytes
 * can't be read now. engine/uaccess.h says when this function may be called. */
int pb_fault_load(uint64_t address, uint64_t *value) __attribute__((visibility("hidden")));
/* Called by the handler of SIGSEGV and SIGBUS. Returns whether the signal is a fault of the load in
 * pb_fault_load(). If so, changes the context so that the load fails and the code after it runs.
 * info must come from the kernel (SA_SIGINFO). */
bool pb_fault_fixup(int sig, const siginfo_t *info, ucontext_t *uc);

/* ---- registers that eBPF programs see ------------------------------------ */

/* struct pt_regs is the one that the kernel exports to user space (<asm/ptrace.h>): the context of
 * a kprobe program. fp is the frame pointer. It points to the pair {caller's frame pointer, return
 * address}. */
static inline uint64_t pb_regs_pc(const struct pt_regs *r);
static inline uint64_t pb_regs_sp(const struct pt_regs *r);
static inline uint64_t pb_regs_fp(const struct pt_regs *r);
/* Sets the fields that the assembly leaves to C: flags, pc, and the fields that are constant in
 * user space. */
static inline void pb_regs_finish(struct pt_regs *r, uint64_t pc);
/* Pops the return address, so that the registers are those after the return. */
static inline void pb_regs_return(struct pt_regs *r);
/* Sets the register that has a function's result when the function returns. */
static inline void pb_regs_set_result(struct pt_regs *r, uint64_t value);

/* Calls enter(ctx, run), an eBPF program's native code, so that unwinders can unwind through it.
 * Stores a word for unwinders in the 8 bytes below *run. So run must be a member of a struct
 * pb_prog_run (engine/prog/prog_priv.h). */
uint64_t pb_prog_call(const void *ctx, struct pb_bpf_run *run,
		      uint64_t (*enter)(const void *ctx, struct pb_bpf_run *run));
/* PB_PROG_CODE bytes of executable pages for programs' native code. One unwind rule is valid in
 * all of them. */
extern char pb_prog_code[];

#if defined(__x86_64__)
#include "arch/x86_64/code.h"
#include "arch/x86_64/frame.h"
#include "arch/x86_64/local.h"
#include "arch/x86_64/registers.h"
#else
#error "unknown architecture: see doc/design/porting.md"
#endif
#endif
