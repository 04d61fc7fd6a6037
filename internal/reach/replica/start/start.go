// Package start turns the importing program into the process of a copy if its first argument is
// replica.Arg. The process runs in this package's init function and exits there. Go would
// initialize the packages of Kubernetes, SQL and terminals later, so their memory is not used. All
// programs that start a replica.Session, including tests, must import this package.
package start

import (
	"fmt"
	"os"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica/build"
)

func init() {
	if len(os.Args) < 2 || os.Args[1] != replica.Arg {
		return
	}
	if err := build.Main(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
