package dockerapi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Orphan is the journal of an ended run.
type Orphan struct {
	File string
	Made []Entry // made or about to be made, and not removed

	mark, host, namespace string
	locks                 bool // its run locked the file
	odd                   int  // number of malformed lines
	f                     *os.File
}

// Elsewhere reports whether the journal's devices and rules are in another network namespace. It
// returns false after a reboot, when they no longer exist.
func (j Orphan) Elsewhere() (bool, error) {
	where, err := namespace()
	return err == nil && j.elsewhere(where), err
}

func (j Orphan) elsewhere(where string) bool {
	boot, _, _ := strings.Cut(where, " ")
	return strings.HasPrefix(j.namespace, boot+" ") && j.namespace != where
}

// Settings returns the settings of this machine that the run changed. It returns none after a
// reboot: the settings are then those of the machine's administrator, whatever their values.
func (j Orphan) Settings() (out []Entry, err error) {
	where, err := namespace()
	boot, _, _ := strings.Cut(where, " ")
	of, _, _ := strings.Cut(j.namespace, " ")
	if err != nil || of != "" && of != boot {
		return nil, err
	}
	other := func(e Entry) bool { return e.Kind != Setting }
	return slices.DeleteFunc(slices.Clone(j.Made), other), nil
}

const (
	maxJournal = 16 << 20 // bytes; a run's has some kB
	maxOdd     = 1000     // lines
)

// sane matches names that can be printed and looked up.
var sane = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:/@-]*( [A-Za-z0-9][A-Za-z0-9_.:/@-]*)?$`)

const maxName = 300 // bytes

func readJournal(f io.Reader) (j Orphan, err error) {
	in := bufio.NewReader(io.LimitReader(f, maxJournal))
	open := map[Entry]int{} // 1 + index in made
	for {
		text, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			j.Made = slices.DeleteFunc(j.Made, func(e Entry) bool { return e == Entry{} })
			return j, nil
		case err != nil || j.odd > maxOdd:
			return j, errors.New("it is not a journal")
		}
		word, name, _ := strings.Cut(string(text[:len(text)-1]), " ")
		was, removed := strings.CutPrefix(word, removedMark)
		e := Entry{Kind(was), name}
		switch kind := Kind(word); {
		case kind == ofOwner:
			j.mark = name
		case kind == ofDaemon:
			j.host = name
		case kind == ofNamespace:
			j.namespace = name
		case kind == ofLock:
			j.locks = true
		case !slices.Contains(things, e.Kind) || len(name) > maxName || !sane.MatchString(name):
			j.odd++
		case removed && open[e] > 0:
			j.Made[open[e]-1] = Entry{}
			delete(open, e)
		case !removed:
			j.Made = append(j.Made, e)
			open[e] = len(j.Made)
		}
	}
}

type journals struct {
	dir  *journal.Dir // nil: the directory is missing
	left []Orphan     // of ended runs; open and locked
	dark []Left       // of runs that may be alive
	judge
}

type judge struct {
	gone, alive map[string]bool // marks, by their journals' locks
	listed      map[string]bool // marks of all journals that can be read
	others      bool            // treat unknown ones as ended
}

// of returns the state of a mark's owner. If toll cannot see the owner's process, the lock of the
// owner's journal decides.
func (j judge) of(mark string) journal.State {
	state := journal.Judge(mark)
	switch {
	case j.alive[mark] && journal.OfAnotherBoot(mark): // of another machine
		return journal.Alive
	case state != journal.Unclear:
		return state
	case j.alive[mark]:
		return journal.Alive
	case j.others, j.gone[mark]:
		return journal.Gone
	}
	return journal.Unclear
}

// inCluster returns the state of the owner of a thing that other machines can make. Another boot's
// has Gone only if a journal here shows that it was this machine's.
func (j judge) inCluster(mark string) journal.State {
	if journal.OfAnotherBoot(mark) && !j.listed[mark] && !j.others {
		return journal.Unclear
	}
	return j.of(mark)
}

func (j judge) dead(mark string) bool { return mark != "" && j.of(mark) == journal.Gone }

// openJournals returns all journals that can be read, also if err is not nil. The caller closes
// them.
func openJournals(dir string, others bool) (js *journals, err error) {
	js = &journals{judge: judge{gone: map[string]bool{}, alive: map[string]bool{},
		listed: map[string]bool{}, others: others}}
	js.dir, err = journal.Open(journal.StatePath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return js, nil
	}
	if err != nil {
		return js, fmt.Errorf("look for journals: %w", err)
	}
	names, err := js.dir.Names(journalSuffix)
	if err != nil {
		return js, fmt.Errorf("look for journals: %w", err)
	}
	var errs []error
	for _, name := range names {
		// The owner may have removed the file.
		if err := js.read(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("read journal: %w", err))
		}
	}
	// A run may have two journals, and the lock of the one shows that the other one's run is alive.
	js.left = slices.DeleteFunc(js.left, func(j Orphan) bool {
		live := js.of(j.mark) != journal.Gone
		if live {
			j.f.Close()
		}
		return live
	})
	return js, errors.Join(errs...)
}

// read adds the journal if its run has ended.
func (js *journals) read(name string) error {
	f, st, err := js.dir.Open(name)
	if err != nil {
		return err
	}
	keep := false
	defer func() {
		if !keep {
			f.Close()
		}
	}()
	if st.Size > maxJournal {
		return &journal.ForeignError{Path: f.Name(),
			Why: fmt.Sprintf("it is longer than %d MiB", maxJournal>>20)}
	}
	can, held := journal.Lock(f)
	j, err := readJournal(f)
	j.File, j.f = f.Name(), f
	// The file may have been removed before the lock was taken.
	if unix.Fstat(int(f.Fd()), &st) == nil && st.Nlink == 0 {
		return nil
	}
	switch {
	case held != nil:
		js.alive[j.mark] = true
		return nil
	case st.Size == 0:
		return js.removeStale(name, &st)
	case err == nil && (j.mark == "" || j.host == ""):
		err = errors.New("its owner or its daemon is missing")
	}
	if err != nil {
		return &journal.ForeignError{Path: f.Name(), Why: err.Error()}
	}
	if journal.Elsewhere(j.mark) { // of another machine with the same home directory
		return nil
	}
	js.listed[j.mark] = true
	js.gone[j.mark] = js.gone[j.mark] || can && j.locks
	switch js.of(j.mark) {
	case journal.Unclear:
		js.dark = append(js.dark, Left{fmt.Sprintf("journal %q", j.File), journal.Whose(j.mark)})
	case journal.Gone:
		keep = true
		js.left = append(js.left, j)
	}
	return nil
}

// removeStale removes an empty journal that no run is about to write to.
func (js *journals) removeStale(name string, st *unix.Stat_t) error {
	const about = time.Minute
	if time.Since(time.Unix(st.Mtim.Unix())) < about {
		return nil
	}
	return js.dir.Remove(name)
}

func (js *journals) remove(j Orphan) error {
	if j.odd > 0 {
		return &journal.ForeignError{Path: j.File,
			Why: "it has " + units.Plural(j.odd, "unknown line") + ", so another version of toll " +
				"may have made more things"}
	}
	return js.dir.Remove(filepath.Base(j.File))
}

func (js *journals) close() {
	for _, j := range js.left {
		j.f.Close()
	}
	if js.dir != nil {
		js.dir.Close()
	}
}

// Left is something that remains, and the reason.
type Left struct{ What, Why string }
