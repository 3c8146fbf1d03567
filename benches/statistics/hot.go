// Five functions of fixed work; the second argument scales join in per cent.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
)

//go:noinline
func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

//go:noinline
func count(n int) int {
	m := map[int]int{}
	for i := 0; i < n; i++ {
		m[i*7919%5003]++
	}
	return len(m)
}

//go:noinline
func join(n int) int {
	var b strings.Builder
	for i := 0; i < n; i++ {
		b.WriteString(strconv.Itoa(i))
	}
	return b.Len()
}

//go:noinline
func sorted(n int) int {
	a := make([]int, n)
	for i := range a {
		a[i] = i * 40503 % 65521
	}
	sort.Ints(a)
	return a[n/2]
}

//go:noinline
func mix(n uint64) uint64 {
	x := n
	for i := uint64(0); i < n; i++ {
		x = (x ^ (x >> 7)) * 0x9e3779b97f4a7c15
	}
	return x
}

func main() {
	number := func(at, otherwise int) int {
		if len(os.Args) > at {
			if n, err := strconv.Atoi(os.Args[at]); err == nil {
				return n
			}
		}
		return otherwise
	}
	all := uint64(0)
	percent := number(2, 100)
	for r := 0; r < number(1, 10); r++ {
		all += uint64(fib(27)+count(400000)+join(5000*percent)+sorted(120000)) + mix(5000000)
	}
	fmt.Println(all)
}
