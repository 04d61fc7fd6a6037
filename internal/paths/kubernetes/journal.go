package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
)

// Journal says where a run makes objects. It is written before the first one, and removed after the
// last; the objects themselves are found by their label. The run holds the file's lock while it
// lives.
type Journal struct {
	Owner      string `json:"owner"`                // mark of the toll
	Run        string `json:"run"`                  // RunLabel's value
	Kubeconfig string `json:"kubeconfig,omitempty"` // file, or several as in $KUBECONFIG; "": the default
	Context    string `json:"context"`
	Server     string `json:"server"` // URL of the API
	Namespace  string `json:"namespace"`
}

// journalSuffix ends the names of journals in the user's state directory: RUN.kubernetes.
const journalSuffix = ".kubernetes"

// maxJournal bounds a journal, in bytes.
const maxJournal = 64 << 10

// journalFile is a journal that is open and locked.
type journalFile struct{ f *os.File }

// write writes a run's journal and locks it.
func (j Journal) write(dir string) (*journalFile, error) {
	dir = dockerapi.StatePath(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("write journal: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, j.Run+journalSuffix), os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write journal: %w", err)
	}
	text, err := json.Marshal(j)
	if err == nil {
		_ = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) // on a file system without locks the mark has to suffice
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

// close removes the journal, while it is locked, if everything is gone.
func (j *journalFile) close(gone bool) error {
	var err error
	if gone {
		err = os.Remove(j.f.Name())
	}
	return errors.Join(err, j.f.Close())
}

// readJournal reads a journal that no living run has locked. done closes it, and removes it if told
// to; until then it is locked. The error is fs.ErrExist if it is locked already.
func readJournal(file string) (j Journal, done func(remove bool) error, err error) {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return j, nil, err
	}
	fail := func(err error) (Journal, func(bool) error, error) {
		return j, nil, errors.Join(fmt.Errorf("read journal %s: %w", file, err), f.Close())
	}
	var st unix.Stat_t
	switch err := unix.Fstat(int(f.Fd()), &st); {
	case err != nil:
		return fail(err)
	case st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0:
		return fail(errors.New("it is not a file of this user's alone"))
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return fail(fs.ErrExist)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxJournal))
	if err != nil {
		return fail(err)
	}
	if err := json.Unmarshal(text, &j); err != nil || j.Run == "" || j.Namespace == "" || strings.ContainsAny(j.Run+j.Namespace, "/,= ") {
		return fail(errors.New("it is not a journal"))
	}
	return j, func(remove bool) error { return (&journalFile{f}).close(remove) }, nil
}
