// SPDX-License-Identifier: LGPL-2.1-or-later
// A Go program for run_runtimes, which records it with symbols and stripped. It calls C, grows
// stacks, and recovers from panics, also from those that a signal causes. leaf() and same() don't
// check their stack, so their calls never restart and can be counted exactly.
package main

/*
static int add(int a, int b) { return a + b; }
*/
import "C"

import (
	"fmt"
	"runtime"
	"sync"
)

const calls = 3000

type pair struct{ a, b int }

//go:noinline
func (p *pair) second() int { return p.b }

//go:noinline
func leaf(i int) int { return i*3 + 1 }

//go:noinline
func same[T any](x T) T { return x }

//go:noinline
func deep(n int) int {
	var buf [200]byte

	if n == 0 {
		return 0
	}
	buf[n%200] = byte(n)
	return deep(n-1) + int(buf[n%200])
}

func try(f func()) {
	defer func() { fmt.Println(recover()) }()
	f()
}

func work(i int, sums []int, wg *sync.WaitGroup) {
	defer wg.Done()
	for k := 0; k < calls/10; k++ {
		sums[i] += leaf(k) + same(k) + int(C.add(1, C.int(k)))
	}
	sums[i] += deep(20 * i)
}

func main() {
	var wg sync.WaitGroup
	var none *pair
	sums := make([]int, 10)

	for i := range sums {
		wg.Add(1)
		go work(i, sums, &wg)
	}
	wg.Wait()
	runtime.GC()
	try(func() { none.second() })
	try(func() { fmt.Println(sums[len(sums)+leaf(0)-1]) })
	fmt.Println(sums)
}
