package agent

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"
)

// All agents share their key.
func TestAgentsCannotPoseAsTheHub(t *testing.T) {
	k, err := NewKey()
	check(t, err)
	agents, err := openBundle(k.Bundle())
	check(t, err)
	impostor := k.config()
	impostor.Certificates = agents.Certificates
	for name, server := range map[string]*tls.Config{"the hub": k.config(), "an agent": impostor} {
		l, err := tls.Listen("tcp", "127.0.0.1:0", server)
		check(t, err)
		go func() {
			if c, err := l.Accept(); err == nil {
				_, _ = c.Read(make([]byte, 1))
				c.Close()
			}
		}()
		c, err := tls.DialWithDialer(&net.Dialer{Timeout: testTime}, "tcp", l.Addr().String(),
			agents)
		if err == nil {
			c.Close()
		}
		l.Close()
		if (err == nil) != (name == "the hub") ||
			err != nil && !errors.As(err, new(*tls.CertificateVerificationError)) {
			t.Errorf("as %s: %v", name, err)
		}
	}
}
