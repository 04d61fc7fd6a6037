package dockerapi

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// Engines connects to this environment's Docker daemon and to its Podman service, as Connect does,
// because both may have containers. Podman's is first if only CONTAINER_HOST is set. A service that
// does not listen is left out. err joins the errors of services that cannot be used. It is not nil
// if all is empty. The caller closes the daemons, also if err is not nil.
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
	if PodmanFirst(getenv) {
		slices.Reverse(all)
	}
	return all
}

// PodmanFirst reports whether the environment names Podman's service and no Docker daemon.
func PodmanFirst(getenv func(string) string) bool {
	return getenv("CONTAINER_HOST") != "" && getenv("DOCKER_HOST") == "" &&
		getenv("DOCKER_CONTEXT") == ""
}

// Command returns the engine's command, such as "docker".
func (d *Daemon) Command() string {
	if d.Podman != nil {
		return podmanService.short
	}
	return dockerService.short
}
