package exchange

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// errNoFile means that there is a pipe, a device or a directory in place of a file.
var errNoFile = errors.New("it is not a regular file")

// Open opens a regular file for reading. It neither waits for the writer of a pipe nor opens a
// device.
func Open(name string) (*os.File, error) {
	failed := func(err error) error { return &fs.PathError{Op: "open", Path: name, Err: err} }
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, failed(err)
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, failed(err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, failed(errNoFile)
	}
	opened, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, failed(err)
	}
	return os.NewFile(uintptr(opened), name), nil
}

// ReadFile opens a file by Open and returns its content. It returns ErrTooLong if the file has more
// than most bytes.
func ReadFile(name string, most int64) ([]byte, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = &fs.PathError{Op: "read", Path: name, Err: ErrTooLong}
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}
