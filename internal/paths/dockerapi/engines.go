package dockerapi

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// Engines connects to the Docker daemon and to Podman's service of this environment, as Connect
// does; both may have containers. Podman's is the first if CONTAINER_HOST alone names one of them.
// A service that does not listen is left out. err is about those that cannot be used, and is not nil
// if there is none. The caller closes the daemons in either case.
func Engines(ctx context.Context, dir string) (all []*Daemon, err error) {
	var absent, unusable []error
	for _, s := range inOrder(os.Getenv) {
		d, err := connect(ctx, s.service, s.host, dir, defaultAnswer)
		switch {
		case err == nil:
			all = append(all, d)
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
			absent = append(absent, err)
		default:
			unusable = append(unusable, err)
		}
	}
	if _, err := FindHost(os.Getenv); err != nil {
		unusable = append(unusable, unsupported(err, ""))
	}
	if len(all) == 0 && len(unusable) == 0 {
		return nil, absent[0]
	}
	return all, errors.Join(unusable...)
}

func inOrder(getenv func(string) string) []server {
	all := services(getenv)
	if getenv("CONTAINER_HOST") != "" && getenv("DOCKER_HOST") == "" && getenv("DOCKER_CONTEXT") == "" {
		slices.Reverse(all)
	}
	return all
}

// Command returns the engine's command, such as "docker".
func (d *Daemon) Command() string {
	if d.Podman != nil {
		return podmanService.short
	}
	return dockerService.short
}
