/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A libc without dlopen(), as libc.so.6 was before glibc 2.34. */
void getppid(void);

void getppid(void)
{
}

void pthread_detach(void);

void pthread_detach(void)
{
}
