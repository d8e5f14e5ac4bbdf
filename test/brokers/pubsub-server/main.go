// A Pub/Sub server in memory, for tests: the fake of the official Go client, on loopback.
package main

import (
	"bufio"
	"fmt"
	"os"

	"cloud.google.com/go/pubsub/v2/pstest"
)

func main() {
	server := pstest.NewServer()
	fmt.Println(server.Addr)
	// Ends with its parent: standard input closes.
	bufio.NewReader(os.Stdin).ReadString(0)
	server.Close()
}
