/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes and removes directories for temporary data. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/temporary.h"
#include "reader/datadir_writer.h"

int cli_temporary_make(const char *command, char dir[CLI_TEMPORARY])
{
	const char *tmp = getenv("TMPDIR");
	bool fits = (size_t)snprintf(dir, PATH_MAX, "%s/patchbay-XXXXXX",
				     tmp && *tmp ? tmp : "/tmp") < PATH_MAX;

	if (fits && mkdtemp(dir)) {
		strcat(dir, "/data");
		return 0;
	}
	pb_error(command, "%s: %s; set TMPDIR to a directory that can be written",
		 fits ? dir : "TMPDIR", strerror(fits ? errno : ENAMETOOLONG));
	*dir = 0;	/* the caller has nothing to remove */
	return 1;
}

void cli_temporary_remove(char dir[CLI_TEMPORARY])
{
	pb_datadir_remove(dir);
	*strrchr(dir, '/') = 0;
	rmdir(dir);
}
