package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
)

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
