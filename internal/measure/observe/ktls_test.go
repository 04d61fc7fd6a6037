package observe

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// encrypts lets the kernel encrypt what is written to a connection, with a key of zeros.
func encrypts(c net.Conn) error {
	const (
		transmit  = 1      // TLS_TX
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
		if err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_ULP, "tls"); err == nil {
			err = unix.SetsockoptString(int(fd), unix.SOL_TLS, transmit, string(info))
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

// TestKernelTLS follows requests to a server whose replies the kernel encrypts, behind a reply of its
// own, as in the beginning of TLS.
func TestKernelTLS(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	client, server := joined(t)
	const at = "10.9.0.2:443"
	var encrypted atomic.Bool
	refused := make(chan error, 1)
	server.serve(t, at, func(c net.Conn) {
		r := bufio.NewReader(c)
		for own := true; ; own = false {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			if own {
				line = string([]byte{22, 3, 3, 0, 1, 0}) // a record
			}
			if _, err := io.WriteString(c, line); err != nil {
				return
			}
			if !own {
				continue
			}
			if err := encrypts(c); err != nil {
				refused <- err
				return
			}
			encrypted.Store(true)
		}
	})
	c, _, err := client.dial(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for r := bufio.NewReader(c); !encrypted.Load(); {
		_, err := io.WriteString(c, "request\n")
		if err == nil {
			err = readRecord(r)
		}
		if err == nil {
			continue
		}
		if why := <-refused; os.Getenv("BRIDGETOLL_VM") == "" {
			t.Skipf("this kernel encrypts nothing for TLS: %v", why)
		}
		t.Fatal(err)
	}
	got := followsReads(t, client, at, 100, readRecord)
	if got.Followed != 100 || !slices.ContainsFunc(got.Segments, func(g sample.Segment) bool {
		return g.Part == sample.PartServerTCP
	}) {
		t.Errorf("%d of %d followed: %+v, %+v", got.Followed, got.Trips, got.Broken, got.Segments)
	}
}
