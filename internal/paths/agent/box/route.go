package box

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
)

var _ agent.Router = (*Engine)(nil)

// Lay adds a route, after it has written the route to a journal of its own, which needs no daemon.
func (e *Engine) Lay(l link.Laid) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed
	}
	if e.laid[l] {
		return link.ErrTaken
	}
	if e.routes == nil {
		j, err := dockerapi.NewMachineJournal(e.StateDir)
		if err != nil {
			return err
		}
		e.routes, e.laid = j, map[link.Laid]bool{}
		e.note(j)
	}
	if err := e.routes.Add(dockerapi.Route, dockerapi.RouteName(l)); err != nil {
		if errors.Is(err, fs.ErrPermission) { // the user has no home
			return notRoot(err)
		}
		return err
	}
	err := l.Lay()
	if err == nil {
		e.laid[l] = true
		return nil
	}
	e.routes.Gone(dockerapi.Route, dockerapi.RouteName(l))
	switch {
	case errors.Is(err, unix.EPERM):
		return notRoot(err)
	case errors.Is(err, link.ErrTaken):
		return &machine.UnsupportedError{Missing: err.Error(),
			Remedy: "toll clean there, if a killed toll left it; or publish", Err: err}
	}
	return err
}

func notRoot(err error) error {
	return &machine.UnsupportedError{Missing: "only root can set routes there",
		Remedy: "--peer-sudo, or ssh as root", Err: err}
}

// Lift removes a route that Lay added.
func (e *Engine) Lift(l link.Laid) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lift(l)
}

func (e *Engine) lift(l link.Laid) error {
	if !e.laid[l] {
		return nil
	}
	if _, err := l.Lift(); err != nil {
		return err
	}
	delete(e.laid, l)
	e.routes.Gone(dockerapi.Route, dockerapi.RouteName(l))
	return nil
}

func (e *Engine) liftAll() error {
	if e.routes == nil {
		return nil
	}
	var errs []error
	for l := range e.laid {
		errs = append(errs, e.lift(l))
	}
	err := errors.Join(append(errs, e.routes.Left(), e.routes.Close())...)
	e.routes, e.laid = nil, nil
	return err
}

// note records which of a journal's directories are created with it.
func (e *Engine) note(j *dockerapi.Journal) {
	if e.absent == nil {
		e.absent = absent(filepath.Dir(j.File()))
	}
}
