/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Forks at several depths of a recursion. The parent and the child return through all calls that
 * were open at the fork, and check the results of these calls.
 * @flags -DNR=200
 * @quick -DNR=60
 * @markers 5*NR main/one_storm
 * @timeout 40
 */
#include <sys/wait.h>
#include "../hostile.h"

static KEEP long tree(int depth, int *forks, int *child_of)
{
	pid_t pid, me = getpid();
	long r = 0;

	if (!depth)
		return 1;
	if (depth % 4 == 0 && *forks > 0) {
		--*forks;
		pid = fork();
		check(pid >= 0);
		if (!pid) {
			*child_of += 1;
			*forks = *forks > 1;
		} else {
			int status;

			r = opaque(tree(depth - 1, forks, child_of));
			/* A deeper call may have forked. Its child returns through this call, too,
			 * but must not wait for `pid`, which is not its child. */
			if (getpid() != me)
				return r + 1;
			check(waitpid(pid, &status, 0) == pid);
			if (status)
				die("a child at depth %d ended with %#x", depth, status);
			return r + 1;
		}
	}
	r = opaque(tree(depth - 1, forks, child_of));
	return r + 1;
}

static KEEP int one_storm(int n)
{
	int forks = 3, child_of = 0;

	check_eq(tree(20, &forks, &child_of), 21);
	marker_begin(n);
	return child_of;
}

int main(void)
{
	int n;

	setvbuf(stdout, NULL, _IONBF, 0);
	for (n = 0; n < NR; n++)
		if (one_storm(n))
			_exit(0);
	puts("200 storms");
	return 0;
}
