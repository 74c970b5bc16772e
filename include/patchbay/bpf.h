/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs eBPF programs in any process, without privilege and without the kernel. The
 * library opens compiled objects (clang -target bpf), verifies their programs as the
 * kernel does, compiles them to native code, and runs them in this process. None of
 * its names is one of libbpf's, so a program can use both.
 *
 * A machine holds one opened object: its maps, created and filled, and its programs.
 * Programs and maps are identified by numbers from 0, in the order of the object.
 *
 * Functions return 0 or a negative errno; their comments say what each error means.
 * -EINVAL is also returned for the number of a program or map that doesn't exist.
 * "Context: any" means: any thread, several threads at once, signal handlers, and
 * inside helpers that programs call. "Context: setup" means: one thread at a time for
 * one machine, not in a signal handler, and not while a program runs in this thread.
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

/* Sizes of a map that replace those in the object, for example if the object leaves them to user
 * space. */
struct pb_bpf_map_sizes {
	const char *map;		/* its name */
	uint32_t key_size, value_size, max_entries;	/* 0: as the object says */
};

/* All members may be 0. size: sizeof(struct pb_bpf_machine_opts), so that later versions of this
 * library can tell which members the caller knows. */
struct pb_bpf_machine_opts {
	size_t size;
	/* File with BTF of the types to which CO-RE adapts programs. NULL:
	 * /sys/kernel/btf/vmlinux, if the object has CO-RE relocations. */
	const char *types;
	/* Lines CONFIG_X=value, for variables in .kconfig. */
	const char *kconfig;
	/* BPF_PROG_TYPE_* of programs whose section doesn't tell it; 0: they are rejected. */
	uint32_t type;
	/* Rules for untrusted programs: bounded loops only, no addresses shown. */
	bool unprivileged;
	/* Interpret programs, don't make native code. */
	bool interpret;
	/* Returns the max_entries of a map if the object doesn't set it. NULL: such maps can't be
	 * made. */
	uint32_t (*entries)(void *arg, const char *map);
	/* bpf_trace_printk's text, len bytes without a 0 after them; NULL: output is discarded.
	 * Called inside runs, in any context. */
	void (*trace)(void *arg, const char *text, uint32_t len);
	void *arg;
	/* Sizes of nr_sizes maps, set before they are made, like libbpf's
	 * bpf_map__set_max_entries(). */
	const struct pb_bpf_map_sizes *sizes;
	size_t nr_sizes;
};

/*
 * Open an object, from a file or from nr bytes in memory, and make its maps. If one of its
 * programs or maps can't be used, the `why` of that program or map has the reason; the
 * others aren't affected. The object need not come from a trusted source.
 * -ENOENT, -EACCES, ...: open(2)'s. -EINVAL: it isn't an eBPF object, or is inconsistent,
 * or opts->sizes names a map that isn't in it. -ENOMEM. On error, `why` gets a sentence of
 * at most `size` bytes (size may be 0). Context: any thread, not in a signal handler.
 */
int pb_bpf_machine_open(const char *path, const struct pb_bpf_machine_opts *opts,
			struct pb_bpf_machine **machine, char *why, size_t size);
int pb_bpf_machine_open_memory(const void *bytes, size_t nr, const struct pb_bpf_machine_opts *opts,
			       struct pb_bpf_machine **machine, char *why, size_t size);

/* Frees the machine, of which no program may be running. NULL: does nothing. Context: setup. */
void pb_bpf_machine_close(struct pb_bpf_machine *machine);

/* --- programs ---------------------------------------------------------------------- */

/* The strings live as long as the machine. */
struct pb_bpf_program_info {
	const char *name, *section;
	const char *target;		/* of SEC("kprobe/TARGET"); NULL: none */
	uint32_t type, attach_type;	/* BPF_PROG_TYPE_*; attach type of the section */
	bool loaded, native;		/* loaded: it can run; native: as native code */
	const char *why;		/* why it can't run, once that is known; else NULL */
	uint32_t insns;			/* including all functions that it calls */
};

/* Context: any but inside pb_bpf_machine_load of the same machine. */
uint32_t pb_bpf_machine_programs(const struct pb_bpf_machine *machine);
int pb_bpf_machine_program_info(const struct pb_bpf_machine *machine, uint32_t program,
				struct pb_bpf_program_info *info);
/* The number of the program of that name, or -ENOENT. */
int pb_bpf_machine_program(const struct pb_bpf_machine *machine, const char *name);

/*
 * Verifies a program and makes it ready to run. It may make tail calls through arrays into
 * which the object puts programs (libbpf would fill them the same way). Those programs are
 * loaded, too, and in turn those that they can reach. If one of them can't be loaded, none
 * is, and info.why says which.
 * -EACCES, -EINVAL, -EPERM, -E2BIG, -EFAULT, ...: the verifier's, the same as the kernel's.
 * -EBADF: the section of a program in an array begins with ?, and that program wasn't loaded
 * before. -EINVAL: that program is of another type. -ENOMEM. -EALREADY: an earlier call has
 * loaded the program.
 * log: receives the verifier's log, at one of the kernel's levels (0: nothing, 1, 2; 4:
 * statistics). If `size` is too small, the oldest lines are left out; the verdict is the same.
 * size 0: no log. With a log, verification takes several times as long; info.why has the
 * reason without one, too. Context: setup.
 */
int pb_bpf_machine_load(struct pb_bpf_machine *machine, uint32_t program, uint32_t level, char *log,
			size_t size);

/*
 * Runs a loaded program. ctx is the context of the program's type: struct pt_regs of a
 * kprobe, the words of a tracepoint's record or of a raw tracepoint's arguments. Programs
 * whose context is a packet run only in pb_bpf_machine_test(). -ENOENT: the program isn't loaded.
 * -EOPNOTSUPP: its context is a packet. Context: any; allocates nothing and takes no lock.
 */
int pb_bpf_machine_run(struct pb_bpf_machine *machine, uint32_t program, void *ctx,
		       uint64_t *result);

/* The kernel's BPF_PROG_TEST_RUN. */
struct pb_bpf_machine_test {
	const void *data_in, *ctx_in;	/* packet; struct __sk_buff or xdp_md, or the context
					 * itself */
	uint32_t data_size_in, ctx_size_in;
	void *data_out, *ctx_out;	/* may be NULL */
	uint32_t data_size_out, ctx_size_out;	/* in: their room; out: their size */
	uint32_t repeat;		/* 0: once */
	uint32_t retval, duration;	/* out; nanoseconds of one run */
};

/* -ENOENT: the program isn't loaded; -EINVAL, -ENOSPC, ...: the kernel's. Context: any
 * thread, not in a signal handler. */
int pb_bpf_machine_test(struct pb_bpf_machine *machine, uint32_t program,
			struct pb_bpf_machine_test *test);

/*
 * Programs may read memory that isn't mapped (bpf_core_read without a call). The process's
 * handlers of SIGSEGV and SIGBUS must first call this function with the address of the
 * instruction that faulted. True: a program's read has faulted, and *ip is where to go on.
 * Without such handlers, such a read ends the process. Context: signal handlers.
 */
bool pb_bpf_machine_fault(uint64_t *ip);

/* --- maps -------------------------------------------------------------------------- */

struct pb_bpf_map_info {
	const char *name;		/* of variables: "object.rodata" etc., as in libbpf */
	uint32_t type, key_size, value_size, max_entries, flags;
	/* Bytes of a value for the functions below. Of a per-CPU map: the values of all CPUs, each
	 * rounded up to 8. */
	uint64_t outside_size;
	bool made;
	const char *why;		/* why it couldn't be made; else NULL */
};

/* Context: any. */
uint32_t pb_bpf_machine_maps(const struct pb_bpf_machine *machine);
int pb_bpf_machine_map_info(const struct pb_bpf_machine *machine, uint32_t map,
			    struct pb_bpf_map_info *info);
/* The number of the map of that name, or -ENOENT. */
int pb_bpf_machine_map(const struct pb_bpf_machine *machine, const char *name);

/*
 * The operations of bpf(2) on maps, with its errors. flags: BPF_ANY 0, BPF_NOEXIST 1,
 * BPF_EXIST 2, BPF_F_LOCK 4. -ENOENT: there is no such key, or the map wasn't made.
 * next_key with key NULL: the first key. Context: any thread, not inside a run.
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
