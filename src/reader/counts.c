/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counts the events of a chunk after the drain has written the chunk to the data directory, or when
 * the drain discards the chunk. Counts by the same rules as the decoder. */
#include "reader/counts.h"

#include "abi/record.h"
#include "reader/decode.h"
#include "reader/record_table.h"

static void count_ext(struct pb_counts *c, const uint64_t *words, size_t left)
{
	switch (pb_ext_infos[pb_ext_type_of(words[0])].count) {
	case PB_EXT_COUNT_LEAF:
		c->leaves++;
		c->records++;
		break;
	case PB_EXT_COUNT_END:
		c->ends++;
		c->begins += pb_ext_infos[pb_ext_type_of(words[0])].words > 1 && left > 1 &&
			     words[1] != PB_END_ENTRY;
		c->records++;
		break;
	}
}

/* A branch predictor can't predict the order of tags. So tags are counted without branches, in
 * fields of one word. Only EXT records take a branch. */
void pb_counts_add(struct pb_counts *c, const uint64_t *words, size_t nr)
{
	uint64_t tags = 0;		/* 16 bits for each tag */
	size_t i = 0;

	while (i < nr && nr < 65536) {
		uint64_t w = __atomic_load_n(&words[i], __ATOMIC_RELAXED);
		unsigned tag = w & PB_TAG_MASK;

		if (tag == PB_TAG_EXT) {
			size_t len = pb_ext_len_of(w);

			if (w)
				count_ext(c, words + i, nr - i);
			i += w && len ? len : 1;
			continue;
		}
		tags += 1ull << (16 * tag);
		i++;
	}
	uint64_t leaf = tags >> 16 * PB_TAG_LEAF & 0xffff,
		entry = tags >> 16 * PB_TAG_ENTRY & 0xffff,
		 exit = tags >> 16 * PB_TAG_EXIT & 0xffff;
	c->leaves += leaf;
	c->begins += entry;
	c->ends += exit;
	c->records += leaf + entry + exit;
}

void pb_counts_chunk(struct pb_counts_thread *t, const struct pb_chunk *head, uint64_t offset)
{
	struct pb_counts_place here = { head->seq, offset, head->used };

	if (!t->nr || head->seq < t->first.seq)
		t->first = here;
	if (!t->nr || head->seq >= t->last.seq)
		t->last = here;
	t->nr++;
}

/* The counts that pb_counts_add() can't find, because they need a decoder. */
struct found {
	uint64_t inherited, running, opened;
};

/* Decodes one chunk as if the data directory had no other chunk. */
static struct found decode_one(const struct pb_counts_place *p, uint32_t serial, uint64_t born,
			       int chunks_fd)
{
	struct found found = { 0 };
	struct pb_chunk_ref ref = { .offset = p->offset, .seq = p->seq, .serial = serial,
				    .used = p->used };
	struct pb_image unknown = { 0 };
	struct pb_data data = { .chunks_fd = chunks_fd, .chunks = &ref, .nr_chunks = 1,
				.images = &unknown, .nr_images = 1, .unnoted = true };
	struct pb_thread thread = { .serial = serial, .nr = 1, .born = born };
	struct pb_stacks *stacks = pb_stacks_new();
	struct pb_cursor cursor;
	struct pb_event ev;

	if (stacks && !pb_cursor_init(&cursor, &data, stacks, &thread, PB_CHUNK_SIZE)) {
		while (pb_cursor_next(&cursor, &ev)) {
			if (ev.flags & PB_EV_INHERITED)
				continue;
			found.running += ev.kind == PB_EV_LEAF_OPEN;
			found.opened += ev.kind == PB_EV_OPEN;
		}
		found.inherited = cursor.inherited;
		/* If seq is 0, the thread had no earlier chunk, so nothing is missing before this
		 * chunk. The ENTRY of each listed call is in the data, and counts the call: it is
		 * in a chunk of the thread from which the stack came, or later in this chunk,
		 * because a signal handler interrupted the call before its ENTRY was written. If
		 * seq isn't 0, only calls whose ENTRY is later in this chunk (cursor.entered) would
		 * be counted twice, so these calls are subtracted. */
		found.opened = p->seq ? found.opened - cursor.entered : 0;
		pb_cursor_free(&cursor);
	}
	pb_stacks_free(stacks);
	return found;
}

void pb_counts_finish(struct pb_counts *c, const struct pb_counts_thread *threads, uint32_t nr,
		      int chunks_fd)
{
	for (uint32_t i = 0; i < nr; i++) {
		const struct pb_counts_thread *t = &threads[i];

		if (!t->nr)
			continue;
		c->chunks_missing += t->last.seq + 1 > t->nr ? t->last.seq + 1 - t->nr : 0;
		struct found first = decode_one(&t->first, i + 1, t->born, chunks_fd);

		c->inherited += first.inherited;
		c->opened += first.opened;
		c->running += t->nr == 1 ? first.running :
					   decode_one(&t->last, i + 1, t->born, chunks_fd).running;
	}
}
