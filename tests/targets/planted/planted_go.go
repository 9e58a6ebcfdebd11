// planted_go mutex|channel ill|well SECONDS: goroutines that wait for a mutex whose holder sleeps (well: each
// sleeps on its own); a full channel whose reader is slow (well: the sender computes).
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

var (
	lock   sync.Mutex
	end    time.Time
	isIll  bool
	waited atomic.Int64
	whole  atomic.Int64
)

func useTable() {
	if isIll {
		lock.Lock()
		defer lock.Unlock()
	}
	time.Sleep(10 * time.Millisecond)
}

func spin(d time.Duration) {
	for t := time.Now(); time.Since(t) < d; {
	}
}

func work(step func()) {
	start := time.Now()
	for time.Now().Before(end) {
		before := time.Now()
		step()
		waited.Add(int64(time.Since(before)))
		if os.Args[1] == "channel" && !isIll {
			spin(time.Millisecond)
		}
	}
	whole.Add(int64(time.Since(start)))
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[3], 64)
	isIll = os.Args[2] == "ill"
	end = time.Now().Add(time.Duration(seconds * 1e9))
	jobs := make(chan int, 2)
	go func() {
		for range jobs {
			if isIll {
				time.Sleep(5 * time.Millisecond)
			}
		}
	}()
	nr, step := 8, useTable
	if os.Args[1] == "channel" {
		nr, step = 1, func() { jobs <- 1 }
	}
	var all sync.WaitGroup
	for i := 0; i < nr; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			work(step)
		}()
	}
	all.Wait()
	fmt.Printf("{\"planted\":\"%s\",\"form\":\"%s\",\"share\":%.3f}\n", os.Args[1], os.Args[2],
		float64(waited.Load())/float64(whole.Load()))
}
