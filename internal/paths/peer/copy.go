package peer

import (
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

func (c *connection) copy(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := c.say(fmt.Sprintf("copy %d\n", info.Size())); err != nil {
		return err
	}
	if _, err := c.hear("send"); err != nil {
		return err
	}
	watch := time.AfterFunc(stalled, c.kill)
	defer watch.Stop()
	for left := info.Size(); left > 0; {
		const piece = 1 << 20
		n, err := io.CopyN(c.process.In, f, min(left, piece))
		if err != nil { // the peer may have reported why
			if _, said := c.hear("agent"); errors.As(said, new(*machine.UnsupportedError)) {
				return said
			}
			return fmt.Errorf("copy toll to it: %w", err)
		}
		left -= n
		watch.Reset(stalled)
	}
	return nil
}
