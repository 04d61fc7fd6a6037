package shortcut

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
)

// If the machine has no BPF file system, toll mounts its own, and Unpin unmounts it.
const (
	machinesFS = "/sys/fs/bpf"
	pinName    = "bridgetoll-fast"
	ownRun     = journal.Machine
	ownFS      = ownRun + "/fast"
)

const onlyRoot = 0o700

// ErrNone means that no table is pinned.
var ErrNone = errors.New("no shortcuts are pinned")

func pins() string {
	if isBPF(machinesFS) {
		return filepath.Join(machinesFS, pinName)
	}
	return filepath.Join(ownFS, pinName)
}

func isBPF(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && uint32(st.Type) == unix.BPF_FS_MAGIC
}

// Pin keeps the table, with its programs attached, until Unpin.
func (t *Table) Pin() (err error) {
	if !isBPF(machinesFS) && !isBPF(ownFS) {
		if err := mountOwn(); err != nil {
			return err
		}
	}
	dir := pins()
	if err := os.Mkdir(dir, onlyRoot); err != nil {
		return fmt.Errorf("pin: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, Unpin())
		}
	}()
	for name, m := range t.maps.named() {
		if err := m.Pin(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("pin map %s: %w", name, err)
		}
	}
	for i, l := range t.links {
		if err := l.Pin(filepath.Join(dir, fmt.Sprintf("link%d", i))); err != nil {
			return fmt.Errorf("pin link: %w", err)
		}
	}
	if t.pinned, err = inode(dir); err != nil {
		return fmt.Errorf("pin: %w", err)
	}
	return os.Mkdir(filepath.Join(dir, complete), onlyRoot)
}

// complete is a file in the directory of the pins. It is made after all pins.
const complete = "complete"

func mountOwn() error {
	if err := os.MkdirAll(ownFS, onlyRoot); err != nil {
		return fmt.Errorf("make directory for BPF pins: %w", err)
	}
	if err := errors.Join(journal.Trusted(ownRun), journal.Trusted(ownFS)); err != nil {
		return err
	}
	err := unix.Mount("bpf", ownFS, "bpf", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0700")
	if err != nil {
		return errors.Join(&machine.UnsupportedError{
			Missing: "no BPF file system is mounted on " + machinesFS +
				", and toll cannot mount its own",
			Remedy: remedy.AsRoot("mount -t bpf bpf " + machinesFS), Err: err}, removeEmpty(ownFS),
			journal.RemoveDir(ownRun))
	}
	return nil
}

// Open opens the pinned table. It returns ErrNone if no table is pinned completely.
func Open() (*Table, error) {
	dir := pins()
	if _, err := os.Stat(filepath.Join(dir, complete)); errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err := journal.Trusted(dir); err != nil {
		return nil, err
	}
	t := &Table{}
	var err error
	if t.pinned, err = inode(dir); err != nil {
		return nil, fmt.Errorf("open pins: %w", err)
	}
	spec, err := loadObject()
	if err != nil {
		return nil, err
	}
	for name, field := range t.maps.fields() {
		m, err := ebpf.LoadPinnedMap(filepath.Join(dir, name), nil)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open pinned map %s: %w", name, err), t.Close())
		}
		*field = m
		if err := spec.Maps[name].Compatible(m); err != nil {
			return nil, errors.Join(fmt.Errorf("pinned map %s is of another version of toll: %w",
				name, err), t.Close())
		}
	}
	return t, nil
}

// Current reports whether the table is still the pinned one.
func (t *Table) Current() bool {
	ino, err := inode(pins())
	return err == nil && ino == t.pinned
}

func inode(dir string) (uint64, error) {
	var st unix.Stat_t
	err := unix.Stat(dir, &st)
	return st.Ino, err
}

// Unpin removes the pinned table, even an incomplete one. After an error it continues, and returns
// all errors.
func Unpin() error {
	var errs []error
	if t, err := Open(); err == nil {
		// The links are removed one by one, so switch the table off first.
		errs = append(errs, t.Stop(), t.abortAll(), t.Close())
	}
	dir := pins()
	all, err := os.ReadDir(dir)
	if err == nil {
		err = journal.Trusted(dir)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(append(errs, err)...)
	}
	for _, e := range all {
		errs = append(errs, removeEmpty(filepath.Join(dir, e.Name())))
	}
	errs = append(errs, removeEmpty(dir))
	if isBPF(ownFS) {
		if err := unix.Unmount(ownFS, 0); err != nil {
			errs = append(errs, fmt.Errorf("unmount %s: %w", ownFS, err))
		}
	}
	return errors.Join(append(errs, removeEmpty(ownFS), journal.RemoveDir(ownRun))...)
}

// Pinned reports whether there are pins, complete or not.
func Pinned() bool {
	_, err := os.Stat(pins())
	return err == nil
}

func removeEmpty(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (m *objectMaps) fields() map[string]**ebpf.Map {
	out := map[string]**ebpf.Map{}
	v := reflect.ValueOf(m).Elem()
	for i := range v.NumField() {
		if f, ok := v.Field(i).Addr().Interface().(**ebpf.Map); ok {
			out[v.Type().Field(i).Tag.Get("ebpf")] = f
		}
	}
	return out
}

func (m *objectMaps) named() map[string]*ebpf.Map {
	out := map[string]*ebpf.Map{}
	for name, f := range m.fields() {
		out[name] = *f
	}
	return out
}
