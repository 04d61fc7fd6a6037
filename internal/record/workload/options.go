package workload

import (
	"cmp"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func options[T any](l sample.Load) T {
	o, _ := l.Options.(T)
	return o
}

func set[T any](l *sample.Load, change func(o *T)) {
	o := options[T](*l)
	change(&o)
	l.Options = o
}

// Filled returns the load with absent options set to the defaults of its loops.
func (w Workload) Filled(l sample.Load) sample.Load {
	l.Streams = cmp.Or(l.Streams, 1)
	if w.fill != nil {
		w.fill(&l)
	}
	return l
}

// MessagesOf returns the load's sizes, or the zero value.
func MessagesOf(l sample.Load) sample.Messages {
	if o, ok := l.Options.(interface{ Sizes() sample.Messages }); ok {
		return o.Sizes()
	}
	return sample.Messages{}
}

func filled(m sample.Messages) sample.Messages {
	return sample.Messages{Request: cmp.Or(m.Request, 1), Reply: cmp.Or(m.Reply, 1)}
}

func fillMessages(l *sample.Load) { set(l, func(m *sample.Messages) { *m = filled(*m) }) }

func ownMessages(m *sample.Messages) *sample.Messages { return m }

// WriteOf returns the bytes that a stream (of bulk, or parallel to rr) writes at once; 0: no
// stream, or its loop chooses.
func WriteOf(l sample.Load) int { return cmp.Or(BulkOf(l).Write, RROf(l).Write) }
