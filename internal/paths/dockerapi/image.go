package dockerapi

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

// keptLabel is the label of images that belong to no run: those on the nodes of a swarm.
const keptLabel = "io.bridgetoll.image"

const repository = "bridgetoll"

// NodeRepository is the repository of the image for nodes of a cluster. A node may ask the registry
// even for an image that it has; at this address the request fails at once.
const NodeRepository = "127.0.0.1:1/bridgetoll"

// InImage is the program's file in the image.
const InImage = "/toll"

// PauseArg makes toll the first process of a container, which sleeps until its input ends.
const PauseArg = "pause"

// MakeImage loads an image with the static program in file ("": this program) and returns its name.
// The image belongs to the run: RemoveImages removes it.
func (d *Daemon) MakeImage(ctx context.Context, file string) (tag string, err error) {
	program, err := read(file)
	if err != nil {
		return "", err
	}
	tag, archive, err := archiveAs(repository, program, d.Labels(), unpacked)
	if err != nil {
		return "", fmt.Errorf("make image: %w", err)
	}
	if err := d.Journal.Add(Image, tag); err != nil {
		return "", err
	}
	if err := d.Load(archive); err != nil {
		return "", fmt.Errorf("make image %s: %w", tag, err)
	}
	if _, err := d.API.ImageInspect(ctx, tag); err != nil {
		return "", fmt.Errorf("make image %s: %w", tag, err)
	}
	return tag, nil
}

func kept() map[string]string { return map[string]string{keptLabel: "kept"} }

// Load loads an image that Archive made.
func (d *Daemon) Load(archive []byte) error {
	ctx, cancel := Uninterrupted()
	defer cancel()
	loaded, err := d.API.ImageLoad(ctx, bytes.NewReader(archive), client.ImageLoadWithQuiet(true))
	if err != nil {
		return err
	}
	// The daemon reports failures in lines of JSON.
	for dec := json.NewDecoder(loaded); ; {
		var said struct{ Error string }
		err := dec.Decode(&said)
		if errors.Is(err, io.EOF) {
			return loaded.Close()
		}
		if err == nil && said.Error != "" {
			err = errors.New(said.Error)
		}
		if err != nil {
			return errors.Join(err, loaded.Close())
		}
	}
}

// RemoveImages removes the run's images.
func (d *Daemon) RemoveImages() error {
	ctx, cancel := cleanUp()
	defer cancel()
	for _, tag := range d.Journal.names(Image) {
		_, err := d.API.ImageRemove(ctx, tag, client.ImageRemoveOptions{PruneChildren: true})
		if err != nil && !cerrdefs.IsNotFound(err) {
			return fmt.Errorf("remove image %s: %w", tag, err)
		}
		d.Journal.Gone(Image, tag)
	}
	return nil
}

// Archive returns an image for `docker load`, and its name. The image is FROM scratch and contains
// the static program in file ("": this program). The name is the image's digest in a repository
// such as "example.org/toll". The same program gives the same image.
func Archive(file, repository string) (name string, archive []byte, err error) {
	return archived(file, repository, unpacked)
}

// PackedArchive returns the same image, of the same name, with its layer compressed for the way to
// another machine. (containerd's ctr refuses an archive that is compressed as a whole.)
func PackedArchive(file, repository string) (name string, archive []byte, err error) {
	return archived(file, repository, local.Pack)
}

func archived(file, repository string, pack func([]byte) []byte) (name string, archive []byte,
	err error) {
	program, err := read(file)
	if err != nil {
		return "", nil, err
	}
	if name, archive, err = archiveAs(repository, program, kept(), pack); err != nil {
		return "", nil, fmt.Errorf("make image: %w", err)
	}
	return name, archive, nil
}

func unpacked(layer []byte) []byte { return layer }

// read returns the contents of a file. "" is this program, even if its file was replaced.
func read(file string) ([]byte, error) {
	if file == "" {
		file = local.Self
	}
	if err := static(file); err != nil {
		return nil, err
	}
	program, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("make image: %w", err)
	}
	return program, nil
}

// CheckProgram returns an error if this program needs libraries, which the image lacks.
func CheckProgram() error { return static(local.Self) }

func static(file string) error {
	f, err := elf.Open(file)
	if err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	interp := slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool {
		return p.Type == elf.PT_INTERP
	})
	if err := f.Close(); err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	if interp {
		return &machine.UnsupportedError{
			Missing: "this toll is dynamically linked, so it cannot run in an image that contains nothing else",
			Remedy:  "build it with CGO_ENABLED=0, as make does"}
	}
	return nil
}

// archiveAs returns an image of one layer in the layout of `docker save`, which all engines load,
// and its name. pack may compress the layer. Equal programs and labels make equal images.
func archiveAs(repository string, program []byte, labels map[string]string,
	pack func([]byte) []byte) (tag string, _ []byte, err error) {
	layer, err := tarOf(file{InImage[1:], program, 0o755})
	if err != nil {
		return "", nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "created": time.Unix(0, 0).UTC(),
		"config":  map[string]any{"Cmd": []string{InImage, PauseArg}, "Labels": labels},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + sum(layer)}},
		"history": []any{map[string]any{"created": time.Unix(0, 0).UTC(), "created_by": "toll"}},
	})
	if err != nil {
		return "", nil, err
	}
	const short = 12
	id := sum(config)
	tag = repository + ":" + id[:short]
	manifest, err := json.Marshal([]any{map[string]any{
		"Config": id + ".json", "RepoTags": []string{tag}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return "", nil, err
	}
	const mode = 0o644
	b, err := tarOf(file{id + ".json", config, mode}, file{"layer.tar", pack(layer), mode},
		file{"manifest.json", manifest, mode})
	return tag, b, err
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

type file struct {
	name string
	data []byte
	mode int64
}

func tarOf(files ...file) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.data)),
			Mode: f.mode, ModTime: time.Unix(0, 0)}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
