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
#define OBJECT_MAX	(256u << 20)
#define CHUNK		65536
#define WORK_MAX	(256u << 20)
#define INSNS_MAX	(8u << 20)	/* limit on an object's instructions, over all programs */

/* --- memory and text ------------------------------------------------------ */

struct load_chunk {
	struct load_chunk *next;
	size_t used, size;
	uint64_t room[];
};

void *load_alloc(struct load *l, size_t size)
{
	struct load_chunk *c = l->chunks;
	void *p;

	size = (size + 7) & ~(size_t)7;
	if (!c || c->size - c->used < size) {
		size_t room = size > CHUNK / 4 ? size : CHUNK;

		c = calloc(1, sizeof(*c) + room);
		if (!c)
			return NULL;
		c->size = room;
		if (room != CHUNK && l->chunks) {	/* the chunk that is in use stays the first
							 * in the list */
			c->next = l->chunks->next;
			l->chunks->next = c;
		} else {
			c->next = l->chunks;
			l->chunks = c;
		}
	}
	p = (char *)c->room + c->used;
	c->used += size;
	return p;
}

void *load_grow(struct load *l, void *array, uint32_t nr, uint32_t *room, size_t size)
{
	void *p;

	if (nr < *room)
		return array;
	p = load_alloc(l, (*room ? *room * 2 : 4) * size);
	if (!p)
		return NULL;
	if (nr)
		memcpy(p, array, nr * size);
	*room = *room ? *room * 2 : 4;
	return p;
}

const char *load_text(struct load *l, const char *text)
{
	size_t n = strlen(text);
	char *copy = load_alloc(l, n + 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, n);
	for (size_t i = 0; i < n; i++)
		copy[i] = copy[i] == '\t' ? ' ' : copy[i];
	pb_text_clean(copy, '?', 0);
	return copy;
}

static const char *text_of(struct load *l, const char *format, va_list ap)
{
	char buf[1024];

	vsnprintf(buf, sizeof(buf), format, ap);
	return load_text(l, buf);
}

const char *load_printf(struct load *l, const char *format, ...)
{
	const char *text;
	va_list ap;

	va_start(ap, format);
	text = text_of(l, format, ap);
	va_end(ap);
	return text;
}

void load_error(struct load *l, const char **why, const char *format, ...)
{
	va_list ap;

	if (*why)
		return;
	va_start(ap, format);
	*why = text_of(l, format, ap);
	va_end(ap);
	if (!*why)
		*why = "no memory";
}

bool load_work(struct load *l, uint64_t n, const char **why)
{
	if (n > l->work) {
		l->work = 0;
		load_error(l, why, "the object's types refer to each other too often");
		return false;
	}
	l->work -= n;
	return true;
}

int load_refuse(struct load *l, const char *format, ...)
{
	const char *text;
	va_list ap;

	va_start(ap, format);
	text = text_of(l, format, ap);
	va_end(ap);
	if (l->err_size)
		snprintf(l->err, l->err_size, "%s", text ? text : "no memory");
	return -EINVAL;
}

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

int load_each_rel(const struct load *l, uint32_t section,
		  int (*fn)(struct load *l, uint32_t section, const Elf64_Rel *rel))
{
	for (uint32_t i = 1; i < l->elf.nr; i++) {
		size_t size;
		const uint8_t *p = pb_bpf_elf_data(&l->elf, i, &size);

		if (l->elf.sh[i].sh_type != SHT_REL || l->elf.sh[i].sh_info != section)
			continue;
		for (size_t at = 0; p && size - at >= sizeof(Elf64_Rel); at += sizeof(Elf64_Rel)) {
			Elf64_Rel rel;
			int ret;

			memcpy(&rel, p + at, sizeof(rel));
			ret = fn((struct load *)l, section, &rel);
			if (ret)
				return ret;
		}
	}
	return 0;
}

/* Adds the offset of a variable in its section to .BTF. The compiler leaves this offset to the
 * linker. */
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

const struct pb_bpf_btf *load_target(struct load *l)
{
	const char *path = l->opts.target ? l->opts.target : "/sys/kernel/btf/vmlinux", *why;

	if (l->target_tried)
		return l->target;
	l->target_tried = true;
	l->target = l->opts.target_btf;
	if (!l->target) {
		if (pb_bpf_btf_open_file(path, &l->own_target, &why))
			l->no_target = load_printf(l, "types of %s: %s", path, why);
		l->target = l->own_target;
	}
	if (l->target && pb_bpf_btf_index((struct pb_bpf_btf *)l->target)) {
		l->no_target = "no memory";
		l->target = NULL;
	}
	return l->target;
}

static int read_types(struct load *l)
{
	const char *why;
	int ret;

	if (!l->opts.types)
		return 0;
	ret = pb_bpf_btf_open_file(l->opts.types, &l->types, &why);
	return ret ? load_refuse(l, "types of %s: %s", l->opts.types, why) :
	       pb_bpf_btf_index(l->types);
}

/* --- opening -------------------------------------------------------------- */

static int open_elf(struct load *l, size_t nr)
{
	const char *why;
	int ret = pb_bpf_elf_open(&l->elf, l->bytes, nr, &why);

	if (ret)
		return load_refuse(l, "%s", why);
	if (l->elf.type != ET_REL || (l->elf.machine != EM_BPF && l->elf.machine != EM_NONE))
		return load_refuse(l, "this is no object file for eBPF");
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
	if (ret == -ENOMEM && l->err_size)
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

	if (!l)
		return NULL;
	if (opts)
		l->opts = *opts;
	l->kconfig = -1;
	l->room = INSNS_MAX;
	l->work = WORK_MAX;
	l->err = err;
	l->err_size = size;
	if (size)
		err[0] = 0;
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
		snprintf(l->err, l->err_size, "%s: %s", path, strerror(-ret));
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
	while (l->chunks) {
		struct load_chunk *c = l->chunks;

		l->chunks = c->next;
		free(c);
	}
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
