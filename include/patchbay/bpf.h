/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An eBPF machine for any program: compiled objects (clang -target bpf) are opened,
 * their programs verified as the kernel verifies them, compiled and run in this
 * process, without privilege and without the kernel. Nothing here is called as
 * anything of libbpf's is; both can be used in one program.
 *
 * A machine is what one object became: its maps, made and filled, and its programs.
 * Programs and maps are numbers from 0, in the order of the object.
 *
 * Functions return 0 or a negative errno, and say beside themselves what those mean.
 * -EINVAL is also what a number that isn't there gets. "Context: any" means any
 * thread, also several at once, signal handlers, and inside of programs' helpers;
 * "Context: setup" one thread at a time for one machine, not in a signal handler and
 * not inside a run.
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

/* Sizes of a map, in place of those in the object, for example where it leaves them to user
 * space. */
struct pb_bpf_map_sizes {
	const char *map;		/* its name */
	uint32_t key_size, value_size, max_entries;	/* 0: as the object says */
};

/* All zeros will do. size is for later versions: sizeof(struct pb_bpf_machine_opts). */
struct pb_bpf_machine_opts {
	size_t size;
	/* File whose BTF says what types CO-RE meets; NULL: /sys/kernel/btf/vmlinux, if the
	 * object asks for any. */
	const char *types;
	/* Lines CONFIG_X=value, for variables in .kconfig. */
	const char *kconfig;
	/* BPF_PROG_TYPE_ of programs whose section doesn't say; 0: they are refused. */
	uint32_t type;
	/* Rules for untrusted programs: bounded loops only, no addresses shown. */
	bool unprivileged;
	/* Native code isn't made. */
	bool interpret;
	/* Entries of maps that were left open; NULL: they can't be made. */
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
 * Opens an object and makes its maps. What can't be done with one of its programs or
 * maps is reported in its `why` and does not affect others.
 * -ENOENT, -EACCES, ...: open(2)'s. -EINVAL: no object for eBPF, or an inconsistent
 * one, or opts->sizes names a map that isn't in it; the bytes may be anybody's. -ENOMEM.
 * why: a sentence goes there (size bytes, may be 0). Context: any thread, not in a signal
 * handler; *machine is then set up.
 */
int pb_bpf_machine_open(const char *path, const struct pb_bpf_machine_opts *opts,
			struct pb_bpf_machine **machine, char *why, size_t size);
int pb_bpf_machine_open_memory(const void *bytes, size_t nr, const struct pb_bpf_machine_opts *opts,
			       struct pb_bpf_machine **machine, char *why, size_t size);

/* Nothing of it runs any more. NULL: nothing. Context: setup. */
void pb_bpf_machine_close(struct pb_bpf_machine *machine);

/* --- programs ---------------------------------------------------------------------- */

/* Texts live as long as the machine. */
struct pb_bpf_program_info {
	const char *name, *section;
	const char *target;		/* of SEC("kprobe/TARGET"); NULL: none */
	uint32_t type, attach_type;	/* BPF_PROG_TYPE_, the section's */
	bool loaded, native;		/* it can run; as native code */
	const char *why;		/* why it can't, once that is known; NULL */
	uint32_t insns;			/* with all functions that it calls */
};

/* Context: any but inside pb_bpf_machine_load of the same machine. */
uint32_t pb_bpf_machine_programs(const struct pb_bpf_machine *machine);
int pb_bpf_machine_program_info(const struct pb_bpf_machine *machine, uint32_t program,
				struct pb_bpf_program_info *info);
/* The number of that name; -ENOENT. */
int pb_bpf_machine_program(const struct pb_bpf_machine *machine, const char *name);

/*
 * Verifies a program and makes it ready, with all programs that the object puts into the
 * arrays that it makes tail calls through, and those that they come to in turn: as libbpf
 * fills these arrays. If one of them can't be loaded, none is, and info.why says which.
 * The verifier's -EACCES, -EINVAL, -EPERM, -E2BIG, -EFAULT, ... as the kernel's; -EBADF: the
 * section of a program in an array begins with ?, and it wasn't loaded before; -EINVAL: such
 * a program is of another type; -ENOMEM; -EALREADY: it is loaded, by this function. log: what
 * the verifier says, with the kernel's levels (0: nothing, 1, 2; 4: statistics). If it has no
 * room for all, the oldest lines are left out; the verdict is the same. size 0: no log.
 * Writing one takes several times as long as the rest: info.why has the reason without it,
 * too. Context: setup.
 */
int pb_bpf_machine_load(struct pb_bpf_machine *machine, uint32_t program, uint32_t level, char *log,
			size_t size);

/*
 * Runs a loaded program with a context of its type: struct pt_regs of kprobes, the
 * words of a tracepoint's record or of a raw tracepoint's arguments. Programs that see
 * packets run by pb_bpf_machine_test only. -ENOENT: it isn't loaded. -EOPNOTSUPP: it
 * sees packets. Context: any; allocates nothing and takes no lock.
 */
int pb_bpf_machine_run(struct pb_bpf_machine *machine, uint32_t program, void *ctx,
		       uint64_t *result);

/* The kernel's BPF_PROG_TEST_RUN. */
struct pb_bpf_machine_test {
	const void *data_in, *ctx_in;	/* packet; struct __sk_buff or xdp_md, or the context
					 * itself */
	uint32_t data_size_in, ctx_size_in;
	void *data_out, *ctx_out;	/* may be NULL */
	uint32_t data_size_out, ctx_size_out;	/* their room; then what there is */
	uint32_t repeat;		/* 0: once */
	uint32_t retval, duration;	/* out; nanoseconds of one run */
};

/* -ENOENT: it isn't loaded; -EINVAL, -ENOSPC, ...: the kernel's. Context: any thread,
 * not in a signal handler. */
int pb_bpf_machine_test(struct pb_bpf_machine *machine, uint32_t program,
			struct pb_bpf_machine_test *test);

/*
 * Programs may read memory that isn't there (bpf_core_read without a call). A process that
 * handles SIGSEGV and SIGBUS asks this with the instruction's address before anything
 * else: true: *ip is where to go on. Without a handler that asks, such a read ends the
 * process. Context: signal handlers.
 */
bool pb_bpf_machine_fault(uint64_t *ip);

/* --- maps -------------------------------------------------------------------------- */

struct pb_bpf_map_info {
	const char *name;		/* "object.rodata" of variables, as libbpf says */
	uint32_t type, key_size, value_size, max_entries, flags;
	/* Bytes of a value from outside: of per-CPU maps those of all, each rounded up to 8. */
	uint64_t outside_size;
	bool made;
	const char *why;		/* why it couldn't be made; NULL */
};

/* Context: any. */
uint32_t pb_bpf_machine_maps(const struct pb_bpf_machine *machine);
int pb_bpf_machine_map_info(const struct pb_bpf_machine *machine, uint32_t map,
			    struct pb_bpf_map_info *info);
/* The number of that name; -ENOENT. */
int pb_bpf_machine_map(const struct pb_bpf_machine *machine, const char *name);

/*
 * What bpf(2) does with maps, with its errors. flags: BPF_ANY 0, BPF_NOEXIST 1, BPF_EXIST
 * 2, BPF_F_LOCK 4. -ENOENT: no such key (or, of a map's number: it wasn't made).
 * next_key with key NULL: the first one. Context: any thread, not inside a run.
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
