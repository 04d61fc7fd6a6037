// Package sockmem sets the machine's limits of socket buffers and restores them. All network
// namespaces share the limits, and they can be set only in the first one.
//
// The old values are first written to a file. If toll is killed, Clean restores them from the file,
// unless another program has changed the limits since.
package sockmem

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/machine"
)

// The limits in bytes of SO_RCVBUF and SO_SNDBUF.
const (
	Receive = "net.core.rmem_max"
	Send    = "net.core.wmem_max"
)

// Store is the directory of the note, which need not exist. Only root may write to it.
type Store string

// Default is the machine's store.
const Default Store = journal.Machine

type note struct {
	Owner  string  `json:"owner"`
	Limits []limit `json:"limits"`
}

type limit struct {
	Key    string `json:"key"`
	Before string `json:"before"`
	Set    string `json:"set"`
}

const noteFile = "sockmem.json"

// Settable returns nil, or a *machine.UnsupportedError if this process may not set the limits. It
// does not try to write them: if another toll has set limits, these could become permanent.
func Settable() error {
	err := sysctl.Writable(Receive)
	if err == nil {
		return nil
	}
	return &machine.UnsupportedError{
		Missing: "the limits of socket buffers (" + Receive + ", " + Send +
			") are the whole machine's: only root can set them, and not inside a container",
		Remedy: "run toll as root on the machine itself", Err: err,
	}
}

// Set sets limits in bytes, by their keys. If another process has set them, it returns an error and
// changes nothing.
func (s Store) Set(want map[string]int) (restore func() error, err error) {
	if _, err := s.Clean(); err != nil {
		return nil, err
	}
	n := &note{Owner: journal.Mark()}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		before, err := sysctl.Get(key)
		if err != nil {
			return nil, err
		}
		n.Limits = append(n.Limits, limit{key, before, strconv.Itoa(want[key])})
	}
	if err := s.save(n); err != nil {
		return nil, err
	}
	restore = func() error {
		_, err := s.restore(n)
		return err
	}
	for _, l := range n.Limits {
		if err := sysctl.Set(l.Key, l.Set); err != nil {
			return nil, errors.Join(err, restore())
		}
	}
	return restore, nil
}

// Clean restores the limits that an ended process has set, and returns them. It returns an error if
// the process may still run: see Busy and Unclear.
func (s Store) Clean() (restored []string, err error) {
	n, err := s.load()
	if n == nil || err != nil {
		return nil, err
	}
	if state := journal.Judge(n.Owner); state != journal.Gone {
		return nil, &busyError{s.file(), state == journal.Unclear}
	}
	return s.restore(n)
}

type busyError struct {
	file    string
	unclear bool
}

func (e *busyError) Error() string {
	return "another toll has set this machine's limits of socket buffers, or may have: " + e.file
}

func (e *busyError) Hint() string {
	if e.unclear {
		return "if that toll has ended, set the limits to the values \"before\" in " + e.file +
			", and remove the file"
	}
	return "wait until that toll has ended"
}

// Busy reports whether err, from Clean, means that another process may still need the limits.
func Busy(err error) bool { return errors.As(err, new(*busyError)) }

// Unclear returns the file that Clean left because it cannot find out whether the process still
// runs, with a hint. It returns "" for other errors.
func Unclear(err error) (file, hint string) {
	var busy *busyError
	if !errors.As(err, &busy) || !busy.unclear {
		return "", ""
	}
	return busy.file, busy.Hint()
}

func (s Store) restore(n *note) (restored []string, err error) {
	var errs []error
	for _, l := range n.Limits {
		switch now, err := sysctl.Get(l.Key); {
		case err != nil:
			errs = append(errs, err)
		case now != l.Set || l.Set == l.Before: // not set yet, or changed by somebody else
		default:
			errs = append(errs, sysctl.Set(l.Key, l.Before))
			restored = append(restored, l.Key+"="+l.Before)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("restore the limits of socket buffers noted in %s: %w", s.file(),
			err)
	}
	return restored, errors.Join(journal.Drop(string(s), noteFile), journal.RemoveDir(string(s)))
}

func (s Store) file() string { return filepath.Join(string(s), noteFile) }

// load reads the note. It returns nil if there is none, or if this user may not read it: notes are
// root's.
func (s Store) load() (*note, error) {
	n := &note{}
	err := journal.Load(string(s), noteFile, n)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil, nil
	case err != nil:
		return nil, err
	}
	for _, l := range n.Limits {
		if l.Key != Receive && l.Key != Send {
			return nil, &journal.ForeignError{Path: s.file(),
				Why: fmt.Sprintf("it names %q, which toll does not set", l.Key)}
		}
	}
	return n, nil
}

func (s Store) save(n *note) error {
	err := journal.Save(string(s), noteFile, n, false)
	switch {
	case errors.Is(err, fs.ErrExist):
		return &busyError{file: s.file()}
	case err != nil:
		return fmt.Errorf("note the limits of socket buffers: %w", err)
	}
	return nil
}
