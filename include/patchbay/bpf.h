/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs eBPF programs in any process, without privilege and without the kernel. The library opens
 * compiled objects (clang -target bpf), verifies their programs as the kernel does, compiles them
 * to native code, and runs them in this process. None of its names occurs in libbpf, so a process
 * can use both libraries.
 *
 * A machine holds one opened object: its maps, created and filled, and its programs. Programs and
 * maps are identified by numbers from 0, in the order of the object.
 *
 * Unless a comment says otherwise, functions of type int return 0 or a negative errno. The comment
 * of each function explains its errors. If a number names no program or map, functions return
 * -EINVAL. "Context: any" means that any thread may call the function, also in a signal handler and
 * in a helper that a program calls. Other threads may call it at the same time. "Context: setup"
 * means: one thread at a time for one machine, not in a signal handler, and not while a program
 * runs in this thread.
 */
#ifndef PATCHBAY_BPF_H
#define PATCHBAY_BPF_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pb_bpf_machine;

/* Sizes of a map. They replace the object's sizes, for example if the object leaves the sizes to
 * user space. */
struct pb_bpf_map_sizes {
	const char *map;		/* its name */
	uint32_t key_size, value_size, max_entries;	/* 0: the object's value */
};

/* Set `size` to sizeof(struct pb_bpf_machine_opts). All other members may be 0. From `size`, later
 * versions of this library see which members the caller knows. */
struct pb_bpf_machine_opts {
	size_t size;
	/* File with BTF. CO-RE adapts programs to the types in this file. NULL:
	 * /sys/kernel/btf/vmlinux, if the object has CO-RE relocations. */
	const char *types;
	/* Text with lines of the form CONFIG_X=value. These lines set the object's variables in
	 * .kconfig. */
	const char *kconfig;
	/* BPF_PROG_TYPE_* of programs whose section doesn't determine a type. 0: such programs are
	 * rejected. */
	uint32_t type;
	/* Verify programs as the kernel does for a user without privileges. A program must then
	 * be of type socket_filter or cgroup_skb. It must have no loops and no subprograms, and
	 * must not reveal addresses. */
	bool unprivileged;
	/* Interpret programs instead of compiling them. */
	bool interpret;
	/* Returns the max_entries of a map for which the object sets none. NULL: such maps can't be
	 * made. */
	uint32_t (*entries)(void *arg, const char *map);
	/* Receives the output of bpf_trace_printk: len bytes, not terminated by a 0. Called while a
	 * program runs, in any context. NULL: the output is discarded. */
	void (*trace)(void *arg, const char *text, uint32_t len);
	void *arg;
	/* Sizes of nr_sizes maps. They are set before the maps are made, like libbpf's
	 * bpf_map__set_max_entries(). */
	const struct pb_bpf_map_sizes *sizes;
	size_t nr_sizes;
};

/*
 * Open an object, from a file or from nr bytes in memory, and make its maps. If a program or map
 * can't be used, its info's `why` has the reason. Other programs and maps aren't affected. The
 * object need not come from a trusted source.
 * -ENOENT, -EACCES, ...: errors of open(2). -EINVAL: the file is no eBPF object, or the object is
 * inconsistent, or opts->sizes names a map that the object doesn't have. -ENOMEM.
 * On error, `why` gets a sentence of at most `size` bytes (size may be 0). Context: any thread, not
 * in a signal handler.
 */
int pb_bpf_machine_open(const char *path, const struct pb_bpf_machine_opts *opts,
			struct pb_bpf_machine **machine, char *why, size_t size);
int pb_bpf_machine_open_memory(const void *bytes, size_t nr, const struct pb_bpf_machine_opts *opts,
			       struct pb_bpf_machine **machine, char *why, size_t size);

/* Frees the machine. None of its programs may be running. NULL: does nothing. Context: setup. */
void pb_bpf_machine_close(struct pb_bpf_machine *machine);

/* --- programs ---------------------------------------------------------------------- */

/* The strings live as long as the machine. */
struct pb_bpf_program_info {
	const char *name, *section;
	const char *target;		/* TARGET of SEC("kprobe/TARGET"), or NULL */
	uint32_t type, attach_type;	/* BPF_PROG_TYPE_*; attach type of the section */
	bool loaded, native;		/* loaded: it can run; native: it runs as native code */
	const char *why;		/* the reason why it can't run, or NULL */
	uint32_t insns;			/* number of instructions, with called functions */
};

/* Context: any, but not while pb_bpf_machine_load() runs for the same machine. */
uint32_t pb_bpf_machine_programs(const struct pb_bpf_machine *machine);
int pb_bpf_machine_program_info(const struct pb_bpf_machine *machine, uint32_t program,
				struct pb_bpf_program_info *info);
/* Returns the number of the program with this name, or -ENOENT. */
int pb_bpf_machine_program(const struct pb_bpf_machine *machine, const char *name);

/*
 * Verifies a program and makes it ready to run. The object may put programs into prog arrays
 * (libbpf fills such arrays in the same way). If the program can reach other programs by tail calls
 * through these arrays, the other programs are loaded, too. If one of these programs can't be
 * loaded, the call loads no program, and info.why names the program that can't be loaded.
 * -EACCES, -EINVAL, -EPERM, -E2BIG, -EFAULT, ...: the verifier's errors, the same as the kernel's.
 * -EBADF: the section name of a program in an array begins with ?, and no earlier call has loaded
 * that program. -EINVAL: a program in an array is of another type than the program that uses the
 * array. -ENOMEM. -EALREADY: an earlier call for this program has succeeded.
 * log: receives the verifier's log. level: the kernel's log level: 0: nothing; 1: if the program is
 * refused, the instructions of the refused path; 2: all paths, with details; add 4 for statistics.
 * If `size` is too small, the oldest lines are left out, and the verdict is the same. size 0: no
 * log. With a log, verification takes several times as long. info.why has the reason even without a
 * log. Context: setup.
 */
int pb_bpf_machine_load(struct pb_bpf_machine *machine, uint32_t program, uint32_t level, char *log,
			size_t size);

/*
 * Runs a loaded program. ctx is the context for the program's type: struct pt_regs for a kprobe,
 * the record for a tracepoint, the arguments as words for a raw tracepoint. If the context is a
 * packet, the program runs only in pb_bpf_machine_test().
 * -ENOENT: the program isn't loaded. -EOPNOTSUPP: the program's context is a packet. Context: any.
 * The run allocates nothing. It takes no lock, except the locks of maps and of values.
 */
int pb_bpf_machine_run(struct pb_bpf_machine *machine, uint32_t program, void *ctx,
		       uint64_t *result);

/* The kernel's BPF_PROG_TEST_RUN. */
struct pb_bpf_machine_test {
	const void *data_in, *ctx_in;	/* data_in: packet; ctx_in: struct __sk_buff, struct xdp_md,
					 * or the context itself */
	uint32_t data_size_in, ctx_size_in;
	void *data_out, *ctx_out;	/* may be NULL */
	uint32_t data_size_out, ctx_size_out;	/* in: room in data_out and ctx_out; out: size
						 * of the output, even if the room is less. As
						 * in the kernel, a data_size_out of 0 means
						 * that there is no limit: data_out must have
						 * room for the whole packet */
	uint32_t repeat;		/* 0: once */
	uint32_t retval, duration;	/* out; duration: nanoseconds of one run */
};

/* -ENOENT: the program isn't loaded. -EINVAL, -ENOSPC, ...: errors as in the kernel. Context: any
 * thread, not in a signal handler. */
int pb_bpf_machine_test(struct pb_bpf_machine *machine, uint32_t program,
			struct pb_bpf_machine_test *test);

/*
 * A program's load through a pointer to a BTF type faults if nothing is mapped at the address. The
 * process's handlers of SIGSEGV and SIGBUS must first call this function with the address of the
 * instruction that faulted. True: a program's load has faulted, and *ip is now the address at which
 * to continue. If a process has no such handlers, the load ends the process. Context: signal
 * handlers.
 */
bool pb_bpf_machine_fault(uint64_t *ip);

/* --- maps -------------------------------------------------------------------------- */

struct pb_bpf_map_info {
	const char *name;		/* maps of variables: "object.rodata" etc., as in libbpf */
	uint32_t type, key_size, value_size, max_entries, flags;
	/* Bytes of a value in pb_bpf_machine_lookup() etc. For a per-CPU map: the values of all
	 * CPUs, each rounded up to 8 bytes. */
	uint64_t outside_size;
	bool made;
	const char *why;		/* the reason why it couldn't be made, or NULL */
};

/* Context: any. */
uint32_t pb_bpf_machine_maps(const struct pb_bpf_machine *machine);
int pb_bpf_machine_map_info(const struct pb_bpf_machine *machine, uint32_t map,
			    struct pb_bpf_map_info *info);
/* Returns the number of the map with this name, or -ENOENT. */
int pb_bpf_machine_map(const struct pb_bpf_machine *machine, const char *name);

/*
 * bpf(2)'s operations on maps, with bpf(2)'s errors. flags: BPF_ANY 0, BPF_NOEXIST 1, BPF_EXIST 2,
 * BPF_F_LOCK 4. -ENOENT: there is no such key, or the map wasn't made. pb_bpf_machine_next_key()
 * with key NULL finds the first key. Context: any thread, not inside a run.
 */
int pb_bpf_machine_lookup(struct pb_bpf_machine *machine, uint32_t map, const void *key,
			  void *value, uint64_t flags);
int pb_bpf_machine_update(struct pb_bpf_machine *machine, uint32_t map, const void *key,
			  const void *value, uint64_t flags);
int pb_bpf_machine_delete(struct pb_bpf_machine *machine, uint32_t map, const void *key);
int pb_bpf_machine_next_key(struct pb_bpf_machine *machine, uint32_t map, const void *key,
			    void *next);

#ifdef __cplusplus
}
#endif
#endif
