package dockerapi

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"
)

// The image that travels has the name and the layer of the one that is loaded here.
func TestPackedArchive(t *testing.T) {
	if err := CheckProgram(); err != nil {
		t.Skip(err)
	}
	name, archive, err := Archive("", NodeRepository)
	if err != nil {
		t.Fatal(err)
	}
	same, packed, err := PackedArchive("", NodeRepository)
	if err != nil || same != name {
		t.Fatalf("it is %s, not %s: %v", same, name, err)
	}
	if len(packed) > len(archive)/2 {
		t.Errorf("%d bytes of %d", len(packed), len(archive))
	}
	z, err := gzip.NewReader(bytes.NewReader(filesOf(t, packed)["layer.tar"]))
	if err != nil {
		t.Fatal(err)
	}
	layer, err := io.ReadAll(z)
	if err != nil || !bytes.Equal(layer, filesOf(t, archive)["layer.tar"]) {
		t.Errorf("another layer, of %d bytes: %v", len(layer), err)
	}
}

func filesOf(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if out[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
