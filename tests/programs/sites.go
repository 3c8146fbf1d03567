// Allocates known numbers of bytes in known places: siteA 10 000 × 1000, siteB 1 000 × 5000.
package main

var sink []byte

//go:noinline
func siteA() { sink = make([]byte, 1000) }

//go:noinline
func siteB() { sink = make([]byte, 5000) }

func main() {
	for i := 0; i < 10000; i++ {
		siteA()
	}
	for i := 0; i < 1000; i++ {
		siteB()
	}
}
