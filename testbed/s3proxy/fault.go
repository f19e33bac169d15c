package main

import (
	"errors"
	"strings"
	"sync"
)

// A fault strikes requests of one operation, or of all, whose path contains a text: it lets `skip` of them pass and then
// strikes `count`, or all that come. What it does to them:
//
//	answer  an error of S3 with this status and code
//	drop    the connection is closed without an answer
//	hold    nothing happens until the faults are replaced; then the request goes on, if its client still waits
//
// With `after`, the server does the work first, and it is its answer that is lost: held so, a request ends as a dropped one.
type fault struct {
	Operation string `json:"operation"`
	Path      string `json:"path"`
	Skip      int    `json:"skip"`
	Count     int    `json:"count"`
	Do        string `json:"do"`
	Status    int    `json:"status"`
	Code      string `json:"code"`
	After     bool   `json:"after"`

	seen int
}

func (f *fault) check() error {
	switch {
	case f.Do != "answer" && f.Do != "drop" && f.Do != "hold":
		return errors.New("do: answer, drop or hold")
	case f.Do == "answer" && (f.Status < 300 || f.Status > 599):
		return errors.New("status: that of an error")
	case f.Skip < 0 || f.Count < 0:
		return errors.New("skip and count: 0 or more")
	}
	return nil
}

func (f *fault) strikes(operation, path string) bool {
	if f.Operation != "" && f.Operation != operation || !strings.Contains(path, f.Path) {
		return false
	}
	f.seen++
	return f.seen > f.Skip && (f.Count == 0 || f.seen <= f.Skip+f.Count)
}

// faults are what is to happen; `replaced` is closed when others take their place.
type faults struct {
	mutex    sync.Mutex
	list     []*fault
	replaced chan struct{}
}

func newFaults() *faults { return &faults{replaced: make(chan struct{})} }

func (f *faults) replace(list []*fault) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.list = list
	close(f.replaced)
	f.replaced = make(chan struct{})
}

// next is the first fault that strikes this request, or nil, and what tells a held request to go on.
func (f *faults) next(operation, path string) (*fault, <-chan struct{}) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, candidate := range f.list {
		if candidate.strikes(operation, path) {
			return candidate, f.replaced
		}
	}
	return nil, nil
}
