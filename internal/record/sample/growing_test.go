package sample

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestGrowing(t *testing.T) {
	text := written(t, full(t))
	want, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 7, 1000, len(text)} {
		g := NewGrowing()
		if _, err := g.File(); !errors.Is(err, ErrEmpty) {
			t.Fatalf("before anything came: %v", err)
		}
		var early *File
		had := -1
		for b := []byte(text); len(b) > 0; {
			k := min(n, len(b))
			if _, err := g.Write(b[:k]); err != nil {
				t.Fatal(err)
			}
			b = b[k:]
			if f, err := g.File(); err == nil && early == nil {
				early, had = f, len(f.Visits)
			}
		}
		got, err := g.File()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%d bytes at a time: %v\n%+v, want\n%+v", n, err, got, want)
		}
		if n < 1000 && (!early.Truncated || len(early.Visits) != had) {
			t.Errorf("%d bytes at a time: what was taken early has changed", n)
		}
	}
}

func TestGrowingRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no header":                `{"visit":{"cell":0}}` + "\n",
		"a bad line in the middle": okHeader + "\nnonsense\n" + okHeader + "\n",
		"after the end": okHeader + "\n" + `{"end":{"reason":"budget"}}` + "\n" +
			`{"visit":{"cell":0}}` + "\n",
		"a long line":           okHeader + "\n" + strings.Repeat("x", maxLine+1),
		"a long line in pieces": okHeader + "\n" + strings.Repeat("x", maxLine) + "|xx",
	} {
		g := NewGrowing()
		var err error
		for _, b := range bytes.Split([]byte(text), []byte("|")) {
			if _, err = g.Write(b); err != nil {
				break
			}
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
