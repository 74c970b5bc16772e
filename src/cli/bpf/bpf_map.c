/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay bpf map list|dump|update|lookup|delete`: pinned maps, with bpftool's syntax. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/map/map_names.h"
#include "bpf/map/map_sys.h"
#include "bpfload/load_btf.h"
#include "cli/bpf/bpf_pin.h"

#define COMMAND "bpf map"

static int list_map(void *arg, const struct bpf_pinned *pin)
{
	const struct pb_bpf_map_head *m = pin->map;
	const struct pb_bpf_map_attr *a = m ? &m->spec.attr : NULL;

	if (!m)
		return 0;
	printf("%u: %s  name %.*s  flags %#x%s\n", m->id, pb_bpf_map_type_name(a->type),
	       BPF_OBJ_NAME_LEN, m->spec.name, a->flags, m->frozen ? "  frozen" : "");
	printf("\tkey %uB  value %uB  max_entries %u  memlock %luB\n\tpinned %s\n", a->key_size,
	       a->value_size, a->max_entries, m->size, pin->path);
	return 0;
}

/*
 * Reads n bytes from words such as "hex 00 01" or "0 1 0x1f", and moves *at past the words. Returns
 * 0, or 2 after a message.
 */
static int read_bytes(const char *what, char **args, int nr, int *at, uint8_t *to, uint64_t n)
{
	bool hex = *at < nr && !strcmp(args[*at], "hex");

	*at += hex;
	for (uint64_t i = 0; i < n; i++, ++*at) {
		const char *word = *at < nr ? args[*at] : "";
		char *end;
		unsigned long v = strtoul(word, &end, hex ? 16 : 0);

		if (!*word || v > 255 || *end) {
			pb_error(COMMAND, "%s: give %lu bytes, each a number below 256", what,
				 n);
			return 2;
		}
		to[i] = (uint8_t)v;
	}
	return 0;
}

static int expect(const char *word, char **args, int nr, int *at)
{
	if (*at < nr && !strcmp(args[*at], word)) {
		++*at;
		return 0;
	}
	pb_error(COMMAND, "give the word \"%s\" before its bytes", word);
	return 2;
}

/* Returns 0 if no word is left, or 2 after a message. */
static int expect_end(char **args, int nr, int at)
{
	if (at >= nr)
		return 0;
	pb_error(COMMAND, "%s: the command ends before this word", args[at]);
	return 2;
}

static int flags_of(const char *word, uint64_t *flags)
{
	static const char *const words[] = { "any", "noexist", "exist" };

	for (uint64_t i = 0; i < 3; i++)
		if (!strcmp(words[i], word)) {
			*flags = i;
			return 0;
		}
	pb_error(COMMAND, "%s: choose any, exist or noexist", word);
	return 2;
}

/* If the map is per-CPU, copies the user's value to all per-CPU slots. */
static void spread(const struct pb_bpf_map *map, uint8_t *value)
{
	uint32_t each = (map->attr.value_size + 7) / 8 * 8;

	for (uint32_t i = 1; bpf_map_is_per_cpu(map) && i < map->cpu_slots; i++)
		memcpy(value + (size_t)i * each, value, map->attr.value_size);
}

static int failed(const char *verb, int err)
{
	const char *why = err == -ENOENT ? "the map has no such key" :
			  err == -EEXIST ? "the map has this key already" :
			  err == -E2BIG ? "the map is full, or has no such index" : strerror(-err);

	return pb_error(COMMAND, "%s: %s", verb, why);
}

static int update(struct pb_bpf_map *map, char **args, int nr, int at, uint8_t *key, uint8_t *value)
{
	uint64_t flags = BPF_ANY;
	int err = map->attr.key_size ? expect("key", args, nr, &at) : 0;

	if (!err && map->attr.key_size)
		err = read_bytes("key", args, nr, &at, key, map->attr.key_size);
	if (!err)
		err = expect("value", args, nr, &at);
	if (!err)
		err = read_bytes("value", args, nr, &at, value, map->attr.value_size);
	if (!err && at < nr)
		err = flags_of(args[at++], &flags);
	if (!err)
		err = expect_end(args, nr, at);
	if (err)
		return err;
	spread(map, value);
	err = pb_bpf_map_update_elem(map, map->attr.key_size ? key : NULL, value, flags);
	return err ? failed("update", err) : 0;
}

/* Does `lookup`, or `delete` if `remove` is true. */
static int one(struct pb_bpf_map *map, bool remove, char **args, int nr, int at, uint8_t *key,
	       uint8_t *value)
{
	int err = expect("key", args, nr, &at);

	if (!err)
		err = read_bytes("key", args, nr, &at, key, map->attr.key_size);
	if (!err)
		err = expect_end(args, nr, at);
	if (err)
		return err;
	err = remove ? pb_bpf_map_delete_elem(map, key) :
	      pb_bpf_map_lookup_elem(map, key, value, 0);
	if (err)
		return failed(remove ? "delete" : "lookup", err);
	if (!remove)
		bpf_map_show_element(map, key, value, NULL);
	return 0;
}

/* Opens the map that the words name. The words are "id N", "pinned PATH", or only an id or a
 * path. */
static int open_map(struct bpf_session *s, char **args, int nr, int *at, uint8_t access)
{
	const char *word, *kind = "";
	uint32_t id;
	bool number;

	if (*at + 1 < nr && (!strcmp(args[*at], "id") || !strcmp(args[*at], "pinned")))
		kind = args[(*at)++];
	if (*at >= nr) {
		pb_error(COMMAND, "which map? An id or a path");
		return 2;
	}
	word = args[(*at)++];
	number = bpf_pin_number(word, &id);
	if (!strcmp(kind, "pinned") || (!*kind && !number))
		return bpf_pin_map(s, word, 0, access);
	if (!id) {
		pb_error(COMMAND, "%s: not an id of a map", word);
		return 2;
	}
	return bpf_pin_map(s, NULL, id, access);
}

enum { OPT_BTF = 0x3000 };

static const struct argp_option options[] = {
	{ "btf", OPT_BTF, "OBJECT", 0,
		"dump: show keys and values by the types in OBJECT, which defines the map", 0 },
	{ 0 }
};

static error_t bpf_map_parse(int key, char *arg, struct argp_state *state)
{
	const char **btf = state->input;

	if (key == OPT_BTF) {
		*btf = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = bpf_map_parse,
	.args_doc = "list\ndump MAP\nlookup MAP key [hex] BYTES\nupdate MAP key [hex] BYTES value "
		    "[hex] BYTES [any|exist|noexist]\ndelete MAP key [hex] BYTES",
	.doc = "Looks at pinned maps and changes them, while other processes use them. MAP is an "
	       "id or a path.",
};

/* Opens the types of the file s->btf. The compiler leaves it to the loader to set the offsets of
 * variables, so an object's types are those that the loader returns. Other files have no
 * variables. */
static const struct pb_bpf_btf *open_types(struct bpf_session *s, struct pb_bpf_btf **other)
{
	struct pb_bpf_object_opts opts = { 0 };
	const char *why;
	char err[256];

	*other = NULL;
	if (!pb_bpf_object_open(s->btf, &opts, &s->object, err, sizeof(err)) && s->object->btf)
		return s->object->btf;
	if (pb_bpf_btf_open_file(s->btf, other, &why))
		pb_error(COMMAND, "types of %s: %s", s->btf, why);
	return *other;
}

static int dump(struct bpf_session *s)
{
	struct bpf_words words = { 0 };
	struct pb_bpf_btf *other = NULL;
	int ret = 0;

	if (s->btf) {
		words.btf = open_types(s, &other);
		ret = !words.btf;
	}
	ret = ret ? ret : bpf_map_show(s->map[0], &words);
	pb_bpf_btf_close(other);
	return ret;
}

static int act(struct bpf_session *s, const char *verb, char **args, int nr, int at)
{
	bool writes = !strcmp(verb, "update") || !strcmp(verb, "delete");
	int ret = open_map(s, args, nr, &at, PB_BPF_MAP_READ | (writes ? PB_BPF_MAP_WRITE : 0));
	uint8_t *key, *value;

	if (ret)
		return ret;
	if (!strcmp(verb, "dump")) {
		ret = expect_end(args, nr, at);
		return ret ? ret : dump(s);
	}
	key = calloc(1, s->map[0]->attr.key_size + 8ul);
	value = calloc(1, pb_bpf_map_value_size(s->map[0]) + 8);
	if (!key || !value)
		ret = pb_error(COMMAND, "%s: no memory for an element", s->map[0]->name);
	else if (!strcmp(verb, "update"))
		ret = update(s->map[0], args, nr, at, key, value);
	else
		ret = one(s->map[0], !strcmp(verb, "delete"), args, nr, at, key, value);
	free(key);
	free(value);
	return ret;
}

static int bpf_map_run(int argc, char **argv)
{
	static const char *const verbs[] = { "dump", "lookup", "update", "delete" };
	static struct bpf_session s;
	const char *btf = NULL;
	int at = 0, ret = -1;

	if (argp_parse(&argp, argc, argv, 0, &at, &btf))
		return 2;
	bpf_session_init(&s, COMMAND);
	s.btf = btf;
	if (at == argc || !strcmp(argv[at], "list") || !strcmp(argv[at], "show")) {
		ret = expect_end(argv, argc, at + 1);
		ret = ret ? ret : bpf_pin_each(COMMAND, list_map, NULL);
	}
	for (size_t i = 0; at < argc && i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(argv[at], verbs[i]))
			ret = act(&s, verbs[i], argv, argc, at + 1);
	if (ret < 0) {
		pb_error(COMMAND,
			 "%s: no such command; use list, dump, lookup, update or delete",
			 argv[at]);
		ret = 2;
	}
	bpf_session_end(&s);
	return fflush(stdout) ? 1 : ret;
}

const struct pb_command bpf_command_map = {
	.name = "map", .summary = "List, show and change pinned maps", .argp = &argp,
	.run = bpf_map_run,
};
