package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/reach/collect"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// tryFlags holds the commands to try in a copy of the machine, or "@" and the file that has them.
type tryFlags struct{ commands string }

const (
	tryFlag = "try"

	mostCommands = 1 << 20 // bytes

	notFound = 127 // the shell's exit code for a command that it does not find
)

func (t *tryFlags) add(fl *pflag.FlagSet) {
	add(fl, flagDef{name: tryFlag, group: toRead, value: text(&t.commands, ""), word: "COMMANDS|@FILE",
		help: "run these shell commands, or a file's, in a copy of this machine, and say who would " +
			"gain and lose what",
		not: againstFlag + " " + saveFlag})
}

func (t *tryFlags) any() bool { return t.commands != "" }

// file returns the name of the file of commands, or "".
func (t *tryFlags) file() string {
	name, _ := strings.CutPrefix(t.commands, "@")
	if name == t.commands {
		return ""
	}
	return name
}

var errWindows = errors.New("lines end as on Windows, and a shell takes such ends for parts of words")

// unixEnds says how to make a file of commands without such ends, to be tried instead; "-": they
// came on standard input.
func unixEnds(file string) string {
	if file == "-" {
		file = "FILE"
	}
	quoted := func(name string) string {
		return strings.TrimPrefix(sample.CommandLine([]string{name}), "toll ")
	}
	return "tr -d '\\r' <" + quoted(file) + " >" + quoted(file+".unix") + ", and try that file"
}

// read returns the commands.
func (t *tryFlags) read(e env, in io.Reader) (string, error) {
	name := t.file()
	if name == "" && strings.TrimSpace(t.commands) == "" {
		return "", usage(errors.New("--try: there are no commands"),
			"toll ports --try 'iptables -P INPUT DROP'")
	}
	if name == "" && strings.Contains(t.commands, "\r\n") {
		return "", usage(fmt.Errorf("--try: %w", errWindows), unixEnds("FILE"))
	}
	if name == "" {
		return t.commands, nil
	}
	file, err := input(e, name, in)
	if err != nil {
		return "", &failure{exitBadFile, err, "--try @FILE names a file of shell commands"}
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, mostCommands+1))
	if err == nil && len(b) > mostCommands {
		err = fmt.Errorf("more than %d bytes of commands", mostCommands)
	}
	if err == nil && len(bytes.TrimSpace(b)) == 0 {
		err = errors.New("there are no commands")
	}
	if err == nil && bytes.IndexByte(b, 0) >= 0 {
		err = errors.New("it has a NUL byte, so it is no shell script in UTF-8")
	}
	hint := ""
	if err == nil && bytes.Contains(b, []byte("\r\n")) {
		err, hint = errWindows, unixEnds(name)
	}
	if err != nil {
		return "", &failure{exitBadFile, fmt.Errorf("%s: %w", name, err), hint}
	}
	return string(b), nil
}

// tryCommands returns the report on the machine as commands would change it.
func (f *portsFlags) tryCommands(c *cobra.Command, e env, client netip.Addr,
	port uint16) (*ports.Report, error) {
	commands, err := f.try.read(e, c.InOrStdin())
	if err != nil {
		return nil, err
	}
	facts, m, network, err := f.machine(c, e, client)
	if err != nil {
		return nil, err
	}
	var r *ports.Report
	var out replica.Output
	if m != nil {
		r, out, err = collect.TrySaved(c.Context(), facts, m, port, commands)
	} else {
		r, out, err = collect.Try(c.Context(), facts, network, port, commands)
	}
	switch {
	case errors.Is(err, collect.ErrRulesUnread):
		return nil, &failure{exitNothing, fmt.Errorf("--try: %w", err), byRoot(e)}
	case err != nil && c.Context().Err() == nil:
		return nil, &failure{exitNothing, fmt.Errorf("--try: %w", err), ""}
	case err != nil:
		return nil, err
	case out.TooLarge():
		return nil, &failure{exitNothing, errors.New("--try: in a copy the kernel refuses to take so " +
			"many rules at once (\"Message too long\"), which it allows root of the machine; nothing " +
			"is known about these commands"), "try them with fewer rules at once"}
	}
	return r, nil
}

// namesFile reports whether --try has the name of a file in place of commands.
func (t *tryFlags) namesFile() bool {
	info, err := os.Stat(t.commands)
	return err == nil && info.Mode().IsRegular()
}

// failed returns the failure for commands that failed or took ports away.
func (t *tryFlags) failed(r *ports.Report) error {
	switch {
	case r.Tried == nil:
		return nil
	case r.Tried.Code == notFound && t.namesFile():
		return &failure{exitFailed, fmt.Errorf("--try runs shell commands, and %s is a file",
			t.commands), sample.CommandLine([]string{"ports", "--try", "@" + t.commands})}
	case len(r.Tried.NotFound) > 0:
		return &failure{exitFailed, fmt.Errorf("--try: not found: %s",
			strings.Join(r.Tried.NotFound, ", ")), toFind(r.Tried.NotFound)}
	case r.Tried.Code != 0:
		return &failure{code: exitFailed}
	case r.Expected != nil: // they are what was asked
		return nil
	case len(r.Changes.Lost) > 0:
		return &failure{code: exitWorse}
	case r.Changes.Open > 0 || r.Tried.Unknown():
		return &failure{code: exitUnclear}
	}
	return nil
}

// packageOf has the packages, by their names in Debian, of programs that change networks.
var packageOf = map[string]string{"arptables": "iptables", "brctl": "bridge-utils",
	"bridge": "iproute2", "conntrack": "conntrack", "ebtables": "iptables", "ethtool": "ethtool",
	"ifconfig": "net-tools", "ip": "iproute2", "ip6tables": "iptables",
	"ip6tables-restore": "iptables", "ipset": "ipset", "iptables": "iptables",
	"iptables-restore": "iptables", "modprobe": "kmod", "nft": "nftables", "nsenter": "util-linux",
	"route": "net-tools", "ss": "iproute2", "sysctl": "procps", "tc": "iproute2", "ufw": "ufw"}

// toFind returns the remedy for programs that commands do not find in a copy.
func toFind(names []string) string {
	var packages []string
	for _, name := range names {
		switch file, err := exec.LookPath(name); {
		case err == nil && replica.InCopy(file):
			return "is the program installed that the first line of " + filepath.Base(name) + " names?"
		case err == nil:
			return "a copy has this machine's programs and the current directory, but not /home, " +
				"/root, /tmp and /var: run toll in the directory of " + filepath.Base(name)
		}
		if p := packageOf[name]; p != "" && !slices.Contains(packages, p) {
			packages = append(packages, p)
		}
	}
	if len(packages) == 0 {
		return ""
	}
	return remedy.Install(packages...)
}
