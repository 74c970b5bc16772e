/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens an object step by step. The order of the steps is in load_priv.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clean_text.h"
#include "bpfload/load_priv.h"

#ifndef EM_BPF
#define EM_BPF		247
#endif
#define OBJECT_MAX	(256u << 20)	/* limit on the file's size */
#define WORK_MAX	(256u << 20)	/* limit on the steps that load_work() counts */
#define MEMORY_MAX	(512u << 20)	/* limit on the memory that opening an object takes, without
					 * the file's bytes and BTF */
#define INSNS_MAX	(8u << 20)	/* limit on an object's instructions, over all programs */

/* --- licence, name, types -------------------------------------------------- */

static bool gpl_compatible(const char *license)
{
	static const char *const names[] = {
		"GPL", "GPL v2", "GPL and additional rights", "Dual BSD/GPL", "Dual MIT/GPL",
		"Dual MPL/GPL",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], license))
			return true;
	return false;
}

static int read_license(struct load *l)
{
	size_t size;
	const uint8_t *p = pb_bpf_elf_data(&l->elf, pb_bpf_elf_find(&l->elf, "license"), &size);
	char text[128];

	snprintf(text, sizeof(text), "%.*s", (int)(size < sizeof(text) ? size : sizeof(text)),
		 p ? (const char *)p : "");
	l->object.gpl = gpl_compatible(text);
	l->object.license = load_text(l, text);
	p = pb_bpf_elf_data(&l->elf, pb_bpf_elf_find(&l->elf, "version"), &size);
	if (p && size == 4)
		memcpy(&l->object.version, p, 4);
	return l->object.license ? 0 : -ENOMEM;
}

/* Names the object as libbpf does: by the file's name, up to the first dot. */
static int name_object(struct load *l, const char *path)
{
	const char *base = path ? strrchr(path, '/') : NULL;
	char name[64];

	snprintf(name, sizeof(name), "%s", l->opts.name ? l->opts.name : base ? base + 1 :
		 path ? path : "object");
	if (!l->opts.name && strchr(name, '.'))
		*strchr(name, '.') = 0;
	l->object.name = load_text(l, name);
	return l->object.name ? 0 : -ENOMEM;
}

/* A relocation of .BTF names a variable and a word of .BTF. The word must become the variable's
 * offset in the section of the variable, but the compiler leaves this to the linker. So this
 * function adds the offset to the word. */
static int relocate_btf(struct load *l, uint32_t section, const Elf64_Rel *rel)
{
	uint64_t off = l->elf.sh[section].sh_offset, size = l->elf.sh[section].sh_size;
	Elf64_Sym sym = pb_bpf_elf_sym(&l->elf, ELF64_R_SYM(rel->r_info));
	uint32_t v;

	if (rel->r_offset > size || size - rel->r_offset < 4)
		return load_refuse(l, "a relocation of .BTF is outside it");
	memcpy(&v, l->bytes + off + rel->r_offset, 4);
	v += (uint32_t)sym.st_value;
	memcpy(l->bytes + off + rel->r_offset, &v, 4);
	return 0;
}

static int read_btf(struct load *l)
{
	uint32_t section = pb_bpf_elf_find(&l->elf, ".BTF");
	size_t size;
	const uint8_t *p = pb_bpf_elf_data(&l->elf, section, &size);
	const char *why;
	int ret;

	if (!p)
		return 0;
	ret = load_each_rel(l, section, relocate_btf);
	if (ret)
		return ret;
	ret = pb_bpf_btf_open(p, size, &l->object.btf, &why);
	if (ret)
		load_refuse(l, "%s", why);
	return ret;
}

static int read_types(struct load *l)
{
	const char *why;
	int ret;

	if (!l->opts.types)
		return 0;
	ret = pb_bpf_btf_open_file(l->opts.types, &l->types, &why);
	if (ret)
		load_refuse(l, "types of %s: %s", l->opts.types, why);
	return ret ? ret : pb_bpf_btf_index(l->types);
}

/* --- opening -------------------------------------------------------------- */

static int open_elf(struct load *l, size_t nr)
{
	const char *why;
	int ret = pb_bpf_elf_open(&l->elf, l->bytes, nr, &why);

	if (ret) {
		load_refuse(l, "%s", why);
		return ret;
	}
	if (l->elf.type != ET_REL || (l->elf.machine != EM_BPF && l->elf.machine != EM_NONE))
		return load_refuse(l, "not an eBPF object file");
	if (!l->elf.symtab)
		return load_refuse(l, "the object has no symbols");
	return 0;
}

static int open_object(struct load *l, const char *path, size_t nr)
{
	static int (*const steps[])(struct load *) = {
		read_license, read_btf, read_types, load_funcs, load_maps, load_externs,
		load_relocs, load_ext, load_map_slots, load_progs,
	};
	int ret = name_object(l, path);

	if (!ret)
		ret = open_elf(l, nr);
	for (size_t i = 0; !ret && i < sizeof(steps) / sizeof(steps[0]); i++)
		ret = steps[i](l);
	return ret;
}

static int finish(struct load *l, int ret, struct pb_bpf_object **object)
{
	pb_bpf_elf_close(&l->elf);
	pb_bpf_btf_close(l->own_target);
	pb_bpf_btf_close(l->types);
	l->own_target = l->types = NULL;
	l->target = NULL;
	l->memory = UINT64_MAX;		/* the limit is only for opening */
	if (ret == -ENOMEM && l->memory_spent)
		ret = load_refuse(l, "opening the object takes more than 512 MB of memory");
	else if (ret == -ENOMEM && l->err_size)
		snprintf(l->err, l->err_size, "no memory");
	if (ret)
		pb_bpf_object_close(&l->object);
	else
		*object = &l->object;
	return ret;
}

static struct load *new_load(const struct pb_bpf_object_opts *opts, char *err, size_t size)
{
	struct load *l = calloc(1, sizeof(*l));

	if (size)
		snprintf(err, size, "%s", l ? "" : "no memory");
	if (!l)
		return NULL;
	if (opts)
		l->opts = *opts;
	l->kconfig = -1;
	l->room = INSNS_MAX;
	l->work = WORK_MAX;
	l->memory = MEMORY_MAX;
	l->err = err;
	l->err_size = size;
	return l;
}

int pb_bpf_object_open_memory(const void *bytes, size_t nr, const struct pb_bpf_object_opts *opts,
			      struct pb_bpf_object **object, char *err, size_t size)
{
	struct load *l = new_load(opts, err, size);

	*object = NULL;
	if (!l)
		return -ENOMEM;
	l->bytes = malloc(nr ? nr : 1);
	if (!l->bytes)
		return finish(l, -ENOMEM, object);
	if (nr)
		memcpy(l->bytes, bytes, nr);
	return finish(l, open_object(l, NULL, nr), object);
}

static int read_file(struct load *l, const char *path, size_t *nr)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret = 0;
	struct stat st;
	ssize_t n = 1;

	*nr = 0;
	if (fd < 0 || fstat(fd, &st)) {
		ret = -errno;
	} else if (!S_ISREG(st.st_mode) || st.st_size > OBJECT_MAX) {
		ret = -EINVAL;
	} else if (!(l->bytes = malloc((size_t)st.st_size + 1))) {
		ret = -ENOMEM;
	} else {
		while (n > 0 && *nr < (size_t)st.st_size) {
			n = read(fd, l->bytes + *nr, (size_t)st.st_size - *nr);
			*nr += n > 0 ? (size_t)n : 0;
		}
		ret = n < 0 ? -errno : 0;
	}
	if (fd >= 0)
		close(fd);
	if (ret && l->err_size)
		snprintf(l->err, l->err_size, "%s", strerror(-ret));
	return ret;
}

int pb_bpf_object_open(const char *path, const struct pb_bpf_object_opts *opts,
		       struct pb_bpf_object **object, char *err, size_t size)
{
	struct load *l = new_load(opts, err, size);
	size_t nr;
	int ret;

	*object = NULL;
	if (!l)
		return -ENOMEM;
	ret = read_file(l, path, &nr);
	if (!ret)
		ret = open_object(l, path, nr);
	return finish(l, ret, object);
}

void pb_bpf_object_close(struct pb_bpf_object *object)
{
	struct load *l = (struct load *)object;

	if (!l)
		return;
	load_free(l);
	pb_bpf_btf_close(object->btf);
	free(l->bytes);
	free(l);
}

static int number_of(const char *name, const char *const *first, size_t stride, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		if (!strcmp(name, *(const char *const *)((const char *)first + i * stride)))
			return (int)i;
	return -ENOENT;
}

int pb_bpf_object_prog(const struct pb_bpf_object *o, const char *name)
{
	return o->nr_progs ? number_of(name, &o->progs->name, sizeof(*o->progs), o->nr_progs) :
	       -ENOENT;
}

int pb_bpf_object_map(const struct pb_bpf_object *o, const char *name)
{
	return o->nr_maps ? number_of(name, &o->maps->name, sizeof(*o->maps), o->nr_maps) : -ENOENT;
}
