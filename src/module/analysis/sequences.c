/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds restartable sequences (rseq), and the bytes of code that must not change because of them.
 * If the kernel interrupts a thread inside of a sequence, the kernel makes the thread go on at the
 * sequence's abort_ip. The thread gives the kernel a descriptor (struct rseq_cs of linux/rseq.h).
 * The thread is inside if its PC is in [start_ip, start_ip + post_commit_offset). So
 *
 *   - no instruction of a sequence may be displaced, because the kernel doesn't know its copy;
 *   - the instruction before start_ip may not be displaced either. It gives the kernel the
 *     descriptor. If the kernel interrupts the thread between the copy of this instruction and
 *     start_ip, the kernel assumes that the sequence has ended;
 *   - no slot may lie between the instructions of a sequence: a thread in the slot isn't in the
 *     sequence, but the kernel may still have the descriptor;
 *   - the signature, which the kernel reads in the 4 bytes before abort_ip, must stay. It is often
 *     part of a nop that is never executed, and so looks like padding.
 *
 * A window may not begin at abort_ip, because control comes there from the kernel, not by a call.
 *
 * librseq, tcmalloc and others put their descriptors into the section __rseq_cs, so that debuggers
 * find them.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include "base/base.h"
#include "module/analysis/stages.h"

#define SIGNATURE_LEN	4

/* The kernel's struct rseq_cs. */
struct descriptor {
	uint32_t version, flags;
	uint64_t start, length, abort;
};

static void forbid(struct pb_an *an, uint64_t from, uint64_t to)
{
	/* A descriptor adds two ranges. In a real file descriptors don't overlap, so they add fewer
	 * ranges than this limit. */
	if (an->sequences.n < an->elf.size / sizeof(struct descriptor) * 2)
		pb_vec_push(&an->sequences, (struct pb_gap){ from, to });
}

/* Reads the descriptor at a link-time address. Leaves it out if the kernel refuses it, because of
 * its version, or because its sequence wraps around. False if it can't be read. */
static bool read_descriptor(struct pb_an *an, uint64_t at)
{
	const void *p = pb_elf_at(&an->elf, at, sizeof(struct descriptor));
	struct descriptor d;

	if (!p)
		return false;
	memcpy(&d, p, sizeof(d));
	pb_word_at(an, at + offsetof(struct descriptor, start), &d.start);
	pb_word_at(an, at + offsetof(struct descriptor, abort), &d.abort);
	if (d.version || !d.start || d.length > UINT64_MAX - d.start ||
	    d.abort < SIGNATURE_LEN || d.abort == UINT64_MAX)
		return true;
	forbid(an, d.start - 1, d.start + d.length);
	forbid(an, d.abort - SIGNATURE_LEN, d.abort + 1);
	return true;
}

static void read_section(struct pb_an *an, const Elf64_Shdr *sh)
{
	uint64_t n = sh->sh_type == SHT_NOBITS ? 0 : sh->sh_size / sizeof(struct descriptor);

	for (uint64_t i = 0; i < n; i++)
		if (!read_descriptor(an, sh->sh_addr + i * sizeof(struct descriptor)))
			return;
}

static int by_addr(const void *a, const void *b)
{
	const struct pb_gap *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Makes the ranges disjoint. */
static void merge(struct pb_an *an)
{
	struct pb_gap *v = an->sequences.v;
	size_t n = 0;

	pb_vec_sort(&an->sequences, by_addr);
	for (size_t i = 0; i < an->sequences.n; i++) {
		if (!n || v[i].addr > v[n - 1].end)
			v[n++] = v[i];
		else if (v[i].end > v[n - 1].end)
			v[n - 1].end = v[i].end;
	}
	an->sequences.n = n;
}

int pb_sequences_read(struct pb_an *an, const char **why)
{
	for (size_t i = 0; i < an->sequence_sections.n; i++)
		read_section(an, an->sequence_sections.v[i]);
	*why = "no memory";
	if (an->sequences.failed)
		return -ENOMEM;
	merge(an);
	return 0;
}

bool pb_sequences_meet(const struct pb_an *an, uint64_t from, uint64_t to)
{
	size_t low = pb_bisect(i, 0, an->sequences.n, an->sequences.v[i].end <= from);

	return low < an->sequences.n && an->sequences.v[low].addr < to;
}
