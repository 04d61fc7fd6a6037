// Package bigtcp raises links to BIG TCP and restores them exactly.
//
// The old sizes are first written to a file. If toll is killed, the next Apply that does not want
// the link restores it. A value that another program has changed since stays.
//
// A Store has no lock. Callers that change it hold journal.LockDir, in the network namespace of the
// links.
package bigtcp

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
)

// Store is the directory of the note, which need not exist. Only root may write to it.
type Store string

// Default is the machine's store.
const Default Store = journal.Machine

// ErrNone means that the store has no note.
var ErrNone = errors.New("no links are noted")

// State is the content of the note.
type State struct {
	Boot  string `json:"boot"`  // the kernel's boot_id
	Netns uint64 `json:"netns"` // the cookie of the links' namespace
	// end of the lease, in ns of CLOCK_MONOTONIC
	Until  uint64   `json:"until"`
	Keeper string   `json:"keeper,omitempty"` // mark of the process that ends the lease
	Ports  []uint16 `json:"ports"`            // none: all
	Links  []Link   `json:"links"`
}

// Link is a changed link, or one about to be changed.
type Link struct {
	Index  int        `json:"index"`
	Name   string     `json:"name"`
	Kind   string     `json:"kind"`
	Before link.Sizes `json:"before"`
	Set    link.Sizes `json:"set"`
	// Done means that the sizes were set; before, the link may be unchanged.
	Done bool `json:"done"`
}

const stateFile = "links.json"

// Load reads the note. It returns ErrNone if there is none from this boot.
func (s Store) Load() (*State, error) {
	st := &State{}
	err := journal.Load(string(s), stateFile, st)
	if errors.Is(err, fs.ErrNotExist) || err == nil && st.Boot != boot() {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	return st, nil
}

// Save writes the note atomically.
func (s Store) Save(st *State) error {
	st.Boot = boot()
	if err := journal.Save(string(s), stateFile, st, true); err != nil {
		return fmt.Errorf("note links: %w", err)
	}
	return nil
}

// Drop removes the note without changing the links.
func (s Store) Drop() error { return journal.Drop(string(s), stateFile) }

func boot() string {
	id, _ := journal.BootID()
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
