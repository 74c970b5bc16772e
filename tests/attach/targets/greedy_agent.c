/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An agent that needs more static TLS memory than glibc reserves for libraries that are loaded
 * later. */
__thread char greedy[64 << 10] __attribute__((tls_model("initial-exec")));

int patchbay_attach(void);

int patchbay_attach(void)
{
	return greedy[0];
}
