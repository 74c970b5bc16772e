/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For the README: a program that parses orders, and crashes at the third order. Build it with
 * gcc -O1 -fno-inline -fno-optimize-sibling-calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct order { const char *name; int quantity; };

int parse_quantity(const char *text)
{
	return atoi(strchr(text, 'x') + 1);
}

void parse_line(struct order *o, const char *line)
{
	o->name = line;
	o->quantity = parse_quantity(line);
}

int read_orders(const char *lines[], int n)
{
	struct order o;
	int sum = 0;

	for (int i = 0; i < n; i++) {
		parse_line(&o, lines[i]);
		sum += o.quantity;
	}
	return sum;
}

int main(void)
{
	const char *lines[] = { "tea x2", "milk x1", "sugar" };

	return read_orders(lines, 3);
}
