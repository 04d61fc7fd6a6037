// Package start makes a program a worker if its first argument is worker.Arg. The worker runs in
// this package's init function and ends the process. Go initializes the packages of Kubernetes, SQL
// and terminals later, so a worker holds none of their memory.
package start

import (
	"fmt"
	"os"

	"github.com/bridgetoll/bridgetoll/internal/measure/worker"
)

func init() {
	if len(os.Args) < 2 || os.Args[1] != worker.Arg {
		return
	}
	if err := worker.Main(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
