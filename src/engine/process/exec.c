/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Follows exec (exec.h). This code runs in the process that calls exec. A vfork child shares its
 * memory, and the thread's state, with its suspended parent. exec_memory.h has the memory for the
 * new environment.
 *
 * The file is inspected before the exec. The program must not notice this inspection: errors, the
 * order of errors, and the reasons to block are the same as without it. If the program has asked
 * for a seccomp filter, the agent makes no system call but the exec itself.
 */
#include <asm/errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "engine/process/exec.h"
#include "engine/process/exec_memory.h"
#include "engine/process/image_fit.h"
#include "engine/process/replace.h"
#include "engine/latch.h"
#include "engine/renew.h"
#include "engine/graph/thread.h"
#include "engine/uaccess.h"
#include "engine/wire.h"
#include "abi/agent_name.h"
#include "base/base.h"
#include "base/mem.h"
#include "base/sys.h"
#include "ring/writer.h"

static const char *preload_path, *session_path;
static bool follow_exec;

typedef int execve_fn(const char *path, char *const argv[], char *const envp[]);
typedef int execveat_fn(int dir, const char *path, char *const argv[], char *const envp[],
			int flags);
typedef int fexecve_fn(int fd, char *const argv[], char *const envp[]);
static execve_fn *original_execve;
static execveat_fn *original_execveat;
static fexecve_fn *original_fexecve;

void pb_exec_start(const char *preload, const char *session, bool follow)
{
	preload_path = preload;
	session_path = session;
	follow_exec = follow;
}

struct part {
	const char *text;
	size_t len;
};

/* Writes the name, and after it the parts that aren't empty, with colons between them. Returns the
 * address after the terminating NUL. */
static char *put_var(char *at, const char *name, const struct part *parts, unsigned nr)
{
	bool any = false;

	memcpy(at, name, strlen(name));
	at += strlen(name);
	for (unsigned i = 0; i < nr; i++) {
		if (!parts[i].len)
			continue;
		if (any)
			*at++ = ':';
		memcpy(at, parts[i].text, parts[i].len);
		at += parts[i].len;
		any = true;
	}
	*at = 0;
	return at + 1;
}

/* Used to check the program's pointers before this file reads through them. An invalid pointer must
 * not fault here, because the kernel must report it (EFAULT). `page` is the latest page that was
 * found to be mapped. */
struct look {
	uint64_t page;
};

#define NO_SUCH_HOW 99

/* Returns whether the memory at p can be read. Passes p, rounded down to 8, to rt_sigprocmask() as
 * the new mask, with an invalid `how`. The kernel reads the mask before it looks at `how`, and
 * changes nothing. It accepts NULL, so the first page counts as unmapped. Hardly any seccomp filter
 * forbids this system call. */
static bool is_there(struct look *l, const void *p)
{
	uint64_t page = (uint64_t)p & ~4095ul;

	if (!page)
		return false;
	if (page != l->page &&
	    pb_sys(SYS_rt_sigprocmask, NO_SUCH_HOW, (uint64_t)p & ~7ul, NULL, 8) == -EFAULT)
		return false;
	l->page = page;
	return true;
}

/* Returns the length of s, or -1 if a part of s can't be read. If `prefix` isn't NULL, counts only
 * the characters that s and `prefix` have in common at the start. */
static long measure(struct look *l, const char *s, const char *prefix)
{
	for (long n = 0;; n++) {
		if (!is_there(l, s + n))
			return -1;
		if (!s[n] || (prefix && (!prefix[n] || s[n] != prefix[n])))
			return n;
	}
}

static const char preload[] = "LD_PRELOAD=", session[] = "PATCHBAY_SESSION=";
#define PRELOAD_LEN ((long)sizeof(preload) - 1)
#define SESSION_LEN ((long)sizeof(session) - 1)

/* The variables of an environment that isn't ours. A child of posix_spawn shares its memory with
 * its parent, whose other threads may meanwhile remove variables from the array. So each pointer is
 * read once, and the array may end earlier than before. */
struct vars {
	size_t nr;		/* their count */
	const char *preload;	/* the value of the program's own LD_PRELOAD, or NULL */
	size_t preload_len;
	bool session;		/* there is a PATCHBAY_SESSION that isn't empty */
};

static const char *var_at(char *const envp[], size_t i)
{
	return *(const char *const volatile *)&envp[i];
}

/* Looks at one variable. False: a pointer is invalid. */
static bool look_at_var(struct vars *v, struct look *l, const char *var)
{
	long n = measure(l, var, session);

	v->session |= n == SESSION_LEN && measure(l, var + n, NULL) > 0;
	if (n >= 0)
		n = measure(l, var, preload);
	if (n < PRELOAD_LEN)
		return n >= 0;
	n = measure(l, var + PRELOAD_LEN, NULL);
	if (n < 0)
		return false;
	v->preload = var + PRELOAD_LEN;
	v->preload_len = (size_t)n;
	return true;
}

/* Looks at the variables in envp. False: a pointer is invalid. */
static bool look_at_vars(struct vars *v, char *const envp[])
{
	struct look array = { ~0ul }, strings = array;
	const char *var;

	*v = (struct vars){ 0 };
	for (; envp; v->nr++) {
		char *const *at = &envp[v->nr];

		/* an element of an array that isn't aligned may lie in two pages */
		if (!is_there(&array, at) || !is_there(&array, (char *)at + 7))
			return false;
		var = var_at(envp, v->nr);
		if (!var)
			break;
		if (!look_at_var(v, &strings, var))
			return false;
	}
	return true;
}

static struct part base_of(const char *path, size_t len)
{
	size_t base = len;

	while (base && path[base - 1] != '/')
		base--;
	return (struct part){ path + base, len - base };
}

/* Returns whether a recorder has set these variables for its own session: PATCHBAY_SESSION, and an
 * LD_PRELOAD whose first library is an agent of any version. A library that must come first may
 * precede the agent there. */
static bool is_nested(const struct vars *v)
{
	static const char agent[] = PB_AGENT_PREFIX;
	const char *at = v->preload, *end = at + v->preload_len;
	struct part name;
	size_t n;

	if (!v->session || !at)
		return false;
	n = pb_next_in_list(&at, end);
	if (pb_is_first_library(at, n)) {
		at += n;
		n = pb_next_in_list(&at, end);
	}
	name = base_of(at, n);
	return name.len >= sizeof(agent) - 1 && !memcmp(name.text, agent, sizeof(agent) - 1);
}

/* Returns a copy of envp with PATCHBAY_SESSION, and with the agent's part of LD_PRELOAD before the
 * program's own part. If the own part begins with a library that must come first, this library's
 * name is copied to the front, too. So the agent's part can be removed later without a trace.
 * needed: such a library of the image itself, or "". If the copy can't be made, returns envp. */
static char *const *with_ours(char *const envp[], const struct vars *v, const char *needed)
{
	struct part parts[] = {
		{ needed, strlen(needed) }, { preload_path, strlen(preload_path) },
		{ v->preload, v->preload_len },
	}, socket = { session_path, strlen(session_path) };
	size_t out = 0, n, text = sizeof(preload) + sizeof(session) + socket.len + 4;
	const char *var, *first;
	char **new, *strings;

	if (v->preload && (n = pb_first_in_list(v->preload, v->preload_len, &first)))
		parts[0] = (struct part){ first, n };
	for (unsigned i = 0; i < pb_array_size(parts); i++)
		text += parts[i].len;
	new = pb_exec_memory((v->nr + 3) * sizeof(*new) + text);
	if (!new)
		return envp;
	strings = (char *)(new + v->nr + 3);
	for (size_t i = 0; i < v->nr && (var = var_at(envp, i)); i++)
		if (!pb_has_prefix(var, preload) && !pb_has_prefix(var, session))
			new[out++] = (char *)var;
	new[out++] = strings;
	strings = put_var(strings, preload, parts, pb_array_size(parts));
	new[out++] = strings;
	put_var(strings, session, &socket, 1);
	new[out] = NULL;
	return new;
}

static bool wanted(const char *path)
{
	/* a child of fork or vfork that is not followed */
	if (!pb_follow_fork && pb_sys(SYS_getpid) != pb_process->pid)
		return false;
	return follow_exec && !pb_latched && !pb_detached && path;
}

/* Closes the thread's chunk. The thread lives on in the next image. If the chunk stayed open, the
 * recorder wouldn't find out that the chunk has no owner any more. If the exec fails, the thread
 * takes another chunk. A vfork child has its parent's state, and leaves it alone. If a signal
 * handler makes the exec, it may have interrupted code that will write to the chunk after a failed
 * exec. So the chunk stays open then. */
static void leave_image(void)
{
	struct pb_thread *t = pb_tls;

	if (t->tcb && !t->w.nr_pending && pb_sys(SYS_getpid) == pb_process->pid)
		pb_writer_close(&t->w);
}

/* An exec that is under way. If the image won't be traced, `counter` may point to a count in the
 * ring that includes the image. Under a seccomp filter, the agent can't check the image, so it
 * counts each exec that it would follow without the filter. NULL: this image isn't counted.
 * named: the element of ring->unfit[] that has this image's name. An exec that fails may take so
 * long that the agent detaches and is attached again meanwhile. Then both point to memory of the
 * former ring. */
struct exec {
	char *const *envp;
	uint32_t *counter;
	struct pb_ring_unfit *named;
	uint32_t renewals;	/* pb_renewals before the exec */
};

/* Whether the limits have room for the agent in the new program (doc/limits.md has the sizes). If
 * they don't, the exec isn't followed: the loader would map the agent before the program's
 * libraries, and might then have no room for these libraries. */
static bool has_room(void)
{
	static const struct { int resource; uint64_t least; } rooms[] = {
		{ RLIMIT_AS, 48ul << 20 }, { RLIMIT_DATA, 24ul << 20 },
	};
	struct rlimit limit;

	for (unsigned i = 0; i < pb_array_size(rooms); i++)
		if (!pb_sys(SYS_prlimit64, 0, rooms[i].resource, NULL, &limit) &&
		    limit.rlim_cur < rooms[i].least)
			return false;
	return true;
}

/* Whether the new program can load the agent, and the agent can reach the recorder. This may be
 * impossible if the process has changed its user or its root directory, because the socket lies in
 * a directory of the recorder's user. Makes only system calls that pb_image_fit() makes, too,
 * because the process may have a filter of which the agent doesn't know. */
static bool is_near(void)
{
	struct stat st;
	long fd, err = pb_sys(SYS_newfstatat, AT_FDCWD, session_path, &st, 0);

	/* after another error, for example if no descriptor is left in this process, the new
	 * program may still be able to reach the file */
	if (err)
		return !pb_wire_hides(err);
	fd = pb_sys(SYS_openat, AT_FDCWD, preload_path, O_RDONLY | O_CLOEXEC, 0);
	if (pb_sys_failed(fd))
		return !pb_wire_hides(fd);
	pb_sys(SYS_close, fd);
	return true;
}

/* Copies the path to the ring, so that the recorder can name an example. Of a long path, copies the
 * end, with dots before it. If the path can't be read, the name is empty. */
static void put_name(struct pb_ring_unfit *u, const char *path)
{
	struct look l = { ~0ul };
	long len = measure(&l, path, NULL), most = sizeof(u->name) - 1;
	size_t at = 0;

	*u->name = 0;
	if (len > most) {
		pb_put_str(u->name, sizeof(u->name), &at, "...");
		path += len - most + (long)at;
	}
	if (len > 0)
		pb_put_str(u->name, sizeof(u->name), &at, path);
	__atomic_store_n(&u->named, PB_UNFIT_NAMED, __ATOMIC_RELEASE);
}

/* The first image of each kind is named. */
static void count_unfit(struct exec *e, const struct pb_image_fit *f)
{
	struct pb_ring_unfit *u = &pb_ring_map.ring->unfit[f->kind];
	uint32_t none = 0;

	e->counter = &u->images;
	/* put_name() makes another system call than pb_image_fit() */
	if (pb_filtered || !__atomic_compare_exchange_n(&u->named, &none, PB_UNFIT_NAMING, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	e->named = u;
	put_name(u, f->path);
}

/* Makes the environment for an image that the agent can be loaded into. Returns the count that
 * includes the image, or NULL if the image will be traced. The other checks come first, so that the
 * program has little time to change the variables. */
static uint32_t *add_ours(struct exec *e, const struct pb_image_fit *f)
{
	struct pb_ring *ring = pb_ring_map.ring;
	bool near = is_near(), room = has_room();
	char *const *envp = e->envp;
	struct vars v;
	bool valid = look_at_vars(&v, envp);

	if (is_nested(&v))
		return &ring->nested_images;
	if (!near)
		return &ring->remote_images;
	if (valid && room)
		e->envp = with_ours(envp, &v, f->first);
	return e->envp == envp ? &ring->cramped_images : NULL;
}

/* Prepares an exec that may be followed. */
static void prepare(struct exec *e, int dir, const char *path, int flags)
{
	struct pb_image_fit f;

	pb_image_fit(&f, dir, path, flags);
	if (f.kind == PB_IMAGE_FAILS)
		return;
	if (f.kind != PB_IMAGE_FITS)
		count_unfit(e, &f);
	else if (!pb_recorder_lives())
		e->counter = &pb_ring_map.ring->missed_images;
	else
		e->counter = add_ours(e, &f);
	if (pb_recording_ended())
		e->counter = NULL;
}

/* Prepares an exec, and returns the environment for it. Under a seccomp filter the exec isn't
 * followed, because any system call of the agent may end the program. */
static struct exec begin(int dir, const char *path, int flags, char *const envp[])
{
	struct exec e = { envp, NULL, NULL, pb_renewals };

	if (pb_sandboxed) {
		e.counter = follow_exec && pb_follow_fork && !pb_latched && pb_ring_map.ring ?
			    &pb_ring_map.ring->sandboxed_images : NULL;
	} else {
		leave_image();
		if (wanted(path))
			prepare(&e, dir, path, flags);
	}
	if (e.counter)
		__atomic_fetch_add(e.counter, 1, __ATOMIC_RELAXED);
	return e;
}

static int failed(const struct exec *e, int ret)
{
	if (!pb_ring_map.ring || e->renewals != pb_renewals)
		return ret;
	if (e->counter)
		__atomic_fetch_sub(e->counter, 1, __ATOMIC_RELAXED);
	if (e->named)
		__atomic_store_n(&e->named->named, 0, __ATOMIC_RELAXED);
	return ret;
}

/* Called when an exec has failed. If the environment was ours, the arguments and our variables
 * together may be longer than the kernel allows (E2BIG). Then the program's own environment may
 * still fit. The second exec also gives the program the error that it would get without the agent.
 * False: the exec isn't made again. */
static bool makes_again(struct exec *e, char *const envp[])
{
	if (e->envp == envp)
		return false;
	e->envp = envp;
	if (pb_ring_map.ring && e->renewals == pb_renewals && !pb_recording_ended()) {
		e->counter = &pb_ring_map.ring->cramped_images;
		__atomic_fetch_add(e->counter, 1, __ATOMIC_RELAXED);
	}
	return true;
}

static int our_execve(const char *path, char *const argv[], char *const envp[])
{
	struct exec e = begin(AT_FDCWD, path, 0, envp);
	int ret = original_execve(path, argv, e.envp);

	if (makes_again(&e, envp))
		ret = original_execve(path, argv, envp);
	return failed(&e, ret);
}

static int our_execveat(int dir, const char *path, char *const argv[], char *const envp[],
			int flags)
{
	struct exec e = begin(dir, path, flags, envp);
	int ret = original_execveat(dir, path, argv, e.envp, flags);

	if (makes_again(&e, envp))
		ret = original_execveat(dir, path, argv, envp, flags);
	return failed(&e, ret);
}

static int our_fexecve(int fd, char *const argv[], char *const envp[])
{
	struct exec e = begin(fd, "", AT_EMPTY_PATH, envp);
	int ret = original_fexecve(fd, argv, e.envp);

	if (makes_again(&e, envp))
		ret = original_fexecve(fd, argv, envp);
	return failed(&e, ret);
}

void pb_exec_hook(struct pb_module *m)
{
	if (original_execve)
		return;
	pb_replace(m, "execve", our_execve, &original_execve);
	if (!original_execve)
		return;
	pb_replace(m, "execveat", our_execveat, &original_execveat);
	pb_replace(m, "fexecve", our_fexecve, &original_fexecve);
}
