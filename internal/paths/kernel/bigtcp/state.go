// Package bigtcp raises links to BIG TCP and restores them exactly.
//
// The kernel does not restore a device's sizes when a process ends. So a link's sizes are written
// to a file before they are changed, and nothing is lost when the process is killed at any moment:
// the next Apply without this link restores it and drops the note. A value that somebody else
// changed meanwhile is left alone.
//
// Be aware: a Store has no lock of its own. Callers that change it hold shortcut.Lock, in the
// network namespace of the links.
package bigtcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/paths/owner"
)

// Store is the directory of the note, which need not exist. Only root may write to it.
type Store string

// Default is the machine's store.
const Default Store = "/run/bridgetoll"

// ErrNone means that there is no note.
var ErrNone = errors.New("no links are noted")

// State is the content of the note.
type State struct {
	Boot  string `json:"boot"`  // the kernel's id of this boot
	Netns uint64 `json:"netns"` // the cookie of the links' namespace
	// Until is the end of the lease, in ns of CLOCK_MONOTONIC.
	Until  uint64   `json:"until"`
	Keeper string   `json:"keeper,omitempty"` // the mark of the process that ends the lease
	Ports  []uint16 `json:"ports"`            // the ports asked for; none: all
	Links  []Link   `json:"links"`
}

// Link is a link that was changed, or is about to be.
type Link struct {
	Index  int        `json:"index"`
	Name   string     `json:"name"`
	Kind   string     `json:"kind"`
	Before link.Sizes `json:"before"`
	Set    link.Sizes `json:"set"`
	// Done means that the sizes were set; without it, the link may still be unchanged.
	Done bool `json:"done"`
}

const (
	stateFile = "links.json"
	onlyRoot  = 0o700
)

// Load reads the note. It returns ErrNone if there is none of this boot.
func (s Store) Load() (*State, error) {
	file := filepath.Join(string(s), stateFile)
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	if err := trusted(file); err != nil {
		return nil, err
	}
	st := &State{}
	if err := json.Unmarshal(b, st); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if st.Boot != boot() {
		return nil, ErrNone // the links disappeared with that boot
	}
	return st, nil
}

// Save writes the note, whole or not at all.
func (s Store) Save(st *State) error {
	st.Boot = boot()
	b, err := json.Marshal(st)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(string(s), onlyRoot); err != nil {
		return fmt.Errorf("note links: %w", err)
	}
	if err := trusted(string(s)); err != nil {
		return err
	}
	file := filepath.Join(string(s), stateFile)
	f, err := os.OpenFile(file+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("note links: %w", err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("note links: %w", err), os.Remove(f.Name()))
	}
	return nil
}

// Drop removes the note, and temporary files of a killed process. It does not change the links.
func (s Store) Drop() error {
	var errs []error
	for _, name := range []string{stateFile, stateFile + ".new"} {
		if err := os.Remove(filepath.Join(string(s), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// trusted returns an error for a file that somebody else could have written.
func trusted(name string) error {
	var st unix.Stat_t
	if err := unix.Lstat(name, &st); err != nil {
		return &os.PathError{Op: "stat", Path: name, Err: err}
	}
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFDIR && kind != unix.S_IFREG || int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return fmt.Errorf("%s is not root's alone, and left alone", name)
	}
	return nil
}

func boot() string {
	id, _ := owner.BootID()
	return id
}

// Renew sets the lease to end after the given time.
func (st *State) Renew(lease time.Duration) { st.Until = now() + uint64(max(lease, 0)) }

// Lease returns the rest of the lease, or 0 if it has expired.
func (st *State) Lease() time.Duration {
	if n := now(); st.Until > n {
		return time.Duration(st.Until - n)
	}
	return 0
}

func now() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return uint64(ts.Nano())
}
