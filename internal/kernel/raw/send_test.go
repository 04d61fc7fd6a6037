package raw

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
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
