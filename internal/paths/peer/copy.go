package peer

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// program returns the file to copy, or "" if the peer has the program.
func (p *Peer) program(h have) (file string, err error) {
	if h.System != "Linux" {
		return "", &machine.UnsupportedError{Missing: fmt.Sprintf(
			"the peer runs %s, not Linux", printable.Words(h.System)), Remedy: "a peer with Linux"}
	}
	arch := goarch(h.Machine)
	if p.Binary != "" {
		file = p.Binary
	} else if arch == runtime.GOARCH {
		file = local.Self
	} else if h.Sum != "" { // the peer has a toll, and the hub will compare the versions
		return "", nil
	} else {
		return "", otherMachine(h)
	}
	f, err := elf.Open(file)
	if err != nil {
		return "", &machine.UnsupportedError{Missing: "--peer-binary " + file + " is not a program",
			Remedy: "a toll of this version, built for the peer", Err: err}
	}
	defer func() { _ = f.Close() }()
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return "",
			&machine.UnsupportedError{
				Missing: "this toll is dynamically linked, so it may lack its libraries on the peer",
				Remedy:  "build it with CGO_ENABLED=0, as make does"}
	}
	if known, ok := machines[arch]; ok && f.Machine != known {
		return "", &machine.UnsupportedError{Missing: fmt.Sprintf(
			"%s is for %s, the peer is %s", file, f.Machine, printable.Words(h.Machine)),
			Remedy: "--peer-binary with a toll of this version that is built for the peer"}
	}
	if h.Sum != "" {
		if own, err := sumOf(file); err != nil || own == h.Sum {
			return "", err
		}
	}
	return file, nil
}

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64,
	"386": elf.EM_386, "arm": elf.EM_ARM,
	"riscv64": elf.EM_RISCV, "ppc64le": elf.EM_PPC64, "s390x": elf.EM_S390,
	"loong64": elf.EM_LOONGARCH}

// goarch returns Go's name for an architecture, given the one that uname -m prints.
func goarch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	case "i386", "i486", "i586", "i686":
		return "386"
	case "loongarch64":
		return "loong64"
	}
	if strings.HasPrefix(machine, "arm") {
		return "arm"
	}
	return machine
}

func sumOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// copy brings file to the peer, unless its cache has it.
func (c *connection) copy(file string) error {
	sum, err := sumOf(file)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if err := c.say(fmt.Sprintf("copy %s %d\n", sum, info.Size())); err != nil {
		return err
	}
	has, unpack, err := c.hear("kept", "lacks")
	if err != nil || has == "kept" {
		return err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if unpack == "gzip" {
		content = local.Pack(content)
	}
	if err := c.say(fmt.Sprintf("%d\n", len(content))); err != nil {
		return err
	}
	if _, _, err := c.hear("send"); err != nil {
		return err
	}
	watch := time.AfterFunc(stalled, c.kill)
	defer watch.Stop()
	const piece = 1 << 20
	for part := range slices.Chunk(content, piece) {
		if _, err := c.process.In.Write(part); err != nil { // the peer may have reported why
			if _, _, said := c.hear("agent"); errors.As(said, new(*machine.UnsupportedError)) {
				return said
			}
			return fmt.Errorf("copy toll to it: %w", err)
		}
		watch.Reset(stalled)
	}
	return nil
}

// Forget removes the copies of toll in the user's cache on the peer, and returns their directory,
// or "" if there are none.
func (p *Peer) Forget(ctx context.Context) (dir string, err error) {
	here, err := netns.Here()
	if err != nil {
		return "", err
	}
	var what string
	c, err := p.shell(ctx, here, func(c *connection) (err error) {
		if err := c.meet(p); err != nil {
			return err
		}
		if err := c.say("forget\n"); err != nil {
			return err
		}
		_, rest, err := c.hear("forgot")
		what, dir, _ = strings.Cut(rest, " ")
		return err
	})
	if err == nil {
		err = c.close()
	}
	dir = printable.Words(dir)
	if what == "not" {
		err = errors.Join(err, fmt.Errorf("%s: others may write to %s, which toll does not use",
			p.Host, dir))
	}
	return dir, errors.Join(err, here.Close())
}
