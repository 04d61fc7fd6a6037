package dockerapi

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
)

// Journal is a file that lists what a run makes, each thing before it is made. A line has the kind
// and the name. After the thing's removal, the same line follows with a minus in front. The file is
// removed after the run unless something remains.
type Journal struct {
	file string

	mu   sync.Mutex
	f    *os.File // nil before the first entry
	head string
	open map[Entry]bool // things that are not removed yet
}

// Entry names something that a run makes.
type Entry struct {
	Kind Kind
	Name string
}

// Kind is the kind of an entry.
type Kind string

// The last five kinds belong to the machine, not to its daemon.
const (
	Image     Kind = "image"
	Network   Kind = "network"
	Container Kind = "container"
	Service   Kind = "service"
	Secret    Kind = "secret"
	Link      Kind = "link"
	Rule      Kind = "rule" // name: the program that wrote it, and the bridge
	Switch    Kind = "switch"
	Route     Kind = "route" // name: see RouteName
	// Setting's name is a sysctl, or a device and its option.
	Setting Kind = "setting"
)

// The first lines identify the journal's run.
const (
	ofOwner     Kind = "owner"
	ofDaemon    Kind = "daemon"
	ofNamespace Kind = "namespace" // where links, rules, routes and settings are
	ofLock      Kind = "lock"      // held while the run lives
)

var things = []Kind{Image, Network, Container, Service, Secret, Link, Rule, Switch, Route, Setting}

// OfMachine reports whether the thing belongs to the machine rather than to a daemon.
func (e Entry) OfMachine() bool {
	return slices.Contains([]Kind{Link, Rule, Switch, Route, Setting}, e.Kind)
}

const removedMark = "-"

const journalSuffix = ".docker"

// NewJournal prepares the journal of a run. The file is created with the first entry.
func NewJournal(dir, id, mark, host string) (*Journal, error) {
	where, err := namespace()
	if err != nil {
		return nil, err
	}
	return &Journal{file: filepath.Join(journal.StatePath(dir), id+journalSuffix),
		open: map[Entry]bool{},
		head: line(ofOwner, mark) + line(ofDaemon, host) + line(ofNamespace, where)}, nil
}

// NewMachineJournal prepares this process's journal for things of the machine. It has no daemon.
func NewMachineJournal(dir string) (*Journal, error) {
	return NewJournal(dir, NewID(), journal.Mark(), noDaemon)
}

const noDaemon = "none"

// RouteName returns a route's name in journals.
func RouteName(l link.Laid) string {
	if l.Device != "" {
		return l.To.String() + " " + atDevice + l.Device
	}
	return l.To.String() + " " + l.Via.String()
}

const atDevice = "dev "

// ParseRoute parses the result of RouteName. ok is false if name is invalid.
func ParseRoute(name string) (l link.Laid, ok bool) {
	prefix, neighbour, _ := strings.Cut(name, " ")
	var err error
	if l.To, err = netip.ParsePrefix(prefix); err != nil {
		return l, false
	}
	if device, is := strings.CutPrefix(neighbour, atDevice); is {
		l.Device = device
	} else if l.Via, err = netip.ParseAddr(neighbour); err != nil {
		return l, false
	}
	return l, l.Valid()
}

// File returns the journal's file, which the first entry creates.
func (j *Journal) File() string { return j.file }

// namespace returns the boot ID and the ID of this process's network namespace. Together they are
// unique.
func namespace() (string, error) {
	boot, err := journal.BootID()
	if err != nil {
		return "", fmt.Errorf("name the network namespace: %w", err)
	}
	ns, err := netns.ID(os.Getpid())
	if err != nil {
		return "", fmt.Errorf("name the network namespace: %w", err)
	}
	return boot + " " + ns, nil
}

func line(kind Kind, name string) string { return string(kind) + " " + name + "\n" }

// Add records on disk what is about to be made.
func (j *Journal) Add(kind Kind, name string) error {
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
	j.open[Entry{kind, name}] = true
	return nil
}

// create creates and locks the file, and returns its first lines. Clean ignores an empty file.
func (j *Journal) create() (head string, err error) {
	dir, err := journal.Make(filepath.Dir(j.file))
	if err != nil {
		return "", err
	}
	defer dir.Close()
	f, locked, err := dir.Create(filepath.Base(j.file))
	if err != nil {
		return "", err
	}
	j.f = f
	if locked {
		return j.head + line(ofLock, "held"), nil
	}
	return j.head, nil
}

// Gone records a thing's removal.
func (j *Journal) Gone(kind Kind, name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.f != nil && j.open[Entry{kind, name}] {
		// If this fails, toll clean looks for a thing that no longer exists, which does no harm.
		_, _ = j.f.WriteString(removedMark + line(kind, name))
	}
	delete(j.open, Entry{kind, name})
}

type leftError struct{ what string }

func (e *leftError) Error() string { return "left behind: " + e.what }

// Left marks the error as one about things that remain.
func (e *leftError) Left() {}

func (e *leftError) Hint() string {
	return "once the daemon answers again, toll clean removes what is left"
}

// Left returns an error with the number of things that remain, or nil.
func (j *Journal) Left() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	count := map[Kind]int{}
	for e := range j.open {
		count[e.Kind]++
	}
	var out []string
	for _, kind := range things {
		switch n := count[kind]; {
		case n == 1:
			out = append(out, "1 "+string(kind))
		case n > 1:
			out = append(out, fmt.Sprintf("%d %ss", n, kind))
		}
	}
	if len(out) == 0 {
		return nil
	}
	return &leftError{strings.Join(out, ", ")}
}

func (j *Journal) names(kind Kind) (out []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for e := range j.open {
		if e.Kind == kind {
			out = append(out, e.Name)
		}
	}
	return out
}

// Close closes the journal. It removes the file if everything that it lists is gone.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.f == nil {
		return nil
	}
	var err error
	if len(j.open) == 0 {
		err = os.Remove(j.file) // before it is unlocked, because then toll clean could read it
	}
	err = errors.Join(err, j.f.Close())
	j.f = nil
	return err
}
