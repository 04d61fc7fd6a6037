package docker

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
)

// Daemon is a daemon at which another backend makes things: a client of it, and
// the label and the journal of a run, by which Clean finds what was left.
type Daemon struct {
	API    *client.Client
	Info   system.Info
	Host   string            // its address
	ID     string            // of the run, for names
	Labels map[string]string // for all that the run makes

	journal *journal
}

// Kind is what an entry of the journal is about.
type Kind string

// The kinds of what backends beside Docker make.
const (
	Service Kind = ofService
	Secret  Kind = ofSecret
	Network Kind = ofNetwork
	Image   Kind = ofImage
)

// Connect finds the daemon that this environment names. Unlike Docker, it needs no
// more than the right to talk to it. Dir is where journals are kept; "" is the
// user's state directory.
func Connect(ctx context.Context, dir string) (*Daemon, error) {
	e, err := (&Docker{StateDir: dir}).reach(ctx, func() error { return nil })
	if err != nil {
		return nil, err
	}
	return &Daemon{API: e.api, Info: e.info, Host: e.host, ID: e.id, Labels: map[string]string{runLabel: e.mark}, journal: e.journal}, nil
}

// Note notes what is about to be made, on disk.
func (d *Daemon) Note(kind Kind, name string) error { return d.journal.add(string(kind), name) }

// Gone notes that a thing was removed.
func (d *Daemon) Gone(kind Kind, name string) { d.journal.gone(string(kind), name) }

// Close ends the connection. The journal goes, unless something is left that it
// tells of.
func (d *Daemon) Close() error { return errors.Join(d.journal.close(true), d.API.Close()) }

// Load loads an image, as Archive makes it.
func (d *Daemon) Load(archive []byte) error { return (&engine{api: d.API}).load(archive) }

// Archive is an image FROM scratch that holds this program (or the one in file,
// if it is not "") and nothing else, as `docker load` takes it, and its name:
// the program's digest in a repository, such as "example.org/toll". The same
// program makes the same image.
func Archive(file, repository string) (name string, archive []byte, err error) {
	if file == "" {
		file = self
	}
	if err := static(file); err != nil {
		return "", nil, err
	}
	program, err := os.ReadFile(file)
	if err != nil {
		return "", nil, fmt.Errorf("make image: %w", err)
	}
	if name, archive, err = archiveAs(repository, program, map[string]string{keptLabel: "kept"}); err != nil {
		return "", nil, fmt.Errorf("make image: %w", err)
	}
	return name, archive, nil
}
