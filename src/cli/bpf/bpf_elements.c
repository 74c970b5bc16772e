/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Visits all elements of a map that other threads may change at the same time, or that a stray
 * write has damaged.
 *
 * If a key that get_next_key() has returned is gone, get_next_key() returns the first key again. So
 * a loop of get_next_key() could visit the same elements for ever. A hash is therefore read by
 * batches of whole buckets, which never begin again. All other types return their keys in an order
 * that two keys alone show. If the next key isn't after the last one in this order, the walk has
 * begun again. It then leaves out the keys up to the last one that was shown. The number of times
 * that a walk begins again is limited.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "bpf/map/map_sys.h"
#include "cli/bpf/bpf_common.h"

#define BATCH_BYTES	(1u << 20)	/* size of the buffers for the first batch of a hash */
#define MAX_RESTARTS	64		/* number of times that a walk may begin again */

static int no_memory(const char *command, const struct pb_bpf_map *map)
{
	return pb_error(command, "%s: no memory for an element", map->name);
}

static int cut_off(const char *command, const struct pb_bpf_map *map)
{
	return pb_error(command, "%s: the map was changed too often, or is damaged: not all of its "
				 "elements could be read", map->name);
}

static int unreadable(const char *command, const struct pb_bpf_map *map, int err)
{
	return pb_error(command, "%s: the elements can't be read: %s", map->name,
			strerror(err == -PB_BPF_ENOTSUPP ? EOPNOTSUPP : -err));
}

/* ---- hashes ------------------------------------------------------------------------------- */

/* Reads one batch with room for `room` elements. *pos: the batch's position; *in: NULL, or pos.
 * Returns 1 to continue, 0 at the end, -ENOSPC if there is too little room, or another -errno. *ret
 * receives fn's result. */
static int64_t read_batch(struct pb_bpf_map *map, uint32_t *pos, const uint32_t **in, uint32_t room,
			  uint8_t *buffer, bpf_element_fn *fn, void *arg, int *ret)
{
	uint64_t value_size = pb_bpf_map_value_size(map);
	uint8_t *values = buffer, *keys = buffer + room * value_size;
	uint32_t count = room;
	struct pb_bpf_map_batch b = { *in, pos, keys, values, &count, 0, 0 };
	int err = pb_bpf_map_lookup_batch(map, &b);

	if (err && err != -ENOENT)
		count = 0;
	for (uint32_t i = 0; i < count && !*ret; i++)
		*ret = fn(arg, map, keys + (uint64_t)i * map->attr.key_size,
			  values + i * value_size, 0);
	*in = pos;
	return *ret || err == -ENOENT ? 0 : err ? err : 1;
}

static int each_of_hash(const char *command, struct pb_bpf_map *map, bpf_element_fn *fn, void *arg)
{
	uint64_t size = map->attr.key_size + pb_bpf_map_value_size(map);
	uint64_t room = size < BATCH_BYTES ? BATCH_BYTES / size : 1;
	uint64_t most = 2ull * map->attr.max_entries + 1000;
	const uint32_t *in = NULL;
	uint32_t pos = 0;
	int64_t more = 1;
	int ret = 0;

	while (more == 1) {
		uint8_t *buffer = malloc(room * size);

		if (!buffer)
			return no_memory(command, map);
		do
			more = read_batch(map, &pos, &in, (uint32_t)room, buffer, fn, arg, &ret);
		while (more == 1);
		free(buffer);
		if (more == -ENOSPC && room > most)
			return cut_off(command, map);
		if (more < 0 && more != -ENOSPC)
			return unreadable(command, map, (int)more);
		room *= 2;		/* for a bucket with many elements */
		more = more == -ENOSPC ? 1 : more;
	}
	return ret;
}

/* ---- other types ---------------------------------------------------------------------------- */

struct walk {
	uint8_t *key, *next, *shown, *value;	/* shown: the last key that was shown */
	bool any;				/* a key was shown */
	uint64_t at;				/* number of the key in this pass */
	uint32_t restarts;
};

/* Returns whether prefix a comes after prefix b in a trie's order: at the first bit that differs, 0
 * comes first, and a longer prefix comes before the prefixes with which it begins. */
static bool prefix_is_after(const struct pb_bpf_map *map, const uint8_t *a, const uint8_t *b)
{
	uint32_t bits = (map->attr.key_size - 4) * 8;
	uint32_t a_len, b_len, most, i = 0;

	memcpy(&a_len, a, 4);
	memcpy(&b_len, b, 4);
	most = a_len < b_len ? a_len : b_len;
	most = most < bits ? most : bits;	/* a stray write may have changed a length */
	while (i + 8 <= most && a[4 + i / 8] == b[4 + i / 8])
		i += 8;
	for (; i < most; i++) {
		uint8_t bit = 0x80 >> i % 8;

		if ((a[4 + i / 8] ^ b[4 + i / 8]) & bit)
			return a[4 + i / 8] & bit;
	}
	return a_len < b_len;
}

/* Returns whether key a comes after key b in the order of get_next_key(). */
static bool is_after(const struct pb_bpf_map *map, const uint8_t *a, const uint8_t *b)
{
	uint32_t a_nr, b_nr;

	if (map->attr.type == BPF_MAP_TYPE_LPM_TRIE)
		return prefix_is_after(map, a, b);
	memcpy(&a_nr, a, 4);
	memcpy(&b_nr, b, 4);
	return a_nr > b_nr;
}

/* Finds the next key, which becomes w->key. Returns 1, 0 at the map's end, -EAGAIN if the walk has
 * begun again too often, or another -errno. */
static int go_on(struct pb_bpf_map *map, struct walk *w)
{
	int err = pb_bpf_map_get_next_key(map, w->at ? w->key : NULL, w->next);

	if (err)
		return err == -ENOENT ? 0 : err;
	if (w->at && !is_after(map, w->next, w->key)) {
		w->restarts++;
		w->at = 0;
	}
	w->at++;
	memcpy(w->key, w->next, map->attr.key_size);
	return w->restarts > MAX_RESTARTS || w->at > 2ull * map->attr.max_entries + 1000 ?
	       -EAGAIN : 1;
}

/* Shows the element of w->key, unless the walk has begun again and the element was shown before.
 * Returns fn's result. */
static int show(struct pb_bpf_map *map, struct walk *w, bpf_element_fn *fn, void *arg)
{
	int err;

	if (w->any && !is_after(map, w->key, w->shown))
		return 0;
	err = pb_bpf_map_lookup_elem(map, w->key, w->value, 0);
	if (err == -ENOENT)		/* it was deleted meanwhile */
		return 0;
	w->any = true;
	memcpy(w->shown, w->key, map->attr.key_size);
	return fn(arg, map, w->key, w->value, err);
}

static int each_key(const char *command, struct pb_bpf_map *map, bpf_element_fn *fn, void *arg)
{
	uint32_t room = map->attr.key_size + 8;
	struct walk w = { .key = calloc(3, room),
			  .value = calloc(1, pb_bpf_map_value_size(map) + 8) };
	int ret = 0, more = 1;

	if (!w.key || !w.value)
		ret = no_memory(command, map);
	w.next = w.key + room;
	w.shown = w.next + room;
	while (!ret && (more = go_on(map, &w)) > 0)
		ret = show(map, &w, fn, arg);
	if (more == -EAGAIN)
		ret = cut_off(command, map);
	else if (more < 0)
		ret = unreadable(command, map, more);
	free(w.key);
	free(w.value);
	return ret;
}

int bpf_map_each(const char *command, struct pb_bpf_map *map, bpf_element_fn *fn, void *arg)
{
	return pb_bpf_map_is_hash(map) ? each_of_hash(command, map, fn, arg) :
	       each_key(command, map, fn, arg);
}
