package jail

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine"
)

// view makes the machine's directories visible below newRoot.
type view struct {
	mounts []machine.Mount // the machine's
	shown  []string
	hidden []hidden
	n      int // number of file systems mounted so far
}

// hidden is a directory that cannot be shown. In the jail it is empty.
type hidden struct {
	dir string
	err error
}

// tree is a directory of the machine, and how a script sees it.
type tree struct {
	from string // where this process finds it
	path string // where it is on the machine, and in the jail
	// writable is whether a script may change it, until the jail ends. Else it is read-only.
	writable bool
}

func (t tree) sub(name string) tree {
	return tree{t.from + "/" + name, filepath.Join(t.path, name), t.writable}
}

func (t tree) to() string { return filepath.Join(newRoot, t.path) }

// mostShown is the largest number of file systems that are mounted for a view.
const mostShown = 4000

// show shows a directory and what is mounted in it. Pipes and sockets in an overlay are not those
// of the directory below.
//
// A user namespace may not see what a mount of the machine covers. So the kernel refuses an overlay
// of a directory with such a mount in it, and each of the directory's entries gets one of its own.
func (v *view) show(t tree) error {
	if err := os.MkdirAll(t.to(), 0o755); err != nil {
		return err
	}
	v.shown = append(v.shown, t.path)
	if !v.mountedIn(t.path) {
		v.overlay(t)
		return nil
	}
	const entries = "size=1m,nr_inodes=20000,mode=755"
	if t.writable {
		return v.parts(t)
	}
	if err := mount("tmpfs", t.to(), "tmpfs", safe, entries); err != nil {
		return err
	}
	return errors.Join(v.parts(t), readOnly(t.to(), safe))
}

// mountedIn reports whether something is mounted at a path in the directory.
func (v *view) mountedIn(dir string) bool {
	return slices.ContainsFunc(v.mounts, func(m machine.Mount) bool {
		return m.Point != dir && below(m.Point, dir)
	})
}

// below reports whether path is dir or in it.
func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// parts shows the entries of a directory, except pipes, sockets and devices.
func (v *view) parts(t tree) error {
	all, err := os.ReadDir(t.from)
	if err == nil && v.n+len(all) > mostShown {
		err = fmt.Errorf("it has %d entries beside a mount", len(all))
	}
	if err != nil {
		v.hide(t, err)
		return nil
	}
	for _, e := range all {
		x := t.sub(e.Name())
		switch {
		case e.IsDir() && v.mountedIn(x.path):
			if err = os.Mkdir(x.to(), 0o755); err == nil {
				err = v.parts(x)
			}
		case e.IsDir():
			if err = os.Mkdir(x.to(), 0o755); err == nil {
				v.overlay(x)
			}
		case e.Type() == fs.ModeSymlink:
			err = relink(x.from, x.to())
		case e.Type().IsRegular():
			v.file(x)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // else it was removed meanwhile
			return err
		}
	}
	return nil
}

// file shows a regular file. A mount may have covered it by something else, such as a pipe.
func (v *view) file(t tree) {
	if info, err := os.Lstat(t.from); err != nil || !info.Mode().IsRegular() {
		return
	}
	if t.writable && duplicate(t.from, t.to()) == nil {
		return
	}
	v.n++
	err := os.WriteFile(t.to(), nil, 0o644)
	if err == nil {
		err = mount(t.from, t.to(), "", unix.MS_BIND, "")
	}
	if err == nil {
		if err = readOnly(t.to(), safe); errors.Is(err, unix.EPERM) { // the mount is noexec
			err = readOnly(t.to(), safe|unix.MS_NOEXEC)
		}
	}
	if err != nil {
		v.hide(t, err)
	}
}

// mostCopied is the size in bytes up to which files are copied.
const mostCopied = 256 << 10

var errLarge = errors.New("the file is too large to be copied")

// duplicate copies a small file with its mode.
func duplicate(from, to string) error {
	f, err := os.OpenFile(from, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(f, mostCopied+1))
	if err == nil && len(b) > mostCopied {
		err = errLarge
	}
	if err == nil {
		err = os.WriteFile(to, b, info.Mode().Perm())
	}
	return err
}

// relink makes a symbolic link like the one at from.
func relink(from, to string) error {
	target, err := os.Readlink(from)
	if err == nil {
		err = os.Symlink(target, to)
	}
	return err
}

// overlay shows a directory in which nothing is mounted.
func (v *view) overlay(t tree) {
	v.n++
	under := fmt.Sprintf("%s%s/%d", newRoot, layers, v.n)
	for _, d := range []string{"/upper", "/work", "/empty"} {
		if err := os.MkdirAll(under+d, 0o755); err != nil {
			v.hide(t, err)
			return
		}
	}
	lower := strings.NewReplacer(`\`, `\\`, ",", `\,`, ":", `\:`).Replace(t.from)
	flags, data := uintptr(safe|unix.MS_RDONLY), "lowerdir="+lower+":"+under+"/empty"
	if t.writable {
		flags, data = safe, "userxattr,lowerdir="+lower+",upperdir="+under+"/upper,workdir="+under+"/work"
	}
	err := unix.Mount("overlay", t.to(), "overlay", flags, data)
	if errors.Is(err, unix.ENODEV) {
		err = errors.New("the kernel has no overlay file system (CONFIG_OVERLAY_FS)")
	}
	if err != nil {
		v.hide(t, err)
	}
}

func (v *view) hide(t tree, err error) { v.hidden = append(v.hidden, hidden{t.path, err}) }

// why returns the reason why the jail does not show a path, or nil.
func (v *view) why(path string) error {
	for _, h := range v.hidden {
		if below(path, h.dir) {
			return fmt.Errorf("%s, of the file system %s, cannot be shown to them: %w", h.dir,
				typeAt(v.mounts, h.dir), h.err)
		}
	}
	return nil
}

// typeAt returns the type of the file system that has a path.
func typeAt(mounts []machine.Mount, path string) (kind string) {
	at := ""
	for _, m := range mounts {
		if below(path, m.Point) && len(m.Point) >= len(at) {
			at, kind = m.Point, m.Type
		}
	}
	return kind
}
