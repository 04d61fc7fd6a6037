package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

// Clean removes the objects of runs whose toll has ended. It finds them by label and mark, in the
// contexts and namespaces that journals name and in Access. It contacts no other cluster.
type Clean struct {
	// StateDir is the directory of journals; "" is the user's state directory.
	StateDir string
	// Others means to remove also objects of tolls on other machines, and of processes that cannot
	// be seen.
	Others bool
	// Access is cleaned in addition to what journals name, unless it is zero.
	Access cluster.Access

	// Left lists the objects that Run did not remove.
	Left []cluster.Left

	listed map[string]bool // marks of ended runs that have a journal here
}

const cleanPatience = 40 * time.Second

type found struct {
	cluster.Access
	server string            // "": the kubeconfig's
	over   map[string]string // marks of ended runs, by the run's ID
	files  []string          // journals that lead here
	done   []func(remove bool) error
}

// Run cleans up and returns what it removed.
func (c *Clean) Run(ctx context.Context) (removed []string, err error) {
	places, err := c.journals()
	errs := []error{err}
	for _, p := range places {
		gone, err := c.clean(ctx, p)
		if err != nil && len(p.files) > 0 {
			err = &keptError{p.files, err}
		}
		removed, errs = append(removed, gone...), append(errs, err)
		for _, done := range p.done {
			errs = append(errs, done(err == nil))
		}
	}
	return removed, errors.Join(errs...)
}

func (c *Clean) journals() (places []*found, err error) {
	c.listed = map[string]bool{}
	path := journal.StatePath(c.StateDir)
	var names []string
	dir, err := journal.Open(path)
	if err == nil {
		defer dir.Close()
		names, err = dir.Names(cluster.JournalSuffix)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("look for journals: %w", err)
	}
	errs := []error{err}
	for _, name := range names {
		j, done, err := readJournal(dir, name)
		switch {
		// The run is still alive, or has just removed its journal.
		case errors.Is(err, journal.ErrLocked), errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			errs = append(errs, fmt.Errorf("read journal: %w", err))
			continue
		}
		switch state := c.judge(j.Owner); {
		case journal.Elsewhere(j.Owner) && !c.Others: // of another machine with the same home directory
			errs = append(errs, done(false))
			continue
		case state != journal.Gone:
			if state == journal.Unclear {
				c.Left = append(c.Left, cluster.Left{
					What: fmt.Sprintf("journal %q", filepath.Join(path, name)), Why: why(j.Owner)})
			}
			errs = append(errs, done(false))
			continue
		}
		a := cluster.Access{Kubeconfig: j.Kubeconfig, Context: j.Context, Namespace: j.Namespace}
		i := slices.IndexFunc(places, func(p *found) bool {
			return p.Access == a && p.server == j.Server
		})
		if i < 0 {
			i, places = len(places), append(places,
				&found{Access: a, server: j.Server, over: map[string]string{}})
		}
		places[i].over[j.Run], c.listed[j.Owner] = j.Owner, true
		places[i].files = append(places[i].files, filepath.Join(path, name))
		places[i].done = append(places[i].done, done)
	}
	if c.Access != (cluster.Access{}) {
		places = append(places, &found{Access: c.Access})
	}
	return places, errors.Join(errs...)
}

func (c *Clean) judge(mark string) journal.State {
	if state := journal.Judge(mark); state != journal.Unclear || !c.Others {
		return state
	}
	return journal.Gone
}

// judgeObject differs for another boot's mark, which may be of another machine with the same ID,
// unless a journal here has it.
func (c *Clean) judgeObject(mark string) journal.State {
	if journal.OfAnotherBoot(mark) && !c.listed[mark] && !c.Others {
		return journal.Unclear
	}
	return c.judge(mark)
}

func (c *Clean) clean(ctx context.Context, p *found) (removed []string, err error) {
	client, err := connect(ctx, p.Access)
	if err != nil {
		return nil, err
	}
	if p.server != "" && client.Server != p.server {
		return nil, &otherCluster{context: p.Context, was: p.server, is: client.Server}
	}
	ctx, cancel := context.WithTimeout(ctx, cleanPatience)
	defer cancel()
	all, err := client.made(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("clean the namespace %s of %s: %w", client.Namespace,
			said(client.Server), err)
	}
	var over []Object
	for _, o := range all {
		switch state := c.judgeObject(o.Owner); {
		case o.Owner != "" && p.over[o.Run] == o.Owner, o.Owner != "" && state == journal.Gone:
			over = append(over, o)
		case state == journal.Unclear:
			c.Left = append(c.Left, cluster.Left{What: client.call(o), Why: why(o.Owner)})
		}
	}
	if err := client.removeAll(ctx, over); err != nil {
		return nil, fmt.Errorf("clean the namespace %s of %s: %w", client.Namespace,
			said(client.Server), err)
	}
	for _, o := range over {
		removed = append(removed, client.call(o))
	}
	return removed, nil
}

func (c *Client) call(o Object) string {
	return fmt.Sprintf("%s %s/%s at %s", o.one(), c.Namespace, o.Name, said(c.Server))
}

func why(mark string) string {
	if mark == "" {
		return "it has toll's label, but no owner"
	}
	return journal.Whose(mark)
}

// keptError is the error of cleaning where journals lead, which are kept.
type keptError struct {
	files []string
	err   error
}

func (e *keptError) Error() string {
	return fmt.Sprintf("journal \"%s\": %v", strings.Join(e.files, `", "`), e.err)
}

func (e *keptError) Unwrap() error { return e.err }

// Hint returns the error's own hint, and what to do about a cluster that no longer exists.
func (e *keptError) Hint() string {
	gone := "if that cluster is gone for good, remove the journal"
	if own := hint.Of(e.err); own != "" {
		return own + "; " + gone
	}
	return gone
}

// otherCluster is the error for a journal whose context now names another cluster.
type otherCluster struct{ context, was, is string }

func (e *otherCluster) Error() string {
	return fmt.Sprintf(
		"it lists objects at %s, but context %q now names %s; toll does not look for them there",
		said(e.was), e.context, said(e.is))
}

func (e *otherCluster) Hint() string {
	return "toll clean again when the context names that cluster; or in that cluster kubectl delete pods,services --selector " + runLabel
}

// Journal records where a run's objects are. It is written before the first object is made, and
// removed when all objects are gone. While the run is alive, it holds a lock on the file.
type Journal struct {
	Owner string `json:"owner"` // mark of the toll
	Run   string `json:"run"`   // runLabel's value
	// Kubeconfig is a file, or a list as in $KUBECONFIG; "": the default.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Context    string `json:"context"`
	Server     string `json:"server"` // URL of the API
	Namespace  string `json:"namespace"`
}

const maxJournal = 64 << 10

type journalFile struct{ f *os.File }

func (j Journal) write(dir string) (*journalFile, error) {
	d, err := journal.Make(journal.StatePath(dir))
	if err != nil {
		return nil, fmt.Errorf("write journal: %w", err)
	}
	defer d.Close()
	// On a file system without locks, only the mark shows whether the run is alive.
	f, _, err := d.Create(j.Run + cluster.JournalSuffix)
	if err != nil {
		return nil, fmt.Errorf("write journal: %w", err)
	}
	text, err := json.Marshal(j)
	if err == nil {
		_, err = f.Write(append(text, '\n'))
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write journal: %w", err), f.Close())
	}
	return &journalFile{f}, nil
}

// close closes the journal. If gone, it removes the file before it releases the lock.
func (j *journalFile) close(gone bool) error {
	var err error
	if gone {
		err = os.Remove(j.f.Name())
	}
	return errors.Join(err, j.f.Close())
}

// readJournal locks and reads a journal. It returns journal.ErrLocked if a run has locked it. done
// unlocks the journal, and removes it if remove is true.
func readJournal(d *journal.Dir, name string) (j Journal, done func(remove bool) error, err error) {
	f, _, err := d.Open(name)
	if err != nil {
		return j, nil, err
	}
	if _, err = journal.Lock(f); err == nil {
		err = j.read(f)
	}
	if err != nil {
		return j, nil, errors.Join(err, f.Close())
	}
	return j, (&journalFile{f}).close, nil
}

func (j *Journal) read(f *os.File) error {
	text, err := io.ReadAll(io.LimitReader(f, maxJournal))
	if err != nil {
		return err
	}
	if json.Unmarshal(text, j) != nil || j.Run == "" || j.Namespace == "" ||
		strings.ContainsAny(j.Run+j.Namespace, "/,= ") {
		return &journal.ForeignError{Path: f.Name(), Why: "it is not a journal"}
	}
	return nil
}
