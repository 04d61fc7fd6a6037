package workload

import (
	"cmp"
	"encoding/json"
	"reflect"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Package sample cannot import this one, so it gets the reader of options here.
func init() { sample.ReadOptions = read }

// read reads the options of a load of that kind from the load's JSON object.
func read(kind string, load []byte) (any, error) {
	w := Of(sample.Load{Kind: kind})
	if w.none == nil {
		return nil, nil
	}
	o := reflect.New(reflect.TypeOf(w.none))
	err := json.Unmarshal(load, o.Interface())
	return o.Elem().Interface(), err
}

// options returns the load's own options if they are a T, or a zero T.
func options[T any](l sample.Load) T {
	o, _ := l.Options.(T)
	return o
}

// set changes the load's options.
func set[T any](l *sample.Load, change func(o *T)) {
	o := options[T](*l)
	change(&o)
	l.Options = o
}

// Filled returns the load with what its loops use for options that were not given.
func (w Workload) Filled(l sample.Load) sample.Load {
	l.Streams = cmp.Or(l.Streams, 1)
	if w.fill != nil {
		w.fill(&l)
	}
	return l
}

// Messages are the sizes of requests and replies, in bytes: all options of crr and udp-rr, and some
// of rr and query.
type Messages struct {
	Request int `json:"request,omitempty"`
	Reply   int `json:"reply,omitempty"`
}

// MessagesOf returns the load's sizes, or the zero value.
func MessagesOf(l sample.Load) Messages {
	if o, ok := l.Options.(interface{ messages() Messages }); ok {
		return o.messages()
	}
	return Messages{}
}

func (m Messages) messages() Messages { return m }

// filled returns the sizes with the loops' defaults.
func (m Messages) filled() Messages { return Messages{cmp.Or(m.Request, 1), cmp.Or(m.Reply, 1)} }

// fillMessages is the fill of loads without other options.
func fillMessages(l *sample.Load) { set(l, func(m *Messages) { *m = m.filled() }) }

// ownMessages finds them in the options of loads without others.
func ownMessages(m *Messages) *Messages { return m }

// WriteOf returns the bytes that bulk, or the stream beside rr, writes at once; 0: the load has no
// such stream, or its loop chooses.
func WriteOf(l sample.Load) int { return cmp.Or(BulkOf(l).Write, RROf(l).Write) }
