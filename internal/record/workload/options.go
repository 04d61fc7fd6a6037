package workload

import (
	"cmp"
	"encoding/json"
	"reflect"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// The record is below the catalogue, and is told here how to read options.
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

// options are the load's own if they are a T; else a T of which none is given.
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

// Filled is the load with what its loops use for those options that are not given.
func (w Workload) Filled(l sample.Load) sample.Load {
	l.Streams = cmp.Or(l.Streams, 1)
	if w.fill != nil {
		w.fill(&l)
	}
	return l
}

// Messages are the sizes of requests and replies, in bytes: all options of crr and udp-rr,
// and some of rr and query.
type Messages struct {
	Request int `json:"request,omitempty"`
	Reply   int `json:"reply,omitempty"`
}

// MessagesOf are the load's if it has some; else none is given.
func MessagesOf(l sample.Load) Messages {
	if o, ok := l.Options.(interface{ messages() Messages }); ok {
		return o.messages()
	}
	return Messages{}
}

func (m Messages) messages() Messages { return m }

// filled are the sizes with those that the loops use if none is given.
func (m Messages) filled() Messages { return Messages{cmp.Or(m.Request, 1), cmp.Or(m.Reply, 1)} }

// fillMessages is the fill of loads that have no other options.
func fillMessages(l *sample.Load) { set(l, func(m *Messages) { *m = m.filled() }) }

// ownMessages finds them in the options of loads that have no others.
func ownMessages(m *Messages) *Messages { return m }

// WriteOf is how many bytes bulk, or the stream beside rr, gives the kernel at once; 0: the
// load has no such stream, or its loop chooses.
func WriteOf(l sample.Load) int { return cmp.Or(BulkOf(l).Write, RROf(l).Write) }
