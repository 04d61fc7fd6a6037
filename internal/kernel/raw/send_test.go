package raw

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

func TestReceiveIsWhatWasSent(t *testing.T) {
	want := []Message{{Type: 2567, Data: []byte("rule")}, {Type: 1, Data: []byte{}},
		{Type: 65535, Data: bytes.Repeat([]byte{0, 255}, 1<<15)}}
	var b bytes.Buffer
	if err := Send(&b, want); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	got, err := Receive(&b, len(want))
	if err != nil || !reflect.DeepEqual(got, want) || b.Len() > 0 {
		t.Errorf("%v, %v, and %d bytes are left", got, err, b.Len())
	}
	_, err = Receive(bytes.NewReader(whole[:len(whole)-1]), len(want))
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a message without its last byte: %v", err)
	}
	if err := Send(io.Discard, []Message{{Data: make([]byte, maxSize+1)}}); err == nil {
		t.Error("a message larger than Receive accepts was sent")
	}
	if _, err := Receive(bytes.NewReader(bytes.Repeat([]byte{255}, 100)), 1); err == nil {
		t.Error("a message of 4 GiB was accepted")
	}
}

// Some lists have parts, and some answers are, larger than usual.
func TestReceiveHasRoom(t *testing.T) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	from, to := socket(ends[0]), socket(ends[1])
	defer from.Close()
	defer to.Close()
	want := []netlink.Message{{Data: bytes.Repeat([]byte{7}, 3*usual)}, {Data: []byte("last")}}
	for i := range want {
		want[i].Header.Length = uint32(unix.NLMSG_HDRLEN + len(want[i].Data))
		b, err := want[i].MarshalBinary()
		if err == nil {
			_, err = unix.Write(int(from), b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range want {
		got, err := to.Receive()
		if err != nil || !reflect.DeepEqual(got, []netlink.Message{m}) {
			t.Errorf("%d messages, %v, want one of %d bytes", len(got), err, m.Header.Length)
		}
	}
}
