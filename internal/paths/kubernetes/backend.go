package kubernetes

import (
	"context"

	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
)

// Backend returns the backend for a program that links this package.
func Backend() cluster.Kubernetes {
	return cluster.Kubernetes{
		Inner: Inner,
		New:   func(p cluster.Pods) cluster.Backend { return &Kubernetes{Pods: p} },
		Check: checkManifest,
		Write: writeManifest,
		Clean: func(ctx context.Context, named cluster.Access, others bool) ([]string,
			[]cluster.Left, error) {
			c := Clean{Access: named, Others: others}
			removed, err := c.Run(ctx)
			return removed, c.Left, err
		},
	}
}
