// Package rootless finds and starts the programs that give containers a network without root:
// pasta, slirp4netns, RootlessKit (which contains gvisor-tap-vsock) and Podman's rootlessport. It
// also finds the rootless Docker Engine or Podman behind a socket, and runs toll again in that
// engine's user namespace.
package rootless

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
)

// The programs' names.
const (
	Pasta        = "pasta"
	Slirp4netns  = "slirp4netns"
	RootlessKit  = "rootlesskit"
	RootlessPort = "rootlessport"
)

var packages = map[string]string{Pasta: "passt", Slirp4netns: "slirp4netns",
	RootlessKit: "rootlesskit", RootlessPort: "podman", "ip": "iproute2",
	"nsenter": "util-linux"}

// beside lists the files of programs that are installed outside PATH. Debian 12 has the second one.
var beside = map[string][]string{RootlessPort: {"/usr/libexec/podman/rootlessport",
	"/usr/lib/podman/rootlessport"}}

// Find returns the path of a program's file, or a *machine.UnsupportedError that names the package
// to install.
func Find(program string) (file string, err error) {
	if file, err = exec.LookPath(program); err == nil {
		return file, nil
	}
	for _, file := range beside[program] {
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	return "", &machine.UnsupportedError{Missing: program + " is not installed",
		Remedy: remedy.Install(packages[program])}
}

// Tun is the device file with which programs make tap devices.
const Tun = "/dev/net/tun"

// CheckTun returns nil if this process may open Tun, else a *machine.UnsupportedError.
func CheckTun() error {
	f, err := os.OpenFile(Tun, os.O_RDWR, 0)
	if err == nil {
		return f.Close()
	}
	do := remedy.AsRoot("chmod 666 " + Tun)
	if !errors.Is(err, fs.ErrPermission) {
		do = remedy.Modprobe("tun") + ", and in a container --device " + Tun
	}
	return &machine.UnsupportedError{Remedy: do, Err: err,
		Missing: Tun + ", which makes tap devices, cannot be opened"}
}

var (
	versions    sync.Map
	versionWord = regexp.MustCompile(`^\S+ (?:version )?v?(\d\S*)`)
)

// Named returns a program's name with the version of the program or of its Debian package, such as
// "slirp4netns 1.2.0" or "pasta 0.0~git20230309.7c7625d-1". It returns the name alone if neither is
// known.
func Named(program, file string) string {
	if v, ok := versions.Load(file); ok {
		return program + v.(string)
	}
	v := strings.TrimPrefix(Said(program, output(file, "--version")), program)
	if v == "" {
		v = unsaid(program, file)
	}
	versions.Store(file, v)
	return program + v
}

// Said returns a program's name with the version found in its answer to --version, or the name
// alone.
func Said(program, answer string) string {
	if m := versionWord.FindStringSubmatch(answer); m != nil {
		return program + " " + m[1]
	}
	return program
}

// unsaid finds the version of programs that do not print it: some builds of pasta print nothing
// to a pipe, Debian's prints "unknown version", and rootlessport prints nothing.
func unsaid(program, file string) string {
	if v := inFile(file); v != "" {
		return " " + v
	}
	s := output("dpkg-query", "-W", "-f", "${Version}", packages[program])
	if s == "" || filepath.Dir(file) != "/usr/bin" && !slices.Contains(beside[program], file) {
		return ""
	}
	return " " + s
}

var pastaVersion = regexp.MustCompile(`20\d\d_\d\d_\d\d\.[0-9a-f]{7,}`)

func inFile(file string) string {
	const most = 64 << 20 // bytes
	text, err := exchange.ReadFile(file, most)
	if err != nil {
		return ""
	}
	return string(pastaVersion.Find(text))
}

// output returns what the program prints, or "" if it fails.
func output(file string, args ...string) string {
	const limit, most = 5 * time.Second, 64 << 10 // bytes
	out, err := exchange.Output(context.Background(), exec.Command(file, args...),
		exchange.Limits{Time: limit, Output: most})
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
