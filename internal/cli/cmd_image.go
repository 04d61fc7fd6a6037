package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
)

func newImage(e env) *cobra.Command {
	return &cobra.Command{
		Use:   "image",
		Short: "Write toll's image for the nodes of a cluster",
		Long: `image writes an image for docker load that contains this toll and nothing else. toll
mesh, --on swarm and --on kubernetes need it on every node: load it there, or push it to
a registry (--image). Its layer is compressed by gzip. The same toll writes the same
image; for Kubernetes it is that of kubectl-toll.`,
		Example: `  toll image | ssh node-b docker load
  kubectl-toll image | ssh node-b ctr -n k8s.io images import -
  for n in node-b node-c; do toll image | ssh $n docker load; done`,
		Args: noArguments,
		RunE: atOnce(func(*cobra.Command, []string) error {
			if isTerminal(e.stdout) {
				return usage(errors.New("cannot write an image to a terminal"),
					"toll image | ssh NODE docker load")
			}
			name, archive, err := dockerapi.PackedArchive("", dockerapi.NodeRepository)
			if err != nil {
				return err
			}
			if _, err := e.stdout.Write(archive); err != nil {
				return err
			}
			fmt.Fprintf(e.stderr, "toll: image %s\n", name)
			return nil
		}),
	}
}
