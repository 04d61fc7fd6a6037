package docker

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
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

// The kinds of entries. The first three say whose journal it is; the last three
// are things of the machine, not of its daemon.
const (
	ofOwner     = "owner"
	ofDaemon    = "daemon"
	ofNamespace = "namespace" // in which links and rules are
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

// stateDir is where journals are: the user's state directory.
func stateDir(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "bridgetoll"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return "/run/bridgetoll", nil //nolint:nilerr // a service has no home
	}
	return filepath.Join(home, ".local", "state", "bridgetoll"), nil
}

// newJournal prepares the journal of a run. The file comes with the first entry.
func newJournal(dir, id, mark, host string) (*journal, error) {
	dir, err := stateDir(dir)
	if err != nil {
		return nil, err
	}
	where, err := namespace()
	if err != nil {
		return nil, err
	}
	return &journal{file: filepath.Join(dir, id+journalSuffix), open: map[entry]bool{},
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
		if err := os.MkdirAll(filepath.Dir(j.file), 0o700); err != nil {
			return fmt.Errorf("write journal: %w", err)
		}
		f, err := os.OpenFile(j.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
		if err != nil {
			return fmt.Errorf("write journal: %w", err)
		}
		j.f, text = f, j.head+text
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
	err := j.f.Close()
	j.f = nil
	if clean && len(j.open) == 0 {
		err = errors.Join(err, os.Remove(j.file))
	}
	return err
}

// leftJournal is what a journal tells: what was made, or was to be made, and not
// removed.
type leftJournal struct {
	file, mark, host, namespace string
	made                        []entry
}

// readJournal reads a journal. What is no entry, as a line that was cut off, is
// left out.
func readJournal(file string) (j leftJournal, err error) {
	j.file = file
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil // removed meanwhile, by its owner
	}
	if err != nil {
		return j, err
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		kind, name, _ := strings.Cut(sc.Text(), " ")
		was, removed := strings.CutPrefix(kind, removedMark)
		switch {
		case kind == ofOwner:
			j.mark = name
		case kind == ofDaemon:
			j.host = name
		case kind == ofNamespace:
			j.namespace = name
		case removed:
			j.made = slices.DeleteFunc(j.made, func(e entry) bool { return e == entry{was, name} })
		case slices.Contains(things, kind):
			j.made = append(j.made, entry{kind, name})
		}
	}
	return j, nil
}
