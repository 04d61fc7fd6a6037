package ovs

import "fmt"

// Machines is the Open vSwitch that already runs on the machine, with its default database. It also
// has bridges of other programs, so each command must name a bridge.
type Machines struct{}

// Version returns the version of the running ovs-vswitchd, such as "3.1.0". It returns an error if
// Open vSwitch is not installed (the error wraps exec.ErrNotFound), does not run, or may not be
// queried by this user.
func (Machines) Version() (string, error) {
	// ovs-vsctl would not notice that ovs-vswitchd does not run: it only writes to the database.
	out, err := run("ovs-appctl", "--timeout=5", "-vconsole:off", "--target=ovs-vswitchd",
		"version")
	if err != nil {
		return "", err
	}
	if m := versionLine.FindStringSubmatch(out); m != nil {
		return m[1], nil
	}
	return "", fmt.Errorf("ask Open vSwitch's version: %q", out)
}

// Set runs ovs-vsctl with args, waits until the switch has applied the change and returns the
// output.
func (Machines) Set(args ...string) (string, error) {
	return run("ovs-vsctl", append([]string{"--timeout=10", "-vconsole:off", "--no-syslog"},
		args...)...)
}

// Ports returns the counters of a bridge's ports by port number.
func (Machines) Ports(bridge string) (map[string]Port, error) {
	out, err := run("ovs-ofctl", "--timeout=10", "-vconsole:off", "-vsyslog:off", "--no-names",
		"dump-ports", bridge)
	if err != nil {
		return nil, err
	}
	return parsePorts(out)
}
