package main

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// A fault hits requests of one operation, or of all, whose path and query contain texts: it lets `skip` of them pass and
// then hits `count` of them, or all, or every `every`th. Its action:
//
//	answer    an S3 error with this status and code, or any status with this body; with these headers
//	drop      the connection is closed without a reply
//	hold      nothing happens until the faults are replaced; then the request continues if its client still waits
//	truncate  the connection is closed after `bytes` bytes of the reply's body, if it has more
//
// With `after`, the server does the work first, and its reply is lost: a request held in this way ends like a dropped one.
type fault struct {
	Operation string            `json:"operation"`
	Path      string            `json:"path"`
	Query     string            `json:"query"` // as it was sent, encoded
	Skip      int               `json:"skip"`
	Count     int               `json:"count"`
	Every     int               `json:"every"`
	Do        string            `json:"do"`
	Status    int               `json:"status"`
	Code      string            `json:"code"`
	Body      string            `json:"body"`
	Headers   map[string]string `json:"headers"`
	Bytes     int               `json:"bytes"`
	After     bool              `json:"after"`

	seen int
}

func (f *fault) check() error {
	switch {
	case f.Do != "answer" && f.Do != "drop" && f.Do != "hold" && f.Do != "truncate":
		return errors.New("do: answer, drop, hold or truncate")
	case f.Do == "truncate" && (f.Bytes < 0 || f.After):
		return errors.New("truncate: bytes is 0 or more, and there is no after")
	case f.Do == "answer" && (f.Status < 200 || f.Status < 300 && f.Body == "" || f.Status > 599):
		return errors.New("status: that of an error, unless there is a body")
	case f.Skip < 0 || f.Count < 0 || f.Every < 0:
		return errors.New("skip, count and every: 0 or more")
	}
	return nil
}

func (f *fault) strikes(operation string, request *url.URL) bool {
	if f.Operation != "" && f.Operation != operation || !strings.Contains(request.Path, f.Path) || !strings.Contains(request.RawQuery, f.Query) {
		return false
	}
	f.seen++
	struck := f.seen - f.Skip
	return struck > 0 && (f.Count == 0 || struck <= f.Count) && (f.Every == 0 || struck%f.Every == 0)
}

// faults are the current faults; `replaced` is closed when they are replaced.
type faults struct {
	mutex    sync.Mutex
	list     []*fault
	struck   int
	replaced chan struct{}
}

func newFaults() *faults { return &faults{replaced: make(chan struct{})} }

func (f *faults) replace(list []*fault) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.list = list
	f.struck = 0
	close(f.replaced)
	f.replaced = make(chan struct{})
}

// count is the number of requests that the faults have hit.
func (f *faults) count() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.struck
}

// next is the first fault that hits this request, or nil, and the channel that releases a held request.
func (f *faults) next(operation string, request *url.URL) (*fault, <-chan struct{}) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, candidate := range f.list {
		if candidate.strikes(operation, request) {
			f.struck++
			return candidate, f.replaced
		}
	}
	return nil, nil
}

// truncated passes the first `left` bytes of a body on; a reply with more ends with its connection.
type truncated struct {
	http.ResponseWriter
	left int
}

var errTruncated = errors.New("truncated by a fault")

func (t *truncated) Write(body []byte) (int, error) {
	passed := min(len(body), t.left)
	t.left -= passed
	written, err := t.ResponseWriter.Write(body[:passed])
	if err == nil && passed < len(body) {
		// Before the connection is closed, which would lose what is still buffered.
		_ = http.NewResponseController(t.ResponseWriter).Flush()
		err = errTruncated
	}
	return written, err
}

func (t *truncated) Unwrap() http.ResponseWriter { return t.ResponseWriter }
