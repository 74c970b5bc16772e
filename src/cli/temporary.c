/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes and removes directories for temporary data. A signal that ends the command also removes the
 * directory (tidy.h). The directory's name is `dir` up to its last slash, so it is kept apart. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/temporary.h"
#include "cli/tidy.h"
#include "reader/datadir_writer.h"

static char made[CLI_TEMPORARY];	/* a command has one temporary directory */

/* Sets `dir` to an absolute path, because the recorder of `patchbay attach` changes its directory
 * to /. Returns 0 or an errno. */
static int choose_path(char dir[CLI_TEMPORARY])
{
	const char *tmp = getenv("TMPDIR");
	char cwd[PATH_MAX] = "";

	tmp = tmp && *tmp ? tmp : "/tmp";
	if (*tmp != '/' && !getcwd(cwd, sizeof(cwd)))
		return errno;
	return (size_t)snprintf(dir, PATH_MAX, "%s%s%s/patchbay-XXXXXX", cwd, *cwd ? "/" : "",
				tmp) < PATH_MAX ? 0 : ENAMETOOLONG;
}

int cli_temporary_make(const char *command, char dir[CLI_TEMPORARY])
{
	int err = choose_path(dir);
	bool fits = !err;

	cli_tidy_begin();
	if (fits && !mkdtemp(dir))
		err = errno;
	memcpy(made, dir, sizeof(made));
	cli_tidy_end(err ? NULL : made);
	if (!err) {
		strcat(dir, "/data");
		return 0;
	}
	pb_error(command, "%s: %s; set TMPDIR to a directory that can be written",
		 fits ? dir : "TMPDIR", strerror(err));
	*dir = 0;	/* the caller has nothing to remove */
	return 1;
}

void cli_temporary_remove(char dir[CLI_TEMPORARY])
{
	pb_datadir_remove(dir);
	*strrchr(dir, '/') = 0;
	rmdir(dir);
	cli_tidy_forget(made);
}
