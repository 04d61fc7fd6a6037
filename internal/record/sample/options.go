package sample

import "encoding/json"

// BulkOptions are the options of bulk.
type BulkOptions struct {
	Write   int    `json:"write,omitempty"`   // bytes
	Reverse bool   `json:"reverse,omitempty"` // server to client
	Bidir   bool   `json:"bidir,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"` // per connection, instead of a full window
	Send    string `json:"send,omitempty"`  // zerocopy or sendfile; "": by copying
}

// Messages are the sizes of requests and replies, in bytes.
type Messages struct {
	Request int `json:"request,omitempty"`
	Reply   int `json:"reply,omitempty"`
}

// Sizes returns m. Options that embed Messages inherit the method, by which workload.MessagesOf
// recognizes them.
func (m Messages) Sizes() Messages { return m }

// RROptions are the options of rr.
type RROptions struct {
	Write int `json:"write,omitempty"` // of the bulk stream, in bytes
	Messages
	// Rate is the requests per second of all connections; 0: as fast as replies arrive.
	Rate   float64 `json:"rate,omitempty"`
	Beside bool    `json:"beside,omitempty"` // with a bulk stream at the same time
}

// UDPOptions are the options of udp.
type UDPOptions struct {
	Rate  float64 `json:"rate,omitempty"`  // bit/s of all flows; 0: the highest with little loss
	Size  int     `json:"size,omitempty"`  // bytes
	Batch int     `json:"batch,omitempty"` // datagrams per system call
	GSO   bool    `json:"gso,omitempty"`   // UDP segmentation offload
}

// StreamOptions are the options of stream.
type StreamOptions struct {
	Tokens int     `json:"tokens,omitempty"` // per response
	Pace   float64 `json:"pace,omitempty"`   // tokens per second and session
}

// QueryOptions are the options of query.
type QueryOptions struct {
	Messages
	Queries int `json:"queries,omitempty"` // per page
}

// ChatOptions are the options of chat and batch.
type ChatOptions struct {
	Tokens   int     `json:"tokens,omitempty"`   // most per response; 0: unknown
	Requests int     `json:"requests,omitempty"` // of a session, in sequence
	Prompt   string  `json:"prompt,omitempty" printable:"text"`
	Request  string  `json:"request,omitempty"` // names the body that is sent instead; "": toll's own
	Stall    float64 `json:"stall_s,omitempty"` // shortest gap that counts
}

// SQLOptions are the options of sql.
type SQLOptions struct {
	Queries int `json:"queries,omitempty"` // per page
	// "": the database's default of about 1 KiB
	SQL string `json:"sql,omitempty" printable:"text"`
}

// RequestOptions are the options of request.
type RequestOptions struct {
	Asks string `json:"asks,omitempty" printable:"text"` // "GET /health"
	// Client is the command line of a foreign client; "": toll's own. Of a foreign client's
	// requests only the packets are known.
	Client string `json:"client,omitempty" printable:"text"`
}

// ExecOptions are the options of exec.
type ExecOptions struct {
	Program *Program `json:"program,omitempty"`
}

func readOptions(kind string, load []byte) (any, error) {
	switch kind {
	case "rr":
		return read[RROptions](load)
	case "crr", "udp-rr":
		return read[Messages](load)
	case "udp":
		return read[UDPOptions](load)
	case "stream":
		return read[StreamOptions](load)
	case "query":
		return read[QueryOptions](load)
	case "exec":
		return read[ExecOptions](load)
	case "chat", "batch":
		return read[ChatOptions](load)
	case "request":
		return read[RequestOptions](load)
	case "sql":
		return read[SQLOptions](load)
	}
	return read[BulkOptions](load)
}

func read[T any](b []byte) (any, error) {
	var o T
	err := json.Unmarshal(b, &o)
	return o, err
}
