package cli

import (
	"context"
	"errors"
	"os"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/docker"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
)

// inLab runs f, in this process or in this program started again in a user namespace, and then
// closes l.
func inLab(ctx context.Context, l *lab.Lab, f func() error) (err error) {
	if l.MayBuild() {
		defer func() { err = errors.Join(err, l.Close()) }()
		return f()
	}
	code, err := lab.Enter(ctx, signalOf)
	if err != nil {
		err = machine.Machine{}.ExplainUserNamespace(err)
	}
	return resultOf(code, err)
}

// signalOf returns the signal to send to the toll in a user namespace, given why the context ended.
func signalOf(cause error) os.Signal {
	var s signaled
	if errors.As(cause, &s) {
		return s.Signal
	}
	return os.Interrupt
}

// resultOf returns the result of the toll that ran in place of this one.
func resultOf(code int, err error) error {
	switch {
	case err != nil:
		return &failure{code: exitNothing, err: err}
	case code != exitOK:
		return &failure{code: code}
	}
	return nil
}

// enterEngine runs toll again in the user namespace of this environment's Docker Engine or Podman,
// if that is rootless and toll may enter its containers only there. If entered is true, err is that
// run's.
func enterEngine(ctx context.Context, podman bool) (entered bool, err error) {
	pid := docker.UserNamespace(podman)
	if pid == 0 || lab.Entered() || rootless.Entered() {
		return false, nil
	}
	if podman { // as root there, toll would use root's service
		if err := os.Setenv("CONTAINER_HOST", dockerapi.FindPodman(os.Getenv)); err != nil {
			return true, err
		}
	}
	code, err := rootless.Enter(ctx, pid, signalOf)
	return true, resultOf(code, err)
}
