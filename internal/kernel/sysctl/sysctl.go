// Package sysctl reads and writes kernel parameters of the calling thread's network namespace. Call
// it inside netns.NS.Do.
package sysctl

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// file returns the file of a key. /proc/sys/net shows the namespace of the thread that opens it.
func file(key string) string { return "/proc/sys/" + strings.ReplaceAll(key, ".", "/") }

// Get returns the value of a key such as "net.ipv4.ip_forward", with runs of white space folded.
func Get(key string) (string, error) {
	b, err := read(file(key))
	if err != nil {
		return "", fmt.Errorf("read sysctl %s: %w", key, err)
	}
	return strings.Join(strings.Fields(string(b)), " "), nil
}

func read(name string) ([]byte, error) { return readAt(unix.AT_FDCWD, name) }

// readAt reads a file below a directory with less overhead than os.ReadFile, because an inspection
// reads thousands.
func readAt(dir int, name string) ([]byte, error) {
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	const usual = 64
	b := make([]byte, 0, usual)
	for {
		m, err := ignoringEINTR(func() (int, error) { return unix.Read(fd, b[len(b):cap(b)]) })
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: name, Err: err}
		}
		if b = b[:len(b)+m]; len(b) < cap(b) { // the kernel has written all
			return b, nil
		}
		b = slices.Grow(b, usual)
	}
}

// write writes a file with less overhead than os.WriteFile.
func write(name, value string) error {
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Open(name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	if _, err := ignoringEINTR(func() (int, error) {
		return unix.Write(fd, []byte(value))
	}); err != nil {
		return &os.PathError{Op: "write", Path: name, Err: err}
	}
	return nil
}

func ignoringEINTR(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR { //nolint:errorlint // it is that itself
			return n, err
		}
	}
}

// Set writes a value. It returns an error if the key then has another value: outside the first
// namespace, some keys ignore writes.
func Set(key, value string) error {
	if err := write(file(key), value); err != nil {
		return fmt.Errorf("set sysctl %s=%s: %w", key, value, err)
	}
	got, err := Get(key)
	if err != nil {
		return err
	}
	if got != value {
		return fmt.Errorf("set sysctl %s=%s: the kernel kept %s", key, value, got)
	}
	return nil
}

// Writable returns an error if this process may not write key. It writes nothing.
func Writable(key string) error {
	f, err := os.OpenFile(file(key), os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("set sysctl %s: %w", key, err)
	}
	return f.Close()
}
