package observe

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/bpf"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// Ways of a connection that the kernel can encrypt or decrypt: TLS_TX and TLS_RX.
const (
	transmit = 1
	receive  = 2
)

// kernelTLS lets the kernel encrypt what is written to a connection, or decrypt what is read from
// it, with a key of zeros.
func kernelTLS(c net.Conn, way int) error {
	const (
		version   = 0x0303 // TLS 1.2
		aesGCM128 = 51
		size      = 40 // of struct tls12_crypto_info_aes_gcm_128
	)
	info := make([]byte, size)
	binary.NativeEndian.PutUint16(info, version)
	binary.NativeEndian.PutUint16(info[2:], aesGCM128)
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	control := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_ULP, "tls")
		if err == nil || errors.Is(err, unix.EEXIST) {
			err = unix.SetsockoptString(int(fd), unix.SOL_TLS, way, string(info))
		}
	})
	return errors.Join(err, control)
}

// readRecord reads a record of TLS.
func readRecord(r *bufio.Reader) error {
	head := make([]byte, 5)
	if _, err := io.ReadFull(r, head); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, r, int64(binary.BigEndian.Uint16(head[3:])))
	return err
}

// ownRecord is what answers a connection's first request, as in the beginning of TLS.
const ownRecord = "\x16\x03\x03\x00\x01\x00"

// answersByKernel serves a connection. Behind the first request, the kernel encrypts the replies
// and, if decrypts is set, decrypts the requests.
func answersByKernel(c net.Conn, decrypts bool) error {
	r := bufio.NewReader(c)
	if _, err := r.ReadString('\n'); err != nil {
		return err
	}
	if decrypts {
		if err := kernelTLS(c, receive); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(c, ownRecord); err != nil {
		return err
	}
	if err := kernelTLS(c, transmit); err != nil {
		return err
	}
	for {
		line, err := r.ReadString('\n')
		if err == nil {
			_, err = io.WriteString(c, line)
		}
		if err != nil {
			return err
		}
	}
}

// asksByKernel asks such servers. If the client's kernel encrypts, too, the first request is behind
// that of the beginning of TLS.
type asksByKernel struct {
	encrypts bool
	begun    sync.Map // of net.Conn
}

func (a *asksByKernel) ask(c net.Conn, r *bufio.Reader) error {
	for {
		_, begun := a.begun.LoadOrStore(c, true)
		if _, err := io.WriteString(c, "request\n"); err != nil {
			return err
		}
		if begun && a.encrypts {
			_, err := r.ReadString('\n')
			return err
		}
		if err := readRecord(r); err != nil || begun || !a.encrypts {
			return err
		}
		if err := errors.Join(kernelTLS(c, transmit), kernelTLS(c, receive)); err != nil {
			return err
		}
	}
}

// serveByKernel serves at an address of a machine by TLS in the kernel, or skips the test.
func serveByKernel(t *testing.T, m *machine, at string, decrypts bool) {
	t.Helper()
	m.serve(t, at, func(c net.Conn) { _ = answersByKernel(c, decrypts) })
	c, _, err := m.dial(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := kernelTLS(c, transmit); err != nil && os.Getenv("BRIDGETOLL_VM") == "" {
		t.Skipf("this kernel encrypts nothing for TLS: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
}

// TestKernelTLS follows requests to a server whose replies the kernel encrypts, and to one that the
// kernel also decrypts the requests for.
func TestKernelTLS(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	const n = 100
	for name, both := range map[string]bool{"replies": false, "both ways": true} {
		t.Run(name, func(t *testing.T) {
			client, server := joined(t)
			const at = "10.9.0.2:443"
			serveByKernel(t, server, at, both)
			asks := &asksByKernel{encrypts: both}
			got := followsAsking(t, client, at, n, asks.ask)
			if got.Followed != n || !slices.ContainsFunc(got.Segments, func(g sample.Segment) bool {
				return g.Part == sample.PartServerTCP
			}) {
				t.Errorf("%d of %d followed: %+v, %+v", got.Followed, got.Trips, got.Broken, got.Segments)
			}
		})
	}
}

// TestAttachKernelTLS watches such a server, and what its client has where the kernel tells it.
func TestAttachKernelTLS(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	needsWrites(t)
	has, err := bpf.Tracepoints()
	if err != nil {
		t.Fatal(err)
	}
	tells := has("sock_recv_length")
	const n = 100
	client, server := joined(t)
	const at = "10.9.0.2:443"
	serveByKernel(t, server, at, true)
	dial := func() (net.Conn, error) {
		c, _, err := client.dial(t.Context(), "tcp", at)
		return c, err
	}
	asks := &asksByKernel{encrypts: true}
	testwait.Unhindered(t, patience, func(u testing.TB) {
		c, err := dial()
		if err != nil {
			u.Fatal(err)
		}
		defer c.Close()
		r := bufio.NewReader(c)
		if err := asks.ask(c, r); err != nil { // the beginning is not watched
			u.Fatal(err)
		}
		s, err := attach(u.Context(), client.pid, probing(dial))
		if err != nil {
			u.Fatal(err)
		}
		got := s.during(u, func() {
			for range n {
				if err := asks.ask(c, r); err != nil {
					u.Error(err)
				}
			}
		})
		if got.Requests < n-1 || !got.Writes || got.Unmatched > 0 {
			u.Errorf("%d requests, %d unmatched, writes %v", got.Requests, got.Unmatched, got.Writes)
		}
		if c := got.Client; tells && (c == nil || c.Requests < n-2 || c.Whole.Mean < got.Whole.Mean) ||
			!tells && c != nil {
			u.Errorf("the kernel tells what is read: %v, clients: %+v", tells, c)
		}
	})
}
