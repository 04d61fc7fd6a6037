package machine

import (
	"errors"
	"fmt"
)

// ErrUnsupported means that this machine cannot have the path.
var ErrUnsupported = errors.New("not supported here")

// UnsupportedError reports what is missing for a path, and a remedy.
type UnsupportedError struct {
	Missing string // kernel option, privilege or program
	Remedy  string
	Err     error // may be nil
	Lack    Lack  // the kind of what is missing; "": another
}

// A Lack is a kind of what is missing, for callers that do not treat all kinds alike.
type Lack string

// The kinds.
const (
	LackMode      Lack = "mode"      // a backend does not build it
	LackPlacement Lack = "placement" // a backend has no client, or no second machine, there
	LackIPv6      Lack = "ipv6"
	LackDNS       Lack = "dns"
	// LackPermission means that a cluster's roles do not permit what was asked of it.
	LackPermission Lack = "permission"
	// LackPodSecurity means that a namespace of a cluster does not admit a pod.
	LackPodSecurity Lack = "pod-security"
)

func (e *UnsupportedError) Error() string {
	if e.Err == nil {
		return e.Missing
	}
	return fmt.Sprintf("%s (%v)", e.Missing, e.Err)
}

func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }
func (e *UnsupportedError) Unwrap() error        { return e.Err }

func (e *UnsupportedError) Hint() string { return e.Remedy }
