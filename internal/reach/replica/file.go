package replica

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Version is the version of a Machine's JSON. UnmarshalJSON reads older versions and refuses newer
// ones.
const Version = 1

// Limits for a Machine's JSON. They bound memory, because a value of few characters may take some
// hundred bytes.
const (
	MaxFile       = 64 << 20
	maxCommas     = 1 << 20
	maxNamespaces = 1 << 9
	maxData       = 1 << 16 // bytes of a message, or of a device's settings
	maxTable      = 32      // XT_TABLE_MAXNAMELEN
)

// errInvalid means that data does not describe a Machine.
var errInvalid = errors.New("not a machine's network")

type plain Machine

// ForeignError means that another toll, or toll on another machine, can read what a toll saved.
type ForeignError struct {
	Reason error
	hint   string
}

// NewForeignError returns an error with a remedy.
func NewForeignError(reason error, hint string) error { return &ForeignError{reason, hint} }

func (e *ForeignError) Error() string { return e.Reason.Error() }
func (e *ForeignError) Unwrap() error { return e.Reason }

// Hint returns who can read it.
func (e *ForeignError) Hint() string { return e.hint }

type versioned struct {
	Version int `json:"version"`
	*plain
}

// MarshalJSON returns the machine as JSON. It includes addresses, names of devices and comments of
// rules. It omits keys, passwords and contents of packets.
func (m *Machine) MarshalJSON() ([]byte, error) {
	return json.Marshal(versioned{Version, (*plain)(m)})
}

// UnmarshalJSON reads JSON, also from untrusted sources. It returns an error if b is larger than
// MaxFile bytes, or has names, indexes, types of messages or parameters that no kernel prints.
func (m *Machine) UnmarshalJSON(b []byte) error {
	if len(b) > MaxFile || bytes.Count(b, []byte(",")) > maxCommas {
		return fmt.Errorf("%w: it is too large", errInvalid)
	}
	var spaces struct {
		Version int               `json:"version"`
		Spaces  []json.RawMessage `json:"namespaces"`
	}
	if err := json.Unmarshal(b, &spaces); err != nil {
		return fmt.Errorf("%w: %w", errInvalid, err)
	}
	switch {
	case spaces.Version < 1:
		return fmt.Errorf("%w: no version", errInvalid)
	case spaces.Version > Version:
		return &ForeignError{fmt.Errorf("%w: its version is %d, and this toll reads up to %d",
			errInvalid, spaces.Version, Version), "a newer toll reads it"}
	case len(spaces.Spaces) == 0 || len(spaces.Spaces) > maxNamespaces:
		return fmt.Errorf("%w: it has %d network namespaces", errInvalid, len(spaces.Spaces))
	}
	v := versioned{plain: &plain{}}
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("%w: %w", errInvalid, err)
	}
	got := (*Machine)(v.plain)
	if got.Arch != "" && !alike(got.Arch, runtime.GOARCH) {
		return &ForeignError{fmt.Errorf("%w that %s can copy: it comes from %s", errInvalid,
			runtime.GOARCH, printable.Words(got.Arch)), "toll on a machine like that one reads it"}
	}
	for i := range got.Spaces {
		if err := got.Spaces[i].check(len(got.Spaces)); err != nil {
			return fmt.Errorf("%w: namespace %d: %w", errInvalid, i, err)
		}
	}
	got.Kernel = printable.Line(got.Kernel)
	*m = *got
	return nil
}

// little lists the 64-bit little-endian architectures, whose kernels have the same layout of
// messages and tables.
var little = []string{"amd64", "arm64", "loong64", "mips64le", "ppc64le", "riscv64"}

func alike(a, b string) bool {
	return a == b || slices.Contains(little, a) && slices.Contains(little, b)
}

var (
	namespaceID = regexp.MustCompile(`^(net:\[[0-9]{1,20}\])?$`)
	spaceName   = regexp.MustCompile(`^[a-zA-Z0-9_@%+=:-][a-zA-Z0-9_@%+=:.-]{0,63}$`)
	kindName    = regexp.MustCompile(`^[a-zA-Z0-9_-]{0,32}$`)
)

// check returns an error if the space has values that no kernel prints. It makes texts printable.
func (s *Space) check(spaces int) error {
	printable.Fields(&s.Text)
	printable.Fields(&s.Unknown)
	if !namespaceID.MatchString(s.ID) || s.PID < 0 {
		return fmt.Errorf("its id is %q", s.ID)
	}
	for _, name := range s.Names {
		if !spaceName.MatchString(name) {
			return fmt.Errorf("its name is %q", name)
		}
	}
	names, indexes := map[string]bool{}, map[int]bool{}
	for _, l := range s.Links {
		if err := checkLink(l, spaces); err != nil {
			return err
		}
		if names[l.Name] || indexes[l.Index] {
			return fmt.Errorf("device %s is there twice", l.Name)
		}
		names[l.Name], indexes[l.Index] = true, true
	}
	for _, list := range []struct {
		what     string
		messages []raw.Message
		is       func(kind uint16) bool
	}{
		{"addresses", s.Addresses, only(unix.RTM_NEWADDR)},
		{"nexthops", s.Nexthops, only(unix.RTM_NEWNEXTHOP)},
		{"routes", s.Routes, only(unix.RTM_NEWROUTE)},
		{"policy", s.Policy, only(unix.RTM_NEWRULE)},
		{"neighbours", s.Neighbours, only(unix.RTM_NEWNEIGH)},
		{"nf_tables", s.Nft.Messages, ofSubsystem(unix.NFNL_SUBSYS_NFTABLES)},
		{"ipsets", s.Sets, ofSubsystem(unix.NFNL_SUBSYS_IPSET)},
	} {
		for i, m := range list.messages {
			if !list.is(m.Type) || len(m.Data) > maxData {
				return fmt.Errorf("%s: message %d has type %d and %d bytes", list.what, i, m.Type,
					len(m.Data))
			}
		}
	}
	for key, value := range s.Sysctls {
		if !sysctl.Valid(key, value) {
			return fmt.Errorf("parameter %q is %q", key, value)
		}
	}
	for _, t := range s.Legacy {
		if len(t.Name) >= maxTable || strings.ContainsFunc(t.Name, notWord) {
			return fmt.Errorf("table %q", t.Name)
		}
	}
	return nil
}

func notWord(r rune) bool { return !kindName.MatchString(string(r)) }

func only(kind uint16) func(uint16) bool {
	return func(k uint16) bool { return k == kind }
}

func ofSubsystem(subsystem uint16) func(uint16) bool {
	const shift = 8
	return func(k uint16) bool { return k>>shift == subsystem }
}

func checkLink(l link.Saved, spaces int) error {
	const (
		maxMAC   = 32 // MAX_ADDR_LEN
		maxIndex = 1<<31 - 1
	)
	// Like the kernel's dev_valid_name, but only printable names.
	if l.Name == "" || len(l.Name) >= unix.IFNAMSIZ || l.Name == "." || l.Name == ".." ||
		strings.ContainsAny(l.Name, "/: ") || printable.Words(l.Name) != l.Name {
		return fmt.Errorf("a device has the name %q", l.Name)
	}
	within := func(n, low, high int) bool { return n >= low && n <= high }
	if !within(l.Index, 1, maxIndex) || !within(l.Master, 0, maxIndex) ||
		!within(l.Parent, 0, maxIndex) || !within(l.MTU, 0, maxIndex) || len(l.MAC) > maxMAC ||
		!within(l.ParentSpace, link.Elsewhere, spaces-1) || !kindName.MatchString(l.Kind) {
		return fmt.Errorf("device %s is not possible", l.Name)
	}
	if max(len(l.Data), len(l.Slave), len(l.VLANs)) > maxData {
		return fmt.Errorf("device %s has too many attributes", l.Name)
	}
	return nil
}
