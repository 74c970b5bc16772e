/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks the observer's file of programs (abi/progs.h), and makes its programs. */
#include <errno.h>
#include <sys/mman.h>
#include "abi/progs.h"
#include "base/base.h"
#include "base/mem.h"
#include "base/pages.h"
#include "base/sys.h"
#include "bpf/core/textbuf.h"
#include "bpf/run/fixup.h"
#include "bpf/run/image.h"
#include "engine/prog/prog.h"
#include "engine/prog/prog_priv.h"

static void *mem_alloc(struct pb_bpf_mem *mem, size_t size)
{
	long p = pb_pages_map(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return pb_sys_failed(p) ? NULL : (void *)p;
}

static void mem_free(struct pb_bpf_mem *mem, void *p, size_t size)
{
	pb_pages_unmap((uint64_t)p, size);
}

static struct pb_bpf_mem mem = { mem_alloc, mem_free };

static bool in_file(uint64_t size, uint64_t offset, uint64_t nr, uint64_t each)
{
	return offset <= size && !(offset & 7) && nr * each <= size - offset;
}

static bool text_ends(const char *s, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!s[i])
			return true;
	return false;
}

bool pb_prog_file_check(struct pb_prog_file *f, const void *p, uint64_t size)
{
	const struct pb_progs *h = p;
	uint64_t at = sizeof(*h);

	if (size < sizeof(*h) || h->magic != PB_PROGS_MAGIC || h->size != size ||
	    h->nr_maps > PB_PROGS_MAX_MAPS ||
	    h->nr_progs > PB_PROGS_MAX_PROGS || h->nr_links > PB_PROGS_MAX_LINKS)
		return false;
	*f = (struct pb_prog_file){ .head = h, .size = size, .maps = (const void *)(h + 1) };
	at += h->nr_maps * sizeof(*f->maps);
	f->progs = (const void *)((const char *)p + at);
	at += h->nr_progs * sizeof(*f->progs);
	f->links = (const void *)((const char *)p + at);
	at += h->nr_links * sizeof(*f->links);
	if (at > size)
		return false;
	for (uint32_t i = 0; i < h->nr_maps; i++)
		if (!text_ends(f->maps[i].path, PB_PROGS_PATH))
			return false;
	for (uint32_t i = 0; i < h->nr_links; i++)
		if (f->links[i].prog >= h->nr_progs || !f->progs[f->links[i].prog].nr ||
		    !text_ends(f->links[i].function, PB_PROGS_PATH))
			return false;
	return true;
}

static int make_funcs(const struct pb_prog_file *f, const struct pb_progs_prog *p,
		      struct pb_bpf_func *funcs)
{
	const struct pb_progs_func *from = (const void *)((const char *)f->head + p->funcs);

	if (p->nr_funcs > PB_BPF_MAX_SUBPROGS ||
	    !in_file(f->size, p->funcs, p->nr_funcs, sizeof(*from)))
		return -EINVAL;
	for (uint32_t i = 0; i < p->nr_funcs; i++) {
		funcs[i] = (struct pb_bpf_func){ .insn = from[i].insn, .name = "",
						 .global = from[i].global,
						 .returns_void = from[i].returns_void,
						 .nr_args = from[i].nr_args };
		for (int a = 0; a < PB_BPF_FUNC_ARGS; a++) {
			funcs[i].args[a].kind = (uint8_t)from[i].kind[a];
			funcs[i].args[a].size = from[i].size[a];
		}
	}
	return 0;
}

/* The functions that provided pages before pb_prog_use_pages(). Native code is put into the agent's
 * own image, because unwinders can unwind through it there. If the image has no room left, these
 * functions provide the pages. */
static const struct pb_bpf_pages *other_pages;

static size_t code_used;
static size_t code_mapped;	/* the highest value that code_used has had */

static void *map_pages(size_t size)
{
	char *at = pb_prog_code + code_used;
	long p;

	size = pb_align_up(size, 4096ul);
	if (size > PB_PROG_CODE - code_used) {
		void *other = other_pages->map(size);

		if (other)
			pb_pages_add((uint64_t)other, size);
		return other;
	}
	p = pb_pages_map((uint64_t)at, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (pb_sys_failed(p))
		return NULL;
	pb_pages_dump((uint64_t)at, size);
	code_used += size;
	code_mapped = code_used > code_mapped ? code_used : code_mapped;
	return at;
}

static int protect_pages(void *p, size_t size, int prot)
{
	return (int)pb_sys(SYS_mprotect, p, size, prot);
}

/* In the agent's image, only the pages that were taken last can be used again. */
static void unmap_pages(void *p, size_t size)
{
	size_t at = (size_t)((char *)p - pb_prog_code);

	size = pb_align_up(size, 4096ul);
	if (at >= PB_PROG_CODE)
		pb_pages_unmap((uint64_t)p, size);
	else if (at + size == code_used)
		code_used = at;
}

/* The pages aren't unmapped, because the agent's image must have no hole. If they can't be mapped
 * anew, the old code stays there. Nothing leads to it any more. */
void pb_prog_forget_code(void)
{
	if (code_mapped)
		pb_pages_map((uint64_t)pb_prog_code, code_mapped, PROT_READ,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

void pb_prog_use_pages(void)
{
	static const struct pb_bpf_pages pages = { map_pages, protect_pages, unmap_pages };

	other_pages = pb_bpf_pages;
	pb_bpf_pages = &pages;
}

/* Returns whether the program loads from structures of the kernel. These structures don't exist in
 * a process, so each of these loads would fault. */
static bool probes(const struct pb_bpf_prog_spec *s)
{
	for (uint32_t i = 0; i < s->nr; i++)
		if (s->ops[i] >= PB_BPF_OP_PROBE_B && s->ops[i] <= PB_BPF_OP_PROBE_SW)
			return true;
	return false;
}

/* Returns the reason why the program can't run in a process; NULL: it can. */
static const char *needs_kernel(const struct pb_bpf_prog_spec *s, const struct pb_bpf_host *host)
{
	static char text[80];
	struct pb_bpf_text t = { .buf = text, .size = sizeof(text) };
	const char *helper = pb_bpf_host_lacks(host, s->calls, s->nr_calls);

	if (helper)
		pb_bpf_printf(&t, "a program calls %s, which needs the kernel", helper);
	return helper ? text : probes(s) ? "a program reads structures of the kernel" : NULL;
}

int pb_prog_make(const struct pb_prog_file *f, uint32_t nr, const struct pb_bpf_host *host,
		 struct pb_bpf_map *maps, uint32_t nr_maps, struct pb_bpf_prog **prog,
		 const char **why)
{
	const struct pb_progs_prog *p = &f->progs[nr];
	static struct pb_bpf_func funcs[PB_BPF_MAX_SUBPROGS];
	static struct pb_bpf_map *list[PB_PROGS_MAX_MAPS];
	struct pb_bpf_verify v = {
		.type = pb_bpf_type_of(p->type), .attach_type = p->attach_type,
		.caps = PB_BPF_CAP_ALL, .gpl = p->gpl,
		.insns = (const void *)((const char *)f->head + p->insns), .nr = p->nr,
		.maps = list,
		.nr_maps = nr_maps, .funcs = funcs, .nr_funcs = p->nr_funcs, .mem = &mem,
	};
	struct pb_bpf_resolved r;
	const char *refused;
	int err;

	*why = "a program can't be loaded";
	if (!v.type || !p->nr || p->nr > PB_PROGS_MAX_INSNS ||
	    !in_file(f->size, p->insns, p->nr, 8) || make_funcs(f, p, funcs))
		return -EINVAL;
	for (uint32_t i = 0; i < nr_maps; i++)
		list[i] = &maps[i];
	err = pb_bpf_verify(&v);
	if (!err)
		err = pb_bpf_resolve(&v, &r);
	refused = err ? NULL : needs_kernel(&r.spec, host);
	if (refused) {
		err = -EOPNOTSUPP;
		*why = refused;
		pb_bpf_resolved_free(&r);
	}
	if (!err) {
		r.spec.name = text_ends(p->name, sizeof(p->name)) ? p->name : "";
		r.spec.id = nr + 1;
		r.spec.stats = pb_prog_stats(nr);
		err = pb_bpf_prog_make(&r.spec, prog);
		pb_bpf_resolved_free(&r);
	}
	pb_bpf_facts_free(&mem, v.facts);
	return err;
}
