/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compares names that look the same, and lengthens them until they differ. */
#include "view/distinct.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/analysis_access.h"
#include "base/base.h"
#include "base/clean_text.h"
#include "reader/data.h"

/* The levels of longer names. Equal names are lengthened by one level after the other, until all
 * names differ. */
static const struct {
	enum { TEMPLATES, PARAMETERS, MODULE, ADDRESS } what;
	unsigned depth;			/* template arguments are shown down to this level of
					 * nesting */
} levels[] = {
	{ TEMPLATES, 1 }, { TEMPLATES, 2 }, { TEMPLATES, 3 }, { TEMPLATES, 4 },
	{ PARAMETERS, 0 }, { PARAMETERS, 1 }, { PARAMETERS, 2 }, { PARAMETERS, 3 },
	{ PARAMETERS, 4 },
	{ PARAMETERS, 99 },
	{ MODULE, 0 }, { ADDRESS, 0 },
};

static int by_name(const void *a, const void *b)
{
	const struct pb_function *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* Returns a longer form of the demangled name, or NULL if there is none. */
static char *demangled(struct pb_data *data, const struct pb_function *f, enum pb_demangle how,
		       unsigned depth)
{
	char *text = NULL;

	if (pb_symbols_style(data->symbols) == PB_DEMANGLE_SIMPLE)
		text = pb_demangle_depth(f->raw, how, depth);
	if (text && !pb_text_printable(text)) {
		free(text);
		text = NULL;
	}
	return text;
}

static char *with_address(struct pb_data *data, const struct pb_function *f)
{
	const struct pb_analysis *a = pb_symbols_module(data->symbols, (uint32_t)(f->id >> 32));
	uint32_t index = (uint32_t)f->id;
	char *text;

	if (!a || index >= a->nr_funcs)
		return NULL;
	return asprintf(&text, "%s at %#llx", f->name,
			(unsigned long long)pb_analysis_funcs(a)[index].addr) < 0 ? NULL : text;
}

static char *longer(struct pb_data *data, const struct pb_function *f, unsigned level)
{
	char *text;

	switch (levels[level].what) {
	case TEMPLATES:
		return demangled(data, f, PB_DEMANGLE_SHORT, levels[level].depth);
	case PARAMETERS:
		return demangled(data, f, PB_DEMANGLE_FULL, levels[level].depth);
	case MODULE:
		return asprintf(&text, "%s [%s]", f->name, f->module) < 0 ? NULL : text;
	default:
		return with_address(data, f);
	}
}

/* Lengthens the nr equal names in `run`. If all of them would still be equal at this level, they
 * stay as they are, and a later level may lengthen them. */
static void lengthen(struct pb_distinct *d, struct pb_data *data, struct pb_function **run,
		     size_t nr, unsigned level)
{
	char **made = realloc(d->made, (d->nr + nr) * sizeof(*made)), **texts;
	bool differ = false;

	if (!made)
		return;
	d->made = made;
	texts = made + d->nr;
	for (size_t i = 0; i < nr; i++) {
		texts[i] = longer(data, run[i], level);
		differ |= strcmp(texts[i] ? texts[i] : run[i]->name, texts[0] ? texts[0] :
				 run[0]->name) != 0;
	}
	for (size_t i = 0; i < nr; i++) {
		char *text = texts[i];

		if (text && differ)
			run[i]->name = made[d->nr++] = text;
		else
			free(text);
	}
}

void pb_distinct_names(struct pb_distinct *d, struct pb_data *data, struct pb_function **list,
		       size_t nr)
{
	*d = (struct pb_distinct){ 0 };
	for (unsigned level = 0; level < pb_array_size(levels); level++) {
		bool any = false;

		qsort(list, nr, sizeof(*list), by_name);
		for (size_t from = 0, to; from < nr; from = to) {
			for (to = from + 1; to < nr && !strcmp(list[to]->name, list[from]->name);
			     to++)
				;
			if (to - from < 2)
				continue;
			any = true;
			lengthen(d, data, list + from, to - from, level);
		}
		if (!any)
			return;
	}
}

void pb_distinct_free(struct pb_distinct *d)
{
	for (size_t i = 0; i < d->nr; i++)
		free(d->made[i]);
	free(d->made);
	*d = (struct pb_distinct){ 0 };
}

void pb_distinct_array(struct pb_distinct *d, struct pb_data *data, struct pb_function *functions,
		       size_t nr)
{
	struct pb_function **list = calloc(nr + 1, sizeof(*list));

	*d = (struct pb_distinct){ 0 };
	for (size_t i = 0; list && i < nr; i++)
		list[i] = &functions[i];
	if (list)
		pb_distinct_names(d, data, list, nr);
	free(list);
}
