// Package history keeps the results files of past runs in the user's state directory, limited in
// number, age and bytes, each with a summary.
//
// With sudo, files are accessed with the rights of the user who typed it (user.do), so that a
// symbolic link in the user's directories cannot lead root elsewhere.
//
// Several processes may use a directory at once. Therefore removing a file that has already gone is
// not an error.
package history

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Limits of the history: the number of runs, the bytes of all results and of one run's, and how
// long before the newest run the others began. The newest Ageless runs are kept however old they
// are.
const (
	MostRuns  = 200
	MostBytes = 64 << 20
	mostOfOne = 32 << 20
	MostDays  = 90
	Ageless   = 20
)

var errTooLarge = fmt.Errorf("its results are larger than %d MiB", mostOfOne>>20)

var errOld = errors.New("newer runs fill the history")

// Store is a directory of runs.
type Store struct {
	Dir  string
	user *user // nil: this process's user
}

// Run is a kept run.
type Run struct {
	Name  string // of its results file
	Size  int64
	Began time.Time // UTC, to 1 ms
}

const timeFormat = "20060102-150405.000" // milliseconds put runs of one second in order

const (
	suffix        = ".jsonl"
	summarySuffix = ".summary.json"
	temporary     = ".new-"
)

// ours matches the run's start and a random suffix.
var ours = regexp.MustCompile(`^\d{8}-\d{6}\.\d{3}-[0-9a-f]{8}\.jsonl$`)

// Keep stores a run that began at the given time, and removes the oldest runs beyond MostRuns,
// MostBytes and MostDays. It returns the run's number: 1 if no run began later. It refuses results
// larger than mostOfOne.
func (s *Store) Keep(began time.Time, results, summary []byte) (n int, err error) {
	if len(results) > mostOfOne {
		return 0, errTooLarge
	}
	var some [4]byte
	if _, err := rand.Read(some[:]); err != nil {
		return 0, err
	}
	name := began.UTC().Format(timeFormat) + "-" + hex.EncodeToString(some[:]) + suffix
	err = s.user.do(func() error {
		const private = 0o700 // results contain host names and programs' output
		if err := os.MkdirAll(s.Dir, private); err != nil {
			return err
		}
		if err := s.write(summaryOf(name), summary); err != nil {
			return err
		}
		if err := s.write(name, results); err != nil {
			return errors.Join(err, remove(filepath.Join(s.Dir, summaryOf(name))))
		}
		left, err := s.prune()
		n = 1 + slices.IndexFunc(left, func(r Run) bool { return r.Name == name })
		if n == 0 && err == nil {
			err = errOld
		}
		return err
	})
	return n, err
}

func summaryOf(name string) string { return strings.TrimSuffix(name, suffix) + summarySuffix }

func (s *Store) write(name string, content []byte) error {
	f, err := os.CreateTemp(s.Dir, temporary)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(s.Dir, name))
	}
	if err != nil {
		return errors.Join(err, remove(f.Name()))
	}
	return nil
}

func remove(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// prune removes the runs beyond the bounds, and old temporary files of killed processes. It returns
// the other runs, the newest first.
func (s *Store) prune() (left []Run, err error) {
	runs, err := s.runs()
	if err != nil {
		return nil, err
	}
	var errs []error
	bytes := int64(0)
	for k, r := range runs {
		old := runs[0].Began.Sub(r.Began) > MostDays*24*time.Hour && k >= Ageless
		if bytes += r.Size; k >= MostRuns || bytes > MostBytes || old {
			errs = append(errs, s.forget(r.Name))
		} else {
			left = append(left, r)
		}
	}
	return left, errors.Join(append(errs, s.sweep(time.Hour))...)
}

func (s *Store) forget(name string) error {
	return errors.Join(remove(filepath.Join(s.Dir, name)),
		remove(filepath.Join(s.Dir, summaryOf(name))))
}

func (s *Store) sweep(age time.Duration) error {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if info, infoErr := e.Info(); infoErr == nil && strings.HasPrefix(e.Name(), temporary) &&
			time.Since(info.ModTime()) >= age {
			err = errors.Join(err, remove(filepath.Join(s.Dir, e.Name())))
		}
	}
	return err
}

// Runs returns all runs, the newest first.
func (s *Store) Runs() (out []Run, err error) {
	err = s.user.do(func() error {
		out, err = s.runs()
		return err
	})
	return out, err
}

func (s *Store) runs() ([]Run, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var out []Run
	for _, e := range entries { // sorted by name, thus by time
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() &&
			ours.MatchString(e.Name()) {
			began, _ := time.Parse(timeFormat, e.Name()[:len(timeFormat)]) // zero if malformed
			out = append(out, Run{e.Name(), info.Size(), began})
		}
	}
	slices.Reverse(out)
	return out, nil
}

// Open opens a run's results file.
func (s *Store) Open(r Run) (f *os.File, err error) {
	err = s.user.do(func() error {
		f, err = os.Open(filepath.Join(s.Dir, r.Name))
		return err
	})
	return f, err
}

// Summary reads a run's summary.
func (s *Store) Summary(r Run) (b []byte, err error) {
	err = s.user.do(func() error {
		b, err = os.ReadFile(filepath.Join(s.Dir, summaryOf(r.Name)))
		return err
	})
	return b, err
}

// Summarize replaces a run's summary atomically.
func (s *Store) Summarize(r Run, summary []byte) error {
	return s.user.do(func() error { return s.write(summaryOf(r.Name), summary) })
}

// Clear removes all runs and returns their number.
func (s *Store) Clear() (n int, err error) {
	err = s.user.do(func() error {
		runs, err := s.runs()
		if err != nil || len(runs) == 0 {
			return err
		}
		var errs []error
		for _, r := range runs {
			errs = append(errs, s.forget(r.Name))
		}
		n = len(runs)
		return errors.Join(append(errs, s.sweep(0))...)
	})
	return n, err
}
