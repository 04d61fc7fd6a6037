// Toll measures what a container network costs, proves it and explains it.
//
// It builds network modes side by side from the kernel's own parts, sends real traffic over each in
// shuffled rounds, proves that the bytes took the claimed path, and reports what each mode costs.
// docs/README.md is its manual. Runs on Kubernetes are handed over to kubectl-toll.
package main

import (
	"os"

	"github.com/bridgetoll/bridgetoll/internal/cli"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
)

func main() { os.Exit(cli.Main(cluster.Kubernetes{})) }
