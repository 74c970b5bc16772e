// SPDX-License-Identifier: LGPL-2.1-or-later
// Many goroutines call C with deep Go and C stacks. C functions and C threads call Go.
package main

/*
#cgo LDFLAGS: -lpthread
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

extern int go_double(int);
extern int go_panics(int);

static int __attribute__((noinline)) one(int n) { return n + 1; }

static int __attribute__((noinline)) down(int n)
{
	char frame[200];

	memset(frame, n, sizeof(frame));
	return n ? down(n - 1) + (frame[n % 200] == (char)n) : go_double(1);
}

static int compare(const void *a, const void *b)
{
	return go_double(*(const int *)a) - go_double(*(const int *)b);
}

static int sorted(int n)
{
	int *v = malloc(n * sizeof(*v)), ok = 1;

	for (int i = 0; i < n; i++)
		v[i] = i * 7919 % 1009;
	qsort(v, n, sizeof(*v), compare);
	for (int i = 1; i < n; i++)
		ok &= v[i - 1] <= v[i];
	free(v);
	return ok;
}

static void *thread(void *arg)
{
	long sum = 0;

	for (int i = 0; i < 100; i++)
		sum += go_double((int)(long)arg + i);
	return (void *)sum;
}

static long threads(int n)
{
	pthread_t t[16];
	long sum = 0;
	void *r;

	for (int i = 0; i < n; i++)
		pthread_create(&t[i], NULL, thread, (void *)(long)i);
	for (int i = 0; i < n; i++) {
		pthread_join(t[i], &r);
		sum += (long)r;
	}
	return sum;
}
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
)

//export go_double
func go_double(n C.int) C.int {
	if n%64 == 0 {
		runtime.Gosched()
	}
	return 2 * n
}

//export go_panics
func go_panics(n C.int) C.int {
	panic("in go")
}

func deep(n int) int {
	if n == 0 {
		return int(C.down(20))
	}
	return deep(n-1) + int(C.one(0))
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	runtime.GOMAXPROCS(4)
	var wg sync.WaitGroup
	sums := make([]int, 10)
	for i := range sums {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			for k := 0; k < rounds; k++ {
				sums[i] += deep(k%30) + int(C.one(C.int(k)))
				if k%50 == 0 {
					runtime.GC()
				}
			}
		}(i)
	}
	wg.Wait()
	fmt.Println(sums)
	fmt.Println(C.sorted(300), C.threads(8))
	func() {
		defer func() { fmt.Println(recover()) }()
		C.go_panics(1)
	}()
}
