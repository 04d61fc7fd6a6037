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

// The kinds of entries. The first two say whose journal it is.
const (
	ofOwner     = "owner"
	ofDaemon    = "daemon"
	ofImage     = "image"
	ofNetwork   = "network"
	ofContainer = "container"
	ofService   = "service"
	ofSecret    = "secret"
)

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
	return &journal{file: filepath.Join(dir, id+journalSuffix), open: map[entry]bool{},
		head: line(ofOwner, mark) + line(ofDaemon, host)}, nil
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

// readJournal reads a journal: what was made, or was to be made, and not removed.
// What is no entry, as a line that was cut off, is left out.
func readJournal(file string) (mark, host string, made []entry, err error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil, nil // removed meanwhile, by its owner
	}
	if err != nil {
		return "", "", nil, err
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		kind, name, _ := strings.Cut(sc.Text(), " ")
		switch kind {
		case ofOwner:
			mark = name
		case ofDaemon:
			host = name
		case ofImage, ofNetwork, ofContainer, ofService, ofSecret:
			made = append(made, entry{kind, name})
		case removedMark + ofImage, removedMark + ofNetwork, removedMark + ofContainer, removedMark + ofService, removedMark + ofSecret:
			made = slices.DeleteFunc(made, func(e entry) bool { return e == entry{kind[1:], name} })
		}
	}
	return mark, host, made, nil
}
