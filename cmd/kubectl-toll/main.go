// Kubectl-toll is toll with Kubernetes' client: all of its commands, and --on kubernetes. It is a
// plug-in of kubectl, and toll runs it where it needs that client.
package main

import (
	"os"

	"github.com/bridgetoll/bridgetoll/internal/cli"
	"github.com/bridgetoll/bridgetoll/internal/paths/kubernetes"
)

func main() { os.Exit(cli.Main(kubernetes.Backend())) }
