/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers the functions of all modules, and finds the number of an image's site. */
#include "view/site_numbers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/analysis.h"
#include "base/base.h"

#define TOTAL_MAX (16u << 20)	/* limit of the numbers; further functions count as unknown */

static const struct pb_sites_range no_range;

static int by_module(const void *a, const void *b)
{
	const struct pb_sites_module *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->nr > y->nr ? -1 : x->nr < y->nr;
}

static int by_number(const void *a, const void *b)
{
	const struct pb_sites_module *x = a, *y = b;

	return x->module < y->module ? -1 : x->module > y->module;
}

/* Returns how many functions a mapping has. The result is at most the module's number of functions.
 * If the module is missing, the result is 0. */
static uint32_t map_funcs(const struct pb_data *d, const struct pb_module_map *map)
{
	const struct pb_analysis *a = pb_symbols_module(d->symbols, map->module);
	uint32_t nr = a ? a->nr_funcs : 0, room = PB_MAX_SITES - map->first_site;

	if (nr > map->nr_funcs)
		nr = map->nr_funcs;
	return nr < room ? nr : room;
}

/* Numbers each module's functions once. If a module has several mappings, the mapping with the most
 * functions counts. That mapping is the first of the module's mappings in the sorted array. */
static void number_modules(struct pb_sites *s)
{
	const struct pb_data *d = s->data;
	size_t to = 0;

	for (size_t i = 0; i < d->nr_maps; i++) {
		const struct pb_module_map *map = &d->maps[i];

		if (map->first_site && map->first_site < PB_MAX_SITES)
			s->modules[s->nr_modules++] = (struct pb_sites_module){
				map->module, 0, map_funcs(d, map), i };
	}
	qsort(s->modules, s->nr_modules, sizeof(*s->modules), by_module);
	s->total = PB_MAX_SITES;
	for (size_t i = 0; i < s->nr_modules; i++) {
		struct pb_sites_module *m = &s->modules[to];

		if (to && m[-1].module == s->modules[i].module)
			continue;
		*m = s->modules[i];
		if (m->nr > TOTAL_MAX - s->total)
			continue;
		m->base = s->total;
		s->total += m->nr;
		to++;
	}
	s->nr_modules = to;
}

static void make_ranges(struct pb_sites *s)
{
	const struct pb_data *d = s->data;
	size_t nr = 0;

	for (size_t i = 0; i < d->nr_images; i++) {
		const struct pb_image *image = &d->images[i];
		struct pb_sites_image *im = &s->images[i];

		im->ranges = s->ranges + nr;
		im->last = &no_range;
		for (size_t n = image->first_map; n < image->first_map + image->nr_maps; n++) {
			const struct pb_module_map *map = &d->maps[n];
			struct pb_sites_module key = { .module = map->module };
			const struct pb_sites_module *m = bsearch(&key, s->modules, s->nr_modules,
								  sizeof(key), by_number);

			if (!m || !map->first_site || map->first_site >= PB_MAX_SITES)
				continue;
			s->ranges[nr++] = (struct pb_sites_range){
				map->first_site, map->nr_funcs < m->nr ? map->nr_funcs : m->nr,
				m->base - map->first_site };
			im->nr++;
		}
	}
}

int pb_sites_init(struct pb_sites *s, struct pb_data *d)
{
	memset(s, 0, sizeof(*s));
	s->data = d;
	s->images = calloc(d->nr_images, sizeof(*s->images));
	s->ranges = calloc(d->nr_maps + 1, sizeof(*s->ranges));
	s->modules = calloc(d->nr_maps + 1, sizeof(*s->modules));
	if (!s->images || !s->ranges || !s->modules) {
		pb_sites_free(s);
		return -ENOMEM;
	}
	number_modules(s);
	make_ranges(s);
	return 0;
}

void pb_sites_free(struct pb_sites *s)
{
	free(s->images);
	free(s->ranges);
	free(s->modules);
}

uint32_t pb_sites_search(struct pb_sites *s, struct pb_sites_image *im, uint32_t site)
{
	size_t next = pb_bisect(i, 0, im->nr, im->ranges[i].first <= site);

	if (!next || site - im->ranges[next - 1].first >= im->ranges[next - 1].nr) {
		s->unknown[site / PB_SITES_BLOCK / 64] |= 1ull << (site / PB_SITES_BLOCK % 64);
		return site;
	}
	im->last = &im->ranges[next - 1];
	return site + im->last->delta;
}

struct pb_function pb_sites_function(const struct pb_sites *s, uint32_t number)
{
	size_t next = pb_bisect(i, 0, s->nr_modules, s->modules[i].base <= number);
	const struct pb_sites_module *m;
	const struct pb_module_map *map;

	if (number < PB_MAX_SITES || !next)
		return pb_symbols_site(s->data->symbols, 0, number);
	m = &s->modules[next - 1];
	map = &s->data->maps[m->map];
	return pb_symbols_site(s->data->symbols, pb_data_image(s->data, map->image),
			       map->first_site + (number - m->base));
}
