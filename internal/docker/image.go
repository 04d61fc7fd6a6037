package docker

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
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/path/local"
)

// The labels of what toll makes: runLabel has the mark of the toll that made it,
// keptLabel is on images that stay.
const (
	runLabel  = "io.bridgetoll.run"
	keptLabel = "io.bridgetoll.image"
)

// repository is the first part of images' names.
const repository = "bridgetoll:"

// self is this program, also after its file was replaced.
const self = local.Self

// InImage is the program's file in the image.
const InImage = "/toll"

// image is the run's image.
type image struct {
	tag  string // "" before it was made
	kept bool
	err  error // why it could not be made
}

// makeImage loads the image that holds toll and nothing else, once.
func (e *engine) makeImage(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.image.tag == "" && e.image.err == nil {
		tag, err := e.loadImage(ctx)
		if err != nil && ctx.Err() != nil {
			return err // it may be tried again
		}
		e.image = image{tag: tag, kept: e.docker.KeepImage, err: err}
	}
	return e.image.err
}

func (e *engine) loadImage(ctx context.Context) (string, error) {
	file := e.docker.Program
	if file == "" {
		file = self
	}
	if err := static(file); err != nil {
		return "", err
	}
	program, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("make image: %w", err)
	}
	labels := map[string]string{runLabel: e.mark}
	if e.docker.KeepImage {
		labels = map[string]string{keptLabel: "kept"}
	}
	tag, archive, err := archive(program, labels)
	if err != nil {
		return "", fmt.Errorf("make image: %w", err)
	}
	if e.docker.KeepImage {
		if _, err := e.api.ImageInspect(ctx, tag); err == nil {
			return tag, nil
		}
	} else if err := e.journal.add(ofImage, tag); err != nil {
		return "", err
	}
	if err := e.load(archive); err != nil {
		return "", fmt.Errorf("make image %s: %w", tag, err)
	}
	if _, err := e.api.ImageInspect(ctx, tag); err != nil {
		return "", fmt.Errorf("make image %s: %w", tag, err)
	}
	return tag, nil
}

func (e *engine) load(archive []byte) error {
	ctx, cancel := Uninterrupted()
	defer cancel()
	loaded, err := e.api.ImageLoad(ctx, bytes.NewReader(archive), client.ImageLoadWithQuiet(true))
	if err != nil {
		return err
	}
	// What failed is in the answer's lines of JSON.
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

// removeImage removes the image, unless it is kept.
func (e *engine) removeImage() error {
	if e.image.kept {
		return nil
	}
	e.journal.mu.Lock()
	var tags []string
	for made := range e.journal.open {
		if made.kind == ofImage {
			tags = append(tags, made.name)
		}
	}
	e.journal.mu.Unlock()
	ctx, cancel := cleanUp()
	defer cancel()
	for _, tag := range tags {
		_, err := e.api.ImageRemove(ctx, tag, client.ImageRemoveOptions{PruneChildren: true})
		if err != nil && !cerrdefs.IsNotFound(err) {
			return fmt.Errorf("remove image %s: %w", tag, err)
		}
		e.journal.gone(ofImage, tag)
	}
	return nil
}

// static refuses a program that needs a loader: the image has none.
func static(file string) error {
	f, err := elf.Open(file)
	if err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	interp := slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	if err := f.Close(); err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	if interp {
		return &path.UnsupportedError{Missing: "this toll is dynamically linked: it cannot run in an image that holds nothing else",
			Remedy: "build it with CGO_ENABLED=0, as make does"}
	}
	return nil
}

// archive is an image with one layer that holds the program, in the layout of
// `docker save`, which all engines load, and its name. The same program with the
// same labels makes the same image.
func archive(program []byte, labels map[string]string) (tag string, _ []byte, err error) {
	return archiveAs(strings.TrimSuffix(repository, ":"), program, labels)
}

// archiveAs is an archive whose image is in a repository of that name.
func archiveAs(repository string, program []byte, labels map[string]string) (tag string, _ []byte, err error) {
	layer, err := tarOf(file{InImage[1:], program, 0o755})
	if err != nil {
		return "", nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "created": time.Unix(0, 0).UTC(),
		"config":  map[string]any{"Cmd": []string{InImage, pauseArg}, "Labels": labels},
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
	b, err := tarOf(file{id + ".json", config, mode}, file{"layer.tar", layer, mode}, file{"manifest.json", manifest, mode})
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
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.data)), Mode: f.mode, ModTime: time.Unix(0, 0)}
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
