/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Moves a writer from a full chunk to the next one. An *activation* is one call of this code. A
 * signal handler may interrupt an activation at any instruction and run other activations to their
 * end. Then the handler may return to the interrupted activation, or leave it for ever by a jump
 * (longjmp, an exception, cancellation). So a later activation must be able to finish the work of
 * an activation that is gone. These members of a writer make this possible:
 *
 *   pos       determines the chunk in force, in which records are reserved:
 *             pb_chunk_of(pos). One cmpxchg moves pos from a full chunk to the next
 *             one. If a handler has moved pos to another chunk meanwhile, the
 *             activation gives its own chunk back.
 *   taken     names the chunk that an activation has taken and is filling. It also says where on
 *             the thread's own stack the activation runs (place()). If a later activation runs
 *             there or above, the earlier one is gone, and the later one takes the chunk over. The
 *             writer has only one such word, so a nested activation doesn't note its chunk.
 *   left[]    the full chunks that are not handed over yet. An activation enters a full chunk here
 *             before pos moves. Once pos is in another chunk, any activation hands the full chunk
 *             over (tidy()). An interrupted activation may enter the chunk after handlers have
 *             handed it over, and the chunk's memory may be a newer chunk by then. So an element
 *             also has the low bits of the chunk's number (left_word()). If the memory now holds a
 *             chunk with another number, the element is dropped.
 *   base, leaf
 *             Both members depend on pos alone. While they change, base is 0, and leaf
 *             is pb_no_leaf. Any activation sets them (pb_change_mend()).
 *   pending[] the interrupted activations and hits. If interrupted code may still
 *             fill a hole in a chunk, the chunk is HELD until that code has resumed,
 *             or is known to be gone. If a hit occurs on the thread's own stack, at or
 *             above the handler's frame, the code is gone.
 *
 * A handler may jump away between the removal of a chunk from left[] and its change
 * to FULL. A handler may also jump out of a nested activation before pos moves. In
 * either case a chunk stays OPEN or TAKEN. This chunk is drained or freed when the
 * thread or the session ends, so nothing is lost.
 *
 * The header and the list of open calls are written while the chunk is TAKEN. Once
 * the chunk is OPEN, it may come into force. Until it does, it holds only the list,
 * and `used` is the size of the list.
 */
#include "ring/change.h"
#include "base/base.h"
#include "ring/supply.h"

#define OPEN_MAX_WORDS	(PB_CHUNK_OPEN_MAX * PB_EXT_OPEN_WORDS)
#define BACKOFF		64
#define CLOSE_TRIES	8	/* how often pb_change_close() tries to leave the chunk in force. A
				 * handler may interrupt each try and change chunks. If the last
				 * try fails, too, the last handler's chunk stays OPEN until the
				 * thread ends */
#define RECORD_WORDS	8	/* more than any record has */
#define LIMIT_WORDS	((PB_CHUNK_LIMIT - PB_CHUNK_HEADER) / 8)

/* --- reserved words that may stay unwritten -------------------------------- */

static uint64_t *words_at(uint64_t chunk, uint64_t offset)
{
	return (uint64_t *)(chunk + offset);
}

/* All words of the chunk up to PB_CHUNK_LIMIT are reserved. If the last word before the limit and
 * the words after it are zero, the last record isn't written. In this case mark_end() stores a PAD
 * in the chunk's very last word, which no record reaches. The PAD shows a reader that the unwritten
 * words were reserved. */
static void mark_end(struct pb_owner o, uint64_t chunk)
{
	const uint64_t *end = words_at(chunk, PB_CHUNK_LIMIT);

	for (const uint64_t *p = end - 1; p < end + RECORD_WORDS; p++)
		if (pb_likely(*p))
			return;
	if (chunk != pb_no_chunk)
		pb_own_store(o, words_at(chunk, PB_CHUNK_SIZE - 8),
			     pb_ext_word(PB_EXT_PAD, 1, 0, 0));
}

void pb_writer_stay(struct pb_writer *w)
{
	uint64_t pos = w->pos, chunk = pb_chunk_of(pos);

	if (pos - chunk >= PB_CHUNK_LIMIT)
		pb_cmpxchg_local(&w->pos, pos, chunk + PB_CHUNK_LIMIT);
}

/* If the last reserved record isn't written yet, stores a PAD after it. The record may stay
 * unwritten. The PAD then shows a reader that the record was reserved. */
static void mark_reserved(struct pb_writer *w)
{
	struct pb_owner o = pb_writer_owner(w);
	uint64_t pos = w->pos, chunk = pb_chunk_of(pos);

	if (pos - chunk >= PB_CHUNK_LIMIT)
		mark_end(o, chunk);
	else if (pos - chunk > PB_CHUNK_HEADER && !*words_at(pos, -8ul) &&
		 pb_own_change(o, &w->pos, pos, pos + 8))
		pb_own_store(o, words_at(pos, 0), pb_ext_word(PB_EXT_PAD, 1, 0, 0));
}

/* --- interrupted code ----------------------------------------------------- */

static bool on_own_stack(const struct pb_writer *w, uint64_t address)
{
	return address - w->own_lo < w->own_hi - w->own_lo;
}

uint64_t pb_writer_interrupted(struct pb_writer *w, uint64_t sp, uint64_t slot)
{
	struct pb_pending p = { PB_NO_LIMIT, pb_chunk_of(w->pos) };
	uint64_t nr;

	pb_writer_stay(w);
	mark_reserved(w);
	if (on_own_stack(w, sp))
		p.limit = on_own_stack(w, slot) ? slot : sp - PB_RED_ZONE;
	/* count the element first, so that a nested handler takes the next element. An element that
	 * isn't filled yet has the limit PB_NO_LIMIT. */
	nr = pb_xadd_local(&w->nr_pending, 1);
	if (nr < PB_WRITER_PENDING)
		w->pending[nr] = p;
	return nr;
}

static void forget_pending(struct pb_writer *w, uint64_t from)
{
	uint64_t nr;

	do {
		nr = w->nr_pending;
		for (uint64_t i = from; i < nr && i < PB_WRITER_PENDING; i++)
			w->pending[i].limit = PB_NO_LIMIT;
		pb_barrier();
	} while (nr > from && !pb_cmpxchg_local(&w->nr_pending, nr, from));
}

void pb_writer_resumed(struct pb_writer *w, uint64_t nr)
{
	/* in a child that the handler forked, the list is empty, so there is nothing to drop */
	if (nr < w->nr_pending)
		forget_pending(w, nr);
}

/* The current hit may show that interrupted code is gone. If it does, drops the elements of that
 * code. Interruptions are nested: if the code of one interruption is gone, the code of all later
 * interruptions is gone, too. */
static void prune_pending(struct pb_writer *w)
{
	if (pb_likely(!w->nr_pending) || !on_own_stack(w, w->slot))
		return;
	for (uint64_t i = 0; i < w->nr_pending && i < PB_WRITER_PENDING; i++) {
		if (w->slot >= w->pending[i].limit) {
			forget_pending(w, i);
			return;
		}
	}
}

/* --- holes ----------------------------------------------------------------- */

/* Returns true if none of n words is zero. Most chunks pass this check, which is as fast as reading
 * the chunk. */
static bool no_zero(const uint64_t *p, uint32_t n)
{
	const uint64_t *end = p + n;

	for (; p + 8 <= end; p += 8)
		if (pb_unlikely(!p[0] || !p[1] || !p[2] || !p[3] || !p[4] || !p[5] || !p[6] ||
				!p[7]))
			return false;
	while (p < end)
		if (pb_unlikely(!*p++))
			return false;
	return true;
}

/* Returns true if each record in n words begins with a word that is neither zero nor UNDONE. */
static bool no_hole(const uint64_t *data, uint32_t n)
{
	for (uint32_t i = 0; i < n;) {
		uint64_t word = data[i];
		uint32_t len = word & PB_TAG_MASK ? 1 : word >> PB_EXT_LEN_SHIFT & 0xff;

		if (!word || (word & 0xff) == PB_EXT_UNDONE << PB_EXT_TYPE_SHIFT)
			return false;
		i += len ? len : 1;
	}
	return true;
}

/* Returns the length of the list of open calls, in words. The start times in the list may be zero,
 * so the list isn't searched for holes. */
static uint32_t listed(const uint64_t *data)
{
	uint16_t head = (uint16_t)pb_ext_record(OPEN, 0, 0);
	uint32_t n = 0;

	while (n < OPEN_MAX_WORDS && (uint16_t)data[n] == head)
		n += PB_EXT_OPEN_WORDS;
	return n;
}

/* Returns true if no record is missing in a chunk that the writer has left. All words of
 * such a chunk up to PB_CHUNK_LIMIT were reserved. If its data ends before the limit,
 * there is a hole at the end. No record begins after the limit. If `walk` is false and
 * no word is zero, the chunk isn't searched for UNDONE records. */
static bool is_whole(const struct pb_chunk *c, bool walk)
{
	const uint64_t *data = (const uint64_t *)(c + 1);
	uint32_t end = (PB_CHUNK_SIZE - PB_CHUNK_HEADER) / 8, from = listed(data);

	while (end && !data[end - 1])
		end--;
	return end >= LIMIT_WORDS && ((!walk && no_zero(data + from, LIMIT_WORDS - from)) ||
				      no_hole(data + from, LIMIT_WORDS - from));
}

/* Returns true if interrupted code may still write into the chunk. That code may fill a hole, or
 * set the open leaf in the header. */
static bool must_hold(const struct pb_writer *w, const struct pb_chunk *c)
{
	if (pb_likely(!w->nr_pending && !pb_ring_unseen))
		return false;
	if (w->undone == (uint64_t)c)
		return true;
	for (uint64_t i = 0; i < w->nr_pending && i < PB_WRITER_PENDING; i++)
		if (w->pending[i].chunk == (uint64_t)c)
			return true;
	return !is_whole(c, w->nr_pending || w->undone);
}

/* --- chunks that the writer has left --------------------------------------- */

static bool change_own(struct pb_owner o, struct pb_chunk *c, uint32_t from, uint32_t to)
{
	return pb_chunk_change_state(o, c, from, o.serial, to);
}

static bool is_ours(const struct pb_writer *w, const struct pb_chunk *c)
{
	return c->serial == w->serial && (c->state == PB_CHUNK_OPEN || c->state == PB_CHUNK_HELD);
}

static void hand_over(struct pb_owner o, struct pb_chunk *c)
{
	if (!change_own(o, c, PB_CHUNK_OPEN, PB_CHUNK_FULL))
		change_own(o, c, PB_CHUNK_HELD, PB_CHUNK_FULL);
}

/* Returns the element of left[] for the chunk c with the number seq. */
static uint64_t left_word(const struct pb_chunk *c, uint64_t seq)
{
	return (uint64_t)c | (seq & (PB_CHUNK_SIZE - 1));
}

static struct pb_chunk *left_chunk(uint64_t word)
{
	return (void *)pb_chunk_of(word);
}

/* Returns true if the memory is still the chunk for which this element was made. */
static bool is_same(uint64_t word)
{
	const struct pb_chunk *c = left_chunk(word);

	return left_word(c, *(const volatile uint64_t *)&c->seq) == word;
}

/* Returns true if the writer still has the chunk that this element stands for. The memory may be a
 * newer chunk by now. A chunk gets its number before it becomes OPEN, so this function reads the
 * state first, then the number. If it has read the newer chunk's state, it also reads the newer
 * chunk's number. */
static bool still_ours(const struct pb_writer *w, uint64_t word)
{
	if (!is_ours(w, left_chunk(word)))
		return false;
	pb_barrier();
	return is_same(word);
}

static bool is_left(const struct pb_writer *w, const struct pb_chunk *c)
{
	for (int i = 0; i < PB_WRITER_LEFT; i++)
		if (left_chunk(w->left[i]) == c)
			return true;
	return false;
}

/* Removes the elements of left[] that stand for earlier chunks in c's memory. */
static void forget_left(struct pb_writer *w, const struct pb_chunk *c)
{
	for (int i = 0; i < PB_WRITER_LEFT; i++) {
		uint64_t word = w->left[i];

		if (left_chunk(word) == c)
			pb_cmpxchg_local(&w->left[i], word, 0);
	}
}

/* Enters an element in left[]. False: left[] is full. */
static bool enter_left(struct pb_writer *w, uint64_t word)
{
	for (int i = 0; i < PB_WRITER_LEFT; i++)
		if (w->left[i] == word)
			return true;
	for (int i = 0; i < PB_WRITER_LEFT; i++)
		if (pb_cmpxchg_local(&w->left[i], 0, word))
			return true;
	return false;
}

static uint32_t chunk_index(const struct pb_chunk *c)
{
	return (uint32_t)(((uint64_t)c - (uint64_t)pb_ring_map.chunks) / PB_CHUNK_SIZE);
}

static bool is_taken(const struct pb_writer *w, const struct pb_chunk *c)
{
	return w->taken >> 32 == chunk_index(c) + 1ull;
}

/* Removes all elements that are equal to `word`, and hands over the chunk. Only an activation that
 * began while pos was in the chunk enters such an element. A handler that interrupts this code
 * begins later, when pos is in another chunk. So it doesn't enter the element, and after the
 * removal it doesn't find the element either. Therefore no handler hands the chunk over after the
 * removal. If the chunk was handed over before, its memory may be the chunk in force by now. In
 * this case the state isn't changed. */
static void hand_over_left(struct pb_writer *w, struct pb_owner o, uint64_t word)
{
	for (int i = 0; i < PB_WRITER_LEFT; i++)
		pb_cmpxchg_local(&w->left[i], word, 0);
	if (still_ours(w, word))
		hand_over(o, left_chunk(word));
}

/* Hands over the chunks in left[]. The cmpxchg that removes a chunk from left[] lets only one
 * activation hand the chunk over: this activation, or an activation of a handler that interrupts
 * this activation. */
static void tidy(struct pb_writer *w, struct pb_owner o)
{
	prune_pending(w);
	for (int i = 0; i < PB_WRITER_LEFT && pb_writer_is(o); i++) {
		uint64_t word = w->left[i];
		struct pb_chunk *c = left_chunk(word);

		if (!c || (uint64_t)c == pb_chunk_of(w->pos))
			continue;
		if (still_ours(w, word) && (is_taken(w, c) || must_hold(w, c))) {
			if (!is_taken(w, c) && still_ours(w, word))
				change_own(o, c, PB_CHUNK_OPEN, PB_CHUNK_HELD);
			continue;
		}
		if (pb_cmpxchg_local(&w->left[i], word, 0))
			hand_over_left(w, o, word);
	}
}

/* --- the next chunk -------------------------------------------------------- */

/* Returns where on the thread's own stack this activation runs: the number of words between its
 * frame and the stack's upper end. All ones: the activation is on another stack, or the stack's
 * bounds aren't known. (w->slot can't be used in place of the frame: if an unseen handler has run,
 * w->slot is the slot of the handler's hit.) */
static uint32_t place(const struct pb_writer *w)
{
	uint64_t frame = (uint64_t)__builtin_frame_address(0), words = (w->own_hi - frame) / 8;

	return on_own_stack(w, frame) && words < ~0u ? (uint32_t)words : ~0u;
}

/* Returns true if the earlier activation, which took a chunk at the place `taken`, is gone. If the
 * present activation runs more than a red zone below that place, the earlier one may still resume.
 * If no code of the agent is interrupted, the earlier one is gone, wherever it ran. */
static bool is_gone(const struct pb_writer *w, uint32_t taken)
{
	uint32_t here = place(w);

	if (!w->nr_pending && !pb_ring_unseen)
		return true;
	return taken != ~0u && here != ~0u && here <= (uint64_t)taken + PB_RED_ZONE / 8;
}

/* Returns true if the chunk is in force, or was in force and is still in left[]. */
static bool came_into_force(const struct pb_writer *w, const struct pb_chunk *c)
{
	return pb_chunk_of(w->pos) == (uint64_t)c || is_left(w, c);
}

static void give_back(struct pb_owner o, struct pb_chunk *c)
{
	if (!change_own(o, c, PB_CHUNK_OPEN, PB_CHUNK_FREE))
		change_own(o, c, PB_CHUNK_TAKEN, PB_CHUNK_FREE);
}

/* Takes over the chunk that an activation had taken before a jump ended the activation. NULL: there
 * is no such chunk. */
static struct pb_chunk *take_over(struct pb_writer *w, struct pb_owner o)
{
	uint64_t taken = w->taken;
	struct pb_chunk *c;

	if (!taken)
		return NULL;
	c = (void *)(pb_ring_map.chunks + ((taken >> 32) - 1) * PB_CHUNK_SIZE);
	if (came_into_force(w, c)) {
		pb_cmpxchg_local(&w->taken, taken, 0);
		return NULL;
	}
	if (!is_gone(w, (uint32_t)taken) || !pb_cmpxchg_local(&w->taken, taken, 0) ||
	    came_into_force(w, c))
		return NULL;
	change_own(o, c, PB_CHUNK_OPEN, PB_CHUNK_TAKEN);
	return c->serial == o.serial && c->state == PB_CHUNK_TAKEN ? c : NULL;
}

static struct pb_chunk *take(struct pb_writer *w, struct pb_owner o)
{
	struct pb_chunk *c = take_over(w, o);

	if (!c)
		c = pb_supply_take(o);
	if (!c)
		return NULL;
	pb_own_change(o, &w->taken, 0, (chunk_index(c) + 1ull) << 32 | place(w));
	forget_left(w, c);
	return c;
}

/* Clears `taken` if it names c. c is in force by now, or will be given back. */
static void forget_taken(struct pb_writer *w, const struct pb_chunk *c)
{
	uint64_t taken = w->taken;

	if (is_taken(w, c))
		pb_cmpxchg_local(&w->taken, taken, 0);
}

/* Stores two members of 4 bytes, the first one at *low. */
static void put_pair(struct pb_owner o, uint32_t *low, uint32_t a, uint32_t b)
{
	pb_own_store(o, (uint64_t *)low, (uint64_t)b << 32 | a);
}

/* Fills the header and the list of open calls of a chunk that is TAKEN, and makes it OPEN. Returns
 * the address of the first record. Doesn't change a chunk that doesn't belong to o. */
static uint64_t *fill(struct pb_writer *w, struct pb_owner o, struct pb_chunk *c, uint64_t number,
		      const void *ending)
{
	uint64_t *data = (uint64_t *)(c + 1);
	uint32_t depth = 0;

	pb_own_store(o, &c->leaf_start, 0);
	if (c->uses)
		pb_own_zero(o, data, (PB_CHUNK_SIZE - PB_CHUNK_HEADER) / 8);
	put_pair(o, &c->uses, c->uses + 1 ?: 1, 0);	/* 0 would mean that all words are zero */
	put_pair(o, &c->buffer, w->buffer, w->image);
	put_pair(o, &c->pid, w->pid, w->tid);
	pb_own_store(o, &c->seq, number);
	pb_own_store(o, &c->start, w->last);
	pb_own_store(o, &c->stack, w->stack);
	pb_own_store(o, &c->lost, w->lost);
	pb_own_store(o, &c->no_return, w->no_return);
	put_pair(o, &c->leaf_site, 0, (uint32_t)w->missed);
	data += pb_ring_open_calls(w, o, data, OPEN_MAX_WORDS, &depth, ending);
	put_pair(o, &c->used, (uint32_t)((uint64_t)data - (uint64_t)(c + 1)), depth);
	change_own(o, c, PB_CHUNK_TAKEN, PB_CHUNK_OPEN);
	return data;
}

/* Returns true if no handler has moved the position to another chunk. The position is then still in
 * the full chunk's last PB_CHUNK_DEAD_ZONE bytes, or just after the chunk. */
static bool still_full(uint64_t pos, uint64_t chunk)
{
	return pos - chunk >= PB_CHUNK_LIMIT && pos - chunk < PB_CHUNK_SIZE + PB_CHUNK_HEADER;
}

/* Sets base and leaf by cmpxchg, which expects the values that mean "none". If a handler interrupts
 * this code and changes chunks, the cmpxchg fails. So the old chunk's base and leaf aren't
 * stored. */
void pb_change_mend(struct pb_writer *w)
{
	struct pb_owner o = pb_writer_owner(w);
	uint64_t c, leaf;

	w->base = 0;
	w->leaf = pb_no_leaf;
	pb_barrier();
	c = pb_chunk_of(w->pos);
	if (c == pb_no_chunk)
		return;
	leaf = (uint64_t)&((struct pb_chunk *)c)->leaf_start;
	pb_own_change(o, &w->base, 0, c);
	pb_own_change(o, (uint64_t *)&w->leaf, (uint64_t)pb_no_leaf, leaf);
	/* A handler may have moved pos to another chunk, and jumped away before it set base and
	 * leaf. They then belong to the old chunk c. So they are cleared, and the next record sets
	 * them. They aren't set here in a loop: it might not end, because handlers may change
	 * chunks in each iteration. */
	if (pb_chunk_of(*(volatile uint64_t *)&w->pos) != c) {
		pb_own_change(o, (uint64_t *)&w->leaf, leaf, (uint64_t)pb_no_leaf);
		pb_own_change(o, &w->base, c, 0);
	}
}

/* Leaves the chunk at `full`. `left` is its element in left[]; 0: the writer had no chunk. The
 * number of the next chunk is that of `full` plus 1, or w->seq if the writer had no chunk. The
 * writer leaves `full` only once. So the numbers have no gap, even if a handler's chunk comes into
 * force instead, or if a jump ends this activation. */
static bool leave(struct pb_writer *w, struct pb_owner o, uint64_t full, uint64_t left,
		  uint64_t number, const void *ending)
{
	struct pb_chunk *c;
	uint64_t pos, start;
	bool entered;

	if (w->backoff) {
		w->backoff--;
		return !still_full(w->pos, full);
	}
	tidy(w, o);
	c = take(w, o);
	if (!c) {
		/* a handler may have taken the last chunk and put it in force */
		if (!still_full(w->pos, full))
			return true;
		if (pb_ring_map.mode != PB_RING_OVERWRITE)
			w->backoff = BACKOFF;
		pb_barrier();
		if (still_full(*(volatile uint64_t *)&w->pos, full))
			return false;
		w->backoff = 0;
		return true;
	}
	start = (uint64_t)fill(w, o, c, number, ending);
	if (left && still_full(w->pos, full) && is_same(left))
		mark_end(o, full);
	entered = !left || enter_left(w, left);
	w->base = 0;
	w->leaf = pb_no_leaf;
	pb_barrier();
	do {
		pos = w->pos;
		if (!still_full(pos, full) || (left && !is_same(left)) || !pb_writer_is(o)) {
			forget_taken(w, c);
			give_back(o, c);
			pb_change_mend(w);
			return true;
		}
	} while (!pb_own_change(o, &w->pos, pos, start));
	w->backoff = 0;		/* a handler that found no chunk may have set it */
	pb_change_mend(w);
	forget_taken(w, c);
	/* since the change above, a handler may have changed chunks again */
	tidy(w, o);
	if (!entered && still_ours(w, left) && !must_hold(w, (void *)full))
		hand_over_left(w, o, left);
	return true;
}

bool pb_change_chunk(struct pb_writer *w, struct pb_owner o, uint64_t full, const void *ending)
{
	uint64_t seq = ((const volatile struct pb_chunk *)full)->seq;

	if (full == pb_no_chunk)
		return leave(w, o, full, 0, w->seq, ending);
	return leave(w, o, full, left_word((void *)full, seq), seq + 1, ending);
}

void pb_change_close(struct pb_writer *w)
{
	struct pb_owner o = pb_writer_owner(w);
	struct pb_chunk *c;
	uint64_t pos;
	int tries = 0;
	bool left;

	/* A handler may interrupt this loop and change chunks. The next chunk's number must be
	 * known before pos leaves the chunk. */
	do {
		pos = w->pos;
		c = (void *)pb_chunk_of(pos);
		if (c && (uint64_t)c != pb_no_chunk && is_ours(w, c))
			w->seq = c->seq + 1;
		pb_barrier();
		left = pb_cmpxchg_local(&w->pos, pos, pb_no_chunk + PB_CHUNK_LIMIT);
	} while (!left && ++tries < CLOSE_TRIES);
	if (!left)
		w->pos = pb_no_chunk + PB_CHUNK_LIMIT;
	pb_change_mend(w);
	w->nr_pending = 0;
	if (c && (uint64_t)c != pb_no_chunk)
		hand_over(o, c);
	for (int i = 0; i < PB_WRITER_LEFT; i++) {
		uint64_t word = w->left[i];

		if (word)
			hand_over_left(w, o, word);
	}
	if (w->taken) {
		c = (void *)(pb_ring_map.chunks + ((w->taken >> 32) - 1) * PB_CHUNK_SIZE);
		w->taken = 0;
		give_back(o, c);
	}
}
