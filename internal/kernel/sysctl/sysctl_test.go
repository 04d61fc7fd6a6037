package sysctl

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	for _, n := range []int{0, 1, 511, 512, 513, 100_000} {
		want := bytes.Repeat([]byte("7"), n)
		if err := os.WriteFile(file, want, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := read(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes of %d, %v", len(got), n, err)
		}
	}
	if _, err := Get("net.ipv4.none_such"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key that is not there: %v", err)
	}
	if v, err := Get("kernel.ostype"); err != nil || v != "Linux" {
		t.Errorf("kernel.ostype is %q, %v", v, err)
	}
}

func TestWritable(t *testing.T) {
	for key, want := range map[string]error{
		"kernel.ostype": fs.ErrPermission, "net.ipv4.none_such": fs.ErrNotExist,
	} {
		if err := Writable(key); !errors.Is(err, want) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
