package pathtest

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

const (
	udpServer = "udp-server"
	udpClient = "udp-client"
)

const (
	datagrams     = 200 // more than a hop may count of other traffic
	datagramBytes = 1300
	// long enough for a busy machine: resent datagrams would be more than the load reports
	answerTime = time.Second
)

func serveUDP(addr string) error {
	c, err := net.ListenPacket("udp", addr)
	if err != nil {
		return err
	}
	closed := make(chan error, 1)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		closed <- c.Close()
	}()
	fmt.Println("ready")
	b := make([]byte, 2*datagramBytes)
	for {
		n, from, err := c.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return <-closed
		}
		if err != nil {
			return err
		}
		if _, err := c.WriteTo(b[:n], from); err != nil {
			return err
		}
	}
}

// askUDP sends n datagrams, waits for the return of each, and resends lost ones.
func askUDP(addr string, n int) error {
	c, err := net.DialTimeout("udp", addr, exchangeMax)
	if err != nil {
		return err
	}
	defer c.Close()
	data, back := make([]byte, datagramBytes), make([]byte, 2*datagramBytes)
	deadline := time.Now().Add(exchangeMax)
	for i := range n {
		if _, err := rand.Read(data); err != nil {
			return err
		}
		binary.BigEndian.PutUint64(data, uint64(i))
		for answered := false; !answered; {
			if time.Now().After(deadline) {
				return fmt.Errorf("only %d of %d datagrams came back", i, n)
			}
			if _, err := c.Write(data); err != nil {
				return err
			}
			if err := c.SetReadDeadline(time.Now().Add(answerTime)); err != nil {
				return err
			}
			for !answered {
				k, err := c.Read(back)
				if errors.Is(err, os.ErrDeadlineExceeded) {
					break
				}
				if err != nil {
					return err
				}
				switch {
				case k < 8 || binary.BigEndian.Uint64(back) > uint64(i):
					return errors.New("a datagram came that nobody sent")
				case binary.BigEndian.Uint64(back) < uint64(i):
				case !bytes.Equal(back[:k], data):
					return errors.New("the bytes changed on the way")
				default:
					answered = true
				}
			}
		}
	}
	fmt.Println("done")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

func exchangeUDP(t *testing.T, p *path.Path, dial netip.AddrPort) Traffic {
	t.Helper()
	server := startEnd(t, p.Servers[0].Place, udpServer, p.Servers[0].Listen, 1)
	server.await(t, "ready")
	client := startEnd(t, p.Clients[0].Place, udpClient, dial, datagrams)
	client.await(t, "done", server)
	return Traffic{
		Moved: []path.Moved{{Forward: datagrams * datagramBytes,
			Backward: datagrams * datagramBytes, Trips: datagrams, Connections: 1,
			Shape: path.Shape{Request: datagramBytes, Reply: datagramBytes, Datagrams: true}}},
		Stop: func() {
			for _, e := range slices.Backward([]*running{server, client}) {
				e.stop(t)
			}
		},
	}
}
