/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs in whoever calls exec: in a forked child, or in a vfork child that
 * shares the memory with a suspended parent. So memory is kept by the thread
 * that both are (the same TCB), and used again at its next exec.
 */
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "engine/exec.h"
#include "engine/ftrace.h"
#include "engine/latch.h"
#include "engine/thread.h"
#include "engine/wire.h"
#include "base/base.h"
#include "base/mem.h"
#include "base/sys.h"
#include "ring/writer.h"

#define MAX_INTERPRETERS 4

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

static bool loads_libraries(int fd, const Elf64_Ehdr *e)
{
	Elf64_Phdr p[16];
	long n;

	if (memcmp(e->e_ident, ELFMAG, SELFMAG) || e->e_ident[EI_CLASS] != ELFCLASS64 ||
	    e->e_machine != EM_X86_64 || e->e_phentsize != sizeof(*p))
		return false;
	n = pb_sys(SYS_pread64, fd, p, sizeof(p), e->e_phoff);
	for (long i = 0; i < n / (long)sizeof(*p) && i < e->e_phnum; i++)
		if (p[i].p_type == PT_INTERP)
			return true;
	return false;
}

/* "#!interpreter args": its path, NUL-terminated in buf. */
static const char *interpreter(char *buf, long n)
{
	char *p = buf + 2, *end;

	buf[n] = 0;
	while (*p == ' ' || *p == '\t')
		p++;
	for (end = p; *end && *end != ' ' && *end != '\t' && *end != '\n'; end++)
		;
	*end = 0;
	return *p ? p : NULL;
}

/* Whether the image can load the agent: 64-bit, dynamic, without privileges to
 * gain; through "#!" lines. */
static bool can_load(int dir, const char *path, int flags)
{
	union { char text[256]; Elf64_Ehdr elf; } head;
	char script[256];

	for (int depth = 0; depth < MAX_INTERPRETERS; depth++) {
		struct stat st;
		bool ok = false;
		long n, fd;

		fd = flags & AT_EMPTY_PATH && !*path ? pb_sys(SYS_dup, dir) :
		     pb_sys(SYS_openat, dir, path, O_RDONLY | O_CLOEXEC, 0);
		if (pb_sys_failed(fd))
			return false;
		n = pb_sys(SYS_pread64, fd, &head, sizeof(head) - 1, 0);
		if (n >= (long)sizeof(Elf64_Ehdr))
			ok = loads_libraries((int)fd, &head.elf) &&
			     !pb_sys(SYS_fstat, fd, &st) && !(st.st_mode & (S_ISUID | S_ISGID));
		pb_sys(SYS_close, fd);
		if (ok || n < 3 || head.text[0] != '#' || head.text[1] != '!')
			return ok;
		memcpy(script, head.text, (size_t)n);
		path = interpreter(script, n);
		if (!path)
			return false;
		dir = AT_FDCWD;
		flags = 0;
	}
	return false;
}

static void *area(size_t size)
{
	struct pb_thread *t = pb_tls;
	long p;

	if (t->tcb && t->exec_size >= size)
		return t->exec_area;
	p = pb_sys(SYS_mmap, 0, pb_align_up(size, 4096ul), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pb_sys_failed(p))
		return NULL;
	if (t->tcb) {
		if (t->exec_area)
			pb_sys(SYS_munmap, t->exec_area, t->exec_size);
		t->exec_area = (void *)p;
		t->exec_size = pb_align_up(size, 4096ul);
	}
	return (void *)p;
}

static char *put_var(char *at, const char *name, const char *value, const char *more)
{
	size_t used = 0, size = strlen(name) + strlen(value) + (more ? strlen(more) + 1 : 0) + 1;

	pb_put_str(at, size, &used, name);
	pb_put_str(at, size, &used, value);
	if (more) {
		pb_put_str(at, size, &used, ":");
		pb_put_str(at, size, &used, more);
	}
	return at + used + 1;
}

/* envp with LD_PRELOAD (in front of the program's own) and PATCHBAY_SESSION. */
static char *const *with_ours(char *const envp[])
{
	static const char preload[] = "LD_PRELOAD=";
	size_t nr = 0, out = 0, text;
	const char *theirs = NULL;
	char **new, *strings;

	for (; envp && envp[nr]; nr++)
		if (pb_has_prefix(envp[nr], preload))
			theirs = envp[nr] + sizeof(preload) - 1;
	text = strlen(preload_path) + strlen(session_path) + (theirs ? strlen(theirs) : 0) + 64;
	new = area((nr + 3) * sizeof(*new) + text);
	if (!new)
		return envp;
	strings = (char *)(new + nr + 3);
	for (size_t i = 0; i < nr; i++)
		if (!pb_has_prefix(envp[i], preload))
			new[out++] = envp[i];
	new[out++] = strings;
	strings = put_var(strings, preload, preload_path, theirs && *theirs ? theirs : NULL);
	new[out++] = strings;
	put_var(strings, "PATCHBAY_SESSION=", session_path, NULL);
	new[out] = NULL;
	return new;
}

static bool wanted(int dir, const char *path, int flags)
{
	/* a child that is not followed, by fork or vfork */
	if (!pb_follow_fork && pb_sys(SYS_getpid) != pb_process->pid)
		return false;
	return follow_exec && !pb_latched && !pb_detached && path && can_load(dir, path, flags);
}

/* The thread lives on in the next image, so nobody would find that its chunk
 * has no owner any more. If the exec fails it takes another one. A vfork child
 * has its parent's state, and leaves it alone. */
static void leave_image(void)
{
	struct pb_thread *t = pb_tls;

	if (t->tcb && pb_sys(SYS_getpid) == pb_process->pid)
		pb_writer_close(&t->w);
}

/* An exec in the program's name: its environment, and where it is counted if the
 * image, contrary to what was asked for, won't be traced. */
struct exec {
	char *const *envp;
	uint32_t *counter;
};

static struct exec begin(int dir, const char *path, int flags, char *const envp[])
{
	struct exec e = { envp, NULL };

	leave_image();
	if (!wanted(dir, path, flags))
		return e;
	if (pb_recorder_lives())
		e.envp = with_ours(envp);
	else if (!pb_recording_ended())
		e.counter = &pb_ring_map.ring->missed_images;
	if (e.counter)
		__atomic_fetch_add(e.counter, 1, __ATOMIC_RELAXED);
	return e;
}

static int failed(const struct exec *e, int ret)
{
	if (e->counter)
		__atomic_fetch_sub(e->counter, 1, __ATOMIC_RELAXED);
	return ret;
}

static int our_execve(const char *path, char *const argv[], char *const envp[])
{
	struct exec e = begin(AT_FDCWD, path, 0, envp);

	return failed(&e, original_execve(path, argv, e.envp));
}

static int our_execveat(int dir, const char *path, char *const argv[], char *const envp[],
			int flags)
{
	struct exec e = begin(dir, path, flags, envp);

	return failed(&e, original_execveat(dir, path, argv, e.envp, flags));
}

static int our_fexecve(int fd, char *const argv[], char *const envp[])
{
	struct exec e = begin(fd, "", AT_EMPTY_PATH, envp);

	return failed(&e, original_fexecve(fd, argv, e.envp));
}

void pb_exec_hook(struct pb_module *m)
{
	if (original_execve)
		return;
	pb_ftrace_replace(m, "execve", our_execve, &original_execve);
	if (!original_execve)
		return;
	pb_ftrace_replace(m, "execveat", our_execveat, &original_execveat);
	pb_ftrace_replace(m, "fexecve", our_fexecve, &original_fexecve);
}
