/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Functions that several steps of opening an object use: for memory, for messages, for the
 * relocations of a section, and for the types of the kernel or another target. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean_text.h"
#include "bpfload/load_priv.h"

#define CHUNK		65536

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
	if (size > l->memory) {
		l->memory_spent = true;
		return NULL;
	}
	l->memory -= size;
	if (!c || c->size - c->used < size) {
		size_t room = size > CHUNK / 4 ? size : CHUNK;

		c = calloc(1, sizeof(*c) + room);
		if (!c)
			return NULL;
		c->size = room;
		if (room != CHUNK && l->chunks) {	/* this chunk is full at once. Put it second
							 * in the list: only the first chunk is
							 * searched for room, and the present first
							 * chunk may still have some */
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

void load_free(struct load *l)
{
	while (l->chunks) {
		struct load_chunk *c = l->chunks;

		l->chunks = c->next;
		free(c);
	}
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
		load_error(l, why, "the object's parts overlap or refer to each other too often");
		return false;
	}
	l->work -= n;
	return true;
}

bool load_compare(struct load *l, uint64_t n, const char *name, const char **why)
{
	return load_work(l, n * (1 + strlen(name) / 64), why);
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

/* Calls fn for each relocation in section i. */
static int each_rel_in(struct load *l, uint32_t i,
		       int (*fn)(struct load *l, uint32_t section, const Elf64_Rel *rel))
{
	size_t size;
	const uint8_t *p = pb_bpf_elf_data(&l->elf, i, &size);
	const char *spent = NULL;
	int ret = 0;

	/* sections may overlap, so the file's size doesn't bound the sum of their sizes */
	if (!load_work(l, size, &spent))
		return load_refuse(l, "%s", spent);
	for (size_t at = 0; p && !ret && size - at >= sizeof(Elf64_Rel); at += sizeof(Elf64_Rel)) {
		Elf64_Rel rel;

		memcpy(&rel, p + at, sizeof(rel));
		ret = fn(l, l->elf.sh[i].sh_info, &rel);
	}
	return ret;
}

int load_each_rel(struct load *l, uint32_t section,
		  int (*fn)(struct load *l, uint32_t section, const Elf64_Rel *rel))
{
	int ret = 0;

	for (uint32_t i = 1; i < l->elf.nr && !ret; i++)
		if (l->elf.sh[i].sh_type == SHT_REL &&
		    (!section || l->elf.sh[i].sh_info == section))
			ret = each_rel_in(l, i, fn);
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
	if (!l->target && !l->no_target)
		l->no_target = "no memory";
	if (l->target && pb_bpf_btf_index((struct pb_bpf_btf *)l->target)) {
		l->no_target = "no memory";
		l->target = NULL;
	}
	return l->target;
}
