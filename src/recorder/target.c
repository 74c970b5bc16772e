/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds the program. If it can't be traced, reports the reason before the program starts. The
 * program must be for this machine. It must have a dynamic loader, because LD_PRELOAD makes the
 * loader load the agent. The loader must not be in secure-execution mode, in which it ignores the
 * agent.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "module/elf/elf_file.h"
#include "recorder/target.h"
#include "recorder/texts.h"

#define NOT_FOUND	127
#define NOT_TRACEABLE	126
#define MAX_SCRIPTS	5	/* the kernel has the same limit of nested interpreters */

static int refuse(int status, const char *path, const char *why)
{
	record_error("%s: %s", path, why);
	return status;
}

/* Finds the file to execute. If `prog` has a slash, this is the file `prog`. Otherwise searches
 * PATH for the first file that may be executed. If PATH isn't set, searches
 * /usr/local/bin, /usr/bin and /bin. Returns -EACCES if files were found, but none may be
 * executed. */
static int find_in_path(const char *prog, char *out)
{
	const char *path = getenv("PATH");
	bool denied = false;
	struct stat st;

	if (strchr(prog, '/')) {
		if ((size_t)snprintf(out, PATH_MAX, "%s", prog) >= PATH_MAX)
			return -ENAMETOOLONG;
		if (stat(prog, &st))
			return -errno;
		return !S_ISREG(st.st_mode) || access(prog, X_OK) ? -EACCES : 0;
	}
	if (!*prog)
		return -ENOENT;
	for (const char *p = path ? path : "/usr/local/bin:/usr/bin:/bin"; p;) {
		const char *end = strchrnul(p, ':');
		int len = (int)(end - p);

		if ((size_t)snprintf(out, PATH_MAX, "%.*s%s%s", len, p, len ? "/" : "", prog) <
		    PATH_MAX && !stat(out, &st) && S_ISREG(st.st_mode)) {
			if (!access(out, X_OK))
				return 0;
			denied = true;
		}
		p = *end ? end + 1 : NULL;
	}
	return denied ? -EACCES : -ENOENT;
}

/* An ELF file names its loader. Reads the loader's path into a buffer of PATH_MAX bytes. False if
 * the file names no loader. */
static bool read_loader(int fd, const Elf64_Ehdr *eh, char *loader)
{
	for (unsigned i = 0; i < eh->e_phnum && eh->e_phentsize >= sizeof(Elf64_Phdr); i++) {
		Elf64_Phdr ph;

		if (pread(fd, &ph, sizeof(ph),
			  (off_t)(eh->e_phoff + (uint64_t)i * eh->e_phentsize)) !=
		    sizeof(ph))
			return false;
		if (ph.p_type == PT_INTERP)
			return ph.p_filesz && ph.p_filesz < PATH_MAX &&
			       pread(fd, loader, ph.p_filesz, (off_t)ph.p_offset) ==
			       (ssize_t)ph.p_filesz && memchr(loader, 0, ph.p_filesz);
	}
	return false;
}

static int check_privileges(int fd, const char *path, const struct stat *st)
{
	char cap[64];

	if (st->st_mode & S_ISUID && st->st_uid != getuid())
		return refuse(NOT_TRACEABLE, path, "is setuid, so the loader ignores the agent; "
			      "run the program as its owner, or trace a copy");
	if ((st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st->st_gid != getgid())
		return refuse(NOT_TRACEABLE, path, "is setgid, so the loader ignores the agent; "
			      "trace a copy");
	if (getuid() && fgetxattr(fd, "security.capability", cap, sizeof(cap)) > 0)
		return refuse(NOT_TRACEABLE, path,
			      "has file capabilities, so the loader ignores the agent; trace the "
			      "program as root, or trace a copy");
	return 0;
}

/* Returns the reason why an ELF file that names no loader can't be traced. Only libraries have a
 * SONAME, and the loader is one of them. */
static const char *reason_without_loader(int fd)
{
	struct pb_elf_strings strings;
	const char *why, *name = NULL;
	struct pb_elf e;
	uint64_t soname;

	if (!pb_elf_open(&e, fd, false, &why)) {
		pb_elf_dynamic_strings(&e, &strings);
		if (pb_elf_dynamic(&e, DT_SONAME, &soname))
			name = pb_elf_string(&strings, soname);
		why = !name ? NULL : !strncmp(name, "ld-linux", 8) ?
			"is the dynamic loader; name the program itself (LD_LIBRARY_PATH does what "
			"--library-path does)" :
			"is a shared library, not a program";
		pb_elf_close(&e);
		if (why)
			return why;
	}
	return "is linked statically, but the dynamic loader must load the agent; "
	       "link the program without -static";
}

static int check_elf(struct record_target *t, int fd, const char *path, const Elf64_Ehdr *eh)
{
	if (eh->e_ident[EI_CLASS] == ELFCLASS32)
		return refuse(NOT_TRACEABLE, path,
			      "is a 32-bit program; only x86-64 can be traced, build "
			      "it for that");
	if (eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_machine != EM_X86_64)
		return refuse(NOT_TRACEABLE, path,
			      "is for another machine; only x86-64 can be traced");
	if (eh->e_type != ET_EXEC && eh->e_type != ET_DYN)
		return refuse(NOT_TRACEABLE, path, "is not a program but an object file or a core");
	if (!read_loader(fd, eh, t->loader))
		return refuse(NOT_TRACEABLE, path, reason_without_loader(fd));
	if (!strncmp(record_base_name(t->loader), "ld-musl", 7))
		return refuse(NOT_TRACEABLE, path,
			      "is linked with musl, but only programs with glibc can be traced; "
			      "link the program with glibc");
	if (access(t->loader, X_OK)) {
		record_error("%s: its loader %s: %s", path, t->loader, strerror(errno));
		return NOT_TRACEABLE;
	}
	return 0;
}

/* Parses "#! INTERP [ARG]". Finds the interpreter; if it is env, finds the program that env would
 * start. */
static int script_interpreter(char *line, const char *script, char *out)
{
	char *save, *word = strtok_r(line + 2, " \t", &save);
	int err;

	if (!word)
		return refuse(NOT_TRACEABLE, script, "its #! line names no interpreter");
	if (!strcmp(record_base_name(word), "env")) {
		char *arg = strtok_r(NULL, " \t", &save);

		while (arg && (*arg == '-' || strchr(arg, '=')))
			arg = strtok_r(NULL, " \t", &save);
		if (arg && !find_in_path(arg, out))
			return 0;
	}
	err = find_in_path(word, out);
	if (err) {
		record_error("%s: its interpreter %s: %s", script, word, strerror(-err));
		return NOT_TRACEABLE;
	}
	return 0;
}

/* Looks at the file t->exe. Returns 0 if the file is a program that can be traced. If it is a
 * script, sets t->exe to the script's interpreter and returns -1: the caller must then look at the
 * interpreter. If the file can't be traced, returns the exit status. */
static int look_at(struct record_target *t)
{
	union {
		Elf64_Ehdr eh;
		char text[256];
	} u = { 0 };
	struct stat st;
	int status;
	int fd = open(t->exe, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return refuse(NOT_TRACEABLE, t->exe, errno == EACCES ?
			      "can't be read, so it can't be checked" : strerror(errno));
	ssize_t n = pread(fd, &u, sizeof(u) - 1, 0);

	if (n < 0 || fstat(fd, &st)) {
		status = refuse(NOT_TRACEABLE, t->exe, strerror(errno));
	} else if (n >= (ssize_t)sizeof(u.eh) && !memcmp(u.text, ELFMAG, SELFMAG)) {
		status = check_elf(t, fd, t->exe, &u.eh);
		if (!status)
			status = check_privileges(fd, t->exe, &st);
	} else if (!memcmp(u.text, "#!", 2)) {
		char script[PATH_MAX];

		snprintf(script, sizeof(script), "%s", t->exe);
		u.text[strcspn(u.text, "\n")] = 0;
		status = script_interpreter(u.text, script, t->exe);
		if (!status)
			status = -1;
	} else {
		status = refuse(NOT_TRACEABLE, t->exe,
				"is neither an ELF program nor a script with a #! line; name the "
				"interpreter, for example `record sh FILE'");
	}
	close(fd);
	return status;
}

static int not_found(const char *prog)
{
	if (strchr(prog, '/'))
		return refuse(NOT_FOUND, prog, "not found; check its path");
	if (*prog && !prog[strspn(prog, "0123456789")])
		return refuse(NOT_FOUND, prog, "not found in PATH; for a process, say -p PID");
	return refuse(NOT_FOUND, prog, "not found in PATH; say ./PROG for one in this directory");
}

int record_target_resolve(struct record_target *t, const char *prog)
{
	int ret = find_in_path(prog, t->path);

	if (ret == -EACCES) {
		struct stat st;

		if (!stat(t->path, &st) && S_ISDIR(st.st_mode))
			return refuse(NOT_TRACEABLE, prog, "is a directory");
		return refuse(NOT_TRACEABLE, prog,
			      "isn't executable; use chmod +x, or name the interpreter");
	}
	if (ret == -ENOENT)
		return not_found(prog);
	if (ret)
		return refuse(NOT_FOUND, prog, strerror(-ret));
	memcpy(t->exe, t->path, sizeof(t->exe));
	for (int i = 0; i <= MAX_SCRIPTS; i++) {	/* the scripts, then the program */
		ret = look_at(t);
		if (ret >= 0)
			return ret;
	}
	return refuse(NOT_TRACEABLE, prog, "too many interpreters in a row");
}
