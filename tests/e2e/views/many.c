/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes many calls. */
__attribute__((noipa)) static void work(void)
{
	__asm__ volatile("nopl 8(%rax)");
}

int main(void)
{
	for (int i = 0; i < 300000; i++)
		work();
	return 0;
}
