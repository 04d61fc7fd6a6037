package tokens

import "github.com/bridgetoll/bridgetoll/internal/measure/openai"

// streams decodes the requests and replies of a connection of HTTP/2. It reads no headers: requests
// have their marks in their bodies, and replies that are compressed by gzip begin so.
type streams struct {
	asks, answers *http2
	ours          func(mark uint32) bool
	text          openai.Reader // of the events of each reply
	ended         func(*request, *reply)
	under         map[uint32]*underWay // requests whose replies have not ended, by their streams
}

type underWay struct {
	request
	marks digits
	reply *reply
}

// newStreams returns the decoder of a connection, whose next bytes are at offsets of requests and
// replies. ended is called at the end of each reply.
func newStreams(asked, answered int64, ours func(uint32) bool, text openai.Reader,
	ended func(*request, *reply)) *streams {
	s := &streams{ours: ours, text: text, ended: ended, under: map[uint32]*underWay{}}
	s.asks, s.answers = pairHTTP2()
	s.asks.at, s.answers.at = asked, answered
	s.asks.to, s.answers.to = s.request, s.reply
	return s
}

// request handles data of a request before an offset, or its end.
func (s *streams) request(stream uint32, data []byte, end int64) {
	if end < 0 {
		delete(s.under, stream)
		return
	}
	x := s.under[stream]
	if x == nil {
		x = &underWay{reply: newReply(s.text)}
		s.under[stream] = x
	}
	note := func(n uint64) {
		if n < 1<<31 && x.mark == 0 && s.ours(uint32(n)) {
			x.mark = uint32(n)
		}
	}
	if data == nil {
		x.marks.end(note)
		x.end = end
		return
	}
	x.chat, x.body = true, true
	x.marks.find(data, note)
}

// reply handles data of a reply before an offset, or its end.
func (s *streams) reply(stream uint32, data []byte, end int64) {
	x := s.under[stream]
	switch {
	case x == nil: // its request was not captured
	case end < 0:
		delete(s.under, stream)
	case data == nil:
		delete(s.under, stream)
		x.reply.end(end)
		s.ended(&x.request, x.reply)
	default:
		const gzipped = '\x1f' // with which no event begins
		if x.reply.at == 0 && data[0] == gzipped {
			x.reply.zipped = &gunzip{}
		}
		x.reply.body(data, end)
		x.reply.at = end
	}
}
