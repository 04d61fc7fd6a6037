package local

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"os/exec"
	"testing"
)

func TestPack(t *testing.T) {
	b := make([]byte, 9<<20+1) // several pieces
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(b[:1<<20])
	packed := Pack(b)
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, b) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	cmd := exec.Command("gzip", "-dc")
	cmd.Stdin = bytes.NewReader(packed)
	if got, err := cmd.Output(); err != nil || !bytes.Equal(got, b) {
		t.Errorf("gzip: %d bytes, %v", len(got), err)
	}
}
