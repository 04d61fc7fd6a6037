package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// Reading shows its share after a delay, and passes the data on unchanged.
func TestReadingTells(t *testing.T) {
	var told bytes.Buffer
	p := &progress{w: &told}
	r, ok := p.reading(strings.NewReader("0123456789"), 20_000_000).(*readProgress)
	if !ok {
		t.Fatal("nothing is told")
	}
	b := make([]byte, 5)
	if n, err := r.Read(b); n != 5 || err != nil || told.Len() > 0 {
		t.Errorf("%d, %v, %q", n, err, &told)
	}
	r.next, r.read = time.Time{}, 9_999_995
	if n, err := r.Read(b); n != 5 || string(b) != "56789" || err != nil {
		t.Errorf("%d %q, %v", n, b, err)
	}
	if got := told.String(); got != clearLine+"reading results, 50 % of 20 MB" {
		t.Errorf("%q", got)
	}
	r.size = 0
	if got := r.share(); got != "10 MB" {
		t.Errorf("%q", got)
	}
	p.judging(100)
	p.judging(100_000)
	if got := told.String(); !strings.HasSuffix(got, "MB"+clearLine+"judging 100000 visits") {
		t.Errorf("%q", got)
	}
	in := strings.NewReader("")
	if (&progress{}).reading(in, 1) != in {
		t.Error("without a terminal it is told")
	}
}

type writes int

func (n *writes) Write(b []byte) (int, error) {
	*n++
	return len(b), nil
}

// A line that clears the one before it is written in one call, because others write to the
// terminal, too.
func TestSayAfter(t *testing.T) {
	var n writes
	if sayAfter(&n, clearLine, "toll: waiting"); n != 1 {
		t.Errorf("%d writes", n)
	}
	var b bytes.Buffer
	if sayAfter(&b, clearLine, "toll: waiting"); b.String() != clearLine+"toll: waiting\n" {
		t.Errorf("%q", &b)
	}
}
