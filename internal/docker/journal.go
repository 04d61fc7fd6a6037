package docker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
)

// journal lists what a run makes, each thing before it is made: a line with its
// kind and name, and another one, which begins with a minus, when it is removed.
// It is gone after the run, unless something could not be removed.
type journal struct {
	file string

	mu   sync.Mutex // guards following
	f    *os.File   // nil before the first entry
	head string
	open map[entry]bool // made and not yet removed
}

// entry is a thing that a run makes.
type entry struct{ kind, name string }

// The kinds of entries. The first four say whose journal it is; the last three
// are things of the machine, not of its daemon.
const (
	ofOwner     = "owner"
	ofDaemon    = "daemon"
	ofNamespace = "namespace" // in which links and rules are
	ofLock      = "lock"      // the run holds the file's, for as long as it lives
	ofImage     = "image"
	ofNetwork   = "network"
	ofContainer = "container"
	ofService   = "service"
	ofSecret    = "secret"
	ofLink      = "link"
	ofRule      = "rule" // the program that wrote it, and the bridge
	ofSwitch    = "switch"
)

// things are what an entry may be of.
var things = []string{ofImage, ofNetwork, ofContainer, ofService, ofSecret, ofLink, ofRule, ofSwitch}

// ofMachine reports whether Docker knows nothing of the thing.
func (e entry) ofMachine() bool { return slices.Contains([]string{ofLink, ofRule, ofSwitch}, e.kind) }

const removedMark = "-"

const journalSuffix = ".docker"

// newJournal prepares the journal of a run. The file comes with the first entry.
func newJournal(dir, id, mark, host string) (*journal, error) {
	where, err := namespace()
	if err != nil {
		return nil, err
	}
	return &journal{file: filepath.Join(statePath(dir), id+journalSuffix), open: map[entry]bool{},
		head: line(ofOwner, mark) + line(ofDaemon, host) + line(ofNamespace, where)}, nil
}

// namespace names this process's network namespace, until the next boot.
func namespace() (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("name the network namespace: %w", err)
	}
	ns, err := netns.ID(os.Getpid())
	if err != nil {
		return "", fmt.Errorf("name the network namespace: %w", err)
	}
	return strings.TrimSpace(string(boot)) + " " + ns, nil
}

func line(kind, name string) string { return kind + " " + name + "\n" }

// add notes what is about to be made, on disk.
func (j *journal) add(kind, name string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	text := line(kind, name)
	if j.f == nil {
		head, err := j.create()
		if err != nil {
			return fmt.Errorf("write journal: %w", err)
		}
		text = head + text
	}
	if _, err := j.f.WriteString(text); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	if err := unix.Fdatasync(int(j.f.Fd())); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.open[entry{kind, name}] = true
	return nil
}

// create makes the file, locks it and returns what it begins with. Until that is
// written it says nothing, and clean leaves it alone.
func (j *journal) create() (head string, err error) {
	if err := os.MkdirAll(filepath.Dir(j.file), 0o700); err != nil {
		return "", err
	}
	dir, err := openStateDir(filepath.Dir(j.file))
	if err != nil {
		return "", err
	}
	defer dir.Close()
	f, err := dir.create(filepath.Base(j.file))
	if err != nil {
		return "", err
	}
	can, err := lockOwn(f)
	if err != nil {
		return "", errors.Join(fmt.Errorf("lock %s: %w", j.file, err), f.Close())
	}
	j.f = f
	if can {
		return j.head + line(ofLock, "held"), nil
	}
	return j.head, nil
}

// gone notes that a thing was removed.
func (j *journal) gone(kind, name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.f != nil && j.open[entry{kind, name}] {
		_, _ = j.f.WriteString(removedMark + line(kind, name)) // clean would only look for it in vain
	}
	delete(j.open, entry{kind, name})
}

// leftError says what of a run is left.
type leftError struct{ what string }

func (e *leftError) Error() string { return "left behind: " + e.what }

// Hint is how to remove it.
func (e *leftError) Hint() string {
	return "toll clean removes what is left; the Docker daemon must answer again for that"
}

// left says of what was made, or was to be made, how much is not removed; nil: all is.
func (j *journal) left() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	count := map[string]int{}
	for e := range j.open {
		count[e.kind]++
	}
	var out []string
	for _, kind := range things {
		switch n := count[kind]; {
		case n == 1:
			out = append(out, "1 "+kind)
		case n > 1:
			out = append(out, fmt.Sprintf("%d %ss", n, kind))
		}
	}
	if len(out) == 0 {
		return nil
	}
	return &leftError{strings.Join(out, ", ")}
}

// close removes the journal, unless something is left that it tells of.
func (j *journal) close(clean bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.f == nil {
		return nil
	}
	var err error
	if clean && len(j.open) == 0 {
		err = os.Remove(j.file) // while it is locked, or clean could take it
	}
	err = errors.Join(err, j.f.Close())
	j.f = nil
	return err
}
