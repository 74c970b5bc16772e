// SPDX-License-Identifier: LGPL-2.1-or-later
// Goroutines whose stacks grow and are copied, channels, select, panics with stack traces, deferred calls, maps,
// collections, preemption of loops without calls, timers.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type node struct {
	left, right *node
	pad         [3]int
}

func grow(d int) *node {
	if d == 0 {
		return nil
	}
	return &node{left: grow(d - 1), right: grow(d - 1)}
}

func (n *node) size() int {
	if n == nil {
		return 0
	}
	return 1 + n.left.size() + n.right.size()
}

//go:noinline
func deep(n int) (r int) {
	var frame [20]int
	frame[n%20] = n
	if n == 0 {
		panic("bottom")
	}
	defer func() { r += frame[n%20] }()
	return deep(n-1) + 1
}

func caught(n int) (frames int) {
	defer func() {
		if e := recover(); e != nil {
			frames = strings.Count(string(debug.Stack()), "main.deep(")
		}
	}()
	return deep(n)
}

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

func worker(in <-chan int, out chan<- int, wg *sync.WaitGroup) {
	defer wg.Done()
	for n := range in {
		out <- grow(n%8).size() + caught(n%50) + recurse(n%3000)
	}
}

//go:noinline
func recurse(n int) int {
	var frame [10]int
	frame[n%10] = 1
	if n == 0 {
		return 0
	}
	return recurse(n-1) + frame[n%10]
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	runtime.GOMAXPROCS(4)
	debug.SetGCPercent(10)
	in, out := make(chan int), make(chan int, 10)
	var wg sync.WaitGroup
	for i := 0; i < 20; i++ {
		wg.Add(1)
		go worker(in, out, &wg)
	}
	go func() {
		for i := 0; i < rounds; i++ {
			in <- i
		}
		close(in)
		wg.Wait()
		close(out)
	}()
	sum := 0
	for n := range out {
		sum += n
	}
	fmt.Println("workers", sum)

	// a ring of goroutines
	first := make(chan int)
	c := first
	for i := 0; i < 100; i++ {
		next := make(chan int)
		go func(from, to chan int) {
			for n := range from {
				to <- n + 1
			}
			close(to)
		}(c, next)
		c = next
	}
	go func() {
		for i := 0; i < 50; i++ {
			first <- i
		}
		close(first)
	}()
	sum = 0
	for n := range c {
		sum += n
	}
	fmt.Println("ring", sum)

	// loops that only a signal preempts
	var stop, turns int64
	for i := 0; i < 6; i++ {
		go func() {
			for atomic.LoadInt64(&stop) == 0 {
			}
			atomic.AddInt64(&turns, 1)
		}()
	}
	time.Sleep(30 * time.Millisecond)
	runtime.GC()
	atomic.StoreInt64(&stop, 1)
	for atomic.LoadInt64(&turns) < 6 {
		runtime.Gosched()
	}
	select {
	case <-time.After(time.Millisecond):
	case <-make(chan int):
	}
	m := map[string]int{}
	for i := 0; i < rounds*10; i++ {
		m["k"+strconv.Itoa(i%997)] += i
	}
	text, _ := json.Marshal(m)
	keys := []string{}
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	fmt.Printf("%x %d %s\n", sha256.Sum256(text), len(keys), keys[5])
	fmt.Println("fib", fib(20), "caught", caught(30))
	func() {
		defer func() { fmt.Println(recover()) }()
		var p *node
		fmt.Println(p.left)
	}()
	finalized := make(chan bool)
	func() { runtime.SetFinalizer(&node{}, func(*node) { finalized <- true }) }()
	runtime.GC()
	fmt.Println("finalized", <-finalized)
}
