// SPDX-License-Identifier: LGPL-2.1-or-later
// A Go program for run_runtimes. Goroutines spend their time in functions that don't check their
// stack, so the scheduler stops them in the middle of these functions, by a signal. The program
// prints a line when it has begun. It runs until its input ends, or for as many rounds as its
// argument says.
package main

import (
	"C"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
)

type triple struct{ a, b, c int }

//go:noinline
func (t *triple) second() int { return t.b }

//go:noinline
func (t *triple) sum() int { return t.a + t.b + t.c }

//go:noinline
func twice(i int) int { return i + i }

var stop int32

func spin(t *triple, wg *sync.WaitGroup) {
	defer wg.Done()
	for atomic.LoadInt32(&stop) == 0 {
		for i := 0; i < 1000; i++ {
			if t.second() != 2 || t.sum() != 6 || twice(i) != 2*i {
				panic("a wrong result")
			}
		}
	}
}

func main() {
	var wg sync.WaitGroup
	rounds := 0

	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	for i := 0; i < 3; i++ {
		wg.Add(1)
		go spin(&triple{1, 2, 3}, &wg)
	}
	fmt.Println("begun")
	if rounds == 0 {
		go func() {
			os.Stdin.Read(make([]byte, 1))
			atomic.StoreInt32(&stop, 1)
		}()
	}
	// each collection stops all goroutines
	for i := 0; rounds == 0 && atomic.LoadInt32(&stop) == 0 || i < rounds; i++ {
		runtime.GC()
	}
	atomic.StoreInt32(&stop, 1)
	wg.Wait()
	fmt.Println("done")
}
