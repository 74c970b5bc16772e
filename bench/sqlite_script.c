/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A small shell over the SQLite amalgamation. It runs a script in a database in memory.
 * It prints the number of rows and a hash of all values, so that a traced run can be
 * compared with a bare run. Nothing depends on time or randomness, so each run makes the
 * same calls.
 *
 *   sqlite_script FILE
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "sqlite3.h"

struct output {
	long rows;
	uint64_t hash;
};

static int take_row(void *arg, int n, char **values, char **names)
{
	struct output *out = arg;

	(void)names;
	out->rows++;
	for (int i = 0; i < n; i++)
		for (const char *c = values[i] ? values[i] : "\1"; *c; c++)
			out->hash = (out->hash ^ (unsigned char)*c) * 0x100000001b3ull;
	return 0;
}

static char *read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = NULL;
	size_t len = 0;

	if (!f || getdelim(&text, &len, 0, f) < 0) {
		perror(path);
		exit(1);
	}
	fclose(f);
	return text;
}

int main(int argc, char **argv)
{
	struct output out = { 0, 0xcbf29ce484222325ull };
	char *error = NULL;
	sqlite3 *db;

	if (argc != 2) {
		fprintf(stderr, "usage: sqlite_script FILE\n");
		return 2;
	}
	if (sqlite3_open(":memory:", &db) ||
	    sqlite3_exec(db, read_file(argv[1]), take_row, &out, &error)) {
		fprintf(stderr, "sqlite_script: %s\n", error ? error : sqlite3_errmsg(db));
		return 1;
	}
	sqlite3_close(db);
	printf("sqlite %s: %ld rows, %016llx\n", sqlite3_libversion(), out.rows,
	       (unsigned long long)out.hash);
	return 0;
}
