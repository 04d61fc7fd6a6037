package agent

import (
	"io"
	"time"

	"github.com/hashicorp/yamux"
)

// Carrier carries all connections between an agent and its hub in one byte stream each way. The
// agent opens the connections, the hub accepts them. Carrier sends no keep-alive messages.
type Carrier = yamux.Session

// AtHub returns the hub's end of a carrier, AtAgent the agent's.
func AtHub(over io.ReadWriteCloser) (*Carrier, error) {
	return yamux.Server(over, carrierConfig())
}
func AtAgent(over io.ReadWriteCloser) (*Carrier, error) {
	return yamux.Client(over, carrierConfig())
}

func carrierConfig() *yamux.Config {
	c := yamux.DefaultConfig()
	c.EnableKeepAlive = false // the hub pings, and can be hushed
	c.LogOutput = io.Discard  // failures are errors of the connections
	c.StreamOpenTimeout = 0   // the handshake has its own limit
	c.StreamCloseTimeout = time.Minute
	return c
}
